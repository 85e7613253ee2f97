/** Pruning is background work beside thousands of streams: whatever there is to remove, the event loop has its turn in between. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PRUNE_BATCH } from '../../src/store/lmdb/request-log.ts';
import { entry, funded, openStore } from './support/store.ts';

/** What a transaction may hold the loop for, in rows; a row with its index entries takes some 30 µs. */
const MOST_ROWS = 64;

test('many old rows are removed in small transactions, and the event loop turns between them', async (t) => {
  const store = await openStore(t);
  const owner = await funded(store, 1_000_000n);
  const rows = 3_000;
  for (let n = 0; n < rows; n++) void store.settlements.settle({ entry: entry(owner, `e${n}`, 1n) });
  await store.settlements.flush();
  assert.equal(await store.requestLog.head(), rows);
  let turns = 0;
  let pruning = true;
  const turn = (): void => {
    turns += 1;
    if (pruning) setImmediate(turn);
  };
  setImmediate(turn);
  assert.equal(await store.requestLog.prune(Number.MAX_SAFE_INTEGER), rows);
  pruning = false;
  assert.ok(PRUNE_BATCH <= MOST_ROWS);
  assert.ok(turns >= rows / MOST_ROWS, `${turns} turns`);
  assert.deepEqual(await store.requestLog.list(), []);
  assert.deepEqual((await store.ledger.verify()).differences, []);
});
