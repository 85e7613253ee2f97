/**
 * Polls that decided nothing, written together: thousands of tasks are under way at once, and a transaction for each poll would
 * cost more than the poll. What decides something never waits here.
 */
import type { NextPoll } from '../../store/videos.ts';
import type { Clock, Timer } from '../../streams/clock.ts';

export interface PollBatchOptions {
  readonly clock: Clock;
  /** One transaction. */
  readonly write: (polls: readonly NextPoll[]) => Promise<void>;
}

/** A transaction of so many polls holds the event loop for about a millisecond. */
const MOST = 32;
const WAIT_MS = 50;

export class PollBatch {
  readonly #options: PollBatchOptions;
  #polls: NextPoll[] = [];
  #written: PromiseWithResolvers<void> = Promise.withResolvers();
  #timer: Timer | undefined;

  constructor(options: PollBatchOptions) {
    this.#options = options;
  }

  /** Resolves when it is written; rejects with what the write of its batch failed with. */
  add(poll: NextPoll): Promise<void> {
    this.#polls.push(poll);
    const { promise } = this.#written;
    if (this.#polls.length >= MOST) this.flush();
    else this.#timer ??= this.#options.clock.setTimeout(() => this.flush(), WAIT_MS);
    return promise;
  }

  /** Writes what waits. */
  flush(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#polls.length === 0) return;
    const [polls, { resolve, reject }] = [this.#polls, this.#written];
    this.#polls = [];
    this.#written = Promise.withResolvers();
    this.#options.write(polls).then(resolve, reject);
  }
}
