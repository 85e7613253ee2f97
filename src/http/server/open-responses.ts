/**
 * The responses that are open. Slots and not a `Set`: a set that is added to and deleted from all day makes a new table every few
 * exchanges, and each old one keeps whole exchanges from V8's young collection until the next full one.
 */
import type { ServerResponse } from 'node:http';

export interface OpenResponse {
  readonly response: ServerResponse;
  /** Ends the exchange behind it: in words, unless its client left. */
  readonly gone: AbortController;
}

export class OpenResponses {
  readonly #slots: (OpenResponse | undefined)[] = [];
  readonly #free: number[] = [];

  get size(): number {
    return this.#slots.length - this.#free.length;
  }

  /** Returns its place, for {@link remove}. */
  add(open: OpenResponse): number {
    const place = this.#free.pop() ?? this.#slots.length;
    this.#slots[place] = open;
    return place;
  }

  /** Once for each place that was given out. */
  remove(place: number): void {
    this.#slots[place] = undefined;
    this.#free.push(place);
  }

  all(): OpenResponse[] {
    return this.#slots.filter((open) => open !== undefined);
  }
}
