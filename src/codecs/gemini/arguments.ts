/** Tool arguments between the canonical text and the protocol's JSON object. The text is never re-serialised. */
import { notConvertible } from '../canonical/error.ts';
import type { ToolCallItem } from '../canonical/item.ts';
import { isObject, isObjectText, tryJson } from '../canonical/json.ts';
import { wrapFreeform } from '../tools/freeform.ts';
import { RawJson } from './wire.ts';

/** The call's input as an object. Throws `unsupported_conversion` at the call's path where it is none. */
export function argumentsOf(call: ToolCallItem, isFreeform: boolean): RawJson {
  if (isFreeform) return new RawJson(wrapFreeform(call.input));
  const text = objectText(call.input);
  if (text === undefined) throw notConvertible(call.at, 'The arguments of this tool call are not a JSON object.');
  return new RawJson(text);
}

/** The text of a JSON object: the text itself, `{}` for null and for nothing, or what a JSON string holds. Undefined for anything else. */
export function objectText(text: string): string | undefined {
  if (text.trim() === '') return '{}';
  const value = tryJson(text);
  if (value === null) return '{}';
  if (isObject(value)) return text;
  return typeof value === 'string' && isObjectText(value) ? value : undefined;
}
