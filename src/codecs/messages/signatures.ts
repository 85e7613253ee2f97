/**
 * Puts signatures back where they belong: one that was sent as an empty thinking block after a call or a text (see
 * `message-parts.ts`) names what it signs inside its envelope. Works on the items of one assistant message.
 */
import type { Item } from '../canonical/item.ts';
import { TEXT_SIGNATURE } from './message-parts.ts';

export function restoreSignatures(items: readonly Item[]): Item[] {
  const result: Item[] = [];
  for (const item of items) {
    const target =
      item.kind === 'reasoning' && item.summary === undefined ? signedBy(item.opaque?.itemId, result, items) : undefined;
    const opaque = item.kind === 'reasoning' ? item.opaque : undefined;
    const signed = target === undefined ? undefined : result[target];
    if (target === undefined || opaque === undefined || (signed?.kind !== 'toolCall' && signed?.kind !== 'text')) {
      result.push(item);
      continue;
    }
    const { itemId: _, ...own } = opaque;
    result[target] = { ...signed, opaque: own };
  }
  return result;
}

/** The index of the signed item among those before the signature; a call is found by its id, a text is the nearest one. */
function signedBy(itemId: string | undefined, before: readonly Item[], all: readonly Item[]): number | undefined {
  if (itemId === undefined) return undefined;
  const isCall = all.some((item) => item.kind === 'toolCall' && item.callId === itemId);
  const at = before.findLastIndex((item) => (isCall ? item.kind === 'toolCall' && item.callId === itemId : item.kind === 'text'));
  return at !== -1 && (isCall || itemId === TEXT_SIGNATURE) ? at : undefined;
}
