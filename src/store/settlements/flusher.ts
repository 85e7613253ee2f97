/**
 * When a queue of rows is written: a while after its first row, at once when a whole batch waits, one flush at a time, and
 * after a pause when the engine refused. Knows nothing of the rows; every engine's settlement queue has one.
 */
import type { Clock } from '../store.ts';

/** How long to wait after a flush that the engine refused. */
const RETRY_MS = 250;

export interface FlusherOptions {
  readonly clock: Clock;
  /** At most this long a row waits for its flush, from when it was added or the flush before was over. */
  readonly flushMs: number;
  /** So many rows wait no longer. */
  readonly batch: number;
  /** Rows that are not written yet. */
  readonly pending: () => number;
  /** Writes one batch; false when the engine refused, and its rows wait again. Must not reject. */
  readonly write: () => Promise<boolean>;
}

export class Flusher {
  readonly #options: FlusherOptions;
  #cancelTimer: (() => void) | undefined;
  #flushing: Promise<boolean> | undefined;
  /** The engine refused the last flush: the timer decides when the next one is tried, not the length of the queue. */
  #failing = false;
  #stopped = false;

  constructor(options: FlusherOptions) {
    this.#options = options;
  }

  get flushing(): boolean {
    return this.#flushing !== undefined;
  }

  get failing(): boolean {
    return this.#failing;
  }

  rowAdded(): void {
    if (this.#flushing !== undefined) return;
    const { batch, pending, flushMs } = this.#options;
    if (!this.#failing && pending() >= batch) void this.flush();
    else if (this.#cancelTimer === undefined) this.#flushAfter(flushMs);
  }

  /** The flush that is running, or else a new one, of one batch. Resolves with the result of `write`. */
  flush(): Promise<boolean> {
    this.#cancel();
    this.#flushing ??= this.#options.write().then((written) => {
      this.#flushing = undefined;
      this.#failing = !written;
      if (!this.#stopped && this.#options.pending() > 0) this.#goOn();
      return written;
    });
    return this.#flushing;
  }

  /** From now on only who calls `flush` writes. */
  stop(): void {
    this.#stopped = true;
    this.#cancel();
  }

  /**
   * Rows came meanwhile, as they always do under load: written at once they would make small batches, each with a commit of its
   * own.
   */
  #goOn(): void {
    const { batch, pending, flushMs } = this.#options;
    if (this.#failing) this.#flushAfter(RETRY_MS);
    else if (pending() >= batch) void this.flush();
    else this.#flushAfter(flushMs);
  }

  #flushAfter(ms: number): void {
    this.#cancel();
    this.#cancelTimer = this.#options.clock.after(ms, () => void this.flush());
  }

  #cancel(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }
}
