/**
 * When the warm-up works: one exchange after another while nothing else is in flight, until they get no cheaper, for a bounded
 * time.
 */
import type { Clock } from '../../streams/clock.ts';
import type { InFlight } from '../../http/exchange/in-flight.ts';

export interface Slices {
  /** One synthetic exchange. Rejects where the warm-up itself is broken, and once `signal` is aborted. */
  readonly exchange: () => Promise<void>;
  /** What clients have under way, for whom the warm-up waits. */
  readonly inFlight: Pick<InFlight, 'count' | 'idle'>;
  readonly clock: Clock;
  /** What this thread has worked since it began: the clock would count what other processes do. */
  readonly processorMicros: () => number;
  /** When it must be over, by the monotonic clock. */
  readonly until: number;
  readonly signal: AbortSignal;
}

/** While clients are served: how soon a stop is noticed. */
const LOOK_MS = 250;
/** Exchanges of a lap. */
const LAP = 96;
/** A lap that is cheaper than the best before it by this much shows that the compilers still work. */
const IMPROVEMENT = 0.98;
/** Laps in a row that do not: one of them may be the neighbours' doing. */
const QUIET_LAPS = 8;

/** Resolves with the number of exchanges. Rejects as `exchange` does. */
export async function workInSlices({ exchange, inFlight, clock, processorMicros, until, signal }: Slices): Promise<number> {
  let exchanges = 0;
  let lapBegan = processorMicros();
  let best = Number.POSITIVE_INFINITY;
  for (let quiet = 0; quiet < QUIET_LAPS; ) {
    if (signal.aborted || clock.monotonic() >= until) break;
    if (inFlight.count > 0) {
      await inFlight.idle(clock, Math.min(LOOK_MS, until - clock.monotonic()));
      continue;
    }
    try {
      await exchange();
    } catch (thrown) {
      if (signal.aborted) break;
      throw thrown;
    }
    exchanges += 1;
    if (exchanges % LAP > 0) continue;
    const now = processorMicros();
    const lap = now - lapBegan;
    quiet = lap < best * IMPROVEMENT ? 0 : quiet + 1;
    best = Math.min(best, lap);
    lapBegan = now;
  }
  return exchanges;
}
