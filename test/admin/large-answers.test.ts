/** What a token that may only read can ask of a large store: it holds nobody up, and what it takes is bounded. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { balances } from '../../src/cli/ledger.ts';
import { spendByDay } from '../../src/cli/spend.ts';
import { jsonText, jsonTextInSteps } from '../../src/http/admin/json-text.ts';
import { entry, funded, openStore } from '../store/support/store.ts';
import { adminGateway } from './admin-gateway.ts';

test('one recount runs at a time: another is told so, and may run when it is over', async (t) => {
  const store = await openStore(t);
  const over = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const verify: typeof store.ledger.verify = async (options) => {
    begun.resolve();
    await over.promise;
    return await store.ledger.verify(options);
  };
  const gateway = await adminGateway(t, { store: { ...store, ledger: { ...store.ledger, verify } } });
  const ask = () => gateway.ask('ledger/verify', { token: gateway.tokens.read });
  const first = ask();
  await begun.promise;
  const second = await ask();
  assert.deepEqual([second.status, second.json.error.code], [409, 'recount_running']);
  const backup = await gateway.ask('store/backup', { body: { folder: 'x' } });
  assert.deepEqual([backup.status, backup.json.error.code], [409, 'recount_running']);
  over.resolve();
  assert.equal((await first).status, 200);
  assert.equal((await ask()).status, 200);
});

test('what has no pages lists so many rows and no more', async (t) => {
  const store = await openStore(t);
  for (const id of ['a', 'b', 'c']) await store.settlements.settle({ entry: entry(await funded(store, 1_000n), id, 7n) });
  const context = { store: async () => store };
  const refusal = { name: 'RefusedError', kind: 'invalid', code: 'too_many_rows' };
  assert.equal((await spendByDay(context, {}, 3)).length, 3);
  await assert.rejects(spendByDay(context, {}, 2), refusal);
  assert.equal((await balances(context, {}, 3)).length, 3);
  await assert.rejects(balances(context, {}, 2), refusal);
});

test('a long answer is written in many turns, as it would be in one', async () => {
  const rows = Array.from({ length: 50_000 }, (_, n) => ({ n, nanos: BigInt(n), of: new Map([['a', n]]), none: undefined }));
  const value = { data: rows, nextCursor: undefined, count: 3, names: new Map([['b', 1n]]) };
  let [isOver, turns] = [false, 0];
  const turn = (): void => {
    turns += 1;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  const text = await jsonTextInSteps(value);
  isOver = true;
  assert.equal(text, jsonText(value));
  assert.ok(turns > 5, `${turns} turns`);
  for (const other of [[1n], 'x', null, new Map([['a', 1n]])]) assert.equal(await jsonTextInSteps(other), jsonText(other));
});
