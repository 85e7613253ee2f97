/** Work inside this process, by the clock: warmed up first, then the best and the median of several rounds. */

export interface Timed {
  /** Microseconds a call: the best round, which a noisy neighbour disturbs least. */
  readonly best: number;
  readonly median: number;
}

const WARM_MS = 150;
const ROUND_MS = 40;

export function microsOf(work: () => void, rounds: number): Timed {
  let calls = 0;
  for (const until = performance.now() + WARM_MS; performance.now() < until; calls++) work();
  const each = Math.max(1, Math.round((calls * ROUND_MS) / WARM_MS));
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const started = performance.now();
    for (let call = 0; call < each; call++) work();
    times.push(((performance.now() - started) * 1000) / each);
  }
  times.sort((a, b) => a - b);
  return { best: times[0] ?? Number.NaN, median: times[times.length >> 1] ?? Number.NaN };
}
