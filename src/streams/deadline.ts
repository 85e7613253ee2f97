/**
 * A deadline that moves often and expires rarely: moving it is one subtraction, and the timer behind it is armed again only when it
 * wakes too early. One of these serves a whole stream, so no event ever costs a timer.
 */
import type { Clock, Timer } from './clock.ts';

export interface Deadline {
  /** Expires `ms` from now, whatever was set before. */
  in(ms: number): void;
  /** Does not expire until it is set again. */
  clear(): void;
  /** Clears it and lets go of its timer; for the end of the stream. */
  stop(): void;
}

/** Calls `onExpire` each time that a set deadline passes; it is then clear, and may be set again from inside the call. */
export function createDeadline(clock: Clock, onExpire: () => void): Deadline {
  let dueAt = Number.POSITIVE_INFINITY;
  let timer: Timer | undefined;
  let wakesAt = Number.POSITIVE_INFINITY;

  const arm = (now: number): void => {
    timer?.cancel();
    wakesAt = dueAt;
    timer = clock.setTimeout(wake, Math.max(0, dueAt - now));
  };

  const wake = (): void => {
    timer = undefined;
    wakesAt = Number.POSITIVE_INFINITY;
    if (dueAt === Number.POSITIVE_INFINITY) return;
    const now = clock.monotonic();
    if (now < dueAt) {
      arm(now);
      return;
    }
    dueAt = Number.POSITIVE_INFINITY;
    onExpire();
  };

  const clear = (): void => {
    dueAt = Number.POSITIVE_INFINITY;
  };

  return {
    in(ms) {
      const now = clock.monotonic();
      dueAt = now + ms;
      if (wakesAt > dueAt) arm(now);
    },
    clear,
    stop() {
      clear();
      timer?.cancel();
      timer = undefined;
      wakesAt = Number.POSITIVE_INFINITY;
    },
  };
}
