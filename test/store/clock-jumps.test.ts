/** A clock that jumps a month and comes back: no task waits for next month, no job is held, no key is locked. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VIDEO_WORKER } from '../../src/store/leases.ts';
import { funded, ok, refusal, T0 } from './support/store.ts';
import { eachStore } from './support/stores.ts';

const MONTH_MS = 31 * 24 * 3_600_000;
const NEVER = { event: 'lose', why: 'nobody knows' } as const;

eachStore(({ openStore }) => {
  test('F34: tasks that were made or looked at in the wrong month are due again at once, and those that wait an hour wait', async (t) => {
    const store = await openStore(t);
    const principal = await funded(store, 1_000_000n);
    const make = async (id: string, nowMs: number, dueAtMs = nowMs) =>
      ok(
        await store.videos.create({
          ...{ id, principal, model: 'v', requestJson: '{}', priceNanos: 100n, idempotencyKey: id, bodyHash: 'h' },
          ...{ nowMs, dueAtMs },
        }),
      );
    const { token } = ok(await store.leases.acquire(VIDEO_WORKER, 'w', 60_000, T0));
    await make('waits', T0, T0 + 3_600_000);
    await make('there', T0 + MONTH_MS);
    await make('looked', T0);
    await make('never', T0);
    const change = (id: string, what: Parameters<typeof store.videos.change>[1], nowMs: number) =>
      store.videos.change(id, what, token, nowMs);
    for (const id of ['looked', 'never']) ok(await change(id, { event: 'submit', channelId: 'c', upstreamModel: 'u' }, T0));
    ok(await change('looked', { event: 'accept', upstreamId: 'up', dueAtMs: T0 + MONTH_MS + 5_000 }, T0 + MONTH_MS));
    ok(await change('never', NEVER, T0));
    const due = (await store.videos.due(T0 + 1, 10)).map(({ id }) => id);
    assert.deepEqual(due.sort(), ['looked', 'there']);
    assert.deepEqual(
      (await store.videos.due(T0 + 1, 10, { inHand: ['looked'] })).map(({ id }) => id),
      ['there'],
    );
  });

  test('F34: a lease that was taken a month ahead holds nobody off, and fences its holder', async (t) => {
    const store = await openStore(t);
    const ahead = ok(await store.leases.acquire('job', 'lost', 30_000, T0 + MONTH_MS));
    assert.equal(refusal(await store.leases.acquire('job', 'next', 30_000, T0 + MONTH_MS)).reason, 'held');
    const taken = ok(await store.leases.acquire('job', 'next', 30_000, T0));
    assert.ok(taken.token > ahead.token);
    assert.equal(refusal(await store.leases.renew('job', ahead.token, 30_000, T0)).reason, 'lost');
    assert.equal(refusal(await store.leases.acquire('job', 'third', 30_000, T0)).reason, 'held');
  });

  test('F34: a key with a daily limit that spent in the wrong month may spend today', async (t) => {
    const store = await openStore(t);
    const principal = await funded(store, 1_000_000n, { limits: { daily: 100n, hourly: 100n } });
    const make = (id: string, nowMs: number) =>
      store.videos.create({
        ...{ id, principal, model: 'v', requestJson: '{}', priceNanos: 100n, idempotencyKey: id, bodyHash: 'h', nowMs },
      });
    const { token } = ok(await store.leases.acquire(VIDEO_WORKER, 'w', 60_000, T0));
    ok(await make('there', T0 + MONTH_MS));
    ok(await store.videos.change('there', { event: 'submit', channelId: 'c', upstreamModel: 'u' }, token, T0 + MONTH_MS));
    ok(await store.videos.change('there', { event: 'succeed', outputUrl: 'https://v.example/1' }, token, T0 + MONTH_MS));
    assert.equal((await store.spend.spend(principal.key.id, T0 + MONTH_MS)).daily, 100n);
    assert.equal((await store.spend.spend(principal.key.id, T0)).daily, 0n);
    ok(await make('today', T0));
    assert.equal(refusal(await make('more', T0)).reason, 'spend_limit_reached');
  });
});
