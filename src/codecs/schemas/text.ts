/**
 * Keeps the client's own text of schemas for an upstream of another protocol. Parsing and writing them would move keys that look like numbers
 * to the front (known failure T10: models answer in the order of a schema) and change integers that JavaScript cannot hold.
 */
import type { CanonicalRequest } from '../canonical/request.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import type { JsonEdit } from '../json/edit.ts';
import { compactJson, type JsonPath, jsonSlicer } from '../json/text.ts';
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
  const textOf = (schema: JsonObject | undefined, path: () => JsonPath): string | undefined => {
    if (schema === undefined || !changesWhenWritten(schema)) return undefined;
    slice ??= jsonSlicer(text);
    const found = slice(path());
    return found === undefined ? undefined : compactJson(found);
  };
  for (const [index, tool] of tools.entries()) {
    if (endsStep(index)) yield;
    // Other vendors close the schema of a strict tool, so its own text cannot take its place.
    if (tool.kind !== 'function' || !isOfObject(tool.parameters) || (dialect === 'messages' && tool.strict === true)) continue;
    const found = textOf(tool.parameters, () => [...stepsOf(tool.at), ...schemas.inTool]);
    if (found !== undefined) texts.set(tool.at, withType(found, tool.parameters));
  }
  const found = format?.type === 'json_schema' ? textOf(format.schema, () => schemas.format) : undefined;
  return { tools: texts, ...(found === undefined ? {} : { format: found }) };
}

/** The edits that put these texts into a body whose `tools` are those of the request without the native ones. */
export function* schemaEdits(request: CanonicalRequest, inTool: JsonPath, format: JsonPath): Steps<JsonEdit[]> {
  const texts = yield* schemaTexts(request);
  yield;
  const edits = request.tools
    .filter((tool) => tool.kind !== 'native')
    .flatMap((tool, index): JsonEdit[] => {
      const value = texts.tools.get(tool.at);
      return value === undefined ? [] : [{ path: ['tools', index, ...inTool], value }];
    });
  return texts.format === undefined ? edits : [...edits, { path: format, value: texts.format }];
}

function changesWhenWritten(value: JsonValue | undefined): boolean {
  if (typeof value === 'number') return Number.isInteger(value) && !Number.isSafeInteger(value);
  if (Array.isArray(value)) return value.some(changesWhenWritten);
  if (!isObject(value)) return false;
  // Every schema of a converted request is checked, so no list of keys is made. JSON.parse has moved a key that looks like a number to the front.
  let keys = 0;
  let hasNumericKey = false;
  for (const key in value) {
    if (keys === 0) hasNumericKey = /^\d+$/.test(key);
    keys += 1;
    if ((hasNumericKey && keys > 1) || changesWhenWritten(value[key])) return true;
  }
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
