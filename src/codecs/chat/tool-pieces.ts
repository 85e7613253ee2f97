/** One entry of `tool_calls`, read: what a delta or a message says of a call. Does not know which call that is. */
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import { signatureOf } from './call-signatures.ts';
import { saysOnly } from './lifecycle.ts';
import { list, malformed, object, word } from './wire.ts';

export interface Piece {
  readonly index: number | undefined;
  readonly id: string | undefined;
  readonly name: string | undefined;
  readonly input: string;
  readonly custom: boolean;
  readonly signature: string | undefined;
}

/** The entries of `tool_calls`; TGI streams the one call without its list. */
export function callEntries(value: JsonValue | undefined): readonly JsonValue[] {
  return isObject(value) ? [value] : list(value, 'tool_calls');
}

export function readPiece(entry: JsonObject): Piece {
  const custom = entry['type'] === 'custom' || (entry['custom'] !== undefined && entry['custom'] !== null);
  const body = custom ? entry['custom'] : entry['function'];
  const members = body === undefined || body === null ? {} : object(body, 'tool_calls');
  const index = entry['index'];
  return {
    index: typeof index === 'number' ? index : undefined,
    id: word(entry['id']),
    name: word(members['name']),
    input: readInput(custom ? members['input'] : members['arguments']),
    custom,
    signature: signatureOf(entry),
  };
}

/** Arguments are text; a vendor that sends them as a value gets them spelled as JSON. */
function readInput(value: JsonValue | undefined): string {
  if (value === undefined || value === null) return '';
  if (typeof value === 'string') return value;
  if (isObject(value)) return JSON.stringify(value);
  throw malformed('tool call arguments');
}

/** True for the calls of a delta that are one piece of arguments, so that another like it belongs to the same call. */
export function goesOn(delta: JsonObject): boolean {
  const entries = delta['tool_calls'];
  if (!Array.isArray(entries) || entries.length !== 1 || !isObject(entries[0])) return false;
  const { id, name, custom } = readPiece(entries[0]);
  return id === undefined && name === undefined && !custom;
}

/** True for a delta that introduces calls, each with an id and a name, and says nothing else. */
export function beginsCalls(delta: JsonObject): boolean {
  if (!saysOnly('tool_calls', delta)) return false;
  return callEntries(delta['tool_calls']).every((entry) => {
    const { id, name } = readPiece(object(entry, 'tool_calls'));
    return id !== undefined && name !== undefined;
  });
}
