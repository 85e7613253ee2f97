/**
 * Work inside this process, by the clock: warmed up first, then the best of several rounds, which a noisy neighbour disturbs
 * least. A thread's processor time would be better, but the kernel counts it in ticks that are too long for such rounds.
 */

const WARM_MS = 150;
const ROUND_MS = 40;

/** Microseconds a call, in the best and in the median round. */
export interface Timed {
  readonly best: number;
  readonly median: number;
}

export function microsOf(work: () => void, rounds: number): Timed {
  const round = warmed(work);
  return timed(Array.from({ length: rounds }, round));
}

/** Floor and subject by turns: microseconds a call in the best round of each, and their ratio. */
export function beside(
  floor: () => void,
  subject: () => void,
  rounds: number,
): { readonly floor: number; readonly subject: number; readonly ratio: number } {
  const [floorRound, subjectRound] = [warmed(floor), warmed(subject)];
  const [floors, subjects]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    floors.push(floorRound());
    subjects.push(subjectRound());
  }
  const [under, over] = [timed(floors).best, timed(subjects).best];
  return { floor: under, subject: over, ratio: over / under };
}

/** Warms the work, and gives a round of it: some calls, about as long as every other round. */
function warmed(work: () => void): () => number {
  let calls = 0;
  const began = performance.now();
  for (; performance.now() < began + WARM_MS; calls++) work();
  const each = Math.max(1, Math.round((calls * ROUND_MS) / (performance.now() - began)));
  return () => {
    const started = performance.now();
    for (let call = 0; call < each; call++) work();
    return ((performance.now() - started) * 1000) / each;
  };
}

function timed(times: number[]): Timed {
  times.sort((a, b) => a - b);
  return { best: times[0] ?? Number.NaN, median: times[times.length >> 1] ?? Number.NaN };
}
