/**
 * Puts the events of items that are open side by side into an order that clients can read. Upstreams interleave items (chat ends
 * its calls with the answer, a responses upstream may stream two texts piece by piece); some clients read them one after another.
 * The events of an item are written as they come while no other item holds it back. Otherwise they are buffered and written when
 * its turn comes, and items that start behind a buffered one wait behind it. Knows no protocol: each encoder has its own table of
 * which items hold back which.
 */
import { GatewayError } from '../canonical/error.ts';
import type { ItemEvent, ItemHead } from '../canonical/event.ts';
import { grown } from '../canonical/grown.ts';
import { without } from '../entries.ts';
import { Queue } from '../queue.ts';
import { canJoin } from './runs.ts';

type Kind = ItemHead['kind'];

/** For each kind of item, the kinds that wait until it ends. A kind that is listed always holds back its own. */
export type Holds = Readonly<Partial<Record<Kind, readonly Kind[]>>>;

/** Items whose pieces clients join into one text wait for their own kind. */
export const OWN_KIND = { text: ['text'], refusal: ['refusal'], reasoning: ['reasoning'] } as const satisfies Holds;

/** An item that has started and not ended. */
interface Item {
  readonly kind: Kind;
  /**
   * `started`: it does not have its turn yet, so it holds back nobody. `live`: it has its turn, its events are written as they
   * come. `queued`: it waits for its turn. `paused`: it was live and waits for an item that holds it back.
   */
  state: 'started' | 'live' | 'queued' | 'paused';
  /** Events to be written when the wait is over. */
  readonly buffer: ItemEvent[];
}

export class Turns {
  readonly #holds: Holds;
  readonly #begin: 'start' | 'delta';
  readonly #write: (event: ItemEvent) => void;
  readonly #items = new Map<number, Item>();
  /** Items that have had their turn, have not ended and hold back others: one of each kind at most. */
  readonly #holders: Item[] = [];
  /** Items in the state of that name, those that have waited longest first. */
  readonly #paused: Item[] = [];
  readonly #queued = new Queue<Item>();
  /** The index of the live item that was written last. No other has taken a turn since, so its next delta needs no check. */
  #latest = -1;

  /**
   * `begin`: whether texts and reasoning take their turn with `item.start` or with their first delta. All others take it with the
   * start.
   */
  constructor(holds: Holds, begin: 'start' | 'delta', write: (event: ItemEvent) => void) {
    this.#holds = holds;
    this.#begin = begin;
    this.#write = write;
  }

  /** Writes the event, and after the end of an item whatever waited for that; or buffers it. */
  push(event: ItemEvent): void {
    const { index } = event;
    if (index === this.#latest && event.type === 'item.delta') {
      this.#write(event);
      return;
    }
    let item = this.#items.get(index);
    if (item === undefined) {
      if (event.type !== 'item.start') return;
      item = { kind: event.head.kind, state: 'started', buffer: [] };
      this.#items.set(index, item);
    }
    if (this.#mustWait(item)) {
      addTo(item.buffer, event);
      return;
    }
    this.#writeNow(event, item);
    if (event.type !== 'item.end') return;
    for (let next = this.#next(); next !== undefined; next = this.#next())
      for (const buffered of next.buffer.splice(0)) this.#writeNow(buffered, next);
  }

  /** No more events come: returns those that are still buffered, item by item. */
  rest(): readonly ItemEvent[] {
    return [...this.#paused.splice(0), ...this.#queued].flatMap(({ buffer }) => buffer);
  }

  /** Writes the rest: the answer fails, and the turn will not come. */
  drain(): void {
    try {
      for (const event of this.rest()) this.#write(event);
    } catch (refused) {
      // What the protocol refuses to write is left out: the failure that follows is the one that matters.
      if (!(refused instanceof GatewayError)) throw refused;
    }
  }

  /** True for an item that waits already, and for one that has to from now on. */
  #mustWait(item: Item): boolean {
    if (item.state === 'queued' || item.state === 'paused') return true;
    const isStarted = item.state === 'started';
    if (!this.#isHeld(item) && !(isStarted && this.#queued.size > 0)) return false;
    item.state = isStarted ? 'queued' : 'paused';
    if (isStarted) this.#queued.add(item);
    else this.#paused.push(item);
    return true;
  }

  /** Takes out an item that need not wait any more. Paused items come first; the queue moves when nobody holds back anything. */
  #next(): Item | undefined {
    const at = this.#paused.findIndex((item) => !this.#isHeld(item));
    const [resumed] = at < 0 ? [] : this.#paused.splice(at, 1);
    if (resumed !== undefined) {
      resumed.state = 'live';
      return resumed;
    }
    const next = this.#holders.length === 0 ? this.#queued.take() : undefined;
    if (next !== undefined) next.state = 'started';
    return next;
  }

  #isHeld(item: Item): boolean {
    for (const holder of this.#holders)
      if (holder !== item && this.#holds[holder.kind]?.includes(item.kind) === true) return true;
    return false;
  }

  #writeNow(event: ItemEvent, item: Item): void {
    this.#write(event);
    if (event.type === 'item.end') {
      this.#items.delete(event.index);
      const at = this.#holders.indexOf(item);
      if (at >= 0) this.#holders.splice(at, 1);
      return;
    }
    if (event.type === 'item.start' && this.#begin === 'delta' && item.kind in OWN_KIND) return;
    this.#latest = event.index;
    if (item.state === 'live') return;
    item.state = 'live';
    if (this.#holds[item.kind] !== undefined) this.#holders.push(item);
  }
}

/** Deltas that follow one another in a buffer become one, and so do the pieces of one. */
function addTo(events: ItemEvent[], event: ItemEvent): void {
  const last = events.at(-1);
  if (event.type !== 'item.delta' || event.delta.kind === 'citation') events.push(event);
  else if (last?.type === 'item.delta' && last.delta.kind !== 'citation' && canJoin(last.delta, event.delta))
    events[events.length - 1] = { ...last, delta: { ...last.delta, text: grown(last.delta.text, event.delta.text) } };
  else events.push(event.delta.pieces === undefined ? event : { ...event, delta: without(event.delta, 'pieces') });
}
