/** A clock that stands still until a test moves it. */
import type { Clock } from '../../src/streams/clock.ts';

export interface FakeClock extends Clock {
  /** Moves time on and fires what became due, in order; what a timer arms meanwhile fires too if it is due. */
  advance(ms: number): void;
  /** Sets the wall clock forward, or back, alone: no timer notices. */
  jump(ms: number): void;
  /** How many timers are armed. */
  readonly pending: number;
}

export function createFakeClock(startMs = 1_750_000_000_000): FakeClock {
  let elapsed = 0;
  let jumped = 0;
  const timers = new Set<{ readonly at: number; readonly fire: () => void }>();
  return {
    now: () => startMs + jumped + elapsed,
    monotonic: () => elapsed,
    setTimeout(fire, ms) {
      const timer = { at: elapsed + ms, fire };
      timers.add(timer);
      return { cancel: () => timers.delete(timer) };
    },
    advance(ms) {
      const until = elapsed + ms;
      for (;;) {
        let next: { readonly at: number; readonly fire: () => void } | undefined;
        for (const timer of timers) if (timer.at <= until && (next === undefined || timer.at < next.at)) next = timer;
        if (next === undefined) break;
        timers.delete(next);
        elapsed = Math.max(elapsed, next.at);
        next.fire();
      }
      elapsed = until;
    },
    jump(ms) {
      jumped += ms;
    },
    get pending() {
      return timers.size;
    },
  };
}
