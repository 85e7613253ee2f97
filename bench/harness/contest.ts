/**
 * Subjects under the same load by turns. Each is warmed until its compilers rest: what is measured is a gateway that runs, not
 * one that starts. Then round by round, the order turned each time, so that a noisy neighbour hits all of them.
 */
import type { LoadJob, LoadResult } from './load.ts';
import { processorMicros } from './processes.ts';

/** Who asks. */
export interface Client {
  run(job: LoadJob): Promise<LoadResult>;
}

export interface Contestant {
  /** Processes whose processor time counts. None: it is not known. */
  readonly pids: readonly number[];
  readonly job: Omit<LoadJob, 'count' | 'concurrency'>;
  /** Instead of the contest's. */
  readonly concurrency?: number;
  readonly load?: Client;
}

export interface Contest {
  readonly rounds: number;
  /** Requests of a lap: a contestant's turn of one round. */
  readonly count: number;
  readonly concurrency: number;
  /** Requests after which a contestant counts as warm, even if it still becomes faster; half of them it gets in any case. */
  readonly warmAtMost: number;
}

/** One figure a round. */
export interface Laps {
  /** Processor time a request; empty when it is not known. */
  readonly micros: number[];
  /** Requests a second, by the clock. */
  readonly perSecond: number[];
}

/** A lap has to be so much cheaper than the best before it to say that the compilers still work. */
const IMPROVEMENT = 0.97;
/** Laps in a row that do not: one of them may be the neighbours' doing. */
const QUIET_LAPS = 5;

interface Lap {
  readonly micros: number;
  readonly perSecond: number;
}

/** What each name of `All` stands for, one that may be missing included. */
export type Each<All, Value> = { [Name in keyof All]: Value };

export async function contest<All extends Each<All, Contestant>>(
  load: Client,
  contestants: All,
  { rounds, count, concurrency, warmAtMost }: Contest,
): Promise<Each<All, Laps>> {
  const lap = async ({ pids, job, ...own }: Contestant): Promise<Lap> => {
    const before = microsOf(pids);
    const { wallMs, done } = await (own.load ?? load).run({ ...job, count, concurrency: own.concurrency ?? concurrency });
    return { micros: (microsOf(pids) - before) / count, perSecond: (done / wallMs) * 1000 };
  };
  const all = Object.entries<Contestant>(contestants).map(([name, contestant]) => {
    const laps: Laps = { micros: [], perSecond: [] };
    return { name, contestant, laps };
  });
  for (const { contestant } of all) await warm(() => lap(contestant), warmAtMost / count);
  for (let round = 0; round < rounds; round++) {
    for (const { contestant, laps } of turned(all, round)) {
      const { micros, perSecond } = await lap(contestant);
      if (contestant.pids.length > 0) laps.micros.push(micros);
      laps.perSecond.push(perSecond);
    }
  }
  return Object.fromEntries(all.map(({ name, laps }) => [name, laps])) as Each<All, Laps>;
}

/** By the clock where the processor time is not known. */
async function warm(lap: () => Promise<Lap>, lapsAtMost: number): Promise<void> {
  let best = Number.POSITIVE_INFINITY;
  for (let laps = 0, quiet = 0; laps < lapsAtMost / 2 || (laps < lapsAtMost && quiet < QUIET_LAPS); laps++) {
    const { micros, perSecond } = await lap();
    const cost = micros > 0 ? micros : 1e6 / perSecond;
    quiet = cost < best * IMPROVEMENT ? 0 : quiet + 1;
    best = Math.min(best, cost);
  }
}

const microsOf = (pids: readonly number[]): number => pids.reduce((sum, pid) => sum + processorMicros(pid), 0);

/** Everyone is first, last and after everyone else in turn: rotated by round, every other rotation backwards. */
function turned<T>(all: readonly T[], round: number): T[] {
  const from = Math.floor(round / 2) % all.length;
  const order = [...all.slice(from), ...all.slice(0, from)];
  return round % 2 === 0 ? order : order.reverse();
}
