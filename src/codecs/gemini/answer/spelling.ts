/**
 * Answers of servers that use the snake_case names of the protocol's definition, such as `usage_metadata` (known failure G14).
 */
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';

/** Members whose content belongs to the client's tools, names included. */
const TOOL_DATA = new Set(['args', 'response']);

/** The chunk with camelCase names. Nearly all chunks have them and are returned as they are. */
export function inCamelCase(chunk: JsonObject): JsonObject {
  return usesSnakeCase(chunk) ? renamed(chunk) : chunk;
}

/** Looks only at the objects that show it, since every chunk of a stream is checked. */
function usesSnakeCase(chunk: JsonObject): boolean {
  if (hasSnakeName(chunk) || hasSnakeName(chunk['usageMetadata'])) return true;
  const { candidates } = chunk;
  if (!Array.isArray(candidates)) return false;
  for (const candidate of candidates) {
    if (hasSnakeName(candidate)) return true;
    const content = isObject(candidate) ? candidate['content'] : undefined;
    const parts = isObject(content) ? content['parts'] : undefined;
    if (!Array.isArray(parts)) continue;
    for (const part of parts) if (hasSnakeName(part)) return true;
  }
  return false;
}

function hasSnakeName(value: JsonValue | undefined): boolean {
  if (!isObject(value)) return false;
  for (const name in value) if (name.includes('_')) return true;
  return false;
}

function renamed(object: JsonObject): JsonObject {
  const entries = Object.entries(object).flatMap(([name, member]): [string, JsonValue][] =>
    member === undefined ? [] : [[inCamel(name), TOOL_DATA.has(name) ? member : renamedWithin(member)]],
  );
  return Object.fromEntries(entries);
}

function renamedWithin(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(renamedWithin);
  return isObject(value) ? renamed(value) : value;
}

function inCamel(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
