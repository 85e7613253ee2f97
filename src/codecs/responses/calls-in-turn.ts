/**
 * A call begins after the call before it has ended, as the vendor has it. An upstream may leave calls open side by side (chat ends them
 * all at its finish), and agents that go by the item that began last (pi) then run one call with the arguments of another. The open call goes
 * on live; a call behind it waits for its end, and what begins behind a call that waits does, too. Messages clients have the same (M4).
 */
import { grown } from '../canonical/grown.ts';
import type { CanonicalEvent } from '../canonical/event.ts';

export type ItemEvent = Extract<CanonicalEvent, { type: 'item.start' | 'item.delta' | 'item.end' }>;

export class CallsInTurn {
  readonly #write: (event: ItemEvent) => void;
  /** The call that has begun and not ended. */
  #open: number | undefined;
  /** The items that wait, in their order, each with what was said of it. */
  readonly #waiting = new Map<number, ItemEvent[]>();
  /** Texts and thoughts of which nothing was said yet: they begin with their first word. */
  readonly #silent = new Set<number>();

  constructor(write: (event: ItemEvent) => void) {
    this.#write = write;
  }

  push(event: ItemEvent): void {
    const said = this.#waiting.get(event.index);
    if (said !== undefined) {
      keep(said, event);
    } else if (this.#mustWait(event)) {
      this.#waiting.set(event.index, [event]);
    } else {
      this.#say(event);
      if (event.type === 'item.end') this.#release();
    }
  }

  /** Nothing more is said: what waits follows as far as it came. `cut` ends a call that has no end. */
  finish(cut: (index: number) => void): void {
    do {
      if (this.#open !== undefined) cut(this.#open);
      this.#open = undefined;
      this.#release();
    } while (this.#open !== undefined);
  }

  #mustWait(event: ItemEvent): boolean {
    const isWaitedFor = this.#waiting.size > 0;
    if (event.type !== 'item.start') return this.#silent.delete(event.index) && isWaitedFor;
    const { kind } = event.head;
    if (isWaitedFor || kind === 'toolCall') return isWaitedFor || this.#open !== undefined;
    // What says nothing before its end (a picture) has begun with its start.
    if (kind !== 'media' && kind !== 'native') this.#silent.add(event.index);
    return false;
  }

  #say(event: ItemEvent): void {
    this.#write(event);
    if (event.type === 'item.start' && event.head.kind === 'toolCall') this.#open = event.index;
    else if (event.type === 'item.end' && event.index === this.#open) this.#open = undefined;
  }

  #release(): void {
    for (const [index, events] of this.#waiting) {
      if (this.#open !== undefined) return;
      this.#waiting.delete(index);
      for (const event of events) this.#say(event);
    }
  }
}

/** Pieces that wait are one piece. */
function keep(said: ItemEvent[], event: ItemEvent): void {
  const last = said.at(-1);
  if (last?.type === 'item.delta' && last.delta.kind === 'input' && event.type === 'item.delta' && event.delta.kind === 'input')
    said[said.length - 1] = { ...last, delta: { ...last.delta, text: grown(last.delta.text, event.delta.text) } };
  else said.push(event);
}
