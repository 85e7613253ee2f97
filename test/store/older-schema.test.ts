/**
 * A store that an older version wrote: its rows are read as they are, its exchanges stay settled, and new rows stand beside the
 * old ones.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { openLmdbStore } from '../../src/store/lmdb/open.ts';
import { JOURNAL_ROW } from '../../src/store/lmdb/row-shapes.ts';
import { metaOf } from '../../src/store/lmdb/tables.ts';
import type { Listed } from '../../src/store/lmdb/listed.ts';
import type { Store } from '../../src/store/store.ts';
import { editTables } from './support/edit-tables.ts';
import { cause, entry, FakeClock, funded, ok, options, tempDirectory } from './support/store.ts';

const settle = async (store: Store, row: ReturnType<typeof entry>) => {
  const settled = store.settlements.settle({ entry: row });
  await store.settlements.flush();
  return settled;
};

/** Writes everything as schema 2 had it: lists in MessagePack, and every row of the journal in one index. */
async function rewriteAsSchema2(path: string): Promise<void> {
  await editTables(path, (tables, root) => {
    const plain = (name: string) =>
      root.openDB<unknown, number | string | [string, string | number]>({ name, encoding: 'msgpack' });
    const rewrite = <V>(name: string, rows: { key: number; value: V }[], shape: Listed<V>): void => {
      for (const { key, value } of rows) plain(name).putSync(key, old(shape.list(value), value));
    };
    // Whole numbers of any size were numbers, and names with numbers were maps.
    const old = (list: unknown, row: unknown): unknown => {
      assert.ok(Array.isArray(list));
      if (typeof row === 'object' && row !== null && 'nanos' in row) list[6] = row.nanos;
      return list;
    };
    const journal = [...tables.journal.getRange()];
    const log = [...tables.log.getRange()];
    rewrite('journal', journal, JOURNAL_ROW);
    // The log once held whole objects, amounts and maps included; those are still read, too.
    for (const { key, value } of log) plain('log').putSync(key, value);
    for (const { value } of journal) plain('journal_refs').putSync([value.ref, value.kind], value.seq);
    for (const { key } of tables.exchanges.getRange()) plain('log_exchanges').removeSync(key);
    for (const { value } of log) plain('log_exchanges').putSync(value.exchangeId, value.seq);
    for (const { key, value } of log) plain('log_keys').putSync([value.keyId, key], [key]);
    tables.logFilters.clearSync();
    tables.meta.putSync('schema', 2);
    assert.equal(metaOf(tables, 'schema'), 2);
  });
}

async function olderStore(t: TestContext, clock: FakeClock) {
  const path = tempDirectory(t);
  const first = await openLmdbStore(options(path, { clock }));
  const owner = await funded(first, 1_000n);
  const meters = new Map([['web_search', 2]]);
  const charge = {
    lines: [{ item: 'input', quantity: 3, rate: 5n, per: 'million' as const, amount: 15n }],
    total: 7n,
    flags: ['estimated'],
  };
  await settle(first, entry(owner, 'ex_paid', 7n, { charge, usage: { input: 3, meters } }));
  await settle(first, entry(owner, 'ex_free', 0n));
  const before = { journal: await first.ledger.journal(), log: await first.requestLog.list() };
  await first.close();
  await rewriteAsSchema2(path);
  const store = await openLmdbStore(options(path, { clock }));
  t.after(() => store.close());
  return { store, owner, before };
}

test('a store of schema 2 is read as it is, and goes on', async (t) => {
  const { store, owner, before } = await olderStore(t, new FakeClock());
  assert.deepEqual(await store.ledger.journal(), before.journal);
  assert.deepEqual(await store.requestLog.list(), before.log);
  assert.deepEqual((await store.ledger.verify()).differences, []);
  assert.deepEqual(
    (await store.ledger.journal({ ref: 'ex_paid' })).map(({ kind }) => kind),
    ['charge'],
  );
  assert.deepEqual(await settle(store, entry(owner, 'ex_new', 5n)), { settled: true, chargedNanos: 5n });
  assert.deepEqual(
    (await store.ledger.journal({ ref: 'ex_new' })).map(({ nanos }) => nanos),
    [5n],
  );
  assert.equal(ok(await store.accounts.credit(owner.account.id, 1n, cause())).walletNanos, 1_000n - 7n - 5n + 1n);
  assert.deepEqual((await store.ledger.verify()).differences, []);
});

test('what an older version charged is never charged again, not even when its row of the log is gone', async (t) => {
  const clock = new FakeClock();
  const { store, owner } = await olderStore(t, clock);
  const again = entry(owner, 'ex_paid', 9n);
  assert.deepEqual(await settle(store, again), { settled: false, reason: 'already_settled' });
  clock.advance(1_000);
  assert.equal(await store.requestLog.prune(clock.now()), 2);
  assert.deepEqual(await settle(store, again), { settled: false, reason: 'already_settled' });
  assert.deepEqual((await store.ledger.verify()).differences, []);
});

test('what was charged is never charged again when its row of the log is gone; what was free leaves nothing', async (t) => {
  const clock = new FakeClock();
  const path = tempDirectory(t);
  const store = await openLmdbStore(options(path, { clock }));
  t.after(() => store.close());
  const owner = await funded(store, 1_000n);
  await settle(store, entry(owner, 'ex_paid', 7n));
  await settle(store, entry(owner, 'ex_free', 0n));
  clock.advance(1_000);
  assert.equal(await store.requestLog.prune(clock.now()), 2);
  assert.deepEqual(await store.requestLog.find('ex_paid'), []);
  assert.deepEqual(await settle(store, entry(owner, 'ex_paid', 9n)), { settled: false, reason: 'already_settled' });
  assert.deepEqual(
    (await store.ledger.journal({ ref: 'ex_paid' })).map(({ nanos }) => nanos),
    [7n],
  );
  assert.deepEqual(await settle(store, entry(owner, 'ex_free', 2n)), { settled: true, chargedNanos: 2n });
  assert.deepEqual((await store.ledger.verify()).differences, []);
});
