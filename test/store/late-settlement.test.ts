/**
 * An exchange that was closed as interrupted settles still, once: its process had only been stopped. What each order of events
 * leaves.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Store } from '../../src/store/store.ts';
import { entry, FakeClock, funded, T0 } from './support/store.ts';
import { type Engine, eachStore } from './support/stores.ts';

/** A store in which the exchange `late` was closed as interrupted, an hour and a day after which it is now. */
async function interrupted({ openStore, place }: Engine, t: TestContext, startedAtMs = T0) {
  const path = await place(t);
  const clock = new FakeClock();
  const first = await openStore(t, { path, clock });
  const owner = await funded(first, 1_000n);
  const { account, key } = owner;
  void first.settlements.open({
    exchangeId: 'late',
    requestId: 'req_late',
    accountId: account.id,
    keyId: key.id,
    endpoint: 'chat',
    model: 'm',
    stream: true,
    startedAtMs,
  });
  clock.advance(5_000);
  await first.close();
  const closedAtMs = clock.now();
  clock.advance(25 * 3_600_000);
  const store = await openStore(t, { path, clock });
  const settle = async (nanos: bigint) => {
    const settled = store.settlements.settle({ entry: entry(owner, 'late', nanos) });
    await store.settlements.flush();
    return (await settled).settled;
  };
  const requests = async (): Promise<number> =>
    (await store.spend.usageByDay(key.id)).reduce((sum, day) => sum + day.requests, 0);
  return { store, owner, closedAtMs, settle, requests };
}

const sound = async (store: Store): Promise<void> => assert.deepEqual((await store.ledger.verify()).differences, []);
const row = async (store: Store) => (await store.requestLog.find('late'))[0];

eachStore((engine) => {
  test('what was interrupted counts as one request, lasted until it was closed, and never less than nothing', async (t) => {
    const { store, closedAtMs, requests } = await interrupted(engine, t);
    const logged = await row(store);
    assert.deepEqual([logged?.status, logged?.durationMs, logged?.loggedAtMs], ['interrupted', 5_000, closedAtMs]);
    assert.equal(await requests(), 1);
    // A clock that went back.
    const other = await interrupted(engine, t, T0 + 60_000);
    assert.equal((await row(other.store))?.durationMs, 0);
  });

  for (const nanos of [7n, 0n]) {
    test(`it settles late for ${nanos}: in the same row, at the same place of the log, still one request`, async (t) => {
      const { store, owner, closedAtMs, settle, requests } = await interrupted(engine, t);
      const seq = (await row(store))?.seq;
      assert.deepEqual([await settle(nanos), await settle(nanos)], [true, false]);
      const logged = await row(store);
      assert.deepEqual([logged?.status, logged?.seq, logged?.loggedAtMs], ['success', seq, closedAtMs]);
      assert.equal((await store.accounts.find(owner.account.id))?.walletNanos, 1_000n - nanos);
      assert.equal(await requests(), 1);
      await sound(store);
    });
  }

  test('it settles late when its row was pruned: in a row of its own, once', async (t) => {
    const { store, owner, closedAtMs, settle } = await interrupted(engine, t);
    assert.equal(await store.requestLog.prune(closedAtMs + 1), 1);
    assert.equal(await row(store), undefined);
    assert.deepEqual([await settle(7n), await settle(7n)], [true, false]);
    assert.equal((await row(store))?.status, 'success');
    assert.equal((await store.accounts.find(owner.account.id))?.walletNanos, 993n);
    await sound(store);
  });

  test('a settlement under another account than its key’s is wrong, and changes nothing', async (t) => {
    const store = await engine.openStore(t);
    const [owner, other] = [await funded(store, 1_000n), await funded(store, 1_000n)];
    const before = await store.ledger.verify();
    await assert.rejects(async () => store.settlements.settle({ entry: entry({ ...owner, account: other.account }, 'x', 7n) }), {
      code: 'corrupt',
    });
    assert.deepEqual(await store.ledger.verify(), before);
    assert.deepEqual(await store.requestLog.find('x'), []);
  });
});
