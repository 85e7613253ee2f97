/** Reads one entry of `tool_calls` in a delta or a message. Does not know to which call of the answer it belongs. */
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import { signatureOf } from '../opaque.ts';
import { hasOnly } from '../lifecycle.ts';
import { listAt, malformed, objectAt, nonEmptyString } from '../wire.ts';

export interface Piece {
  readonly index: number | undefined;
  readonly id: string | undefined;
  readonly name: string | undefined;
  readonly input: string;
  readonly custom: boolean;
  readonly signature: string | undefined;
}

/** The entries of `tool_calls`. TGI streams its only call without the list. */
export function callEntries(value: JsonValue | undefined): readonly JsonValue[] {
  return isObject(value) ? [value] : listAt(value, 'tool_calls');
}

export function readPiece(entry: JsonObject): Piece {
  const custom = isCustom(entry);
  const body = custom ? entry['custom'] : entry['function'];
  const members = body === undefined || body === null ? {} : objectAt(body, 'tool_calls');
  const index = entry['index'];
  return {
    index: typeof index === 'number' ? index : undefined,
    id: nonEmptyString(entry['id']),
    name: nonEmptyString(members['name']),
    input: readInput(custom ? members['input'] : members['arguments']),
    custom,
    signature: signatureOf(entry),
  };
}

/** Without a type, the member decides that is there. A server may write both, one of them without a word in it (Snowflake). */
function isCustom({ type, custom, function: called }: JsonObject): boolean {
  if (type === 'custom' || type === 'function') return type === 'custom';
  if (custom === undefined || custom === null) return false;
  return !isObject(called) || (isObject(custom) && Object.values(custom).some((value) => value !== '' && value !== null));
}

/** Arguments are text; the object that some vendors send is written as JSON. */
function readInput(value: JsonValue | undefined): string {
  if (value === undefined || value === null) return '';
  if (typeof value === 'string') return value;
  if (isObject(value)) return JSON.stringify(value);
  throw malformed('tool call arguments');
}

/**
 * True for a delta with one piece of arguments that begins no call, so that a delta of the same shape continues the same call.
 */
export function continuesCall(delta: JsonObject): boolean {
  const entries = delta['tool_calls'];
  if (!Array.isArray(entries) || entries.length !== 1 || !isObject(entries[0])) return false;
  const { id, name, custom } = readPiece(entries[0]);
  return id === undefined && name === undefined && !custom;
}

/** True for a delta that begins calls, each with an id and a name, and has no other content. */
export function beginsCalls(delta: JsonObject): boolean {
  if (!hasOnly('tool_calls', delta)) return false;
  return callEntries(delta['tool_calls']).every((entry) => {
    const { id, name } = readPiece(objectAt(entry, 'tool_calls'));
    return id !== undefined && name !== undefined;
  });
}
