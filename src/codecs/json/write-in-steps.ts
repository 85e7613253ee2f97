/** `JSON.stringify` in steps: values of many members, and long strings, are written in pieces, each by the engine. */
import { isObject, type JsonValue } from '../canonical/json.ts';
import { endsStep, type Steps } from '../steps.ts';

/** What has fewer values is written in one go: less than a millisecond. */
const PIECE = 2_000;
/** Longer strings are written in pieces. */
const LONG = 1024 * 1024;
/** One takes less than a millisecond, and six where each character must be escaped, as the half of a pair is. */
const PIECE_CHARS = 256 * 1024;

/** The text of a value that is not undefined, without members that are. */
export function* writeInSteps(value: JsonValue | object): Steps<string> {
  return yield* write(value as JsonValue, new Set());
}

/** `large`: what is known to hold many values, or a long string. */
function* write(value: JsonValue, large: Set<JsonValue>): Steps<string> {
  if (typeof value === 'string') return value.length < LONG ? JSON.stringify(value) : yield* writeLong(value);
  if (!large.has(value) && count(value, large, PIECE) < PIECE) return JSON.stringify(value);
  const pieces: string[] = [];
  if (Array.isArray(value)) {
    for (const [index, element] of value.entries()) {
      if (endsStep(index)) yield;
      pieces.push(isWritten(element) ? yield* write(element, large) : (JSON.stringify(element) ?? 'null'));
    }
    return `[${joined(pieces)}]`;
  }
  if (!isObject(value)) return JSON.stringify(value);
  yield;
  for (const [index, name] of Object.keys(value).entries()) {
    if (endsStep(index)) yield;
    const member = value[name];
    if (member === undefined) continue;
    const text = isWritten(member) ? yield* write(member, large) : JSON.stringify(member);
    pieces.push(`${JSON.stringify(name)}:${text}`);
  }
  return `{${joined(pieces)}}`;
}

/** With commas between them. A long piece is not copied, as `join` would at each level that holds it. */
function joined(pieces: readonly string[]): string {
  let text = '';
  let from = 0;
  for (let at = pieces.findIndex(isLong); at >= 0; at = pieces.findIndex((piece, index) => index >= from && isLong(piece))) {
    const before = pieces.slice(from, at);
    text += `${from === 0 ? '' : ','}${before.join()}${before.length === 0 ? '' : ','}`;
    text += pieces[at] ?? '';
    from = at + 1;
  }
  const rest = pieces.slice(from);
  return from === 0 ? pieces.join() : rest.length === 0 ? text : `${text},${rest.join()}`;
}

const isContainer = (value: JsonValue | undefined): boolean => typeof value === 'object' && value !== null;
export const isLong = (value: JsonValue | undefined): value is string => typeof value === 'string' && value.length >= LONG;
const isWritten = (value: JsonValue): boolean => isContainer(value) || isLong(value);

function* writeLong(text: string): Steps<string> {
  let written = '';
  for (let from = 0; from < text.length; ) {
    let to = from + PIECE_CHARS;
    // Half of a pair would be escaped.
    if (isLeading(text.charCodeAt(to - 1))) to -= 1;
    written += JSON.stringify(text.slice(from, to)).slice(1, -1);
    from = to;
    yield;
  }
  return `"${written}"`;
}

const isLeading = (code: number): boolean => code >= 0xd800 && code <= 0xdbff;

/**
 * The values in a value, itself included, up to `most`: what is behind is not looked at. A long string counts as `most`. What
 * holds that many is added to `large`.
 */
function count(value: JsonValue | undefined, large: Set<JsonValue>, most: number): number {
  if (isLong(value)) return most;
  if (typeof value !== 'object' || value === null) return 1;
  const list = Array.isArray(value) ? value : undefined;
  let values = 1 + (list === undefined ? 0 : list.length);
  const each = (child: JsonValue | undefined): void => {
    if (values >= most) return;
    if (isContainer(child)) {
      const rest = most - values;
      const held = count(child, large, rest);
      values = held < rest ? values + held - 1 : most;
    } else if (isLong(child)) values = most;
  };
  if (list !== undefined) {
    if (values < most) for (const child of list) each(child);
  } else if (isObject(value)) {
    for (const name in value) {
      values += 1;
      if (values >= most) break;
      each(value[name]);
    }
  }
  if (values >= most) large.add(value);
  return values;
}
