/**
 * The reasoning items of one streamed answer. Reasoning arrives in scalars (`reasoning_content`, `reasoning`, `reasoning_opaque`)
 * and in `reasoning_details`. Fragments of one identity are joined into one item (spec rule 12); all others stay separate.
 */
import { upstreamFault } from '../../canonical/error.ts';
import type { CanonicalEvent, ItemDelta } from '../../canonical/event.ts';
import type { OpenItem } from '../../canonical/fold.ts';
import type { ItemStatus } from '../../canonical/item.ts';
import { headOf, type ItemEmitter, type StartItem } from '../../canonical/item-emitter.ts';
import type { JsonValue } from '../../canonical/json.ts';
import type { Opaque, Owner } from '../../canonical/opaque.ts';
import {
  mergeIdentity,
  awaitsPayload,
  isSameItem,
  type Detail,
  type DetailIdentity,
  identityOf,
  opaqueOfDetail,
  withSignedText,
  readDetail,
  SCALAR_FORM,
} from '../details.ts';

interface OpenReasoning {
  readonly item: OpenItem;
  /** Undefined for scalar reasoning. */
  readonly identity: DetailIdentity | undefined;
  opaque: Opaque | undefined;
}

/** An ended item, kept so that a snapshot does not repeat it. */
interface EndedItem {
  readonly identity: DetailIdentity;
  readonly text: string;
}

/** No answer has as many items. Every fragment is compared with all of them, so more would take quadratic time. */
const MAX_ITEMS = 2048;

export class ReasoningItems {
  readonly #owner: Owner;
  readonly #items: ItemEmitter;
  readonly #begin: StartItem;
  #open: OpenReasoning[] = [];
  readonly #ended: EndedItem[] = [];
  /** Signatures with the id of a tool call, which they belong to. */
  readonly #signatures: { readonly id: string; readonly opaque: Opaque; readonly detail: Detail }[] = [];
  /**
   * What is read: a delta, that of the finish chunk (where some servers repeat the whole array), or the whole message after its
   * deltas.
   */
  #form: 'piece' | 'last' | 'snapshot' = 'piece';
  /** All items of scalar text. */
  readonly #scalars: OpenItem[] = [];

  constructor(owner: Owner, items: ItemEmitter, begin: StartItem) {
    this.#owner = owner;
    this.#items = items;
    this.#begin = begin;
  }

  get lastItem(): number | undefined {
    return this.#open.at(-1)?.item.index;
  }

  get #openScalar(): OpenReasoning | undefined {
    return this.#open.find(({ identity }) => identity === undefined);
  }

  /** What is read until `endSnapshot` is the whole message again. */
  beginSnapshot(): void {
    this.#form = 'snapshot';
  }
  endSnapshot(): void {
    this.#form = 'piece';
  }

  /** What is read from now on is a delta. */
  beginDelta(isLast: boolean): void {
    if (this.#form !== 'snapshot') this.#form = isLast ? 'last' : 'piece';
  }

  /** True when the fragments hold readable text that repeats nothing. */
  hasNewText(entries: readonly JsonValue[]): boolean {
    if (this.#form === 'snapshot') return false;
    return entries.some((entry) => {
      const detail = readDetail(entry);
      return detail !== undefined && detail.text !== '' && this.#newText(detail, this.#openFor(detail)) === detail.text;
    });
  }

  /** The new part of a scalar: in a snapshot only what was not streamed, and nothing where it is a copy of the details. */
  newScalarText(piece: string): string {
    if (this.#form !== 'snapshot') return piece;
    const streamed = this.#scalars.map(({ text }) => text).join('');
    if (streamed === '' && this.#ended.length + this.#open.length > 0) return '';
    return piece.startsWith(streamed) ? piece.slice(streamed.length) : '';
  }

  pushScalar(piece: string, out: CanonicalEvent[]): void {
    const fresh = this.newScalarText(piece);
    if (fresh === '') return;
    let open = this.#openScalar;
    if (open === undefined) {
      // A new item begins, so complete ones end.
      this.#endComplete(out);
      open = this.#start(undefined, out);
    }
    this.#items.delta(open.item, { kind: 'raw', text: fresh }, out);
  }

  /** One more piece of the open scalar item; undefined where there is nothing to emit. */
  extend(text: string): CanonicalEvent | undefined {
    const open = this.#openScalar;
    return open === undefined || text === '' ? undefined : this.#items.piece(open.item, { kind: 'raw', text });
  }

  pushScalarOpaque(value: string, out: CanonicalEvent[]): void {
    const open = this.#openScalar ?? this.#start(undefined, out);
    const before = open.opaque?.value ?? '';
    if (this.#form === 'snapshot' && before !== '') return;
    open.opaque = { owner: this.#owner, value: before + value, form: SCALAR_FORM };
  }

  pushDetails(entries: readonly JsonValue[], out: CanonicalEvent[]): void {
    for (const entry of entries) {
      const detail = readDetail(entry);
      if (detail === undefined) continue;
      if (detail.kind === 'other') this.#pushNative(detail, out);
      else this.#pushDetail(detail, out);
    }
  }

  /**
   * Ends items because other content arrives, except those whose payload may still arrive. A scalar payload may always be
   * continued.
   */
  completeOpen(out: CanonicalEvent[]): void {
    this.#endWhere(
      ({ opaque, identity }) => (opaque === undefined ? !awaitsPayload(identity?.format) : opaque.form !== SCALAR_FORM),
      out,
    );
  }

  /**
   * Ends every item; the one with the index `cut` is incomplete. `sign` takes the signature of a tool call, and is false for an
   * unknown one.
   */
  close(cut: number | undefined, sign: (id: string, opaque: Opaque) => boolean, out: CanonicalEvent[]): void {
    for (const { id, opaque, detail } of this.#signatures) {
      if (sign(id, opaque)) continue;
      const open = this.#start(identityOf(detail), out);
      open.opaque = opaque;
    }
    this.#signatures.length = 0;
    for (const open of this.#open) this.#end(open, open.item.index === cut ? 'incomplete' : 'completed', out);
    this.#open = [];
  }

  #pushDetail(detail: Detail, out: CanonicalEvent[]): void {
    if (detail.kind === 'encrypted' && detail.id !== undefined && detail.format?.startsWith('google') === true) {
      if (detail.payload === undefined || this.#signatures.some(({ id }) => id === detail.id)) return;
      if (this.#signatures.length >= MAX_ITEMS)
        throw upstreamFault('malformed_event', `The upstream sent more than ${MAX_ITEMS} signatures.`);
      this.#signatures.push({ id: detail.id, opaque: opaqueOfDetail(detail, detail.payload, this.#owner), detail });
      return;
    }
    if (detail.text === '' && detail.payload === undefined) return;
    let open = this.#openFor(detail);
    const fresh = this.#newText(detail, open);
    if (fresh === '' && (detail.payload === undefined || (open === undefined && this.#hasPayload(detail)))) return;
    if (open === undefined) {
      // A new item begins, so complete ones end.
      this.#endComplete(out);
      open = this.#start(identityOf(detail), out);
    }
    if (open.identity !== undefined) mergeIdentity(open.identity, detail);
    if (fresh !== '') this.#items.delta(open.item, deltaOf(detail, fresh), out);
    if (detail.payload !== undefined) open.opaque ??= opaqueOfDetail(detail, detail.payload, this.#owner);
  }

  #openFor(detail: Detail): OpenReasoning | undefined {
    return this.#open.find(({ identity }) => identity !== undefined && isSameItem(identity, detail));
  }

  /** The new text of a fragment: all of it, but for one that repeats what was streamed, only the rest. */
  #newText(detail: Detail, open: OpenReasoning | undefined): string {
    if (detail.text === '' || (this.#form === 'piece' && !this.#hasPayload(detail))) return detail.text;
    const current = open === undefined ? undefined : detail.kind === 'text' ? open.item.text : summaryIn(open);
    let known = current;
    // One entry may hold the text of several items that other content separated (MiniMax).
    let length = 0;
    let isRepeated = true;
    for (const { identity, text } of this.#ended) {
      if (!isSameItem(identity, detail)) continue;
      known ??= text;
      isRepeated = isRepeated && detail.text.startsWith(text, length);
      if (!isRepeated) break;
      length += text.length;
    }
    if (isRepeated && detail.text.startsWith(current ?? '', length)) return detail.text.slice(length + (current ?? '').length);
    if (this.#form !== 'snapshot') return detail.text;
    return known !== undefined && detail.text.startsWith(known) ? detail.text.slice(known.length) : '';
  }

  /** True where an item has this payload already. */
  #hasPayload({ payload }: Detail): boolean {
    if (payload === undefined) return false;
    const isSame = ({ identity }: { readonly identity: DetailIdentity | undefined }): boolean =>
      identity?.payload !== undefined && identity.payload === payload;
    return this.#ended.some(isSame) || this.#open.some(isSame);
  }

  /** Ends signed items and scalar text. Fragments with an identity may still be followed by their payload. */
  #endComplete(out: CanonicalEvent[]): void {
    this.#endWhere(({ opaque, identity }) => (opaque === undefined ? identity === undefined : opaque.form !== SCALAR_FORM), out);
  }

  #endWhere(isDone: (open: OpenReasoning) => boolean, out: CanonicalEvent[]): void {
    const kept: OpenReasoning[] = [];
    for (const open of this.#open) {
      if (isDone(open)) this.#end(open, 'completed', out);
      else kept.push(open);
    }
    this.#open = kept;
  }

  #start(identity: DetailIdentity | undefined, out: CanonicalEvent[]): OpenReasoning {
    if (this.#open.length + this.#ended.length >= MAX_ITEMS)
      throw upstreamFault('malformed_event', `The upstream sent more than ${MAX_ITEMS} reasoning items.`);
    const item = this.#begin({ kind: 'reasoning' }, out);
    if (identity === undefined) this.#scalars.push(item);
    const open: OpenReasoning = { item, identity, opaque: undefined };
    this.#open.push(open);
    return open;
  }

  #end(open: OpenReasoning, status: ItemStatus, out: CanonicalEvent[]): void {
    const { item, identity, opaque } = open;
    if (identity !== undefined) this.#ended.push({ identity, text: item.text + summaryIn(open) });
    this.#items.end(item, status, out, opaque === undefined ? {} : { opaque: withSignedText(opaque, item.text) });
  }

  #pushNative(detail: Detail, out: CanonicalEvent[]): void {
    const item = { kind: 'native', dialect: 'chat', body: detail.body } as const;
    this.#items.endAs(this.#begin(headOf(item), out), item, 'completed', out);
  }
}

function deltaOf({ kind }: Detail, text: string): ItemDelta {
  return kind === 'text' ? { kind: 'raw', text } : { kind: 'summary', part: 0, text };
}

function summaryIn({ item }: OpenReasoning): string {
  return item.summary[0] ?? '';
}
