/**
 * What a JSON text holds, found without parsing it: a parsed value takes some fifty bytes however short its text is, so a small
 * body could fill the memory. One pass, linear in the text. The text need not be valid JSON; of text that is, the figures are
 * exact.
 */
import { type Steps, whole } from '../steps.ts';
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  isEscaped,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipSpace,
} from './text.ts';

export interface JsonBounds {
  readonly depth: number;
  readonly values: number;
}

export interface JsonFigures {
  /** Objects, arrays, strings, numbers and literals; names of members are none. */
  readonly values: number;
  /** Members of the outermost object, repeated names included. */
  readonly members: number;
}

/** How many characters a step looks at: some milliseconds. */
const STEP = 2 * 1024 * 1024;

/** The figures, or the first bound that the text exceeds: the rest is then not read. */
export const scanJson = whole(scanInSteps);

export function* scanInSteps(text: string, bounds: JsonBounds): Steps<JsonFigures | keyof JsonBounds> {
  const scan = new Scan(text, bounds);
  for (let to = STEP; ; to += STEP) {
    const exceeded = scan.on(Math.min(to, text.length));
    if (exceeded !== undefined) return exceeded;
    if (to >= text.length) return scan.figures;
    yield;
  }
}

class Scan {
  readonly #text: string;
  readonly #bounds: JsonBounds;
  #at = 0;
  /** The outermost value; each further one follows the opening of its container or a comma. */
  #values = 1;
  #members = 0;
  #depth = 0;

  constructor(text: string, bounds: JsonBounds) {
    this.#text = text;
    this.#bounds = bounds;
  }

  get figures(): JsonFigures {
    return { values: this.#values, members: this.#members };
  }

  /** Goes on to this character. Returns the bound that is exceeded. */
  on(end: number): keyof JsonBounds | undefined {
    const text = this.#text;
    const most = this.#bounds;
    let [at, values, members, depth] = [this.#at, this.#values, this.#members, this.#depth];
    for (; at < end; at++) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) {
        at = endOfString(text, at + 1);
      } else if (code === COMMA) {
        values += 1;
        if (values > most.values) return 'values';
      } else if (code === COLON) {
        if (depth === 1) members += 1;
      } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
        depth += 1;
        if (depth > most.depth) return 'depth';
        const next = text.charCodeAt(skipSpace(text, at + 1));
        if (next !== CLOSE_BRACE && next !== CLOSE_BRACKET) values += 1;
        if (values > most.values) return 'values';
      } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
        depth -= 1;
      }
    }
    [this.#at, this.#values, this.#members, this.#depth] = [at, values, members, depth];
    return undefined;
  }
}

/** A call of `indexOf` costs as much as looking at this many characters. */
const NEAR = 8;

/** The index of the quote that ends the string whose first character is at `from`; the length of a text that ends within it. */
function endOfString(text: string, from: number): number {
  let at = from;
  for (;;) {
    for (const near = Math.min(at + NEAR, text.length); at < near; at++) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) return at;
      if (code === BACKSLASH) at += 1;
    }
    if (at >= text.length) return text.length;
    const found = text.indexOf('"', at);
    if (found < 0) return text.length;
    if (found === at || !isEscaped(text, found, at)) return found;
    at = found + 1;
  }
}
