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

/**
 * Runs work that yields behind each small piece of it. `check` is asked at the beginning of each later turn; what it throws, the
 * work is told, and that ends it.
 */
export async function inSteps<T>(work: Generator<void, T>, check: () => void = () => undefined): Promise<T> {
  const steps = new Steps();
  for (;;) {
    const { done, value } = work.next();
    if (done === true) return value;
    if (!steps.isOver) continue;
    await steps.next();
    try {
      check();
    } catch (error) {
      work.throw(error);
      throw error;
    }
  }
}
