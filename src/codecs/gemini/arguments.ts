/** Tool arguments between the canonical text and the protocol's JSON object. The text is never re-serialised. */
import { notConvertible } from '../canonical/error.ts';
import type { ToolCallItem, ToolName } from '../canonical/item.ts';
import { isObject, type JsonValue, parseJson } from '../canonical/json.ts';
import type { Tool } from '../canonical/request.ts';
import { RawJson } from './wire.ts';

/** The one member of a freeform custom tool that was lowered to a function. */
export const FREEFORM_INPUT = 'input';

/** The declared custom tool of this name: its calls carry free text, or an object where it has an object schema. */
export function customToolOf(tools: readonly Tool[], name: ToolName): (Tool & { kind: 'custom' }) | undefined {
  for (const tool of tools) {
    if (tool.kind === 'custom' && tool.tool.name === name.name && tool.tool.namespace === name.namespace) return tool;
  }
  return undefined;
}

/** The call's input as an object. Throws `unsupported_conversion` at the call's path where it is none. */
export function argumentsOf(call: ToolCallItem, isFreeform: boolean): RawJson {
  if (isFreeform) return new RawJson(JSON.stringify({ [FREEFORM_INPUT]: call.input }));
  const text = objectText(call.input);
  if (text === undefined) throw notConvertible(call.at, 'The arguments of this tool call are not a JSON object.');
  return new RawJson(text);
}

/** JSON object text from the text of an object, of null or nothing (`{}`), or of a string that holds such a text. */
export function objectText(text: string): string | undefined {
  if (text.trim() === '') return '{}';
  const value = parsed(text);
  if (value === null) return '{}';
  if (isObject(value)) return text;
  return typeof value === 'string' && isObject(parsed(value)) ? value : undefined;
}

function parsed(text: string): JsonValue | undefined {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}
