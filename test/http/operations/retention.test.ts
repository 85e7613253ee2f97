/**
 * The job that forgets old rows of the request log: when it looks, what it removes, and that nothing stops it but the gateway.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Config } from '../../../src/http/config/config.ts';
import type { ConfigSource } from '../../../src/http/config/source.ts';
import { createLogger } from '../../../src/http/operations/logger.ts';
import { startRetention } from '../../../src/http/operations/retention.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { testConfig } from '../../support/test-gateway.ts';
import { entry, funded, openStore, realClock } from '../../store/support/store.ts';
import { eachStore } from '../../store/support/stores.ts';

const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000];

/** Lets what was started by a timer go on until it waits for the store. */
const settled = () => new Promise((resolve) => setTimeout(resolve, 50));

function sourceOf(days: number): ConfigSource & { set(days: number): void } {
  let config: Config = testConfig({ log: { retention_days: days } });
  return {
    current: () => config,
    onChange: () => () => undefined,
    set(next) {
      config = testConfig({ log: { retention_days: next } });
    },
  };
}

eachStore((engine) => {
  test('rows are forgotten when they are older than the days that the configuration says now; money is not', async (t) => {
    const clock = createFakeClock();
    const store = await engine.openStore(t, { clock: { ...realClock, now: clock.now } });
    const owner = await funded(store, 1_000n);
    const settle = async (id: string): Promise<void> => {
      void store.settlements.settle({ entry: entry(owner, id, 1n) });
      await store.settlements.flush();
    };
    const kept = async () => (await store.requestLog.list()).map(({ exchangeId }) => exchangeId).sort();
    await settle('old');
    clock.advance(2 * DAY);
    await settle('new');

    const source = sourceOf(3);
    const lines: string[] = [];
    const log = createLogger('info', { write: (line: string) => void lines.push(line) });
    const stop = startRetention({ config: source, store, clock, log });
    clock.advance(MINUTE);
    await settled();
    assert.deepEqual(await kept(), ['new', 'old'], 'none is three days old');
    source.set(1);
    clock.advance(HOUR - 1);
    await settled();
    assert.deepEqual(await kept(), ['new', 'old'], 'it looks once an hour');
    clock.advance(1);
    while ((await kept()).length > 1) await settled();
    assert.deepEqual(await kept(), ['new']);
    await stop();
    assert.equal(clock.pending, 0);
    assert.deepEqual(
      lines.map((line) => line.includes('"removed":1')),
      [true],
    );
    assert.equal((await store.accounts.find(owner.account.id))?.walletNanos, 998n);
    assert.deepEqual((await store.ledger.verify()).differences, []);
  });
});

test('a look that fails is logged and tried again in an hour; to stop waits for the look under way', async (t) => {
  const clock = createFakeClock();
  const store = await openStore(t);
  const lines: string[] = [];
  const log = createLogger('info', { write: (line: string) => void lines.push(line) });
  const looks: PromiseWithResolvers<number>[] = [];
  const requestLog = {
    ...store.requestLog,
    prune() {
      const look = Promise.withResolvers<number>();
      looks.push(look);
      return look.promise;
    },
  };
  const stop = startRetention({ config: sourceOf(1), store: { ...store, requestLog }, clock, log });
  clock.advance(MINUTE);
  looks[0]?.reject(new Error('no such disk'));
  await settled();
  assert.match(lines.join(''), /no such disk.*could not be pruned/);
  clock.advance(HOUR);
  assert.equal(looks.length, 2);
  let stopped = false;
  const stopping = stop().then(() => {
    stopped = true;
  });
  await settled();
  assert.equal(stopped, false);
  looks[1]?.resolve(0);
  await stopping;
  assert.equal(clock.pending, 0, 'and none follows');
});
