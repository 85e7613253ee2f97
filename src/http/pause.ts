/** A wait that need not be waited out. */
import type { Clock } from '../streams/clock.ts';

/** Resolves after `ms` milliseconds, or as soon as `signal` is aborted. Leaves nothing on the signal. */
export function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const over = (): void => {
      timer.cancel();
      signal.removeEventListener('abort', over);
      resolve();
    };
    const timer = clock.setTimeout(over, ms);
    signal.addEventListener('abort', over, { once: true });
  });
}
