/** The entry of an exchange is what makes it settle once: whatever is wrong with one, `verify` says it. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { openLmdbStore } from '../../src/store/lmdb/open.ts';
import type { Tables } from '../../src/store/lmdb/tables.ts';
import { editTables } from './support/edit-tables.ts';
import { entry, funded, options, tempDirectory } from './support/store.ts';

/** What `verify` finds after `damage`, in a store with the exchanges `a` and `b`, charged, and `c`, free. */
async function differences(t: TestContext, damage: (tables: Tables) => unknown): Promise<string[]> {
  const path = tempDirectory(t);
  const first = await openLmdbStore(options(path));
  const owner = await funded(first, 1_000n);
  for (const [id, nanos] of [
    ['a', 7n],
    ['b', 8n],
    ['c', 0n],
  ] as const)
    void first.settlements.settle({ entry: entry(owner, id, nanos) });
  await first.close();
  await editTables(path, damage);
  const store = await openLmdbStore(options(path));
  t.after(() => store.close());
  const found = (await store.ledger.verify()).differences;
  return found.map(({ what, subject }) => `${what}: ${subject}`).sort();
}

const stored = (tables: Tables, id: string): readonly number[] => tables.exchanges.get(id) ?? [];

test('an undamaged index says nothing', async (t) => {
  assert.deepEqual(await differences(t, () => undefined), []);
});

test('an entry that is gone leaves a row of the log and one of the journal without it', async (t) => {
  const found = await differences(t, (tables) => tables.exchanges.removeSync('a'));
  assert.deepEqual(found, ['exchange: index of a', 'unique: journal rows with an index']);
});

test('an entry that leads to the rows of another exchange is told', async (t) => {
  const found = await differences(t, (tables) => tables.exchanges.putSync('a', stored(tables, 'b')));
  assert.deepEqual(found, ['exchange: index of a', 'exchange: log row of a', 'unique: index of a']);
});

test('an entry with two rows of one kind is told', async (t) => {
  const found = await differences(t, (tables) => {
    const [logSeq = 0, journalSeq = 0] = stored(tables, 'a');
    tables.exchanges.putSync('a', [logSeq, journalSeq, journalSeq]);
  });
  assert.deepEqual(found, ['unique: journal rows with an index', 'unique: kinds of journal rows of a']);
});

test('an entry for a row that does not exist is told', async (t) => {
  const found = await differences(t, (tables) => tables.exchanges.putSync('c', [...stored(tables, 'c'), 99]));
  assert.deepEqual(found, ['unique: index of c', 'unique: journal rows with an index']);
});
