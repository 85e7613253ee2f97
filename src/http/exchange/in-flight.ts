/**
 * How many requests and turns are being answered or are not settled yet. A shutdown waits for them: an exchange is settled after
 * its answer is out, and its client may be gone by then.
 */
import type { Clock } from '../../streams/clock.ts';

export class InFlight {
  #count = 0;
  readonly #waiting = new Set<() => void>();

  get count(): number {
    return this.#count;
  }

  begin(): void {
    this.#count += 1;
  }

  end(): void {
    this.#count -= 1;
    if (this.#count > 0) return;
    for (const wake of this.#waiting) wake();
  }

  /** Resolves when nothing is in flight, or after `maxMs`. */
  async idle(clock: Clock, maxMs: number): Promise<void> {
    if (this.#count === 0) return;
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        this.#waiting.delete(wake);
        timer.cancel();
        resolve();
      };
      const timer = clock.setTimeout(wake, maxMs);
      this.#waiting.add(wake);
    });
  }
}
