/**
 * Pruning is background work beside thousands of streams: whatever there is to remove, the event loop has its turn in between.
 */
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

/** Milliseconds that the loop may be held by pruning. */
const MOST_MS = 10;
/** Noise only adds: the least of so many runs counts. */
const TRIES = 3;

test('no turn of pruning takes ten milliseconds of the loop, also of rows with every name and attempt that a row may have', async (t) => {
  const store = await openStore(t);
  const owner = await funded(store, 1_000_000n);
  const attempts = Array.from({ length: 20 }, (_, index) => ({
    ...{
      channelId: `channel-${index}`,
      channelType: 'messages',
      startedAtMs: 0,
      upstreamModel: 'm',
      upstreamRequestId: `${'r'.repeat(200)}${index}`,
      durationMs: 1,
    },
    ...{ outcome: 'error' as const, error: { kind: 'server_error', message: 'w'.repeat(2_000) } },
  }));
  let least = Number.POSITIVE_INFINITY;
  for (let tried = 0; tried < TRIES && least > MOST_MS; tried += 1) {
    for (let n = 0; n < 500; n++) {
      const id = `e${tried}-${n}`;
      void store.settlements.settle({ entry: entry(owner, id, 1n, { attempts, clientRequestId: `c-${id}` }) });
    }
    await store.settlements.flush();
    let longest = 0;
    let before = process.threadCpuUsage();
    const turn = (): void => {
      const { user, system } = process.threadCpuUsage(before);
      longest = Math.max(longest, (user + system) / 1000);
      before = process.threadCpuUsage();
      if (pruning) setImmediate(turn);
    };
    let pruning = true;
    setImmediate(turn);
    await store.requestLog.prune(Number.MAX_SAFE_INTEGER);
    pruning = false;
    least = Math.min(least, longest);
  }
  assert.ok(least < MOST_MS, `the longest turn took ${least.toFixed(1)} ms`);
  t.diagnostic(`the longest turn took ${least.toFixed(1)} ms`);
});
