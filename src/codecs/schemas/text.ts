/**
 * Keeps the client's own text of schemas for an upstream of another protocol. Parsing and writing them would move keys that look
 * like numbers to the front (known failure T10: models answer in the order of a schema) and change integers that JavaScript
 * cannot hold.
 */
import type { CanonicalRequest } from '../canonical/request.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import { editJson, type JsonEdit } from '../json/edit.ts';
import { compactInSteps, type JsonPath, jsonSlicer } from '../json/text.ts';
import { writeInSteps } from '../json/write-in-steps.ts';
import { endsStep, type Steps } from '../steps.ts';

/** The texts of those schemas that JSON.stringify would change: of tools by their path, and of the format. */
export interface SchemaTexts {
  readonly tools: ReadonlyMap<string, string>;
  readonly format?: string;
}

export function* schemaTexts({ text, dialect, tools, format, schemas }: CanonicalRequest): Steps<SchemaTexts> {
  const texts = new Map<string, string>();
  if (schemas === undefined) return { tools: texts };
  let slice: ReturnType<typeof jsonSlicer> | undefined;
  const textOf = function* (schema: JsonObject | undefined, path: () => JsonPath): Steps<string | undefined> {
    if (schema === undefined || !(yield* changesWhenWritten(schema))) return undefined;
    slice ??= jsonSlicer(text);
    const found = slice(path());
    return found === undefined ? undefined : yield* compactInSteps(found);
  };
  for (const [index, tool] of tools.entries()) {
    if (endsStep(index)) yield;
    // Other vendors close the schema of a strict tool, so its own text cannot take its place.
    if (tool.kind !== 'function' || !isOfObject(tool.parameters) || (dialect === 'messages' && tool.strict === true)) continue;
    const found = yield* textOf(tool.parameters, () => [...stepsOf(tool.at), ...schemas.inTool]);
    if (found !== undefined) texts.set(tool.at, withType(found, tool.parameters));
  }
  const found = format?.type === 'json_schema' ? yield* textOf(format.schema, () => schemas.format) : undefined;
  return { tools: texts, ...(found === undefined ? {} : { format: found }) };
}

/**
 * `body`, whose `tools` are those of the request without the native ones, with these texts in place of its schemas. `inTool`,
 * `format`: where the protocol has the schema of a tool and that of the format.
 */
export function* writeWithSchemas(body: object, request: CanonicalRequest, inTool: JsonPath, format: JsonPath): Steps<string> {
  const texts = yield* schemaTexts(request);
  yield;
  const edits = request.tools
    .filter((tool) => tool.kind !== 'native')
    .flatMap((tool, index): JsonEdit[] => {
      const value = texts.tools.get(tool.at);
      return value === undefined ? [] : [{ path: ['tools', index, ...inTool], value }];
    });
  if (texts.format !== undefined) edits.push({ path: format, value: texts.format });
  const written = yield* writeInSteps(body);
  yield;
  return editJson(written, edits);
}

/** How many containers are looked at in a step. */
const STEP = 2_000;

function* changesWhenWritten(schema: JsonObject): Steps<boolean> {
  const containers: JsonValue[] = [schema];
  for (let seen = 1; ; seen += 1) {
    const container = containers.pop();
    if (container === undefined) return false;
    if (seen % STEP === 0) yield;
    if (Array.isArray(container)) {
      for (const value of container) if (isChanged(value, containers)) return true;
    } else if (isObject(container) && (hasMovedKey(container) || hasChanged(container, containers))) return true;
  }
}

/**
 * Every schema of a converted request is checked, so no list of keys is made. `JSON.parse` has moved a key that looks like a
 * number to the front.
 */
function hasMovedKey(container: JsonObject): boolean {
  let isNumeric: boolean | undefined;
  for (const key in container) {
    if (isNumeric !== undefined) return isNumeric;
    isNumeric = /^\d+$/.test(key);
  }
  return false;
}

function hasChanged(container: JsonObject, containers: JsonValue[]): boolean {
  for (const key in container) if (isChanged(container[key], containers)) return true;
  return false;
}

/** True for an integer that JavaScript cannot hold. A container is added to those that are to be looked at. */
function isChanged(value: JsonValue | undefined, containers: JsonValue[]): boolean {
  if (typeof value === 'number') return Number.isInteger(value) && !Number.isSafeInteger(value);
  if (typeof value === 'object' && value !== null) containers.push(value);
  return false;
}

/** True for a schema of type `object` or without a type. Encoders rewrite all others. */
function isOfObject(schema: JsonObject | undefined): boolean {
  return schema?.['type'] === undefined || schema['type'] === 'object';
}

/** Adds the type `object` where it is missing, as every encoder does. */
function withType(text: string, schema: JsonObject | undefined): string {
  return schema?.['type'] === undefined ? `{"type":"object",${text.slice(1)}` : text;
}

/** `tools[0].function` as steps. */
function stepsOf(at: string): JsonPath {
  return at.split(/[.[\]]+/).flatMap((step) => (step === '' ? [] : [/^\d+$/.test(step) ? Number(step) : step]));
}
