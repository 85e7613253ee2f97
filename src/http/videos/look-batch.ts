/**
 * Looks that decided nothing, written together: thousands of tasks are under way at once, and a transaction for each look would cost more
 * than the look. What decides something never waits here.
 */
import type { Clock, Timer } from '../../streams/clock.ts';
import type { Look } from '../../store/videos.ts';

export interface LookBatchOptions {
  readonly clock: Clock;
  /** One transaction. */
  readonly write: (looks: readonly Look[]) => Promise<void>;
}

/** A transaction of so many looks holds the event loop for about a millisecond. */
const MOST = 32;
const WAIT_MS = 50;

export class LookBatch {
  readonly #options: LookBatchOptions;
  #looks: Look[] = [];
  #written: PromiseWithResolvers<void> = Promise.withResolvers();
  #timer: Timer | undefined;

  constructor(options: LookBatchOptions) {
    this.#options = options;
  }

  /** Resolves when it is written; rejects with what the write of its batch failed with. */
  add(look: Look): Promise<void> {
    this.#looks.push(look);
    const { promise } = this.#written;
    if (this.#looks.length >= MOST) this.flush();
    else this.#timer ??= this.#options.clock.setTimeout(() => this.flush(), WAIT_MS);
    return promise;
  }

  /** Writes what waits. */
  flush(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#looks.length === 0) return;
    const [looks, { resolve, reject }] = [this.#looks, this.#written];
    this.#looks = [];
    this.#written = Promise.withResolvers();
    this.#options.write(looks).then(resolve, reject);
  }
}
