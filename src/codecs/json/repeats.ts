/**
 * Events of one stream repeat themselves: token after token the same JSON text, with other words at one or two places. This learns the
 * shape of the latest one, so that the next can be recognised without being parsed. Knows no dialect: which places may differ is said
 * by its user. What is not recognised is parsed as ever.
 */
import type { JsonObject, JsonValue } from '../canonical/json.ts';
import { type JsonShape, rawsOf, type Repeat, shapeOf } from './shape.ts';
import type { JsonPath } from './text.ts';

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
