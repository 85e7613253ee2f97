/**
 * What goes through many rows for an operator gives the event loop back every few milliseconds, so that nobody's stream waits:
 * `for (…) { …; if (steps.isOver) await steps.next(); }`.
 */
import { setImmediate } from 'node:timers/promises';

const STEP_MS = 2;

export class Steps {
  #until = performance.now() + STEP_MS;

  /** Whether this turn has gone on for long enough. */
  get isOver(): boolean {
    return performance.now() >= this.#until;
  }

  /** In a turn that follows. */
  async next(): Promise<void> {
    await setImmediate();
    this.#until = performance.now() + STEP_MS;
  }
}
