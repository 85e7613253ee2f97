/**
 * Signatures of texts in the one content that a chat message has. An answer may hold several texts, and a signature belongs to one of them:
 * its entry of `reasoning_details` says by its id where that text stands, so that it is found again when the message comes back.
 */
import type { Item, TextItem } from '../canonical/item.ts';
import type { Opaque } from '../canonical/opaque.ts';
import { TEXT_SEPARATOR } from './message.ts';

/** Where a text stands in the content, in code units. */
export interface TextPlace {
  readonly start: number;
  readonly end: number;
}

export interface SignedText extends TextPlace {
  readonly opaque: Opaque;
}

/** The place of a text whose signature does not say it: the last text takes such a one. */
export const SOMEWHERE: TextPlace = { start: 0, end: Number.POSITIVE_INFINITY };

/** The `id` of the entry that holds the signature of the text at this place. */
export function textSignatureId({ start, end }: TextPlace): string {
  return `text_signature_${start}_${end}`;
}

/** The place that the `id` of such an entry says; undefined for the `id` of anything else. */
export function placeOfText(id: string): TextPlace | undefined {
  const [, start, end] = /^text_signature_(\d{1,15})_(\d{1,15})$/.exec(id) ?? [];
  return start === undefined || end === undefined ? undefined : { start: Number(start), end: Number(end) };
}

/** The content with each signed text as an item of its own. Where the places fit no more, the last text takes the last signature. */
export function signTexts(content: readonly Item[], signed: readonly SignedText[]): readonly Item[] {
  const last = signed.at(-1);
  if (last === undefined) return content;
  const [only] = content;
  const parted = content.length === 1 && only?.kind === 'text' ? part(only, signed) : undefined;
  if (parted !== undefined) return parted;
  const at = content.findLastIndex(({ kind }) => kind === 'text');
  return content.map((item, index): Item => (index === at && item.kind === 'text' ? { ...item, opaque: last.opaque } : item));
}

function part(item: TextItem, signed: readonly SignedText[]): readonly TextItem[] | undefined {
  // A breakpoint stands behind the whole text.
  if (item.cacheControl !== undefined) return undefined;
  const parts: TextItem[] = [];
  let from = 0;
  for (const { start, end, opaque } of signed.toSorted((a, b) => a.start - b.start)) {
    if (start < from || start >= end || end > item.text.length) return undefined;
    const before = item.text.slice(from, start);
    // What only parts two texts was put there for clients.
    if (before !== '' && before !== TEXT_SEPARATOR) parts.push({ ...item, text: before });
    parts.push({ ...item, text: item.text.slice(start, end), opaque });
    from = end;
  }
  if (from < item.text.length) parts.push({ ...item, text: item.text.slice(from) });
  return parts;
}
