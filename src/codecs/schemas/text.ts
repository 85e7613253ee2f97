/**
 * Schemas in the client's own spelling, for an upstream of another protocol. Read and written anew, keys that look like numbers would
 * move to the front (known failure T10: models answer in the order of a schema), and numbers that no number holds would be other ones.
 */
import type { CanonicalRequest } from '../canonical/request.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import { compactJson, type JsonEdit, type JsonPath, jsonSlicer } from '../json/text.ts';

/** The texts of the tools' schemas that writing would change, by the path of the tool, and that of the format. */
export interface SchemaTexts {
  readonly tools: ReadonlyMap<string, string>;
  readonly format?: string;
}

export function schemaTexts({ text, tools, format, schemas }: CanonicalRequest): SchemaTexts {
  const texts = new Map<string, string>();
  if (schemas === undefined) return { tools: texts };
  let slice: ReturnType<typeof jsonSlicer> | undefined;
  const textOf = (schema: JsonObject | undefined, path: () => JsonPath): string | undefined => {
    if (schema === undefined || !changesWhenWritten(schema)) return undefined;
    slice ??= jsonSlicer(text);
    const found = slice(path());
    return found === undefined ? undefined : compactJson(found);
  };
  for (const tool of tools) {
    if (tool.kind !== 'function' || !isOfObject(tool.parameters)) continue;
    const found = textOf(tool.parameters, () => [...stepsOf(tool.at), ...schemas.inTool]);
    if (found !== undefined) texts.set(tool.at, typed(found, tool.parameters));
  }
  const found = format?.type === 'json_schema' ? textOf(format.schema, () => schemas.format) : undefined;
  return { tools: texts, ...(found === undefined ? {} : { format: found }) };
}

/** The edits that put the texts into a body whose list of tools holds all of the request but the native ones. */
export function schemaEdits(request: CanonicalRequest, inTool: JsonPath, format: JsonPath): JsonEdit[] {
  const texts = schemaTexts(request);
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
  // Without a list of the keys: every schema of a converted request comes by. Those that look like numbers were moved to the front already.
  let keys = 0;
  let hasNumber = false;
  for (const key in value) {
    if (keys === 0) hasNumber = /^\d+$/.test(key);
    keys += 1;
    if ((hasNumber && keys > 1) || changesWhenWritten(value[key])) return true;
  }
  return false;
}

/** What the arguments of a tool are; encoders change a schema that says it in another way, or does not say it. */
function isOfObject(schema: JsonObject | undefined): boolean {
  return schema?.['type'] === undefined || schema['type'] === 'object';
}

/** Every encoder says the type of a tool's schema that says none. */
function typed(text: string, schema: JsonObject | undefined): string {
  return schema?.['type'] === undefined ? `{"type":"object",${text.slice(1)}` : text;
}

/** `tools[0].function` as steps. */
function stepsOf(at: string): JsonPath {
  return at.split(/[.[\]]+/).flatMap((step) => (step === '' ? [] : [/^\d+$/.test(step) ? Number(step) : step]));
}
