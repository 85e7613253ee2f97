/**
 * The job that forgets old rows of the request log: when it looks, what it removes, and that nothing stops it but the gateway.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Config } from '../../../src/http/config/config.ts';
import type { ConfigSource } from '../../../src/http/config/source.ts';
import type { Logger } from 'pino';
import { createLogger } from '../../../src/http/operations/logger.ts';
import { startRetention } from '../../../src/http/operations/retention.ts';
import type { Store } from '../../../src/store/store.ts';
import { createFakeClock, type FakeClock } from '../../support/fake-clock.ts';
import { testConfig } from '../../support/test-gateway.ts';
import { entry, funded, openStore, realClock } from '../../store/support/store.ts';
import { eachStore } from '../../store/support/stores.ts';

const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000];

/** Lets what was started by a timer go on until it waits for a store that never takes longer: one of this process. */
const settled = () => new Promise((resolve) => setTimeout(resolve, 50));

/** Resolves when a look is over, however long its store takes: the next one is armed then. */
async function looked(clock: FakeClock): Promise<void> {
  while (clock.pending === 0) await new Promise((resolve) => setTimeout(resolve, 5));
}

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
  /** A store of that clock with an account: `settle` writes a row, `kept` tells which are there, `start` waits for the first read. */
  const logged = async (t: TestContext, clock: FakeClock) => {
    const store = await engine.openStore(t, { clock: { ...realClock, now: clock.now } });
    const owner = await funded(store, 1_000n);
    const settle = async (id: string): Promise<void> => {
      void store.settlements.settle({ entry: entry(owner, id, 1n) });
      await store.settlements.flush();
    };
    const kept = async () => (await store.requestLog.list()).map(({ exchangeId }) => exchangeId).sort();
    const start = async (days: ConfigSource, log: Logger) => {
      const read = Promise.withResolvers<void>();
      const requestLog: Store['requestLog'] = {
        ...store.requestLog,
        list: (...asked) => store.requestLog.list(...asked).finally(read.resolve),
      };
      const stop = startRetention({ config: days, store: { ...store, requestLog }, clock, log });
      await read.promise;
      await settled();
      return stop;
    };
    return { store, owner, settle, kept, start };
  };

  test('rows are forgotten when they are older than the days that the configuration says now; money is not', async (t) => {
    const clock = createFakeClock();
    const { store, owner, settle, kept, start } = await logged(t, clock);
    await settle('old');
    clock.advance(2 * DAY);
    await settle('new');

    const source = sourceOf(3);
    const lines: string[] = [];
    const log = createLogger('info', { write: (line: string) => void lines.push(line) });
    const stop = await start(source, log);
    clock.advance(MINUTE);
    await looked(clock);
    assert.deepEqual(await kept(), ['new', 'old'], 'none is three days old');
    source.set(1);
    clock.advance(HOUR - 1);
    await settled();
    assert.deepEqual(await kept(), ['new', 'old'], 'it looks once an hour');
    clock.advance(1);
    await looked(clock);
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

  test('F34: a clock that jumps ahead costs no row, whether it jumped before the start or after; and time that passed still counts', async (t) => {
    const clock = createFakeClock();
    const { settle, kept, start } = await logged(t, clock);
    await settle('first');
    const lines: string[] = [];
    const log = createLogger('error', { write: (line: string) => void lines.push(line) });
    for (const jumpsBefore of [true, false]) {
      if (jumpsBefore) clock.jump(31 * DAY);
      const stop = await start(sourceOf(1), log);
      if (!jumpsBefore) clock.jump(31 * DAY);
      // What is measured has fractions, and what is written down has none.
      clock.advance(MINUTE + 0.4);
      await looked(clock);
      assert.deepEqual(await kept(), ['first'], `the clock jumped ${jumpsBefore ? 'before' : 'after'} the start`);
      await stop();
      clock.jump(-31 * DAY);
    }
    const stop = await start(sourceOf(1), log);
    clock.advance(MINUTE);
    await looked(clock);
    for (let hours = 0; hours < 24; hours += 1) {
      assert.deepEqual(await kept(), ['first'], `it is ${hours} hours old`);
      clock.advance(HOUR);
      await looked(clock);
    }
    assert.deepEqual([await kept(), lines], [[], []]);
    await stop();
  });

  test('F34: a log that a clock ahead has written into is told of, once, until its time has come', async (t) => {
    const clock = createFakeClock();
    const { settle, kept, start } = await logged(t, clock);
    clock.jump(31 * DAY);
    await settle('ahead');
    clock.jump(-31 * DAY);
    await settle('behind');
    const lines: string[] = [];
    const log = createLogger('warn', { write: (line: string) => void lines.push(line) });
    const stop = await start(sourceOf(1), log);
    for (let hours = 0; hours < 31 * 24; hours += 1) {
      clock.advance(hours === 0 ? MINUTE : HOUR);
      await looked(clock);
      if (hours % 24 === 0) assert.equal(lines.length, 1);
    }
    assert.match(lines[0] ?? '', /"logged_at":"2025-07-16T.*the request log is ahead of the clock/);
    // It goes by itself then, and is told again where it comes again.
    for (let hours = 0; hours < 26; hours += 1) {
      clock.advance(HOUR);
      await looked(clock);
    }
    assert.deepEqual([await kept(), lines.length], [[], 1]);
    await stop();
  });
});

test('F34: a store that cannot be read at the start is asked again at once, before rows of a wrong clock stand in it', async (t) => {
  const clock = createFakeClock();
  const store = await openStore(t, { clock: { ...realClock, now: clock.now } });
  const owner = await funded(store, 1_000n);
  const settle = async (id: string): Promise<void> => {
    void store.settlements.settle({ entry: entry(owner, id, 1n) });
    await store.settlements.flush();
  };
  await settle('first');
  clock.jump(31 * DAY);
  let isAway = true;
  const requestLog: Store['requestLog'] = {
    ...store.requestLog,
    list: (...asked) => (isAway ? Promise.reject(new Error('away')) : store.requestLog.list(...asked)),
  };
  const lines: string[] = [];
  const log = createLogger('error', { write: (line: string) => void lines.push(line) });
  const stop = startRetention({ config: sourceOf(1), store: { ...store, requestLog }, clock, log });
  for (let seconds = 0; seconds < 10; seconds += 1) {
    clock.advance(1_000);
    await settled();
  }
  isAway = false;
  clock.advance(1_000);
  await settled();
  await settle('second');
  clock.advance(MINUTE);
  await settled();
  assert.deepEqual((await store.requestLog.list()).map(({ exchangeId }) => exchangeId).sort(), ['first', 'second']);
  assert.deepEqual(lines, []);
  await stop();
  assert.equal(clock.pending, 0);
});

test('a look that fails is logged and tried again in an hour; to stop waits for the look under way', async (t) => {
  const clock = createFakeClock();
  const store = await openStore(t);
  void store.settlements.settle({ entry: entry(await funded(store, 1_000n), 'old', 1n) });
  await store.settlements.flush();
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
  await settled();
  looks[0]?.reject(new Error('no such disk'));
  await settled();
  assert.match(lines.join(''), /no such disk.*could not be pruned/);
  clock.advance(HOUR);
  await settled();
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
