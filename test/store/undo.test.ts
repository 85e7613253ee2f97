/** A transaction that throws after any single write leaves nothing behind: each operation is cut after its 1st, 2nd, … write. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { VIDEO_WORKER } from '../../src/store/leases.ts';
import type { Store } from '../../src/store/store.ts';
import { cause, entry, FakeClock, funded, ok, T0 } from './support/store.ts';
import { type Engine, eachStore } from './support/stores.ts';

class Cut extends Error {}

/** A store whose n-th write from now throws. */
async function cuttable(t: TestContext, openStore: Engine['openStore']) {
  let left = Number.POSITIVE_INFINITY;
  const clock = new FakeClock();
  const store = await openStore(t, { clock }, () => {
    left -= 1;
    if (left <= 0) throw new Cut('cut');
  });
  return {
    store,
    cutAfter: (writes: number) => {
      left = writes;
    },
    heal: () => {
      left = Number.POSITIVE_INFINITY;
    },
  };
}

/** Everything that can be seen of a store. */
async function picture(store: Store): Promise<unknown> {
  return {
    accounts: await store.accounts.list(),
    keys: await store.keys.list(),
    journal: await store.ledger.journal({ limit: 10_000 }),
    holds: await store.ledger.holds(),
    videos: await store.videos.all(),
    log: await store.requestLog.list({ limit: 1000 }),
    spend: await Promise.all((await store.keys.list()).map(({ id }) => store.spend.spend(id, T0))),
    days: await Promise.all((await store.keys.list()).map(({ id }) => store.spend.usageByDay(id))),
    secret: store.secrets.current(),
    due: (await store.videos.due(T0 + 10 ** 9, 100)).map(({ id }) => id),
  };
}

const video = { model: 'v', requestJson: '{}', priceNanos: 10n, bodyHash: 'h', nowMs: T0 };

eachStore(({ openStore }) => {
  test('F31: nothing changes when any write of any operation throws', async (t) => {
    const { store, cutAfter, heal } = await cuttable(t, openStore);
    const owner = await funded(store, 1000n, { subAccount: true });
    const { key, account } = owner;
    const own = { accountId: account.id, keyId: key.id };
    ok(await store.keys.transfer(key.id, 500n, cause()));
    const token = ok(await store.leases.acquire(VIDEO_WORKER, 'w', 1000, T0)).token;
    ok(await store.videos.create({ ...video, id: 'v1', principal: owner, idempotencyKey: 'k1' }));
    ok(await store.videos.create({ ...video, id: 'v2', principal: owner, idempotencyKey: 'k2' }));

    const settle = async (id: string) => {
      const settled = store.settlements.settle({ entry: entry(owner, id, 3n, { clientRequestId: 'mine' }) });
      await store.settlements.flush();
      await settled;
    };
    const operations: Record<string, (n: number) => Promise<unknown>> = {
      'create an account': (n) => store.accounts.create({ name: `n${n}`, creditNanos: 5n }, cause()),
      credit: () => store.accounts.credit(account.id, 5n, cause()),
      'change an account': () => store.accounts.change(account.id, { class: 'gold' }, cause()),
      'create a key': () => store.keys.create({ accountId: account.id, name: 'k' }, cause()),
      transfer: () => store.keys.transfer(key.id, 5n, cause()),
      settle: (n) => settle(`e${n}`),
      'create a video': (n) => store.videos.create({ ...video, id: `w${n}`, principal: owner, idempotencyKey: `w${n}` }),
      submit: () => store.videos.change('v1', { event: 'submit', channelId: 'c', upstreamModel: 'u' }, token, T0),
      lose: () => store.videos.change('v1', { event: 'lose', why: 'lost', dueAtMs: T0 }, token, T0),
      'put off': () => store.videos.reschedule([{ id: 'v1', dueAtMs: T0 + 9 }], token, T0),
      succeed: () => store.videos.change('v1', { event: 'succeed', outputUrl: 'https://x' }, token, T0),
      cancel: () => store.videos.cancel('v2', own, T0),
      'disable a key with a sub-account': () => store.keys.change(key.id, { disabled: true }, cause()),
      'rotate the secret': () => store.secrets.rotate(cause()),
      'prune the log': () => store.requestLog.prune(T0 + 10 ** 9),
    };
    for (const [name, run] of Object.entries(operations)) {
      let cuts = 0;
      for (let writes = 1; ; writes += 1) {
        const before = await picture(store);
        cutAfter(writes);
        try {
          await run(writes);
          heal();
          break;
        } catch (error) {
          heal();
          assert.ok(error instanceof Cut, `${name}: ${String(error)}`);
        }
        cuts += 1;
        assert.deepEqual(await picture(store), before, `${name}, cut after write ${writes}`);
      }
      assert.ok(cuts >= 2, `${name} made only ${cuts} writes`);
      assert.deepEqual((await store.ledger.verify()).differences, [], name);
    }
  });
});
