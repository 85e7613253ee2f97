/** Active probes by themselves: what each answer teaches, when they are sent, and that they end. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Health } from '../../../src/http/dispatch/health.ts';
import { startProbes } from '../../../src/http/dispatch/probes.ts';
import { Upstreams } from '../../../src/http/dispatch/upstream.ts';
import { createMetrics } from '../../../src/http/operations/metrics.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { fakeUpstream, jsonAnswer } from '../../support/fake-upstream.ts';
import { channel, eventually, MODELS, testConfig } from '../../support/test-gateway.ts';

function setUp(urls: Readonly<Record<string, string>>, probeMs: number | undefined, more: object = {}) {
  const clock = createFakeClock();
  const circuit = { failures: 100, windowMs: 1000, cooldownMs: 60_000, rateLimitCooldownMs: 200, refusedCooldownMs: 800 };
  const moves: string[] = [];
  const health = new Health(
    clock,
    () => circuit,
    (id, _model, state) => moves.push(`${id} ${state}`),
  );
  const told: string[] = [];
  const upstreams = new Upstreams(clock);
  const configOf = (ms: number | undefined) =>
    testConfig({
      channels: Object.entries(urls).map(([id, url]) => channel(url, { id, ...more })),
      models: MODELS,
      health: { ...(ms === undefined ? {} : { probe_ms: ms }) },
    });
  let config = configOf(probeMs);
  const metrics = createMetrics({
    circuits: () => [],
    pendingSettlements: () => 0,
    held: () => ({}),
    storeHealthy: () => true,
    openVideos: async () => new Map(),
    version: '1',
    processFigures: false,
  });
  const stop = startProbes({
    config: { current: () => config, onChange: () => () => undefined },
    ...{ upstreams, health, clock },
    metrics: { ...metrics, probed: (id, good) => told.push(`${id} ${good}`) },
  });
  return {
    ...{ clock, health, moves, told, stop },
    configure: (ms: number | undefined) => {
      config = configOf(ms);
    },
    async [Symbol.asyncDispose]() {
      stop();
      await upstreams.close();
    },
  };
}

test('each answer teaches what it says: well, not well, nothing at all', async () => {
  await using good = await fakeUpstream(jsonAnswer(200, { data: [] }));
  await using bad = await fakeUpstream(jsonAnswer(500, {}));
  await using busy = await fakeUpstream(jsonAnswer(429, {}));
  await using dead = await fakeUpstream(({ socket }) => void socket.destroy());
  await using probing = setUp({ good: good.url, bad: bad.url, busy: busy.url, dead: dead.url }, 1000);
  const { clock, told, health, moves } = probing;
  for (const round of [1, 2]) {
    clock.advance(1000);
    await eventually(() => told.length === 3 * round && busy.requests.length === round && clock.pending > 0);
  }
  assert.deepEqual(told.toSorted(), ['bad false', 'bad false', 'dead false', 'dead false', 'good true', 'good true']);
  assert.deepEqual(moves.toSorted(), ['bad open', 'dead open']);
  assert.ok(health.isFit('busy', 'm') && health.isFit('good', 'm'));
});

test('probes begin and end with their option while the process runs, and none is sent after the end', async () => {
  await using upstream = await fakeUpstream(jsonAnswer(200, { data: [] }));
  await using probing = setUp({ one: upstream.url }, undefined);
  const { clock, told, configure, stop } = probing;
  clock.advance(5_000);
  await eventually(() => clock.pending === 1);
  assert.equal(upstream.requests.length, 0, 'off');
  configure(1_000);
  clock.advance(5_000);
  await eventually(() => told.length === 1 && clock.pending === 1);
  clock.advance(1_000);
  await eventually(() => told.length === 2 && clock.pending === 1);
  configure(undefined);
  clock.advance(1_000);
  await eventually(() => clock.pending === 1);
  stop();
  assert.equal(clock.pending, 0);
  assert.equal(upstream.requests.length, 2);
});

test('a probe that is under way at the end is cut, and teaches nothing', async () => {
  await using upstream = await fakeUpstream(() => undefined);
  await using probing = setUp({ one: upstream.url }, 1000);
  const { clock, told, stop } = probing;
  clock.advance(1000);
  await eventually(() => upstream.requests.length === 1);
  stop();
  await eventually(() => upstream.sockets.size === 0);
  assert.deepEqual([told, clock.pending], [[], 0]);
});
