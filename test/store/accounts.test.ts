/** Accounts: what their fields may be, and which rows of the journal their changes leave; the same for every engine. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NewAccount } from '../../src/store/accounts.ts';
import { JOURNAL_KINDS } from '../../src/store/ledger.ts';
import { VIDEO_WORKER } from '../../src/store/leases.ts';
import { cause, entry, FakeClock, funded, ok, refusal, T0 } from './support/store.ts';
import { eachStore } from './support/stores.ts';

const CLASS = 'is not a class name';
const NAME = 'must be 1 to 128 characters, without control characters and outer spaces';
const CREDIT = 'must not be negative and must be in range';
const AMOUNT = 'must not be zero and must be in range';

eachStore(({ openStore, place }) => {
  test('bad fields of an account are refused by name, with what they must be, and change nothing', async (t) => {
    const store = await openStore(t);
    const { account } = await funded(store, 1n);
    const journal = await store.ledger.journal();
    const cases: readonly (readonly [field: string, Partial<NewAccount>, message: string])[] = [
      ['name', { name: '' }, NAME],
      ['name', { name: ' x' }, NAME],
      ['name', { name: 'x'.repeat(129) }, NAME],
      ['name', { name: 'acct_1' }, 'must not begin like an account id'],
      ['class', { class: '' }, CLASS],
      ['class', { class: '-a' }, CLASS],
      ['class', { class: 'a b' }, CLASS],
      ['class', { class: 'x'.repeat(65) }, CLASS],
      ['credit', { creditNanos: -1n }, CREDIT],
      ['credit', { creditNanos: 2n ** 63n }, CREDIT],
    ];
    for (const [field, fields, message] of cases) {
      const made = await store.accounts.create({ name: 'x', ...fields }, cause());
      assert.deepEqual(refusal(made), { reason: 'invalid', field, message });
      if (fields.class === undefined) continue;
      const changed = await store.accounts.change(account.id, { class: fields.class }, cause());
      assert.deepEqual(refusal(changed), { reason: 'invalid', field, message });
    }
    for (const nanos of [0n, 2n ** 63n, -(2n ** 63n)]) {
      const credited = await store.accounts.credit(account.id, nanos, cause());
      assert.deepEqual(refusal(credited), { reason: 'invalid', field: 'amount', message: AMOUNT });
    }
    for (const refused of [
      await store.accounts.change('acct_none', { class: 'gold' }, cause()),
      await store.accounts.credit('acct_none', 1n, cause()),
    ])
      assert.deepEqual(refusal(refused), { reason: 'unknown_account', account: 'acct_none' });
    assert.deepEqual(await store.ledger.journal(), journal);
    assert.deepEqual(await store.accounts.list(), [account]);
  });

  test('an account that begins without credit has no row of one, and is as it was asked for', async (t) => {
    const clock = new FakeClock();
    const store = await openStore(t, { clock });
    const { id, ...made } = ok(await store.accounts.create({ name: 'bare' }, { id: 'made', by: 'me', note: 'why' }));
    assert.match(id, /^acct_[0-9a-f]{32}$/);
    const fields = { name: 'bare', class: 'default', unlimited: false, disabled: false, createdAtMs: T0, walletNanos: 0n };
    assert.deepEqual(made, fields);
    const rows = (await store.ledger.journal()).filter(({ accountId }) => accountId === id);
    assert.deepEqual(
      rows.map(({ kind, ref, by, note, atMs, nanos }) => [kind, ref, by, note, atMs, nanos]),
      [['account_created', 'made', 'me', 'why', T0, 0n]],
    );
  });

  test('a balance that would leave its range is named, and nothing of the change is kept', async (t) => {
    const store = await openStore(t);
    const most = 2n ** 63n - 1n;
    ok(await store.accounts.create({ name: 'rich', creditNanos: most }, cause()));
    // What all accounts have together, the world outside owes.
    await assert.rejects(store.accounts.create({ name: 'second', creditNanos: most }, cause()), {
      name: 'StoreError',
      code: 'amount_out_of_range',
      message: `the balance of external would be ${-2n * most} nano-dollars`,
    });
    assert.equal(await store.accounts.find('second'), undefined);
    assert.deepEqual((await store.ledger.verify()).differences, []);
  });

  test('every kind of journal row is written, read again under its name, and adds up', async (t) => {
    const clock = new FakeClock();
    const path = await place(t);
    const first = await openStore(t, { path, clock });
    const owner = await funded(first, 1_000n, { subAccount: true });
    const { account, key } = owner;
    void first.settlements.open(entry(owner, 'cut', 0n));
    await first.settlements.flush();
    await first.close();

    const store = await openStore(t, { path, clock });
    ok(await store.accounts.credit(account.id, -1n, cause()));
    ok(await store.accounts.change(account.id, { class: 'gold' }, cause()));
    await store.secrets.rotate(cause());
    ok(await store.adminTokens.create({ name: 'ops', role: 'read' }, cause()));
    ok(await store.adminTokens.delete('ops', cause()));
    const channel = { kind: 'channel', id: 'c' } as const;
    ok(await store.controls.change({ ...channel, journalKind: 'channel_out_of_service', text: '{}' }, cause()));
    ok(await store.controls.change({ ...channel, journalKind: 'channel_in_service' }, cause()));

    const video = { principal: owner, model: 'v', requestJson: '{}', priceNanos: 10n, bodyHash: 'h', nowMs: T0 };
    ok(await store.keys.transfer(key.id, 100n, cause()));
    for (const id of ['paid', 'back']) ok(await store.videos.create({ ...video, id, idempotencyKey: id }));
    const { token } = ok(await store.leases.acquire(VIDEO_WORKER, 'me', 1_000, T0));
    ok(await store.videos.change('paid', { event: 'submit', channelId: 'c', upstreamModel: 'u' }, token, T0));
    ok(await store.videos.change('paid', { event: 'lose', why: 'no answer' }, token, T0));
    ok(await store.videos.resolve('paid', { event: 'succeed', outputUrl: 'https://example.com/v' }, cause(), T0));
    ok(await store.videos.cancel('back', { accountId: account.id, keyId: key.id }, T0));

    // A sub-account is given back whether something is left in it or missing from it.
    ok(await store.keys.change(key.id, { disabled: true }, cause()));
    ok(await store.keys.change(key.id, { disabled: false }, cause()));
    void store.settlements.settle({ entry: entry(owner, 'charged', 7n) });
    await store.settlements.flush();
    ok(await store.keys.change(key.id, { disabled: true }, cause()));

    const kinds = new Set((await store.ledger.journal({ limit: 1_000 })).map(({ kind }) => kind));
    assert.deepEqual([...kinds].sort(), [...JOURNAL_KINDS].sort());
    assert.equal((await store.accounts.find(account.id))?.walletNanos, 1_000n - 1n - 10n - 7n);
    assert.deepEqual((await store.ledger.verify()).differences, []);
  });
});
