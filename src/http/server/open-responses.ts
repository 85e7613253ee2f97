/**
 * The responses that are open. An array of slots instead of a `Set`: V8 rehashes a set every few additions and deletions, and the old tables
 * keep finished exchanges alive until the next full collection.
 */
import type { ServerResponse } from 'node:http';

export interface OpenResponse {
  readonly response: ServerResponse;
  /** Aborts the exchange behind it. */
  readonly gone: AbortController;
}

export class OpenResponses {
  readonly #slots: (OpenResponse | undefined)[] = [];
  readonly #free: number[] = [];

  get size(): number {
    return this.#slots.length - this.#free.length;
  }

  /** Returns its slot, for {@link remove}. */
  add(open: OpenResponse): number {
    const slot = this.#free.pop() ?? this.#slots.length;
    this.#slots[slot] = open;
    return slot;
  }

  /** Once for each slot that {@link add} returned. */
  remove(slot: number): void {
    this.#slots[slot] = undefined;
    this.#free.push(slot);
  }

  all(): OpenResponse[] {
    return this.#slots.filter((open) => open !== undefined);
  }
}
