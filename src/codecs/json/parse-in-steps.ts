/**
 * `JSON.parse` in steps: the members of large containers, and long strings, are parsed in pieces, each by the engine. What is
 * valid, and what it means, is the engine's.
 */
import { append } from '../append.ts';
import { isObject, type JsonObject, type JsonValue, parseJson, setMember } from '../canonical/json.ts';
import type { Steps } from '../steps.ts';
import { mostContainers, MOST_MEMBERS, tooMuch } from './answer-bounds.ts';
import { scanInSteps } from './scan.ts';
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  type Ends,
  isEscaped,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipSpace,
  skipString,
  stringEnd,
} from './text.ts';

/** Containers of this many characters are parsed in pieces of about as many: a millisecond. */
const PIECE = 32 * 1024;
/** Strings of this many characters, names apart, are parsed in pieces of as many: a millisecond or two. */
const LONG = 1024 * 1024;
/** How many characters are looked at in a step. */
const STEP = 2 * 1024 * 1024;
/** Deeper than any real request, or the arguments of any call. */
const MAX_DEPTH = 500;
/** The longest escape. */
const ESCAPE = '\\u0000'.length;

/** Throws SyntaxError as `JSON.parse` does. `ends` is told where the long values of the text end. */
export function parseInSteps(text: string, ends?: Ends): Steps<JsonValue> {
  return read(text, true, ends);
}

/** {@link parseInSteps}, of what an upstream answered: undefined for text that is not JSON. Throws for {@link tooMuch} of it. */
export function* tryInSteps(text: string, ends?: Ends): Steps<JsonValue | undefined> {
  try {
    return yield* read(text, true, ends, true);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Text that was parsed, and where its long values end. */
export interface ParsedText {
  readonly json: JsonValue | undefined;
  readonly ends: Ends | undefined;
}

/** {@link tryInSteps} of a whole body. */
export function* readTextInSteps(text: string): Steps<ParsedText> {
  const ends = endsFor(text);
  return { json: yield* tryInSteps(text, ends), ends };
}

/** For the ends of a text's long values. Undefined for a short text: the map would cost more than looking through it. */
export function endsFor({ length }: string): Ends | undefined {
  return length < LONG ? undefined : new Map();
}

/** True for the text of a JSON object. Nothing of it is kept, so however many values it has, they take no memory together. */
export function* isObjectInSteps(text: string): Steps<boolean> {
  if (text.charCodeAt(skipSpace(text, 0)) !== OPEN_BRACE) return false;
  const figures = yield* scanInSteps(text, { depth: MAX_DEPTH, values: Infinity, members: Infinity });
  if (typeof figures === 'string') return false;
  try {
    yield* read(text, false);
    return true;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

/** Throws for {@link tooMuch} in what an upstream answered. What is no JSON is told by who parses it. */
export function* boundsInSteps(text: string): Steps<void> {
  const most = mostContainers(text);
  // A list takes two characters, a member five.
  if (text.length >= 2 * most) {
    try {
      yield* findLarge(text, new Map(), Infinity, most);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
    }
  }
  if (text.length < 5 * MOST_MEMBERS) return;
  const found = yield* scanInSteps(text, { depth: Infinity, values: Infinity, members: MOST_MEMBERS });
  if (found === 'members') throw tooMuch('members of one object');
}

/** Where the values of `least` characters or more end, as far as the text is JSON: to look through it once. */
export function* endsInSteps(text: string, least: number): Steps<Ends> {
  const ends: Ends = new Map();
  // As in `read`.
  skipSpace(text, 0);
  yield;
  try {
    yield* findLarge(text, ends, least);
  } catch (error) {
    // What is wrong with the text is told by who reads it.
    if (!(error instanceof SyntaxError)) throw error;
  }
  return ends;
}

/** {@link endsInSteps}, of all values that are parsed in pieces, for a text that has parsed; undefined where it is short. */
export function* knownEndsInSteps(text: string): Steps<Ends | undefined> {
  return endsFor(text) && (yield* endsInSteps(text, PIECE));
}

/** `keeps`: false where only the validity counts; then containers that are read in pieces stay empty. `isAnswer`: has bounds. */
function* read(text: string, keeps: boolean, ends: Ends = new Map(), isAnswer = false): Steps<JsonValue> {
  if (text.length < PIECE) return parseJson(text);
  // Of a text that was put together the first look makes a copy.
  const start = skipSpace(text, 0);
  yield;
  yield* findLarge(text, ends, PIECE, isAnswer ? mostContainers(text) : Infinity);
  yield;
  const end = ends.get(start);
  if (end === undefined) return parseJson(text);
  if (skipSpace(text, end) < text.length) throw malformed(end);
  return yield* new Pieces(text, ends, keeps, isAnswer ? MOST_MEMBERS : Infinity).container(start, end);
}

function malformed(at: number): SyntaxError {
  return new SyntaxError(`Malformed JSON at position ${at}`);
}

/**
 * Notes where each large container and each long string ends, by its start. A container that lies too deep is read with the one
 * around it: each level costs a call within the calls of all levels above it, and no request that comes so far has one.
 */
function* findLarge(text: string, ends: Ends, least = PIECE, most = Infinity): Steps<void> {
  const open: number[] = [];
  let containers = 0;
  for (let at = 0, rest = STEP; at < text.length; at++) {
    if (at >= rest) {
      yield;
      rest = at + STEP;
    }
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      let end = stringEnd(text, at + 1, at + STEP);
      while (end < 0) {
        yield;
        end = stringEnd(text, ~end, ~end + STEP);
      }
      if (end - at >= LONG) ends.set(at, end);
      at = end - 1;
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      open.push(at);
      containers += 1;
      if (containers > most) throw tooMuch('lists and objects');
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      const start = open.pop();
      // In ASCII a closing bracket stands two behind its opening one.
      if (start === undefined || text.charCodeAt(start) + 2 !== code) throw malformed(at);
      if (at - start >= least && open.length < MAX_DEPTH) ends.set(start, at + 1);
    }
  }
}

/** A member of a large container: an element of a list, or a name with its value. */
interface Member {
  readonly start: number;
  /** The comma behind it, or the end of its container. */
  readonly end: number;
  /** Where the large value in it begins: a container or a string. */
  readonly large: number | undefined;
}

class Pieces {
  readonly #text: string;
  readonly #ends: ReadonlyMap<number, number>;
  readonly #keeps: boolean;
  readonly #mostMembers: number;

  constructor(text: string, ends: ReadonlyMap<number, number>, keeps: boolean, mostMembers: number) {
    this.#text = text;
    this.#ends = ends;
    this.#keeps = keeps;
    this.#mostMembers = mostMembers;
  }

  /** The large container from `start` to `end`. */
  *container(start: number, end: number): Steps<JsonValue> {
    const into: JsonValue[] | JsonObject = this.#text.charCodeAt(start) === OPEN_BRACKET ? [] : {};
    const last = end - 1;
    const most = Array.isArray(into) ? Infinity : this.#mostMembers;
    let members = 0;
    let from = start + 1;
    for (let at = from; at <= last; ) {
      members += 1;
      if (members > most) throw tooMuch('members of one object');
      const member = this.#member(at, last, Array.isArray(into));
      at = member.end + 1;
      if (member.end - member.start >= LONG) yield;
      if (member.large !== undefined) {
        if (member.start > from) this.#read(from, member.start - 1, into);
        yield* this.#readLarge(member, member.large, into);
        from = at;
      } else if (member.end - from >= PIECE || member.end === last) {
        if (!(from === start + 1 && this.#isBlank(from, last))) this.#read(from, member.end, into);
        from = at;
        yield;
      }
    }
    return into;
  }

  #member(start: number, last: number, isList: boolean): Member {
    const text = this.#text;
    let depth = 0;
    let large: number | undefined;
    let isNamed = isList;
    for (let at = start; ; at++) {
      const code = text.charCodeAt(at);
      if (at === last || (code === COMMA && depth === 0)) return { start, end: at, large };
      if (code === QUOTE) {
        const end = isNamed ? this.#ends.get(at) : undefined;
        if (end !== undefined) large = at;
        at = (end ?? skipString(text, at)) - 1;
      } else if (code === COLON) isNamed = true;
      else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
        const end = this.#ends.get(at);
        if (end === undefined) depth += 1;
        else {
          large = at;
          at = end - 1;
        }
      } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) depth -= 1;
    }
  }

  /** Members without a large container. */
  #read(start: number, end: number, into: JsonValue[] | JsonObject): void {
    if (this.#isBlank(start, end)) throw malformed(start);
    const piece = this.#text.slice(start, end);
    const read = parseJson(Array.isArray(into) ? `[${piece}]` : `{${piece}}`);
    if (!this.#keeps) return;
    if (Array.isArray(into) && Array.isArray(read)) append(into, read);
    else if (!Array.isArray(into) && isObject(read)) for (const name of Object.keys(read)) setMember(into, name, read[name]);
  }

  *#readLarge({ start, end }: Member, large: number, into: JsonValue[] | JsonObject): Steps<void> {
    const after = this.#ends.get(large) ?? end;
    if (!this.#isBlank(after, end)) throw malformed(after);
    const name = Array.isArray(into) ? this.#isBlank(start, large) || undefined : this.#name(start, large);
    if (name === undefined) throw malformed(start);
    const value =
      this.#text.charCodeAt(large) === QUOTE ? yield* this.#string(large, after) : yield* this.container(large, after);
    if (!this.#keeps) return;
    if (Array.isArray(into)) into.push(value);
    else setMember(into, String(name), value);
  }

  /** The long string from `start` to `end`. */
  *#string(start: number, end: number): Steps<string> {
    const pieces: string[] = [];
    const last = end - 1;
    for (let from = start + 1; from < last; ) {
      const to = from + LONG < last ? this.#beforeEscape(from, from + LONG) : last;
      const piece = String(parseJson(`"${this.#text.slice(from, to)}"`));
      if (this.#keeps) pieces.push(piece);
      from = to;
      yield;
    }
    return pieces.join('');
  }

  /** Where a piece from `from` may end: at `to`, or before the escape that stands there. */
  #beforeEscape(from: number, to: number): number {
    for (let at = to - ESCAPE + 1; at < to; at++)
      if (this.#text.charCodeAt(at) === BACKSLASH && !isEscaped(this.#text, at, from)) return at;
    return to;
  }

  /** The name in front of a value; undefined for anything else. */
  #name(start: number, end: number): string | undefined {
    const text = this.#text;
    const at = skipSpace(text, start);
    if (text.charCodeAt(at) !== QUOTE) return undefined;
    const close = skipString(text, at);
    const colon = skipSpace(text, close);
    return text.charCodeAt(colon) === COLON && this.#isBlank(colon + 1, end)
      ? String(parseJson(text.slice(at, close)))
      : undefined;
  }

  #isBlank(start: number, end: number): boolean {
    return skipSpace(this.#text, start) >= end;
  }
}
