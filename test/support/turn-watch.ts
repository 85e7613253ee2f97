import { machinePace } from './machine-pace.ts';

/**
 * The longest turn of this process's event loop, in processor time: what others take of the machine's time counts for nothing,
 * and for how slow they make it, or it is, the pace before and after stands.
 */
export class TurnWatch {
  #longestMs = 0;
  #pace = 1;
  #isWatching = false;

  constructor() {
    // The first time much is compiled.
    machinePace();
  }

  /** Forgets what was before. */
  start(): void {
    this.#pace = machinePace();
    let before = process.threadCpuUsage();
    const turn = (): void => {
      const { user, system } = process.threadCpuUsage(before);
      before = process.threadCpuUsage();
      this.#longestMs = Math.max(this.#longestMs, (user + system) / 1000);
      if (this.#isWatching) setImmediate(turn);
    };
    this.#longestMs = 0;
    this.#isWatching = true;
    setImmediate(turn);
  }

  /** Milliseconds of the longest since the start, as on the machine that the bounds are meant for. */
  stop(): number {
    this.#isWatching = false;
    return this.#longestMs / Math.max(this.#pace, machinePace());
  }
}
