/** Servers that write their answers with the field names of the protocol's definition: `usage_metadata`, `finish_reason` (known failure G14). */
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';

/** What is inside belongs to the client's tools, names included. */
const FOREIGN = new Set(['args', 'response']);

/** The chunk with the names of the wire; itself, as nearly always, where it has them. */
export function inCamelCase(chunk: JsonObject): JsonObject {
  return isSpelledOut(chunk) ? renamed(chunk) : chunk;
}

/** Looks at the objects that tell how a chunk is spelled, and at no more: every chunk of a stream comes by. */
function isSpelledOut(chunk: JsonObject): boolean {
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
    member === undefined ? [] : [[inCamel(name), FOREIGN.has(name) ? member : renamedWithin(member)]],
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
