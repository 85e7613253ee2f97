import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { requestsTo } from '../../src/cli/warm-up/requests.ts';
import { createRig, type RigOptions } from '../../src/cli/warm-up/rig.ts';
import { workInSlices } from '../../src/cli/warm-up/slices.ts';
import { startWarmUp, type WarmUpOptions } from '../../src/cli/warm-up/warm-up.ts';
import { codecs } from '../../src/codecs/registry.ts';
import type { Config } from '../../src/http/config/config.ts';
import { InFlight } from '../../src/http/exchange/in-flight.ts';
import { chargeFor } from '../../src/store/charge.ts';
import { openStoreAt } from '../../src/store/open-store.ts';
import { parsePrice } from '../../src/store/prices.ts';
import { systemClock } from '../../src/streams/clock.ts';
import { ask, channel, MODELS, type TestGateway, testGateway } from '../support/test-gateway.ts';

const TYPES = ['chat_completion', 'responses', 'messages', 'gemini'] as const;

const folder = mkdtempSync(join(tmpdir(), 'mizu-warm-up-test-'));
process.env['TMPDIR'] = folder;
after(() => rmSync(folder, { recursive: true, force: true }));

/** What of the warm-up is on the disk. */
const leftBehind = (): string[] => readdirSync(folder).filter((name) => name.startsWith('mizu-warm-'));

const parts: Omit<RigOptions, 'types' | 'level' | 'signal'> = {
  ...{ codecs, clock: systemClock, random: Math.random, chargeFor },
  mint: (prefix) => `${prefix}${randomBytes(16).toString('hex')}`,
  load: { env: {}, readFile: () => '', parsePrice },
  openStore: (config: Config) =>
    openStoreAt(config.storePath, {
      localPath: config.storePath,
      randomBytes,
      clock: {
        now: Date.now,
        after(ms, callback) {
          const timer = setTimeout(callback, ms);
          return () => clearTimeout(timer);
        },
      },
      process: { host: 'test', pid: process.pid, isAlive: () => true },
    }),
};

const warming = ({ running }: TestGateway, changes: Partial<WarmUpOptions> = {}) =>
  startWarmUp({ ...parts, gateway: running.gateway, ...changes });

/** The store in memory has no leases, which the worker of videos tells. */
const linesOf = ({ logLines }: TestGateway): Record<string, unknown>[] =>
  logLines.map((line) => JSON.parse(line)).filter(({ msg }) => msg !== 'video worker');

test('every client is answered by every upstream, whole and streamed', async () => {
  await using rig = await createRig({ ...parts, types: TYPES, level: 'info', signal: new AbortController().signal });
  const count = requestsTo(TYPES).length;
  assert.equal(count, 24);
  for (let turn = 0; turn < count; turn++) await rig.exchange();
});

test('nothing of the warm-up is seen but one line at its end: no row, no counter, no circuit, no file', async () => {
  const channels = TYPES.map((type) => channel('http://127.0.0.1:9', { id: type, type }));
  await using gateway = await testGateway({ channels, models: MODELS, warm_up_ms: 1_500 });
  const { metrics, dispatcher, inFlight, keySlots } = gateway.running.gateway;
  const rows = ({ store }: TestGateway) => [store.settled, store.opened, [...store.held], store.walletNanos];
  const counters = await metrics.registry.metrics();
  const before = structuredClone(rows(gateway));
  await warming(gateway).over;
  assert.equal(await metrics.registry.metrics(), counters);
  assert.deepEqual(rows(gateway), before);
  assert.deepEqual(dispatcher.health.report(), []);
  assert.equal(dispatcher.affinity.size, 0);
  assert.deepEqual([inFlight.count, keySlots.size, keySlots.bytes], [0, 0, 0]);
  const [line, ...more] = linesOf(gateway);
  assert.deepEqual(more, []);
  assert.equal(line?.['msg'], 'warm-up');
  assert.ok(Number(line?.['exchanges']) > 0);
  assert.deepEqual(leftBehind(), []);
});

test('clients are answered while it goes on, and a stop ends it', async () => {
  const channels = [channel('http://127.0.0.1:9', { type: 'messages' })];
  await using gateway = await testGateway({ channels, models: MODELS, warm_up_ms: 60_000 });
  const warmUp = warming(gateway);
  const answer = await gateway.post('/v1/messages', ask({ model: 'unknown' }));
  assert.equal(answer.status, 404);
  await warmUp.stop();
  assert.equal(linesOf(gateway).filter(({ msg }) => msg === 'warm-up').length, 1);
  assert.deepEqual(leftBehind(), []);
});

test('with 0, and without a text Channel, nothing happens', async () => {
  for (const file of [
    { channels: [channel('http://127.0.0.1:9')], models: MODELS, warm_up_ms: 0 },
    { channels: [], models: MODELS },
  ]) {
    await using gateway = await testGateway(file);
    await warming(gateway, { openStore: () => Promise.reject(new Error('not asked')) }).over;
    assert.deepEqual(linesOf(gateway), []);
  }
});

test('where it cannot work that is one warning, and nothing is left behind', async () => {
  await using gateway = await testGateway({ channels: [channel('http://127.0.0.1:9')], models: MODELS });
  await warming(gateway, { openStore: () => Promise.reject(new Error('no room')) }).over;
  const [line, ...more] = linesOf(gateway);
  assert.deepEqual(more, []);
  assert.deepEqual([line?.['level'], line?.['msg']], ['warn', 'the warm-up failed: the first requests will be slower']);
  assert.deepEqual(leftBehind(), []);
});

test('an exchange that hangs is cut when the time is over, and one that breaks before is told', async () => {
  const parts = { inFlight: new InFlight(), until: performance.now() + 60_000, clock: systemClock, processorMicros: () => 0 };
  const signal = AbortSignal.timeout(30);
  const hangs = (): Promise<void> =>
    new Promise((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason));
    });
  // The timer of the signal alone keeps no process alive.
  const alive = setTimeout(() => undefined, 10_000);
  assert.equal(await workInSlices({ ...parts, exchange: hangs, signal }), 0);
  clearTimeout(alive);
  const broken = { ...parts, exchange: () => Promise.reject(new Error('broken')), signal: new AbortController().signal };
  await assert.rejects(workInSlices(broken), /broken/);
});

/** A clock that the exchanges move on, the nth by `ms(n)`. */
function slices(ms: (exchange: number) => number, inFlight = new InFlight()) {
  let now = 0;
  let exchanges = 0;
  const stopping = new AbortController();
  return {
    stopping,
    done: () => exchanges,
    run: (until: number) =>
      workInSlices({
        exchange: async () => {
          now += ms(exchanges++);
        },
        inFlight,
        processorMicros: () => now * 1000,
        until,
        clock: { ...systemClock, monotonic: () => now },
        signal: stopping.signal,
      }),
  };
}

test('it ends when its time is over, when exchanges get no cheaper, and when it is stopped', async () => {
  assert.equal(await slices((exchange) => 1000 / (exchange + 1)).run(50), 1);
  const resting = slices(() => 1);
  assert.equal(await resting.run(1_000_000), 9 * 96, 'a first lap, and eight that are no cheaper');
  const falling = slices((exchange) => 0.9 ** Math.floor(exchange / 96));
  assert.ok((await falling.run(20_000)) > 9 * 96);
  const stopped = slices(() => 1);
  stopped.stopping.abort();
  assert.equal(await stopped.run(1_000), 0);
});

test('it begins no exchange while a client has one', async () => {
  const inFlight = new InFlight();
  inFlight.begin();
  const waiting = slices(() => 1, inFlight);
  const over = waiting.run(20_000);
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(waiting.done(), 0);
  inFlight.end();
  assert.equal(await over, 9 * 96);
});
