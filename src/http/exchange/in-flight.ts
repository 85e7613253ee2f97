/**
 * What is being answered and not yet settled. A shutdown waits for it: an exchange is settled after its answer is out, and its client may
 * be gone by then.
 */
import type { Clock } from '../../streams/clock.ts';

export class UnderWay {
  #count = 0;
  readonly #waiting = new Set<() => void>();

  begin(): void {
    this.#count += 1;
  }

  end(): void {
    this.#count -= 1;
    if (this.#count > 0) return;
    for (const wake of this.#waiting) wake();
  }

  /** Resolves when nothing is under way, or after `mostMs`. */
  async over(clock: Clock, mostMs: number): Promise<void> {
    if (this.#count === 0) return;
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        this.#waiting.delete(wake);
        timer.cancel();
        resolve();
      };
      const timer = clock.setTimeout(wake, mostMs);
      this.#waiting.add(wake);
    });
  }
}
