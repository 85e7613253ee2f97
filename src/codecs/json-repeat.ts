/**
 * Events of one stream repeat themselves: token after token the same JSON text, with other words at one or two places. This reads such a
 * text by comparing it with the one before instead of parsing it, and splices the gateway's members into it once for all of them. Knows
 * no dialect: which places may differ is said by its user. What does not fit exactly is not recognised, and is parsed as ever.
 */
import type { Dialect } from './canonical/dialect.ts';
import type { Native } from './canonical/event.ts';
import { type JsonObject, type JsonValue, parseJson } from './canonical/json.ts';
import type { Frame } from './codec.ts';
import { changesOf, type JsonEdit, type JsonPath, spanOf } from './json-text.ts';

/** A text that was parsed, and where its holes are: values that may differ in the next text. */
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

/** The hole that stands at `path`; -1 for none. */
export function holeAt(shape: JsonShape, path: JsonPath): number {
  return shape.holes.findIndex((hole) => hole.path === path);
}

/** A text of a known shape. `raws` are the JSON texts in its holes, in the order of `shape.holes`. */
export interface Repeat {
  readonly shape: JsonShape;
  readonly raws: readonly string[];
}

/** After this many texts that fitted no shape, a stream is taken to have none for as many texts again. */
const PATIENCE = 16;

/**
 * Remembers the shape of the latest text. One for each stream. Of the paths that may differ a string always is a hole; a number becomes
 * one when it has changed once, since most (a time, a count of nothing) stay for the whole stream.
 */
export class JsonRepeats {
  readonly #paths: readonly JsonPath[];
  /** Made for the first that does. */
  #changing: Set<JsonPath> | undefined;
  #latest: JsonValue = null;
  #shape: JsonShape | undefined;
  #misses = 0;

  constructor(paths: readonly JsonPath[]) {
    this.#paths = paths;
  }

  /** How `text` repeats the shape; undefined when it does not: then parse it, and `learn` it. */
  match(text: string): Repeat | undefined {
    const shape = this.#shape;
    if (shape === undefined) return undefined;
    const raws = rawsOf(text, shape);
    if (raws === undefined) return undefined;
    this.#misses = 0;
    return { shape, raws };
  }

  /** Takes a text that did not match, with what it parsed to, as the shape of those that follow; undefined where it has no hole. */
  learn(text: string, json: JsonValue): Repeat | undefined {
    this.#misses += 1;
    if (this.#misses > 2 * PATIENCE) this.#misses = 0;
    const shape = this.#misses > PATIENCE ? undefined : shapeOf(text, json, this.#holesIn(json));
    this.#shape = shape;
    return shape === undefined ? undefined : { shape, raws: shape.holes.map(({ start, end }) => text.slice(start, end)) };
  }

  /** The paths at which `json` has a hole; none where no string that says something is among them: such a text is seldom repeated. */
  #holesIn(json: JsonValue): readonly JsonPath[] {
    const holes: JsonPath[] = [];
    let speaks = false;
    for (const path of this.#paths) {
      const value = valueAt(json, path);
      const isWord = typeof value === 'string' && value !== '';
      if (isWord || (isCount(value) && this.#changes(path, value))) holes.push(path);
      speaks ||= isWord;
    }
    this.#latest = json;
    return speaks ? holes : [];
  }

  #changes(path: JsonPath, count: number): boolean {
    const before = valueAt(this.#latest, path);
    if (typeof before === 'number' && before !== count) {
      this.#changing ??= new Set();
      this.#changing.add(path);
    }
    return this.#changing?.has(path) === true;
  }
}

/** An event that was recognised and not parsed: its JSON is made when somebody asks for it. */
export class RepeatedNative implements Native {
  readonly dialect: Dialect;
  readonly name: string;
  readonly text: string;
  readonly repeat: Repeat;
  #json: JsonValue | undefined;

  constructor(dialect: Dialect, name: string, text: string, repeat: Repeat) {
    this.dialect = dialect;
    this.name = name;
    this.text = text;
    this.repeat = repeat;
  }

  get json(): JsonValue {
    this.#json ??= jsonOf(this.repeat);
    return this.#json;
  }
}

/** The value of the hole at `index`. */
export function holeValue(repeat: Repeat, index: number): JsonValue {
  const raw = repeat.raws[index] ?? 'null';
  // A string without escapes is its own value.
  return raw.charCodeAt(0) === QUOTE && !raw.includes('\\') ? raw.slice(1, -1) : parseJson(raw);
}

/** What the text would parse to. */
export function jsonOf(repeat: Repeat): JsonValue {
  let json = repeat.shape.json;
  for (const [index, { path }] of repeat.shape.holes.entries()) json = withValue(json, path, 0, holeValue(repeat, index));
  return json;
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
  return next === changes.length ? literals : undefined;
}

/** What was spliced into one event is spliced into each that repeats it. One for each stream. */
export class RepeatedEdits {
  #known:
    | { readonly shape: JsonShape; readonly name: string; readonly literals: readonly string[]; readonly oneLine: boolean }
    | undefined;

  /** The frame of an event that repeats the one that was noted; undefined for every other. */
  apply(native: Native, event: string | undefined): Frame | undefined {
    const known = this.#known;
    const { repeat } = native;
    if (known === undefined || repeat === undefined || repeat.shape !== known.shape || native.name !== known.name)
      return undefined;
    const { literals, oneLine } = known;
    return { event, data: literals === repeat.shape.literals ? native.text : fill(literals, repeat.raws), oneLine };
  }

  /** `edits` are what is spliced into this event, and they do not depend on what is in its holes. */
  note({ repeat, name }: Native, edits: readonly JsonEdit[]): void {
    this.#known = undefined;
    if (repeat === undefined) return;
    const { shape } = repeat;
    const literals = edits.length === 0 ? shape.literals : editShape(shape, edits);
    if (literals === undefined) return;
    this.#known = { shape, name, literals, oneLine: !literals.some((literal) => LINE_END.test(literal)) };
  }

  /** What follows is spliced differently. */
  forget(): void {
    this.#known = undefined;
  }
}

const LINE_END = /[\r\n]/;

/** The text of literals with the raw values between them. */
export function fill(literals: readonly string[], raws: readonly string[]): string {
  let text = literals[0] ?? '';
  for (let index = 0; index < raws.length; index++) text += (raws[index] ?? '') + (literals[index + 1] ?? '');
  return text;
}

function shapeOf(text: string, json: JsonValue, paths: readonly JsonPath[]): JsonShape | undefined {
  if (paths.length === 0) return undefined;
  const found: Hole[] = [];
  for (const path of paths) {
    const span = spanOf(text, path);
    if (span !== undefined) found.push({ path, ...span, isString: text.charCodeAt(span.start) === QUOTE });
  }
  // A copy has no room for more.
  const holes = found.toSorted((a, b) => a.start - b.start);
  // The shape stays, and a slice would keep the whole batch that the text came in.
  const own = ownCopy(text);
  const literals: string[] = [];
  let cursor = 0;
  for (const { start, end } of holes) {
    literals.push(own.slice(cursor, start));
    cursor = end;
  }
  literals.push(own.slice(cursor));
  return { text: own, json, holes, literals: literals.slice() };
}

/** V8 has no other way to say it. */
function ownCopy(text: string): string {
  return JSON.parse(JSON.stringify(text));
}

function isCount(value: JsonValue | undefined): value is number {
  return typeof value === 'number' && value >= 0 && Number.isInteger(value);
}

function valueAt(json: JsonValue, path: JsonPath): JsonValue | undefined {
  let value: JsonValue | undefined = json;
  for (const step of path) {
    if (typeof value !== 'object' || value === null) return undefined;
    if (Array.isArray(value)) value = typeof step === 'number' ? (value as readonly JsonValue[])[step] : undefined;
    else value = Object.hasOwn(value, step) ? (value as JsonObject)[step] : undefined;
  }
  return value;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** The raw values, if the text is the shape's literals around whole JSON strings and numbers, and nothing else. */
function rawsOf(text: string, { holes, literals }: JsonShape): string[] | undefined {
  const first = literals[0] ?? '';
  if (!standsAt(text, 0, first)) return undefined;
  // An array of the right length: one that is pushed to makes room for many.
  const raws = new Array<string>(holes.length);
  let at = first.length;
  for (let index = 0; index < holes.length; index++) {
    const end = holes[index]?.isString === true ? stringEnd(text, at) : numberEnd(text, at);
    const literal = literals[index + 1] ?? '';
    if (end < 0 || !standsAt(text, end, literal)) return undefined;
    raws[index] = text.slice(at, end);
    at = end + literal.length;
  }
  return at === text.length ? raws : undefined;
}

/** As `startsWith`, which compares character by character: a slice is free, and whole strings are compared at once. */
function standsAt(text: string, at: number, literal: string): boolean {
  return text.slice(at, at + literal.length) === literal;
}

/** The index after the string at `at`; -1 where there is none, or one that only a parser may judge. */
function stringEnd(text: string, at: number): number {
  if (text.charCodeAt(at) !== QUOTE) return -1;
  let escaped = false;
  for (let cursor = at + 1; cursor < text.length; cursor++) {
    const code = text.charCodeAt(cursor);
    if (code === QUOTE) return escaped && !isJson(text.slice(at, cursor + 1)) ? -1 : cursor + 1;
    // A control character must not stand in a string.
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
    // Then the whole text is no JSON either: the parser says so in its own words.
    return false;
  }
}

/** Plain whole numbers only: what else a number can be is for the parser. */
function numberEnd(text: string, at: number): number {
  let end = at;
  while (isNumberPart(text.charCodeAt(end))) end += 1;
  const digits = end - at;
  return digits === 0 || digits > 15 || (digits > 1 && text.charCodeAt(at) === 0x30) ? -1 : end;
}

function isNumberPart(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

/** A copy with one value exchanged; everything beside the path is shared. */
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
