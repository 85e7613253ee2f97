/**
 * The shape of a JSON text: the literals around holes, at which the values may differ. A text of the same shape is read by
 * comparing it with the literals instead of parsing it. Anything that does not match exactly has another shape.
 */
import { type JsonObject, type JsonValue, parseJson } from '../canonical/json.ts';
import { changesOf, type JsonEdit } from './edit.ts';
import { type JsonPath, spanOf } from './text.ts';

/** A text that was parsed, with its holes: the values that may differ in the next text. */
export interface JsonShape {
  readonly text: string;
  readonly json: JsonValue;
  /** In text order. */
  readonly holes: readonly Hole[];
  /** The text around the holes: one more than there are holes. */
  readonly literals: readonly string[];
}

interface Hole {
  readonly path: JsonPath;
  readonly start: number;
  readonly end: number;
  readonly isString: boolean;
}

/** The index of the hole at `path` (the same array); -1 for none. */
export function holeAt(shape: JsonShape, path: JsonPath): number {
  return shape.holes.findIndex((hole) => hole.path === path);
}

/** A text of a known shape. `raws` are the JSON texts in its holes, in the order of `shape.holes`. */
export interface Repeat {
  readonly shape: JsonShape;
  readonly raws: readonly string[];
}

/** The shape of a text that parsed to `json`, with holes at `paths`; undefined where there are none. */
export function shapeOf(text: string, json: JsonValue, paths: readonly JsonPath[]): JsonShape | undefined {
  if (paths.length === 0) return undefined;
  const found: Hole[] = [];
  for (const path of paths) {
    const span = spanOf(text, path);
    if (span !== undefined) found.push({ path, ...span, isString: text.charCodeAt(span.start) === QUOTE });
  }
  // toSorted makes a copy without spare capacity.
  const holes = found.toSorted((a, b) => a.start - b.start);
  // The shape is kept for long, and `text` may be a slice that keeps its whole batch in memory.
  const own = flatCopy(text);
  const literals: string[] = [];
  let cursor = 0;
  for (const { start, end } of holes) {
    literals.push(own.slice(cursor, start));
    cursor = end;
  }
  literals.push(own.slice(cursor));
  return { text: own, json, holes, literals: literals.slice() };
}

/** A copy that shares no memory with `text`; V8 has no direct way to make one. */
function flatCopy(text: string): string {
  return JSON.parse(JSON.stringify(text));
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * The raw values of a text that consists of the shape's literals around whole JSON strings and numbers; undefined for any other
 * text.
 */
export function rawsOf(text: string, shape: JsonShape): string[] | undefined {
  // Made with its length, since pushing reserves space for more.
  const raws = new Array<string>(shape.holes.length);
  let at = firstHole(text, shape);
  for (let index = 0; index < raws.length && at >= 0; index++) {
    const end = holeEnd(text, at, shape, index);
    raws[index] = text.slice(at, end);
    at = nextHole(text, end, shape, index);
  }
  return at === text.length ? raws : undefined;
}

/**
 * The value of one hole of such a text; undefined for any other text. For whoever needs nothing else of it: an event of a stream
 * then makes one string.
 */
export function valueIn(text: string, shape: JsonShape, hole: number): JsonValue | undefined {
  let raw = '';
  let at = firstHole(text, shape);
  for (let index = 0; index < shape.holes.length && at >= 0; index++) {
    const end = holeEnd(text, at, shape, index);
    if (index === hole) raw = text.slice(at, end);
    at = nextHole(text, end, shape, index);
  }
  return at === text.length ? unquoted(raw) : undefined;
}

/** Where the first hole begins, or the text ends; -1 for a text of another shape, as in the two below. */
function firstHole(text: string, { literals }: JsonShape): number {
  const literal = literals[0] ?? '';
  return standsAt(text, 0, literal) ? literal.length : -1;
}

/** Where the value at `at` ends. */
function holeEnd(text: string, at: number, { holes }: JsonShape, index: number): number {
  return holes[index]?.isString === true ? stringEnd(text, at) : numberEnd(text, at);
}

/** Where the hole after the one that ended at `end` begins, or the text ends. */
function nextHole(text: string, end: number, { literals }: JsonShape, index: number): number {
  const literal = literals[index + 1] ?? '';
  return end >= 0 && standsAt(text, end, literal) ? end + literal.length : -1;
}

/** Like `startsWith`, but faster: that compares character by character, while a slice costs nothing and is compared at once. */
function standsAt(text: string, at: number, literal: string): boolean {
  return text.slice(at, at + literal.length) === literal;
}

/** The index after the string at `at`; -1 where there is no string, or an invalid one. */
function stringEnd(text: string, at: number): number {
  if (text.charCodeAt(at) !== QUOTE) return -1;
  let escaped = false;
  for (let cursor = at + 1; cursor < text.length; cursor++) {
    const code = text.charCodeAt(cursor);
    if (code === QUOTE) return escaped && !isJson(text.slice(at, cursor + 1)) ? -1 : cursor + 1;
    // JSON strings hold no control characters.
    if (code < 0x20) return -1;
    if (code === BACKSLASH) {
      escaped = true;
      cursor += 1;
    }
  }
  return -1;
}

function isJson(text: string): boolean {
  try {
    parseJson(text);
    return true;
  } catch {
    // Then the whole text is not JSON either, which its parser will report.
    return false;
  }
}

/** The index after a plain integer at `at`; -1 for anything else, which is left to the parser. */
function numberEnd(text: string, at: number): number {
  let end = at;
  while (isDigit(text.charCodeAt(end))) end += 1;
  const digits = end - at;
  return digits === 0 || digits > 15 || (digits > 1 && text.charCodeAt(at) === 0x30) ? -1 : end;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

/** The value of the hole at `index`. */
export function holeValue(repeat: Repeat, index: number): JsonValue {
  return unquoted(repeat.raws[index] ?? 'null');
}

function unquoted(raw: string): JsonValue {
  // A string without escapes is its own value.
  return raw.charCodeAt(0) === QUOTE && !raw.includes('\\') ? raw.slice(1, -1) : parseJson(raw);
}

/** What the text would parse to. */
export function jsonOf(repeat: Repeat): JsonValue {
  let json = repeat.shape.json;
  for (const [index, { path }] of repeat.shape.holes.entries()) json = withValue(json, path, 0, holeValue(repeat, index));
  return json;
}

/** A copy with one value replaced; everything outside the path is shared. */
function withValue(json: JsonValue, path: JsonPath, depth: number, value: JsonValue): JsonValue {
  const step = path[depth];
  if (step === undefined || typeof json !== 'object' || json === null) return value;
  if (Array.isArray(json)) {
    const copy: JsonValue[] = json.slice();
    copy[Number(step)] = withValue(copy[Number(step)] ?? null, path, depth + 1, value);
    return copy;
  }
  const parent = json as JsonObject;
  return { ...parent, [step]: withValue(parent[step] ?? null, path, depth + 1, value) };
}

/** The literals of the shape after edits; undefined where an edit touches a hole. */
export function editShape(shape: JsonShape, edits: readonly JsonEdit[]): readonly string[] | undefined {
  const changes = changesOf(shape.text, edits);
  const literals: string[] = [];
  let literal = '';
  let cursor = 0;
  let next = 0;
  for (const { start, end } of [...shape.holes, { start: shape.text.length, end: shape.text.length }]) {
    for (let change = changes[next]; change !== undefined && change.start < start; change = changes[++next]) {
      if (change.start < cursor || change.end > start) return undefined;
      literal += shape.text.slice(cursor, change.start) + change.text;
      cursor = change.end;
    }
    literals.push(literal + shape.text.slice(cursor, start));
    literal = '';
    cursor = end;
  }
  return literals;
}

/** The literals with the raw values between them. */
export function fill(literals: readonly string[], raws: readonly string[]): string {
  let text = literals[0] ?? '';
  for (let index = 0; index < raws.length; index++) text += (raws[index] ?? '') + (literals[index + 1] ?? '');
  return text;
}
