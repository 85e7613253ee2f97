/**
 * Tells a slow reader from a dead one: a reader that takes anything of what was written, however little, may go on; one that
 * takes nothing for too long is given up. Knows no frame.
 */
import type { Writable } from 'node:stream';
import type { Clock } from './clock.ts';
import { createDeadline, type Deadline } from './deadline.ts';

/** A class, since a stream whose reader is behind has one. */
export class StallWatch {
  #stallMs: number;
  readonly #unsent: () => number | undefined;
  readonly #onStall: () => void;
  readonly #deadline: Deadline;
  #before: number | undefined;

  /**
   * `unsent`: how much of what was written has not left; undefined while that is not up to the reader. `onStall` is called at
   * most once for each {@link start}.
   */
  constructor(clock: Clock, stallMs: number, unsent: () => number | undefined, onStall: () => void) {
    this.#stallMs = stallMs;
    this.#unsent = unsent;
    this.#onStall = onStall;
    this.#deadline = createDeadline(clock, () => this.#check());
  }

  /** Another patience, from the next {@link start} on. */
  waitAtMost(stallMs: number): void {
    this.#stallMs = stallMs;
  }

  /** From now on something must be taken. */
  start(): void {
    this.#before = this.#unsent();
    this.#deadline.in(this.#stallMs);
  }

  /** Everything was taken. */
  clear(): void {
    this.#deadline.clear();
  }

  stop(): void {
    this.#deadline.stop();
  }

  #check(): void {
    const now = this.#unsent();
    if (now === undefined || this.#before === undefined || now < this.#before) this.start();
    else this.#onStall();
  }
}

/** What of `response` has not left; undefined while its connection still belongs to an earlier answer. */
export function unsentBytes(response: Writable, socket: Writable | null | undefined): number | undefined {
  return socket == null ? undefined : response.writableLength + bytesUnderWay(socket);
}

/**
 * Bytes that the operating system has not taken from this connection. `writableLength` counts a write as a whole until all of it
 * is out: the reader of one large event would seem to take nothing. How far the write has come the handle beneath knows alone,
 * where the timeout of `net.Socket` looks, too.
 */
export function bytesUnderWay(socket: Writable): number {
  const handle = '_handle' in socket ? socket._handle : undefined;
  if (typeof handle !== 'object' || handle === null || !('writeQueueSize' in handle)) return 0;
  return typeof handle.writeQueueSize === 'number' ? handle.writeQueueSize : 0;
}
