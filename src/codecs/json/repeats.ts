/**
 * The events of a stream mostly repeat one JSON text, with different values at one or two paths. This learns the shape of the
 * latest text, so that the next one can be recognised without being parsed. The caller gives the paths whose values may differ. A
 * text that is not recognised must be parsed.
 */
import type { JsonObject, JsonValue } from '../canonical/json.ts';
import { type JsonShape, rawsOf, type Repeat, shapeOf, valueIn } from './shape.ts';
import type { JsonPath } from './text.ts';

/** After this many mismatches in a row nothing is learnt for as many texts again. */
const MAX_MISSES = 16;
/**
 * A longer text is no shape: to look for its holes, and to copy it, is work on all of it at once, and it would stay in memory
 * for as long as its stream lasts. The events that repeat each other have a word or two.
 */
const MAX_CHARS = 16 * 1024;

/**
 * Remembers the shape of the latest text. One for each stream. At the given paths a string always is a hole. A number becomes one
 * when it first changes, since most numbers (a time, a zero count) stay the same for the whole stream.
 */
export class JsonRepeats {
  readonly #paths: readonly JsonPath[];
  /** The paths whose number has changed; made for the first of them. */
  #changing: Set<JsonPath> | undefined;
  #latest: JsonValue = null;
  #shape: JsonShape | undefined;
  #misses = 0;

  constructor(paths: readonly JsonPath[]) {
    this.#paths = paths;
  }

  /** How `text` repeats the shape; undefined when it does not, and the caller should parse it and call `learn`. */
  match(text: string): Repeat | undefined {
    const shape = this.#shape;
    if (shape === undefined) return undefined;
    const raws = rawsOf(text, shape);
    if (raws === undefined) return undefined;
    this.#misses = 0;
    return { shape, raws };
  }

  /**
   * The value of one hole of `text`, where that repeats the latest shape and this is the one; otherwise undefined. Whatever
   * {@link match} makes beside it is for a client of the same dialect.
   */
  valueIn(text: string, shape: JsonShape, hole: number): JsonValue | undefined {
    const value = shape === this.#shape ? valueIn(text, shape, hole) : undefined;
    if (value !== undefined) this.#misses = 0;
    return value;
  }

  /** Takes a text that did not match, and its JSON, as the shape for the texts that follow; undefined where it is none. */
  learn(text: string, json: JsonValue): Repeat | undefined {
    if (text.length > MAX_CHARS) {
      this.#shape = undefined;
      this.#latest = null;
      return undefined;
    }
    this.#misses += 1;
    if (this.#misses > 2 * MAX_MISSES) this.#misses = 0;
    const shape = this.#misses > MAX_MISSES ? undefined : shapeOf(text, json, this.#holesIn(json));
    this.#shape = shape;
    return shape === undefined ? undefined : { shape, raws: shape.holes.map(({ start, end }) => text.slice(start, end)) };
  }

  /** The paths at which `json` has a hole; none if all its strings are empty, since such a text is seldom repeated. */
  #holesIn(json: JsonValue): readonly JsonPath[] {
    const holes: JsonPath[] = [];
    let hasText = false;
    for (const path of this.#paths) {
      const value = valueAt(json, path);
      const isText = typeof value === 'string' && value !== '';
      if (isText || (isCount(value) && this.#changes(path, value))) holes.push(path);
      hasText ||= isText;
    }
    this.#latest = json;
    return hasText ? holes : [];
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
