/**
 * What a JSON text holds, found without parsing it: a parsed value takes some fifty bytes however short its text is, so a small body could fill the memory.
 * One pass, linear in the text. The text need not be valid JSON; of text that is, the figures are exact.
 */
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

/** The figures, or the first bound that the text exceeds: the rest is then not read. */
export function scanJson(text: string, bounds: JsonBounds): JsonFigures | keyof JsonBounds {
  const { length } = text;
  // The outermost value; each further one follows the opening of its container or a comma.
  let values = 1;
  let members = 0;
  let depth = 0;
  for (let at = 0; at < length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfString(text, at + 1);
    } else if (code === COMMA) {
      values += 1;
      if (values > bounds.values) return 'values';
    } else if (code === COLON) {
      if (depth === 1) members += 1;
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      depth += 1;
      if (depth > bounds.depth) return 'depth';
      const next = text.charCodeAt(skipSpace(text, at + 1));
      if (next !== CLOSE_BRACE && next !== CLOSE_BRACKET) values += 1;
      if (values > bounds.values) return 'values';
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      depth -= 1;
    }
  }
  return { values, members };
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
