/**
 * Positions of URL citations. The canonical unit is the code point, which the vendors' Python SDKs count; gemini counts UTF-8
 * bytes and JavaScript UTF-16 code units. A position that does not fit its text is dropped, never moved: a citation without a
 * position is still true, one at a wrong position is not. Each codec reads and writes its own annotations.
 */
import type { Citation } from '../canonical/item.ts';

export type TextUnit = 'codePoint' | 'utf16' | 'utf8';

/** `[start, end)` in some unit of a text. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

export function codePointLength(text: string): number {
  let length = text.length;
  for (let at = 0; at < text.length - 1; at += 1) {
    if (isHigh(text.charCodeAt(at)) && isLow(text.charCodeAt(at + 1))) {
      length -= 1;
      at += 1;
    }
  }
  return length;
}

/** Where the engine finds sooner than a loop that there is no half of a character. */
const LONG_PIECE = 256;
const SURROGATE = /[\ud800-\udfff]/;

/** Counts the code points of a text that comes in pieces, which may part the halves of a character. */
export class CodePointCounter {
  /** As {@link codePointLength} of all pieces so far. */
  length = 0;
  #last = 0;

  /** Returns the length with this piece. */
  add(piece: string): number {
    if (piece.length >= LONG_PIECE && !SURROGATE.test(piece)) {
      this.#last = 0;
      this.length += piece.length;
      return this.length;
    }
    for (let at = 0; at < piece.length; at += 1) {
      const code = piece.charCodeAt(at);
      if (!(isLow(code) && isHigh(this.#last))) this.length += 1;
      this.#last = code;
    }
    return this.length;
  }
}

type Counts = Record<TextUnit, number>;

/** Code units between two marks. */
const STRIDE = 256;

/**
 * Converts positions in one text between units. The text is read once, as far as positions reach; a conversion then reads at most
 * one stride.
 */
export class TextPositions {
  readonly #text: string;
  /** The counts at about every {@link STRIDE} code units, from the beginning. */
  readonly #marks: Counts[] = [{ codePoint: 0, utf16: 0, utf8: 0 }];

  constructor(text: string) {
    this.#text = text;
  }

  /**
   * The same position in another unit; undefined where it is not the boundary of a character of the text (negative, past the end,
   * between the bytes or surrogates of one character).
   */
  convert(position: number, from: TextUnit, to: TextUnit): number | undefined {
    if (!Number.isInteger(position) || position < 0) return undefined;
    const counts = { ...this.#markBefore(position, from) };
    while (counts[from] < position) if (!this.#step(counts)) return undefined;
    return counts[from] === position ? counts[to] : undefined;
  }

  /** Both ends converted, or undefined where one of them does not fit or the span runs backwards. */
  convertSpan(span: Span, from: TextUnit, to: TextUnit): Span | undefined {
    if (span.end < span.start) return undefined;
    const start = this.convert(span.start, from, to);
    const end = this.convert(span.end, from, to);
    return start === undefined || end === undefined ? undefined : { start, end };
  }

  /** The last mark at or before the position. Adds the marks that are missing. */
  #markBefore(position: number, unit: TextUnit): Counts {
    for (let last = this.#marks.at(-1); last !== undefined && last[unit] < position; last = this.#marks.at(-1)) {
      const next = { ...last };
      while (next.utf16 < last.utf16 + STRIDE && this.#step(next));
      if (next.utf16 < last.utf16 + STRIDE) break;
      this.#marks.push(next);
    }
    let [from, to] = [0, this.#marks.length];
    while (to - from > 1) {
      const middle = (from + to) >>> 1;
      if ((this.#marks[middle]?.[unit] ?? 0) <= position) from = middle;
      else to = middle;
    }
    return this.#marks[from] ?? { codePoint: 0, utf16: 0, utf8: 0 };
  }

  /** Moves `counts` past one character; false at the end of the text. */
  #step(counts: Counts): boolean {
    const at = counts.utf16;
    if (at >= this.#text.length) return false;
    const code = this.#text.charCodeAt(at);
    const isPair = isHigh(code) && at + 1 < this.#text.length && isLow(this.#text.charCodeAt(at + 1));
    counts.codePoint += 1;
    counts.utf16 += isPair ? 2 : 1;
    counts.utf8 += isPair ? 4 : code < 0x80 ? 1 : code < 0x800 ? 2 : 3;
    return true;
  }
}

/** The span of a URL citation in code points, where it has one. */
export function spanOf(citation: Citation): Span | undefined {
  if (citation.kind !== 'url' || citation.start === undefined || citation.end === undefined) return undefined;
  return { start: citation.start, end: citation.end };
}

/** Citations whose positions do not fit `text` lose them; native citations and the others stay as they are. */
export function fitCitations(text: string, citations: readonly Citation[]): readonly Citation[] {
  if (citations.length === 0) return citations;
  const length = codePointLength(text);
  return citations.map((citation) => {
    const { start, end } = citation.kind === 'url' ? citation : {};
    if (start === undefined && end === undefined) return citation;
    return fits(start, end, length) ? citation : unplaced(citation);
  });
}

function unplaced(citation: Citation): Citation {
  if (citation.kind !== 'url') return citation;
  const { start: _start, end: _end, ...bare } = citation;
  return bare;
}

function fits(start: number | undefined, end: number | undefined, length: number): boolean {
  if (start === undefined || end === undefined) return false;
  return Number.isInteger(start) && Number.isInteger(end) && start >= 0 && start <= end && end <= length;
}

function isHigh(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

function isLow(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff;
}
