/**
 * The responses that are open. An array of slots instead of a `Set`: V8 rehashes a set every few additions and deletions, and the
 * old tables keep finished exchanges alive until the next full collection.
 */
import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

export interface OpenResponse {
  readonly response: ServerResponse;
  /** Aborts the exchange behind it. */
  readonly gone: AbortController;
}

export class OpenResponses {
  readonly #slots: (OpenResponse | undefined)[] = [];
  readonly #free: number[] = [];
  /**
   * By connection: mostly one, more where requests are pipelined. An entry a connection, not an exchange, and emptied with it.
   */
  readonly #ofSocket = new WeakMap<Duplex, OpenResponse[]>();

  get size(): number {
    return this.#slots.length - this.#free.length;
  }

  /** Returns its slot, for {@link remove}. */
  add(open: OpenResponse): number {
    const slot = this.#free.pop() ?? this.#slots.length;
    this.#slots[slot] = open;
    const { socket } = open.response.req;
    const others = this.#ofSocket.get(socket);
    if (others === undefined) this.#ofSocket.set(socket, [open]);
    else others.push(open);
    return slot;
  }

  /** Once for each slot that {@link add} returned. */
  remove(slot: number): void {
    const open = this.#slots[slot];
    this.#slots[slot] = undefined;
    this.#free.push(slot);
    if (open === undefined) return;
    const ofSocket = this.#ofSocket.get(open.response.req.socket);
    ofSocket?.splice(ofSocket.indexOf(open), 1);
  }

  /** Those of one connection, however many others there are. */
  on(socket: Duplex): readonly OpenResponse[] {
    return this.#ofSocket.get(socket) ?? [];
  }

  all(): OpenResponse[] {
    return this.#slots.filter((open) => open !== undefined);
  }
}
