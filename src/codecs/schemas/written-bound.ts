/**
 * How much of a schema may be written. Types in a list and nested choices write what stands in them once for each of them: some
 * megabytes of one keyword would become more than a text can hold.
 */
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import { endsStep, type Steps } from '../steps.ts';

/** More keywords than any real schema has. A thousand times as many take the engine a second to copy. */
const MAX_KEYWORDS = 256;
/** How many times as much may be written as was read, beside what a small schema has anyway. */
const TIMES = 8;
const SMALL = 2048;
/** What a value weighs that is no text. */
const VALUE = 4;

export class WrittenBound {
  #left: number;

  private constructor(characters: number) {
    this.#left = SMALL + TIMES * characters;
  }

  static *of(schema: JsonObject): Steps<WrittenBound> {
    return new WrittenBound(yield* sizeOf(schema));
  }

  get isOver(): boolean {
    return this.#left < 0;
  }

  take(characters: number): void {
    this.#left -= characters;
  }
}

export const hasManyKeywords = (keywords: number): boolean => keywords > MAX_KEYWORDS;

/** The characters of a text, or of those in a list; of anything else about as much as its text has at least. */
export function weightOf(value: JsonValue | undefined): number {
  if (typeof value === 'string') return value.length;
  if (!Array.isArray(value)) return VALUE;
  return value.reduce<number>((sum, each) => sum + VALUE + (typeof each === 'string' ? each.length : 0), VALUE);
}

function* sizeOf(schema: JsonObject): Steps<number> {
  const waiting: JsonValue[] = [schema];
  let size = 0;
  for (let value = waiting.pop(), count = 0; value !== undefined; value = waiting.pop(), count += 1) {
    if (endsStep(count)) yield;
    size += typeof value === 'string' ? value.length + VALUE : VALUE;
    if (Array.isArray(value)) for (const each of value) waiting.push(each);
    if (!isObject(value)) continue;
    for (const [key, member] of Object.entries(value)) {
      size += key.length;
      if (member !== undefined) waiting.push(member);
    }
  }
  return size;
}
