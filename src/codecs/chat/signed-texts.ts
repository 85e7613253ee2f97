/**
 * Signatures of texts. A chat message joins all texts of an answer into one content, but a signature belongs to one of them. The id of its
 * entry in `reasoning_details` gives the range of that text, so that it is found again when the client sends the message back.
 */
import type { Item, TextItem } from '../canonical/item.ts';
import type { Opaque } from '../canonical/opaque.ts';
import { TEXT_SEPARATOR } from '../answers/text-join.ts';

/** The range of a text in the content, in code units. */
export interface TextRange {
  readonly start: number;
  readonly end: number;
}

export interface SignedText extends TextRange {
  readonly opaque: Opaque;
}

/** The range for a signature that does not give one: it belongs to the last text. */
export const UNKNOWN_RANGE: TextRange = { start: 0, end: Number.POSITIVE_INFINITY };

/** The `id` of the entry that holds the signature of the text in this range. */
export function textSignatureId({ start, end }: TextRange): string {
  return `text_signature_${start}_${end}`;
}

/** The range that the `id` of such an entry gives; undefined for any other `id`. */
export function textRangeOf(id: string): TextRange | undefined {
  const [, start, end] = /^text_signature_(\d{1,15})_(\d{1,15})$/.exec(id) ?? [];
  return start === undefined || end === undefined ? undefined : { start: Number(start), end: Number(end) };
}

/** The content with each signed text as an item of its own. Where the ranges no longer fit, the last text gets the last signature. */
export function signTexts(content: readonly Item[], signed: readonly SignedText[]): readonly Item[] {
  const last = signed.at(-1);
  if (last === undefined) return content;
  const [only] = content;
  const split = content.length === 1 && only?.kind === 'text' ? splitText(only, signed) : undefined;
  if (split !== undefined) return split;
  const at = content.findLastIndex(({ kind }) => kind === 'text');
  return content.map((item, index): Item => (index === at && item.kind === 'text' ? { ...item, opaque: last.opaque } : item));
}

/** Undefined where the ranges do not fit the text. */
function splitText(item: TextItem, signed: readonly SignedText[]): readonly TextItem[] | undefined {
  // A cache breakpoint belongs to the whole text.
  if (item.cacheControl !== undefined) return undefined;
  const parts: TextItem[] = [];
  let from = 0;
  for (const { start, end, opaque } of signed.toSorted((a, b) => a.start - b.start)) {
    if (start < from || start >= end || end > item.text.length) return undefined;
    const before = item.text.slice(from, start);
    // The separator was added for the client.
    if (before !== '' && before !== TEXT_SEPARATOR) parts.push({ ...item, text: before });
    parts.push({ ...item, text: item.text.slice(start, end), opaque });
    from = end;
  }
  if (from < item.text.length) parts.push({ ...item, text: item.text.slice(from) });
  return parts;
}
