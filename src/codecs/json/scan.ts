/**
 * What a JSON text holds, found without parsing it: a parsed value takes some fifty bytes however short its text is, so a small
 * body could fill the memory. One pass, linear in the text. The text need not be valid JSON; of text that is, the figures are
 * exact.
 */
import { type Steps, whole } from '../steps.ts';
import { CLOSE_BRACE, CLOSE_BRACKET, COLON, COMMA, isSpace, OPEN_BRACE, OPEN_BRACKET, QUOTE, stringEnd } from './text.ts';

export interface JsonBounds {
  readonly depth: number;
  readonly values: number;
  /** Members of any one object, repeated names included. */
  readonly members: number;
}

/** The first bound that a text exceeds; `bare`: {@link MAX_BARE}. */
export type JsonExcess = keyof JsonBounds | 'bare';

/**
 * Characters between two strings, brackets, commas or colons: a number, or white space. The engine reads them in one go, and no
 * program writes so many.
 */
export const MAX_BARE = 1024 * 1024;

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

export function* scanInSteps(text: string, bounds: JsonBounds): Steps<JsonFigures | JsonExcess> {
  const scan = new Scan(text, bounds);
  for (;;) {
    const exceeded = scan.step();
    if (exceeded !== undefined) return exceeded;
    if (scan.isOver) return scan.figures;
    yield;
  }
}

class Scan {
  readonly #text: string;
  readonly #bounds: JsonBounds;
  #at = 0;
  /** The last step has ended within a string. */
  #isInString = false;
  /** Behind the last string, bracket, comma or colon. */
  #bareFrom = 0;
  /** The outermost value; each further one follows the opening of its container or a comma. */
  #values = 1;
  #members = 0;
  #depth = 0;
  /** Members so far of the containers that are open, by depth. */
  readonly #ofOpen: number[] = [];

  constructor(text: string, bounds: JsonBounds) {
    this.#text = text;
    this.#bounds = bounds;
  }

  get figures(): JsonFigures {
    return { values: this.#values, members: this.#members };
  }

  get isOver(): boolean {
    return this.#at >= this.#text.length;
  }

  /** Goes on for some {@link STEP} characters. Returns the bound that is exceeded. */
  step(): JsonExcess | undefined {
    const text = this.#text;
    if (this.#isInString) this.#skipString(this.#at);
    if (this.#isInString) return undefined;
    let end = Math.min(this.#at + STEP, text.length);
    const most = this.#bounds;
    const ofOpen = this.#ofOpen;
    let [at, values, members, depth] = [this.#at, this.#values, this.#members, this.#depth];
    let bareFrom = this.#bareFrom;
    for (; at < end; at++) {
      const code = text.charCodeAt(at);
      const here = at;
      if (code === QUOTE) {
        const close = stringEnd(text, at + 1, at + STEP);
        this.#isInString = close < 0;
        if (this.#isInString) end = at;
        at = (this.#isInString ? ~close : close) - 1;
      } else if (code === COMMA) {
        values += 1;
        if (values > most.values) return 'values';
      } else if (code === COLON) {
        if (depth === 1) members += 1;
        const mine = (ofOpen[depth] ?? 0) + 1;
        if (mine > most.members) return 'members';
        ofOpen[depth] = mine;
      } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
        depth += 1;
        if (depth > most.depth) return 'depth';
        ofOpen[depth] = 0;
        const next = text.charCodeAt(skipSomeSpace(text, at + 1));
        if (next !== CLOSE_BRACE && next !== CLOSE_BRACKET) values += 1;
        if (values > most.values) return 'values';
      } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
        depth -= 1;
      } else continue;
      if (here - bareFrom > MAX_BARE) return 'bare';
      bareFrom = at + 1;
    }
    this.#bareFrom = bareFrom;
    if (at - bareFrom > MAX_BARE) return 'bare';
    [this.#at, this.#values, this.#members, this.#depth] = [at, values, members, depth];
    return undefined;
  }

  #skipString(from: number): void {
    const close = stringEnd(this.#text, from, from + STEP);
    this.#isInString = close < 0;
    this.#at = this.#bareFrom = this.#isInString ? ~close : close;
  }
}

/** The index of the first character from `at` on that is not white space, or of one behind too much of it. */
function skipSomeSpace(text: string, at: number): number {
  const end = at + MAX_BARE;
  let next = at;
  while (next < end && isSpace(text.charCodeAt(next))) next += 1;
  return next;
}
