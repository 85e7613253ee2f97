/**
 * Positions of URL citations. The canonical unit is the code point (what the vendors' Python SDKs count); gemini counts
 * UTF-8 bytes and JavaScript UTF-16 units. A position that does not fit its text is dropped, never moved: a citation without
 * a position is still true, one at a wrong place is not. Knows no dialect's annotation shape; each codec writes its own.
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

/**
 * The same place counted in another unit; undefined where it is no whole number of characters of `text` (negative, past the
 * end, between the bytes or surrogates of one character). O(length) a call.
 */
export function convertPosition(text: string, position: number, from: TextUnit, to: TextUnit): number | undefined {
  if (!Number.isInteger(position) || position < 0) return undefined;
  const counts = { codePoint: 0, utf16: 0, utf8: 0 };
  let at = 0;
  while (counts[from] < position) {
    if (at >= text.length) return undefined;
    const code = text.charCodeAt(at);
    const isPair = isHigh(code) && at + 1 < text.length && isLow(text.charCodeAt(at + 1));
    const units = isPair ? 2 : 1;
    counts.codePoint += 1;
    counts.utf16 += units;
    counts.utf8 += isPair ? 4 : code < 0x80 ? 1 : code < 0x800 ? 2 : 3;
    at += units;
  }
  return counts[from] === position ? counts[to] : undefined;
}

/** Both ends converted, or undefined where one of them does not fit or the span runs backwards. */
export function convertSpan(text: string, span: Span, from: TextUnit, to: TextUnit): Span | undefined {
  if (span.end < span.start) return undefined;
  const start = convertPosition(text, span.start, from, to);
  const end = convertPosition(text, span.end, from, to);
  return start === undefined || end === undefined ? undefined : { start, end };
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
