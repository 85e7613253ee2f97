/**
 * Writes the items of one answer as canonical events: what decoders make `item.*` events with. Items get their indices in the
 * order in which they start. What an open item has streamed is kept here, so that a decoder remembers only the facts of its own
 * dialect.
 */
import { append } from '../append.ts';
import { upstreamFault } from './error.ts';
import type { CanonicalEvent, ItemDelta, ItemEvent, ItemHead } from './event.ts';
import { extend, newlyOpen, type OpenItem, partialItem, type WholeItem } from './fold.ts';
import type { Citation, ItemStatus, Logprobs, OutputItem } from './item.ts';
import { missingDeltas } from './missing-deltas.ts';
import type { Opaque } from './opaque.ts';

/** What the end of an item tells beside its deltas, or in their place. */
export interface EndFacts {
  readonly citations?: readonly Citation[];
  /** Undefined: the tokens that were streamed do not count. */
  readonly logprobs?: Logprobs | undefined;
  readonly opaque?: Opaque;
}

/** Starts an item, with whatever else that means where it is used. */
export type StartItem = ItemEmitter['start'];

/**
 * Of one answer. What looks at all items at once (the order of a whole answer, its fold, the calls of one message) takes a turn
 * for it, some microseconds an item: no answer has nearly as many.
 */
export const MOST_ITEMS = 32_768;

export class ItemEmitter {
  #count = 0;

  /** The index of one more item. */
  #next(): number {
    if (this.#count >= MOST_ITEMS)
      throw upstreamFault('malformed_event', `The upstream answered with more than ${MOST_ITEMS} items.`);
    return this.#count++;
  }

  start(head: ItemHead, out: CanonicalEvent[]): OpenItem {
    const item = newlyOpen(this.#next(), head);
    out.push({ type: 'item.start', index: item.index, head });
    return item;
  }

  /** One more piece of an open item. Its kind must fit that of the item. */
  delta(item: OpenItem, delta: ItemDelta, out: CanonicalEvent[]): void {
    out.push(this.piece(item, delta));
  }

  /**
   * {@link delta} as the event itself: most steps of a stream hold this one event, and an empty list that grows costs more than
   * it.
   */
  piece(item: OpenItem, delta: ItemDelta): CanonicalEvent {
    extend(item, delta);
    return { type: 'item.delta', index: item.index, delta };
  }

  /** Ends an item as what its deltas amount to. Media and native items have no deltas: see `endAs`. */
  end(item: OpenItem, status: ItemStatus, out: CanonicalEvent[], facts: EndFacts = {}): void {
    const streamed = partialItem(item);
    if (streamed === undefined) throw new Error(`an item of kind ${item.head.kind} has no deltas`);
    const { logprobs, ...others } = { ...streamed, ...facts };
    this.endAs(item, { ...others, ...(logprobs === undefined ? {} : { logprobs }) } as OutputItem, status, out);
  }

  /** Ends an item whose whole form is known. What its deltas lack of it the order inserts (`order.ts`). */
  endAs({ index }: OpenItem, item: OutputItem, status: ItemStatus, out: CanonicalEvent[]): void {
    out.push({ type: 'item.end', index, item, status });
  }

  /** An item that is known whole. */
  whole(item: OutputItem, status: ItemStatus, out: CanonicalEvent[]): void {
    append(out, unfold(this.#next(), { item, status }));
  }
}

/** The events that a whole item folds from. */
export function unfold(index: number, { item, status }: WholeItem): ItemEvent[] {
  const head = headOf(item);
  const deltas = missingDeltas(newlyOpen(index, head), item);
  return [
    { type: 'item.start', index, head },
    ...deltas.map((delta) => ({ type: 'item.delta', index, delta }) as const),
    { type: 'item.end', index, item, status },
  ];
}

/** The head of an item that is known whole. */
export function headOf(item: OutputItem): ItemHead {
  const id = item.id === undefined ? {} : { id: item.id };
  switch (item.kind) {
    case 'text':
      return { kind: item.kind, role: item.role, ...(item.phase === undefined ? {} : { phase: item.phase }), ...id };
    case 'refusal':
    case 'reasoning':
    case 'media':
      return { kind: item.kind, ...id };
    case 'toolCall':
      return { kind: item.kind, toolType: item.toolType, callId: item.callId, tool: item.tool, ...id };
    case 'native':
      return { kind: item.kind, dialect: item.dialect, ...id };
  }
}
