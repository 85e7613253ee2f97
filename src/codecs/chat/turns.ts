/**
 * Whose turn it is to speak. Chat clients join the pieces of `content`, of `refusal` and of the thoughts as they come, so items of one
 * kind that a responses upstream says side by side speak one after the other, in their order. Calls have an index and never wait. Texts
 * of other upstreams stay open for their citations alone, and hold nobody up.
 */
import type { CanonicalEvent, ItemHead } from '../canonical/event.ts';
import type { Owner } from '../canonical/opaque.ts';

type Kind = ItemHead['kind'];

/** Kinds whose items clients read as one text. */
const JOINED: ReadonlySet<Kind> = new Set<Kind>(['text', 'refusal', 'reasoning']);

interface Waiting {
  readonly kind: Kind;
  /** What the item has said so far, from its start. */
  readonly events: CanonicalEvent[];
}

export class Turns {
  readonly #areTaken: boolean;
  readonly #speakers = new Map<Kind, number>();
  /** By index, in the order of the items. */
  readonly #waiting = new Map<number, Waiting>();
  /** Texts before which another kind of item began, or words of another phase. */
  readonly #parted = new Set<number>();
  #lastKind: Kind | undefined;
  #lastPhase: string | undefined;

  constructor({ channelType }: Owner) {
    this.#areTaken = channelType === 'responses';
  }

  /** True for a text that an empty line parts from what was said before it. */
  isParted(index: number): boolean {
    return this.#parted.has(index);
  }

  /** True where the event waits, since another item of its kind is speaking. */
  holds(event: CanonicalEvent): boolean {
    switch (event.type) {
      case 'item.start': {
        const { kind } = event.head;
        this.#place(event.index, event.head);
        if (!this.#areTaken || !JOINED.has(kind)) return false;
        if (this.#speakers.has(kind)) {
          this.#waiting.set(event.index, { kind, events: [event] });
          return true;
        }
        this.#speakers.set(kind, event.index);
        return false;
      }
      case 'item.delta':
      case 'item.end': {
        const waiting = this.#waiting.get(event.index);
        waiting?.events.push(event);
        return waiting !== undefined;
      }
      default:
        return false;
    }
  }

  /** What stands before an item is known when it begins, whenever its turn comes. */
  #place(index: number, head: ItemHead): void {
    if (head.kind === 'text') {
      if (this.#lastKind !== 'text' || this.#lastPhase !== head.phase) this.#parted.add(index);
      this.#lastPhase = head.phase;
    }
    this.#lastKind = head.kind;
  }

  /** After an event that did not wait: what those say whose turn it is now. */
  next(event: CanonicalEvent): readonly CanonicalEvent[] {
    if (event.type !== 'item.end' || this.#speakers.get(event.item.kind) !== event.index) return [];
    const { kind } = event.item;
    this.#speakers.delete(kind);
    const said: CanonicalEvent[] = [];
    for (const [index, waiting] of this.#waiting) {
      if (waiting.kind !== kind) continue;
      this.#waiting.delete(index);
      for (const held of waiting.events) said.push(held);
      if (waiting.events.at(-1)?.type === 'item.end') continue;
      this.#speakers.set(kind, index);
      break;
    }
    return said;
  }
}
