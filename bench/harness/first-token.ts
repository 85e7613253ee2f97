/**
 * The time to the first token at concurrency 1: contestants by turns in small blocks, so that what else the machine does hits all
 * alike.
 */
import { FIRST_TOKEN } from '../fixtures.ts';
import type { Client, Contestant, Each } from './contest.ts';
import { percentile } from './statistics.ts';

/** Requests of a block, and blocks of a round: enough requests for a p99. */
const BLOCK = 20;
const BLOCKS = 16;
const WARM_BLOCKS = 3;

/** Milliseconds, one figure a round. */
export interface FirstTokens {
  readonly p50: number[];
  readonly p99: number[];
}

/** They should be warm already: these requests are too few to warm a compiler. */
export async function firstTokens<All extends Each<All, Contestant>>(
  load: Client,
  contestants: All,
  rounds: number,
): Promise<Each<All, FirstTokens>> {
  const block = async ({ job }: Contestant): Promise<readonly number[]> =>
    (await load.run({ ...job, firstToken: FIRST_TOKEN, count: BLOCK, concurrency: 1 })).firstTokenMs;
  const all = Object.entries<Contestant>(contestants).map(([name, contestant]) => {
    const found: FirstTokens = { p50: [], p99: [] };
    return { name, contestant, found, times: [] as number[] };
  });
  for (let warm = 0; warm < WARM_BLOCKS; warm++) for (const { contestant } of all) await block(contestant);
  for (let round = 0; round < rounds; round++) {
    for (let blocks = 0; blocks < BLOCKS; blocks++)
      for (const { contestant, times } of blocks % 2 === 0 ? all : all.toReversed()) times.push(...(await block(contestant)));
    for (const { found, times } of all) {
      const ascending = times.splice(0).sort((a, b) => a - b);
      found.p50.push(percentile(ascending, 0.5));
      found.p99.push(percentile(ascending, 0.99));
    }
  }
  return Object.fromEntries(all.map(({ name, found }) => [name, found])) as Each<All, FirstTokens>;
}
