/**
 * What contradicts itself in the store stops the change that meets it, as a whole: no row is written over, no money moves twice.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { VIDEO_WORKER } from '../../src/store/leases.ts';
import { openLmdbStore } from '../../src/store/lmdb/open.ts';
import type { Tables } from '../../src/store/lmdb/tables.ts';
import type { Store } from '../../src/store/store.ts';
import { editTables } from './support/edit-tables.ts';
import { cause, entry, funded, ok, options, T0, tempDirectory } from './support/store.ts';

/** A store with the running task `v`, a charged exchange, and what `damage` made of it meanwhile. */
async function damaged(t: TestContext, damage: (tables: Tables) => void) {
  const path = tempDirectory(t);
  const first = await openLmdbStore(options(path));
  const owner = await funded(first, 1_000n);
  const token = ok(await first.leases.acquire(VIDEO_WORKER, 'w', 1_000, T0)).token;
  const video = { id: 'v', principal: owner, model: 'v', requestJson: '{}', priceNanos: 100n, bodyHash: 'h', nowMs: T0 };
  ok(await first.videos.create({ ...video, idempotencyKey: 'k' }));
  ok(await first.videos.change('v', { event: 'submit', channelId: 'c', upstreamModel: 'u' }, token, T0));
  void first.settlements.settle({ entry: entry(owner, 'a', 7n) });
  await first.close();
  await editTables(path, damage);
  const store = await openLmdbStore(options(path));
  t.after(() => store.close());
  return { store, owner, token };
}

/** Everything that money is. */
const books = async (store: Store) => [await store.ledger.journal(), await store.accounts.list(), await store.ledger.holds()];

test('a journal or a log whose head is behind is never written over', async (t) => {
  const { store, owner } = await damaged(t, ({ meta }) => {
    meta.putSync('journalHead', { seq: 1, hash: '0'.repeat(64) });
  });
  const before = await books(store);
  await assert.rejects(store.accounts.credit(owner.account.id, 5n, cause()), { code: 'corrupt' });
  await assert.rejects(async () => store.settlements.settle({ entry: entry(owner, 'b', 7n) }), { code: 'corrupt' });
  assert.deepEqual(await books(store), before);

  const other = await damaged(t, ({ meta }) => {
    meta.putSync('logHead', { seq: 0, atMs: 0 });
  });
  await assert.rejects(async () => other.store.settlements.settle({ entry: entry(other.owner, 'b', 0n) }), { code: 'corrupt' });
  assert.equal((await other.store.requestLog.find('a'))[0]?.exchangeId, 'a');
});

const HOLDS: Record<string, (tables: Tables) => void> = {
  'is settled already': ({ holds }) => {
    const hold = holds.get('v');
    if (hold !== undefined) holds.putSync('v', { ...hold, state: 'settled' });
  },
  'is gone': ({ holds }) => {
    holds.removeSync('v');
  },
};
for (const [what, damage] of Object.entries(HOLDS)) {
  test(`a task whose hold ${what} is neither charged nor refunded`, async (t) => {
    const { store, token } = await damaged(t, damage);
    const before = await books(store);
    for (const change of [
      { event: 'succeed', outputUrl: 'https://example.com/v.mp4' },
      { event: 'fail', error: { code: 'c', message: 'm' } },
      { event: 'lose', why: 'lost' },
    ] as const)
      await assert.rejects(store.videos.change('v', change, token, T0), { code: 'corrupt' }, change.event);
    assert.deepEqual(await books(store), before);
    assert.equal((await store.videos.inspect('v'))?.state, 'submitting');
  });
}
