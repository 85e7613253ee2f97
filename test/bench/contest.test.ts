import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Client, type Contestant, contest } from '../../bench/harness/contest.ts';
import { firstTokens } from '../../bench/harness/first-token.ts';
import type { LoadJob, LoadResult } from '../../bench/harness/load.ts';

const contestant = (url: string): Contestant => ({ pids: [], job: { url, headers: {}, body: '', mustHold: '' } });

/** A client whose laps take what `wallMs` says of the nth one for a URL. */
function client(wallMs: (url: string, lap: number) => number): Client & { readonly asked: LoadJob[] } {
  const asked: LoadJob[] = [];
  return {
    asked,
    run: async (job): Promise<LoadResult> => {
      const ms = wallMs(job.url, asked.filter(({ url }) => url === job.url).length);
      asked.push(job);
      const times = Array.from({ length: job.count }, () => ms);
      return { done: job.count, failed: 0, wallMs: ms, firstTokenMs: times, totalMs: times };
    },
  };
}

test('a contestant that becomes faster is warmed to the bound, one that rests to half of it or five quiet laps', async () => {
  const load = client((url, lap) => (url === 'falls' ? 1000 * 0.9 ** lap : 100));
  await contest(
    load,
    { falls: contestant('falls'), rests: contestant('rests') },
    { rounds: 0, count: 10, concurrency: 1, warmAtMost: 200 },
  );
  const laps = (name: string): number => load.asked.filter(({ url }) => url === name).length;
  assert.equal(laps('falls'), 20);
  assert.equal(laps('rests'), 10);
});

test('contestants take turns, each as often before as after the other, and every round is one figure of each', async () => {
  const load = client((url) => (url === 'slow' ? 200 : 100));
  const laps = await contest(
    load,
    { slow: contestant('slow'), fast: { ...contestant('fast'), concurrency: 4 } },
    { rounds: 4, count: 10, concurrency: 1, warmAtMost: 0 },
  );
  const order = load.asked.map(({ url }) => url);
  const first = order.filter((_, at) => at % 2 === 0);
  assert.deepEqual(first.toSorted(), ['fast', 'fast', 'slow', 'slow']);
  assert.deepEqual(laps.slow, { micros: [], perSecond: [50, 50, 50, 50] });
  assert.deepEqual(laps.fast.perSecond, [100, 100, 100, 100]);
  assert.ok(load.asked.every(({ url, concurrency }) => concurrency === (url === 'fast' ? 4 : 1)));
});

test('first tokens: enough for a 99th percentile, one at a time, in small blocks by turns', async () => {
  const load = client((url) => (url === 'a' ? 1 : 2));
  const { a, b } = await firstTokens(load, { a: contestant('a'), b: contestant('b') }, 2);
  assert.deepEqual(
    [a, b],
    [
      { p50: [1, 1], p99: [1, 1] },
      { p50: [2, 2], p99: [2, 2] },
    ],
  );
  const measured = load.asked.filter(({ url }) => url === 'a').reduce((sum, { count }) => sum + count, 0);
  assert.ok(measured >= 600);
  assert.ok(load.asked.every(({ concurrency, count }) => concurrency === 1 && count <= 20));
  // No block of one is further than one block of the other from its neighbour.
  const urls = load.asked.map(({ url }) => url).join('');
  assert.doesNotMatch(urls, /aaa|bbb/);
});
