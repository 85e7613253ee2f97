/**
 * The recount of an LMDB store takes many turns of the event loop, and sees one moment: what others write meanwhile is no
 * difference, and a store that is closed meanwhile ends it.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Store } from '../../src/store/store.ts';
import { StoreError } from '../../src/store/store-error.ts';
import { entry, funded, openStore } from './support/store.ts';

const EXCHANGES = 10_000;

/** Writes exchanges, each of which changes nearly every table, and gives how to write more of them. */
async function inUse(t: TestContext): Promise<{ readonly store: Store; readonly write: (count: number) => Promise<void> }> {
  const store = await openStore(t);
  const principal = await funded(store, 1_000_000_000n);
  let written = 0;
  const write = async (count: number): Promise<void> => {
    const entries = Array.from({ length: count }, () => entry(principal, `req_${++written}`, 1_000n));
    await Promise.all(entries.map((one) => store.settlements.settle({ entry: one })));
  };
  await write(EXCHANGES);
  return { store, write };
}

test('what is written during a recount is none of its rows, and no difference', { timeout: 60_000 }, async (t) => {
  const { store, write } = await inUse(t);
  const { seq } = await store.ledger.head();
  let [isOver, commits] = [false, 0];
  const recount = store.ledger.verify().finally(() => {
    isOver = true;
  });
  while (!isOver) {
    await write(1);
    commits += 1;
  }
  const { rows, differences } = await recount;
  assert.deepEqual(differences, []);
  assert.equal(rows, seq);
  assert.ok(commits > 1, `${commits} commits while it ran`);
  assert.deepEqual(await store.ledger.verify(), { rows: seq + commits, differences: [] });
});

test('a store that is closed during a recount ends it, and waits for that', { timeout: 60_000 }, async (t) => {
  const { store } = await inUse(t);
  const recounts = Promise.allSettled([store.ledger.verify(), store.ledger.verify()]);
  await new Promise((resolve) => setImmediate(resolve));
  await store.close();
  for (const one of await recounts) {
    assert.ok(one.status === 'rejected' && one.reason instanceof StoreError, JSON.stringify(one));
    assert.equal(one.reason.code, 'closed');
  }
});
