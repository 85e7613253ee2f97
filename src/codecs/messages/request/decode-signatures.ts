/**
 * Puts signatures back on the calls and texts that they sign. They come in empty thinking blocks (see `message-parts.ts`), whose
 * envelope names what it signs. Works on the items of one assistant message.
 */
import type { Item, ReasoningItem } from '../../canonical/item.ts';
import { TEXT_SIGNATURE } from '../message-parts.ts';

export function restoreSignatures(items: readonly Item[]): Item[] {
  const signed = new SignedItems(items);
  for (const item of items) if (item.kind !== 'reasoning' || !signed.sign(item)) signed.add(item);
  return signed.items;
}

class SignedItems {
  readonly items: Item[] = [];
  readonly #callIds: ReadonlySet<string>;
  /** Where the latest call of each id stands, and the latest text. */
  readonly #callAt = new Map<string, number>();
  #textAt: number | undefined;

  constructor(all: readonly Item[]) {
    this.#callIds = new Set(all.flatMap((item) => (item.kind === 'toolCall' ? [item.callId] : [])));
  }

  add(item: Item): void {
    if (item.kind === 'toolCall') this.#callAt.set(item.callId, this.items.length);
    else if (item.kind === 'text') this.#textAt = this.items.length;
    this.items.push(item);
  }

  /** Puts the signature on the item that it names; false for a reasoning item that signs nothing. */
  sign({ summary, opaque }: ReasoningItem): boolean {
    const at = summary === undefined ? this.#placeOf(opaque?.itemId) : undefined;
    const signed = at === undefined ? undefined : this.items[at];
    if (at === undefined || opaque === undefined || (signed?.kind !== 'toolCall' && signed?.kind !== 'text')) return false;
    const { itemId: _, ...own } = opaque;
    this.items[at] = { ...signed, opaque: own };
    return true;
  }

  /** Where the signed item stands among those before the signature; a call is found by its id, a text is the nearest one. */
  #placeOf(itemId: string | undefined): number | undefined {
    if (itemId === undefined) return undefined;
    if (this.#callIds.has(itemId)) return this.#callAt.get(itemId);
    return itemId === TEXT_SIGNATURE ? this.#textAt : undefined;
  }
}
