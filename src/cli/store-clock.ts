/** The gateway's clock as its store wants it, which may put it right. */
import type { Clock } from '../store/store.ts';
import type { AdjustableClock } from '../streams/clock.ts';

export function storeClock({ now, adjust, own }: AdjustableClock): Clock {
  return {
    now,
    adjust,
    ownNow: () => own.now(),
    after(ms, callback) {
      const timer = setTimeout(callback, ms).unref();
      return () => clearTimeout(timer);
    },
  };
}
