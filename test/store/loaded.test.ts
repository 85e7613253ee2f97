/**
 * A rule names the balances and the spend that it needs before it reads or changes them: an engine that must fetch them
 * (PostgreSQL) has nothing else. LMDB reads whatever it is asked for, so the rules are run on it here behind books that do not.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { accountChanges } from '../../src/store/books/accounts.ts';
import type { Bookkeeper, Books } from '../../src/store/books/books.ts';
import { keyChanges } from '../../src/store/books/keys.ts';
import { settleAll } from '../../src/store/books/settlements.ts';
import { videoChanges } from '../../src/store/books/videos.ts';
import { Environment } from '../../src/store/lmdb/environment.ts';
import { createLeases } from '../../src/store/lmdb/leases.ts';
import { createRegistry } from '../../src/store/lmdb/processes.ts';
import { entryText } from '../../src/store/lmdb/row-shapes.ts';
import { VIDEO_WORKER } from '../../src/store/leases.ts';
import { StoreProcess } from '../../src/store/processes.ts';
import { Reservations } from '../../src/store/reservations.ts';
import { QueueRow } from '../../src/store/settlements/row.ts';
import { cause, entry, FakeClock, ok, options, refusal, T0, tempDirectory } from './support/store.ts';

/** The same books for what was loaded, in this transaction; anything else fails the rule. */
function strict(books: Books): Books {
  const balances = new Set<string>();
  const spend = new Set<string>();
  const balance = (name: string): void => assert.ok(balances.has(name), `the balance of ${name} was not loaded`);
  const spent = (keyId: string): void => assert.ok(spend.has(keyId), `the spend of ${keyId} was not loaded`);
  const checks: Partial<Books> = {
    load(names, keyIds = []) {
      for (const name of names) balances.add(name);
      for (const keyId of keyIds) spend.add(keyId);
      return books.load([], []);
    },
    loadExchanges(exchanges) {
      balances.add('revenue');
      for (const { keyId } of exchanges) {
        balances.add(books.payer(keyId).from);
        spend.add(keyId);
      }
      return books.loadExchanges(exchanges);
    },
    balance(name) {
      balance(name);
      return books.balance(name);
    },
    spend(keyId) {
      spent(keyId);
      return books.spend(keyId);
    },
    move(movement) {
      balance(movement.from);
      balance(movement.to);
      books.move(movement);
    },
    addSpend(keyId, nanos, atMs) {
      spent(keyId);
      books.addSpend(keyId, nanos, atMs);
    },
    addHeld(keyId, nanos) {
      spent(keyId);
      books.addHeld(keyId, nanos);
    },
  };
  return new Proxy(books, {
    get(target, name) {
      const value: unknown = Reflect.get(checks, name) ?? Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

async function open(t: TestContext) {
  const environment = await Environment.open(options(tempDirectory(t), { clock: new FakeClock() }), {});
  const process = await StoreProcess.register(createRegistry(environment));
  t.after(async () => {
    await process.leave();
    await environment.close();
  });
  const keeper: Bookkeeper = {
    options: environment.options,
    follow: (rule) => environment.follow((books) => rule(strict(books))),
    requireHealth: () => environment.requireHealth(),
  };
  const { token } = ok(await createLeases(environment, process).acquire(VIDEO_WORKER, 'me', 1_000, T0));
  return { keeper, token, processId: process.id };
}

test('accounts, keys, sub-accounts, videos and settlements load what they read and change', async (t) => {
  const { keeper, token, processId } = await open(t);
  const [accounts, keys] = [accountChanges(keeper), keyChanges(keeper)];
  const videos = videoChanges(keeper, new Reservations());
  const account = ok(await accounts.create({ name: 'ann', creditNanos: 1_000n }, cause('made')));
  assert.deepEqual(ok(await accounts.create({ name: 'ann', creditNanos: 1_000n }, cause('made'))), account);
  for (const nanos of [5n, -5n]) {
    const walletNanos = nanos > 0n ? 1_005n : 1_000n;
    for (let n = 0; n < 2; n += 1)
      assert.equal(ok(await accounts.credit(account.id, nanos, cause(`credit ${nanos}`))).walletNanos, walletNanos);
  }
  for (let n = 0; n < 2; n += 1) ok(await accounts.change(account.id, { class: 'gold' }, cause('change')));

  const limits = { daily: 10_000n };
  const { key } = ok(await keys.create({ accountId: account.id, name: 'k', subAccount: true, limits }, cause()));
  for (let n = 0; n < 2; n += 1) assert.equal(ok(await keys.transfer(key.id, 300n, cause('give'))).nanos, 300n);
  assert.equal(ok(await keys.transfer(key.id, -50n, cause())).nanos, 250n);
  assert.equal(refusal(await keys.transfer(key.id, 10_000n, cause())).reason, 'insufficient_balance');

  const principal = { account, key };
  const common = { principal, model: 'v', requestJson: '{}', priceNanos: 100n, bodyHash: 'h', nowMs: T0 };
  for (const id of ['paid', 'back']) ok(await videos.create({ ...common, id, idempotencyKey: id }));
  ok(await videos.change('paid', { event: 'submit', channelId: 'c', upstreamModel: 'u' }, token, T0));
  ok(await videos.change('paid', { event: 'succeed', outputUrl: 'https://example.com/v' }, token, T0));
  ok(await videos.cancel('back', { accountId: account.id, keyId: key.id }, T0));

  const row = new QueueRow('ex');
  row.entry = entry(principal, 'ex', 200n);
  row.text = entryText(row.entry);
  const settled = await keeper.follow((books) => settleAll(books, [row], processId, keeper.options.clock));
  assert.deepEqual(settled, [{ settled: true, chargedNanos: 200n }]);
  // What is missing from the sub-account is taken from the wallet.
  ok(await keys.change(key.id, { disabled: true }, cause()));
  assert.equal(ok(await accounts.change(account.id, { class: 'iron' }, cause())).walletNanos, 1_000n - 100n - 200n);
});
