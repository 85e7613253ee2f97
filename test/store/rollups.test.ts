/**
 * The sums by hour on both engines: what an exchange adds, what is asked of them, that they outlive the rows and are made anew
 * from them.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { VIDEO_WORKER } from '../../src/store/leases.ts';
import type { Principal } from '../../src/store/keys.ts';
import type { RequestLogEntry } from '../../src/store/request-log.ts';
import {
  FIRST_TOKEN_BOUNDS_MS,
  firstTokenMs,
  type UsageDimension,
  type UsageFilters,
  type UsageGroup,
} from '../../src/store/rollups.ts';
import type { Store } from '../../src/store/store.ts';
import { entry, FakeClock, funded, ok, T0 } from './support/store.ts';
import { eachStore } from './support/stores.ts';

const HOUR = 3_600_000;
const attempt = (channelId: string, errorCode?: string) => ({
  ...{ channelId, channelType: 'chat', upstreamModel: 'u', startedAtMs: T0, durationMs: 1 },
  ...(errorCode === undefined ? {} : { errorCode }),
});
const ALL = { fromMs: 0, toMs: T0 + 1_000 * HOUR };
const verified = async (store: Store) => assert.deepEqual((await store.ledger.verify()).differences, []);

async function settle(store: Store, owner: Principal, id: string, nanos: bigint, more: Partial<RequestLogEntry>): Promise<void> {
  void store.settlements.settle({ entry: entry(owner, id, nanos, more) });
  await store.settlements.flush();
}

/** Two keys of two accounts, two models, two Channels, three hours of two days, failures of both kinds and a film. */
async function fill(store: Store, clock: FakeClock) {
  const [one, two] = [await funded(store, 10_000n), await funded(store, 10_000n)];
  const answered = (
    channelId: string,
    model: string,
    firstOutputMs: number,
    usage = { input: 10, cachedInput: 5, output: 3 },
  ) => ({
    ...{ channelId, model, firstOutputMs, usage, durationMs: 100, attempts: [attempt(channelId)] },
  });
  await settle(store, one, 'a', 100n, answered('c1', 'm1', 40));
  await settle(store, one, 'b', 50n, answered('c2', 'm1', 900));
  clock.advance(HOUR);
  await settle(store, two, 'c', 7n, answered('c1', 'm2', 90));
  const failed = { status: 'error', httpStatus: 502, errorCode: 'upstream_error' } as const;
  await settle(store, one, 'd', 0n, { ...failed, model: 'm1', attempts: [attempt('c1', 'x'), attempt('c2', 'y')] });
  await settle(store, one, 'e', 0n, { ...failed, errorCode: 'model_not_found', model: 'a client names what it likes' });
  clock.advance(12 * HOUR);
  await settle(store, one, 'f', 1n, answered('c1', 'm1', 41));
  const video = {
    id: 'v',
    principal: two,
    model: 'film',
    requestJson: '{}',
    priceNanos: 30n,
    idempotencyKey: 'k',
    bodyHash: 'h',
  };
  ok(await store.videos.create({ ...video, nowMs: clock.now() }));
  const { token } = ok(await store.leases.acquire(VIDEO_WORKER, 'w', HOUR, clock.now()));
  ok(await store.videos.change('v', { event: 'submit', channelId: 'cv', upstreamModel: 'u' }, token, clock.now()));
  ok(await store.videos.change('v', { event: 'succeed', outputUrl: 'https://example.com' }, token, clock.now()));
  return { one, two };
}

const short = (groups: readonly UsageGroup[]) =>
  groups.map(({ requests, errors, chargedNanos, videos, ...rest }) => {
    const { inputTokens: _i, cachedInputTokens: _c, cacheWriteTokens: _w, outputTokens: _o, ...more } = rest;
    const { reasoningTokens: _r, images: _p, durationMs: _d, firstToken: _f, ...members } = more;
    return [...Object.values(members), requests, errors, videos, Number(chargedNanos)];
  });

eachStore(({ openStore }) => {
  test('sums by every dimension, filtered and grouped', async (t) => {
    const clock = new FakeClock();
    const store = await openStore(t, { clock });
    const { one, two } = await fill(store, clock);
    const asked = async (by: readonly UsageDimension[], filters: UsageFilters = {}) =>
      short(await store.usageByHour(ALL, filters, by));
    const [whole] = await store.usageByHour(ALL);
    assert.deepEqual(
      { ...whole, firstToken: whole?.firstToken.filter((count) => count > 0) },
      {
        ...{ requests: 6, errors: 2, inputTokens: 40, cachedInputTokens: 20, cacheWriteTokens: 0, outputTokens: 12 },
        ...{ reasoningTokens: 0, images: 0, videos: 1, durationMs: 410, chargedNanos: 188n, firstToken: [2, 1, 1] },
      },
    );
    const keys = [
      [one.key.id, 5, 2, 0, 151],
      [two.key.id, 1, 0, 1, 37],
    ].sort(([a = ''], [b = '']) => (a < b ? -1 : 1));
    assert.deepEqual(await asked(['key']), keys);
    assert.deepEqual(await asked(['model']), [
      ['', 1, 1, 0, 0],
      ['film', 0, 0, 1, 30],
      ['m1', 4, 1, 0, 151],
      ['m2', 1, 0, 0, 7],
    ]);
    assert.deepEqual(await asked(['channel']), [
      ['', 1, 1, 0, 0],
      ['c1', 3, 0, 0, 108],
      ['c2', 2, 1, 0, 50],
      ['cv', 0, 0, 1, 30],
    ]);
    assert.deepEqual(await asked(['code'], { keyId: one.key.id }), [
      ['', 3, 0, 0, 151],
      ['model_not_found', 1, 1, 0, 0],
      ['upstream_error', 1, 1, 0, 0],
    ]);
    assert.deepEqual(await asked(['day']), [
      ['2026-03-01', 5, 2, 0, 157],
      ['2026-03-02', 1, 0, 1, 31],
    ]);
    assert.deepEqual(await asked(['hour'], { accountId: one.account.id, model: 'm1' }), [
      [T0 - HOUR / 2, 2, 0, 0, 150],
      [T0 + HOUR / 2, 1, 1, 0, 0],
      [T0 + 12.5 * HOUR, 1, 0, 0, 1],
    ]);
    assert.deepEqual(await asked(['model'], { accountId: one.account.id, keyId: two.key.id }), []);
    // The second hour of the first day, and the whole second day: rows of hours before, of days behind.
    const part = { fromMs: T0 + HOUR, toMs: T0 + 48 * HOUR };
    assert.deepEqual(short(await store.usageByHour(part, {}, ['channel'])), [
      ['', 1, 1, 0, 0],
      ['c1', 2, 0, 0, 8],
      ['c2', 1, 1, 0, 0],
      ['cv', 0, 0, 1, 30],
    ]);
    assert.deepEqual(await store.usageByHour({ fromMs: T0, toMs: 0 }), []);
    await verified(store);
  });

  test('an exchange is counted once, however often it is settled', async (t) => {
    const clock = new FakeClock();
    const first = await openStore(t, { clock });
    const owner = await funded(first, 1_000n);
    await settle(first, owner, 'other', 1n, {});
    clock.advance(HOUR);
    const exchange = entry(owner, 'late', 9n, { channelId: 'c' });
    const { settlements } = first;
    await settlements.open(exchange);
    await settlements.flush();
    await settle(first, owner, 'late', 9n, { channelId: 'c' });
    await settle(first, owner, 'late', 9n, { channelId: 'c' });
    assert.deepEqual(short(await first.usageByHour(ALL, {}, ['hour', 'channel'])), [
      [T0 - HOUR / 2, '', 1, 0, 0, 1],
      [T0 + HOUR / 2, 'c', 1, 0, 0, 9],
    ]);
    await verified(first);
  });

  test('sums outlive the rows, and are made anew from those that are left', async (t) => {
    const clock = new FakeClock();
    const store = await openStore(t, { clock });
    await fill(store, clock);
    const by = ['hour', 'key', 'model', 'channel', 'code'] as const;
    const before = await store.usageByHour(ALL, {}, by);
    assert.deepEqual(await store.ledger.rebuildRollups(), { hours: 3 });
    assert.deepEqual(await store.usageByHour(ALL, {}, by), before);
    await verified(store);
    // Of the second hour one row is gone, of the first all.
    await store.requestLog.prune(T0 + HOUR / 2);
    assert.deepEqual(await store.usageByHour(ALL, {}, by), before);
    const rebuilt = await store.ledger.rebuildRollups();
    assert.deepEqual(rebuilt, { hours: 1, keptUntilMs: T0 + HOUR / 2 });
    assert.deepEqual(await store.usageByHour(ALL, {}, by), before);
    for (const dimension of ['day', 'model'] as const)
      assert.deepEqual(
        (await store.usageByHour(ALL, {}, [dimension])).reduce((sum, { requests }) => sum + requests, 0),
        6,
      );
    await verified(store);
    await store.requestLog.prune(T0 + 100 * HOUR);
    assert.deepEqual((await store.ledger.rebuildRollups()).hours, 0);
    assert.deepEqual(await store.usageByHour(ALL, {}, by), before);
    await verified(store);
  });

  test('whatever range and grouping is asked, its parts add up to the whole', async (t) => {
    const clock = new FakeClock();
    const store = await openStore(t, { clock });
    const owner = await funded(store, 10n ** 9n);
    for (let n = 0; n < 90; n += 1) {
      void store.settlements.settle({
        entry: entry(owner, `x${n}`, BigInt(n), { channelId: `c${n % 3}`, firstOutputMs: n * 7 }),
      });
      await store.settlements.flush();
      clock.advance(53 * 60_000);
    }
    const hour = fc.integer({ min: -20, max: 120 }).map((n) => T0 + n * HOUR);
    const dimensions = fc.subarray(['hour', 'day', 'account', 'key', 'model', 'channel', 'code'] as const);
    await fc.assert(
      fc.asyncProperty(hour, hour, hour, dimensions, async (a, b, c, by) => {
        const [from = 0, middle = 0, to = 0] = [a, b, c].sort((x, y) => x - y).map((ms) => Math.floor(ms / HOUR) * HOUR);
        const sum = async (fromMs: number, toMs: number, groupBy: readonly UsageDimension[]) =>
          (await store.usageByHour({ fromMs, toMs }, {}, groupBy)).reduce((all, { chargedNanos }) => all + chargedNanos, 0n);
        const [left, right, whole] = [await sum(from, middle, by), await sum(middle, to, by), await sum(from, to, [])];
        assert.equal(left + right, whole);
      }),
      { numRuns: 40 },
    );
  });
});

test('the time of a share of the first tokens', () => {
  assert.equal(firstTokenMs([], 0.5), undefined);
  assert.equal(firstTokenMs([0, 4], 0.5), 37.5);
  assert.equal(firstTokenMs([1, 0, 0, 1], 1), 100);
  const above = [...FIRST_TOKEN_BOUNDS_MS.map(() => 0), 5];
  assert.equal(firstTokenMs(above, 0.95), FIRST_TOKEN_BOUNDS_MS.at(-1));
});
