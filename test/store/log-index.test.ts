/**
 * The indexes of the request log: rows of one transaction share an index row, and an exchange is found by the request id that it
 * is named after.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openLmdbStore } from '../../src/store/lmdb/open.ts';
import type { Clock } from '../../src/store/store.ts';
import { editTables } from './support/edit-tables.ts';
import { entry, FakeClock, funded, openStore, options, tempDirectory } from './support/store.ts';

test('rows of two keys, written in shared transactions, are listed forward, backward, in windows and after pruning', async (t) => {
  const clock = new FakeClock();
  const store = await openStore(t, { clock });
  const owners = [await funded(store, 1_000_000n), await funded(store, 1_000_000n)];
  const expected: number[][] = [[], []];
  for (let n = 1; n <= 60; n += 1) {
    const which = n % 3 === 0 ? 1 : 0;
    const owner = owners[which];
    assert.ok(owner);
    void store.settlements.settle({ entry: entry(owner, `ex_${n}`, 1n) });
    expected[which]?.push(n);
    if (n % 7 === 0) await store.settlements.flush();
    if (n === 30) {
      await store.settlements.flush();
      clock.advance(1_000);
    }
  }
  await store.settlements.flush();
  const check = async (from: number): Promise<void> => {
    for (const [index, owner] of owners.entries()) {
      const all = (expected[index] ?? []).filter((seq) => seq >= from);
      const keyId = owner.key.id;
      const seqs = async (query: object) => (await store.requestLog.list({ keyId, ...query })).map(({ seq }) => seq);
      assert.deepEqual(await seqs({}), all.toReversed());
      assert.deepEqual(await seqs({ after: 0 }), all);
      for (const edge of [1, 17, 18, 29, 30, 31, 44, 60]) {
        assert.deepEqual(
          await seqs({ after: edge }),
          all.filter((seq) => seq > edge),
          `after ${edge}`,
        );
        assert.deepEqual(
          await seqs({ before: edge, limit: 5 }),
          all
            .filter((seq) => seq < edge)
            .toReversed()
            .slice(0, 5),
          `before ${edge}`,
        );
      }
    }
  };
  await check(1);
  assert.equal(await store.requestLog.prune(clock.now()), 30);
  await check(31);
  assert.deepEqual((await store.ledger.verify()).differences, []);
});

test('an exchange is found by its own id, by the request id that it is named after, and by the client’s', async (t) => {
  const store = await openStore(t);
  const owner = await funded(store, 1_000_000n);
  await store.settlements.settle({ entry: entry(owner, 'ex_abc', 1n, { requestId: 'req_abc' }) });
  await store.settlements.settle({ entry: entry(owner, 'ex_def', 2n, { requestId: 'mine_abc', clientRequestId: 'mine_abc' }) });
  const found = async (id: string) => (await store.requestLog.find(id)).map(({ exchangeId }) => exchangeId);
  assert.deepEqual(await found('ex_abc'), ['ex_abc']);
  assert.deepEqual(await found('req_abc'), ['ex_abc']);
  assert.deepEqual(await found('mine_abc'), ['ex_def'], 'another name with the same digits is another request');
  assert.deepEqual(await found('ex_def'), ['ex_def']);
  assert.deepEqual(await found('abc'), []);
  await store.settlements.settle({ entry: entry(owner, 'ex_own', 1n, { clientRequestId: 'ex_own' }) });
  assert.deepEqual(await found('ex_own'), ['ex_own'], 'once, whoever calls it so');
  const long = '語'.repeat(5_000);
  await store.settlements.settle({ entry: entry(owner, 'ex_long', 1n, { clientRequestId: long }) });
  assert.deepEqual(await found(long.slice(0, 256)), ['ex_long']);
  assert.deepEqual(await found(long), []);
});

test('rows of one transaction that are pruned at different times are listed until then', async (t) => {
  const clock = new FakeClock();
  const ticking: Clock = {
    now() {
      clock.advance(1);
      return clock.now();
    },
    after: (ms, callback) => clock.after(ms, callback),
  };
  const store = await openStore(t, { clock: ticking });
  const owner = await funded(store, 1_000n);
  for (let n = 1; n <= 10; n += 1) void store.settlements.settle({ entry: entry(owner, `ex_${n}`, 1n) });
  await store.settlements.flush();
  const listed = async () => (await store.requestLog.list({ keyId: owner.key.id, after: 0 })).map(({ seq }) => seq);
  const times = (await store.requestLog.list({ after: 0 })).map(({ loggedAtMs }) => loggedAtMs);
  assert.equal(await store.requestLog.prune(times[5] ?? 0), 5);
  assert.deepEqual(await listed(), [6, 7, 8, 9, 10]);
  assert.equal(await store.requestLog.prune((times[9] ?? 0) + 1), 5);
  assert.deepEqual(await listed(), []);
});

test('pruning takes as many transactions as it needs, and leaves nothing of what was free', async (t) => {
  const clock = new FakeClock();
  const path = tempDirectory(t);
  const store = await openLmdbStore(options(path, { clock }));
  const owner = await funded(store, 10_000n);
  for (let n = 1; n <= 1_100; n += 1)
    void store.settlements.settle({ entry: entry(owner, `ex_${n}`, n === 600 ? 1n : 0n, { clientRequestId: `mine ${n}` }) });
  await store.settlements.flush();
  assert.equal((await store.requestLog.list({ limit: 5_000 })).length, 1_000);
  assert.equal((await store.requestLog.list({ limit: 0 })).length, 1);
  clock.advance(1);
  assert.equal(await store.requestLog.prune(clock.now()), 1_100);
  await store.close();
  await editTables(path, ({ log, logIds, logFilters, exchanges }) => {
    const left = [log, logIds, logFilters].map((table) => table.getCount());
    assert.deepEqual([left, [...exchanges.getKeys()]], [[0, 0, 0], ['ex_600']]);
  });
});
