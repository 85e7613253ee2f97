/** The sums of workers that come and go, with registries as they report them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMetrics, type Metrics } from '../../../src/http/operations/metrics.ts';
import { MetricSums } from '../../../src/http/workers/metric-sums.ts';

const worker = (): Metrics =>
  createMetrics({
    circuits: () => [],
    pendingSettlements: () => 3,
    held: () => ({ body_bytes: 1 }),
    storeHealthy: () => true,
    openVideos: async () => new Map([['queued', 2]]),
    version: '1',
    processFigures: false,
  });
/** As the IPC channel passes it on. */
const reportOf = async ({ registry }: Metrics): Promise<unknown> => JSON.parse(JSON.stringify(await registry.getMetricsAsJSON()));
const answered = (metrics: Metrics, times: number): void => {
  for (let n = 0; n < times; n++) {
    metrics.requestStarted('messages');
    metrics.requestEnded('messages', 200, '', 0.02);
    metrics.attemptEnded('one', '');
  }
};

test('counters and histograms of workers that have ended stay in the sums; gauges go with them', async () => {
  const sums = new MetricSums();
  const read = async (pattern: RegExp): Promise<number> => Number(pattern.exec((await sums.text()).text)?.[1]);
  const requests = /^mizu_requests_total\{route="messages",status="200"\} (\d+)$/m;
  const seconds = /^mizu_request_duration_seconds_bucket\{le="0.025",route="messages"\} (\d+)$/m;
  const pending = /^mizu_settlements_pending (\d+)$/m;
  let expected = 0;
  for (let life = 1; life <= 20; life++) {
    const [dies, lives] = [worker(), worker()];
    answered(dies, life);
    answered(lives, 1);
    assert.ok(sums.reported(1, await reportOf(dies)));
    assert.ok(sums.reported(2, await reportOf(lives)));
    expected += life;
    assert.deepEqual([await read(requests), await read(seconds), await read(pending)], [expected + 1, expected + 1, 6]);
    const ended = sums.exited(1);
    assert.equal(await read(requests), expected + 1, 'nor is it lower for a moment');
    await ended;
    assert.deepEqual([await read(requests), await read(seconds), await read(pending)], [expected + 1, expected + 1, 3]);
    await sums.exited(1);
    assert.equal(await read(requests), expected + 1, 'a worker ends once');
  }
});

test('workers that end at once are all kept', async () => {
  const sums = new MetricSums();
  for (const id of [1, 2, 3]) {
    const one = worker();
    answered(one, id);
    sums.reported(id, await reportOf(one));
  }
  await Promise.all([1, 2, 3].map((id) => sums.exited(id)));
  assert.match((await sums.text()).text, /^mizu_requests_total\{route="messages",status="200"\} 6$/m);
});

test('what is no report changes nothing, and a worker that never reported leaves nothing', async () => {
  const sums = new MetricSums();
  for (const report of [undefined, null, 'metrics', [{}], [1]]) assert.equal(sums.reported(1, report), false);
  assert.equal(sums.has(1), false);
  await sums.exited(1);
  assert.equal((await sums.text()).text.trim(), '');
});
