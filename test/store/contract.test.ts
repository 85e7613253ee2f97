/** The store, part by part, as its callers see it; the same for every engine. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Principal } from '../../src/store/keys.ts';
import type { Result } from '../../src/store/result.ts';
import { cause, entry, FakeClock, funded, ok, refusal, T0 } from './support/store.ts';
import { eachStore } from './support/stores.ts';

const clean = { differences: [] as unknown[] };

function openOf(
  { account, key }: { readonly account: { readonly id: string }; readonly key: { readonly id: string } },
  exchangeId: string,
) {
  return {
    exchangeId,
    requestId: `req_${exchangeId}`,
    accountId: account.id,
    keyId: key.id,
    endpoint: 'chat',
    model: 'm',
    stream: true,
    startedAtMs: T0,
  };
}

eachStore(({ openStore, place }) => {
  test('an account is created with credit, credited, corrected and found by id and by name', async (t) => {
    const store = await openStore(t);
    const account = ok(await store.accounts.create({ name: 'Ann', creditNanos: 5n }, cause()));
    assert.equal(ok(await store.accounts.credit(account.id, 10n, cause())).walletNanos, 15n);
    assert.equal(ok(await store.accounts.credit(account.id, -20n, cause())).walletNanos, -5n);
    assert.equal((await store.accounts.find('Ann'))?.walletNanos, -5n);
    assert.equal((await store.accounts.find(account.id))?.name, 'Ann');
    assert.equal(refusal(await store.accounts.create({ name: 'Ann' }, cause())).reason, 'name_taken');
    // Accounts are found by either: a name must not be taken for an id.
    assert.deepEqual(refusal(await store.accounts.create({ name: `acct_${'0'.repeat(32)}` }, cause())), {
      reason: 'invalid',
      field: 'name',
      message: 'must not begin like an account id',
    });
    assert.deepEqual((await store.ledger.verify()).differences, clean.differences);
  });

  test('a cause that comes again changes nothing again, and one that was another change is refused', async (t) => {
    const clock = new FakeClock();
    const store = await openStore(t, { clock });
    const owner = await funded(store, 1_000n, { subAccount: true });
    const other = await funded(store, 1_000n, { subAccount: true });
    const [account, key] = [owner.account.id, owner.key.id];
    const { accounts, keys } = store;
    type Outcome = Result<unknown, { readonly reason: string }>;
    type Change = (id: string) => Promise<Outcome>;
    const changes: Record<string, readonly [again: Change, another: Change]> = {
      'change an account': [
        (id) => accounts.change(account, { class: 'gold' }, cause(id)),
        (id) => accounts.change(other.account.id, { class: 'gold' }, cause(id)),
      ],
      'change it otherwise': [
        (id) => accounts.change(account, { class: 'gold' }, cause(id)),
        (id) => accounts.change(account, { class: 'iron' }, cause(id)),
      ],
      credit: [(id) => accounts.credit(account, 5n, cause(id)), (id) => accounts.credit(other.account.id, 5n, cause(id))],
      correct: [(id) => accounts.credit(account, -5n, cause(id)), (id) => accounts.credit(account, -6n, cause(id))],
      'give a sub-account': [(id) => keys.transfer(key, 7n, cause(id)), (id) => keys.transfer(other.key.id, 7n, cause(id))],
      'give it another amount': [(id) => keys.transfer(key, 7n, cause(id)), (id) => keys.transfer(key, 8n, cause(id))],
      'take from a sub-account': [(id) => keys.transfer(key, -2n, cause(id)), (id) => keys.transfer(key, 2n, cause(id))],
      'change a key': [
        (id) => keys.change(key, { name: 'new' }, cause(id)),
        (id) => keys.change(key, { name: 'newer' }, cause(id)),
      ],
      'change when a key expires, counted from the change': [
        (id) => keys.change(key, { expiresInMs: 60_000 }, cause(id)),
        (id) => keys.change(key, { expiresInMs: 60_001 }, cause(id)),
      ],
      'create an account': [
        (id) => accounts.create({ name: 'new', class: 'gold', creditNanos: 3n }, cause(id)),
        (id) => accounts.create({ name: 'new', class: 'gold', creditNanos: 4n }, cause(id)),
      ],
      'create an account without credit': [
        (id) => accounts.create({ name: 'poor', unlimited: true }, cause(id)),
        (id) => accounts.create({ name: 'poor' }, cause(id)),
      ],
      'disable a key with a sub-account': [
        (id) => keys.change(key, { disabled: true }, cause(id)),
        (id) => keys.change(other.key.id, { disabled: true }, cause(id)),
      ],
    };
    for (const [what, [again, another]] of Object.entries(changes)) {
      const first = ok(await again(`once: ${what}`));
      const journal = await store.ledger.journal();
      const [wallet, sub] = [await accounts.find(account), await keys.balance(key)];
      clock.advance(1000);
      assert.deepEqual(ok(await again(`once: ${what}`)), first, what);
      assert.equal(refusal(await another(`once: ${what}`)).reason, 'cause_reused', what);
      assert.deepEqual(await store.ledger.journal(), journal, what);
      assert.deepEqual([await accounts.find(account), await keys.balance(key)], [wallet, sub], what);
    }
    // What was made cannot be shown again: a key is seen once.
    ok(await accounts.create({ name: 'made', creditNanos: 1n }, cause('made')));
    ok(await keys.create({ accountId: account, name: 'made' }, cause('made')));
    const remade: Outcome[] = [
      await accounts.create({ name: 'made too' }, cause('made')),
      await accounts.create({ name: 'made too', creditNanos: 5n }, cause('once: credit')),
      await keys.create({ accountId: account, name: 'made' }, cause('made')),
    ];
    for (const outcome of remade) assert.equal(refusal(outcome).reason, 'cause_reused');
    assert.equal(await accounts.find('made too'), undefined);
    assert.deepEqual((await store.ledger.verify()).differences, []);
  });

  test('V9: amounts out of range are refused and change nothing', async (t) => {
    const store = await openStore(t);
    const { account } = await funded(store, 2n ** 63n - 10n);
    assert.equal(refusal(await store.accounts.credit(account.id, 10n, cause())).reason, 'invalid');
    assert.equal(refusal(await store.accounts.credit(account.id, 0n, cause())).reason, 'invalid');
    assert.equal(refusal(await store.accounts.credit(account.id, 2n ** 63n, cause())).reason, 'invalid');
    assert.deepEqual((await store.ledger.verify()).differences, []);
  });

  test('V11: a key is shown once, found by its token, and refused when disabled, expired or of a disabled account', async (t) => {
    const clock = new FakeClock();
    const store = await openStore(t, { clock });
    const { key, secret, account } = await funded(store, 1n, { expiresAtMs: T0 + 1000 });
    assert.match(secret, /^sk-mizu-[A-Za-z0-9_-]{43}$/);
    assert.doesNotMatch(
      JSON.stringify(await store.keys.list(), (_, value) => (typeof value === 'bigint' ? String(value) : value)),
      new RegExp(secret),
    );
    assert.equal(ok(await store.keys.authenticate(secret, T0)).key.id, key.id);
    assert.equal(refusal(await store.keys.authenticate(secret, T0 + 1000)).reason, 'expired');
    for (const wrong of ['', 'x', `${secret}x`, secret.slice(0, -1), 'a'.repeat(5000), '\u0000']) {
      assert.equal(refusal(await store.keys.authenticate(wrong, T0)).reason, 'unknown');
    }
    ok(await store.keys.change(key.id, { disabled: true }, cause()));
    assert.equal(refusal(await store.keys.authenticate(secret, T0)).reason, 'disabled');
    ok(await store.keys.change(key.id, { disabled: false, expiresAtMs: null }, cause()));
    assert.equal(ok(await store.keys.authenticate(secret, T0 + 5000)).key.expiresAtMs, undefined);
    ok(await store.accounts.change(account.id, { disabled: true }, cause()));
    assert.equal(refusal(await store.keys.authenticate(secret, T0)).reason, 'account_disabled');
  });

  test('bad fields of a key are refused by name and change nothing', async (t) => {
    const store = await openStore(t);
    const { key, account } = await funded(store, 1n);
    const before = (await store.ledger.journal()).length;
    const known = new Set(['a']);
    const cases: [string, Parameters<typeof store.keys.change>[1]][] = [
      ['ips[1]', { ips: ['10.0.0.0/8', '10.0.0.0/33'] }],
      ['ips[0]', { ips: ['10.0.0/8'] }],
      ['ips', { ips: [] }],
      ['models[0]', { models: ['b'], knownModels: known }],
      ['limits.daily', { limits: { daily: 0n } }],
      ['limits.total', { limits: { total: -1n } }],
      ['expiresAtMs', { expiresAtMs: 5.5 }],
      ['name', { name: 'a\nb' }],
    ];
    for (const [field, changes] of cases) {
      const found = refusal(await store.keys.change(key.id, changes, cause()));
      assert.equal(found.reason === 'invalid' && found.field, field);
    }
    assert.equal(refusal(await store.keys.create({ accountId: 'acct_none', name: 'x' }, cause())).reason, 'unknown_account');
    assert.equal((await store.ledger.journal()).length, before);
    assert.deepEqual(await store.keys.find(key.id), key);
    assert.equal((await store.keys.list(account.id)).length, 1);
  });

  test('a sub-account is filled from the wallet, pays alone, and returns its signed balance when its key is disabled', async (t) => {
    const store = await openStore(t);
    const owner = await funded(store, 100n, { subAccount: true });
    const { key, account } = owner;
    assert.equal(refusal(await store.keys.transfer(key.id, 101n, cause())).reason, 'insufficient_balance');
    assert.deepEqual(refusal(await store.admission.admit(owner, 1n, T0)), {
      reason: 'insufficient_balance',
      source: 'sub_account',
    });
    assert.equal(ok(await store.keys.transfer(key.id, 100n, cause())).nanos, 100n, 'to the last of it');
    assert.equal(ok(await store.keys.transfer(key.id, -60n, cause())).nanos, 40n);
    await store.settlements.settle({ entry: entry(owner, 'x1', 55n) });
    assert.deepEqual(await store.keys.balance(key.id), { source: 'sub_account', nanos: -15n, unlimited: false });
    assert.equal((await store.accounts.find(account.id))?.walletNanos, 60n);
    ok(await store.keys.change(key.id, { disabled: true }, cause()));
    assert.equal((await store.accounts.find(account.id))?.walletNanos, 45n);
    await store.settlements.settle({ entry: entry(owner, 'x2', 5n) });
    assert.deepEqual(await store.keys.balance(key.id), { source: 'wallet', nanos: 40n, unlimited: false });
    assert.equal(refusal(await store.keys.transfer(key.id, 1n, cause())).reason, 'key_disabled');
    const plain = ok(await store.keys.create({ accountId: account.id, name: 'plain', secret: 'chosen-secret' }, cause())).key;
    assert.equal(refusal(await store.keys.transfer(plain.id, 1n, cause())).reason, 'no_sub_account');
    const taken = await store.keys.create({ accountId: account.id, name: 'twin', secret: 'chosen-secret' }, cause());
    assert.deepEqual(refusal(taken), { reason: 'invalid', field: 'secret', message: 'is taken' });
    const empty = ok(await store.keys.create({ accountId: account.id, name: 'empty', subAccount: true }, cause())).key;
    ok(await store.keys.change(empty.id, { disabled: true }, cause('nothing to return')));
    assert.deepEqual(
      (await store.ledger.journal({ ref: 'nothing to return' })).map(({ kind }) => kind),
      ['key_changed'],
    );
    ok(await store.accounts.change(account.id, { unlimited: true }, cause()));
    const own = ok(await store.keys.create({ accountId: account.id, name: 'own', subAccount: true }, cause())).key;
    assert.deepEqual(await store.keys.balance(own.id), { source: 'sub_account', nanos: 0n, unlimited: false });
    assert.equal((await store.keys.balance(plain.id))?.unlimited, true);
    assert.deepEqual((await store.ledger.verify()).differences, []);

    // A key that is replaced ends in the transaction that makes the next one: of several at once one does it, and moves the money.
    const { account: next, key: old } = await funded(store, 1_000n, { subAccount: true });
    ok(await store.keys.transfer(old.id, 400n, cause()));
    const fresh = { accountId: next.id, name: 'next', subAccount: true };
    const replaces = { id: old.id, changes: { disabled: true }, note: 'leaked' };
    const many = await Promise.all([1, 2, 3].map((n) => store.keys.create({ ...fresh, replaces }, cause(`replace ${n}`))));
    const [made, ...late] = many.toSorted((a, b) => Number(b.ok) - Number(a.ok));
    assert.ok(made !== undefined);
    assert.deepEqual(
      late.map((one) => refusal(one).reason),
      ['key_disabled', 'key_disabled'],
    );
    assert.equal((await store.keys.balance(ok(made).key.id))?.nanos, 400n);
    const unknown = await store.keys.create({ ...fresh, replaces: { ...replaces, id: 'key_none' } }, cause());
    assert.equal(refusal(unknown).reason, 'unknown_key');
    assert.equal((await store.keys.list(next.id)).length, 2, 'nothing is left of what was refused');
    assert.deepEqual((await store.ledger.verify()).differences, clean.differences);
  });

  test('an unlimited account is never debited, and its usage is journaled', async (t) => {
    const store = await openStore(t);
    const owner = await funded(store, 3n);
    ok(await store.accounts.change(owner.account.id, { unlimited: true }, cause()));
    const principal = ok(await store.keys.authenticate(owner.secret, T0));
    const reservation = ok(await store.admission.admit(principal, 10n ** 12n, T0));
    await store.settlements.settle({ entry: entry(owner, 'u1', 500n), reservation });
    assert.equal((await store.accounts.find(owner.account.id))?.walletNanos, 3n);
    assert.equal((await store.spend.spend(owner.key.id, Date.now())).total, 500n);
    assert.deepEqual((await store.ledger.verify()).differences, []);
  });

  test('one exchange settles once, whatever is said twice, and is found by each of its ids', async (t) => {
    const store = await openStore(t);
    const owner = await funded(store, 1000n);
    const meters = new Map([['web_search', 2]]);
    const row = entry(owner, 'e1', 10n, { clientRequestId: 'mine', usage: { input: 5, output: 2, meters } });
    const [first, second] = await Promise.all([
      store.settlements.settle({ entry: row }),
      store.settlements.settle({ entry: row }),
    ]);
    assert.deepEqual(first, { settled: true, chargedNanos: 10n });
    assert.deepEqual(second, { settled: false, reason: 'already_settled' });
    for (const id of ['e1', 'req_e1', 'mine']) assert.equal((await store.requestLog.find(id))[0]?.exchangeId, 'e1');
    assert.deepEqual((await store.requestLog.find('e1'))[0]?.usage, { input: 5, output: 2, meters });
    assert.equal((await store.accounts.find(owner.account.id))?.walletNanos, 990n);
    const [day] = await store.spend.usageByDay(owner.key.id);
    assert.deepEqual([day?.requests, day?.inputTokens, day?.outputTokens, day?.chargedNanos], [1, 5, 2, 10n]);
    assert.deepEqual((await store.ledger.verify()).differences, []);
  });

  test('rows flush together within the window; a row that is wrong fails alone and aloud', async (t) => {
    const clock = new FakeClock();
    const problems: string[] = [];
    const store = await openStore(t, { clock, flushMs: 10, onProblem: ({ what }) => problems.push(what) });
    const owner = await funded(store, 1000n);
    const stranger = { account: owner.account, key: { ...owner.key, id: 'key_none' } };
    const good = store.settlements.settle({ entry: entry(owner, 'g1', 1n) });
    const bad = store.settlements.settle({ entry: entry(stranger, 'b1', 1n) });
    const also = store.settlements.settle({ entry: entry(owner, 'g2', 2n) });
    assert.equal(store.settlements.pending, 3);
    clock.advance(10);
    await assert.rejects(async () => bad, { name: 'StoreError', code: 'corrupt' });
    assert.deepEqual(
      [await good, await also].map((done) => done.settled),
      [true, true],
    );
    assert.match(problems.join(), /settlement_lost: .*"b1"/);
    assert.equal((await store.spend.spend(owner.key.id, clock.now())).total, 3n);
    // Its window is over, so it is being written: who flushes now waits for that.
    void store.settlements.settle({ entry: entry(owner, 'g3', 4n) });
    clock.advance(10);
    await store.settlements.flush();
    assert.equal((await store.spend.spend(owner.key.id, clock.now())).total, 7n);
  });

  test('an exchange whose settlement was refused is still open, until one is accepted', async (t) => {
    const store = await openStore(t, { clock: new FakeClock() });
    const owner = await funded(store, 1000n);
    const stranger = { account: owner.account, key: { ...owner.key, id: 'key_none' } };
    const opened = store.settlements.open(entry(owner, 'o1', 0n));
    await store.settlements.flush();
    await opened;
    const refused = store.settlements.settle({ entry: entry(stranger, 'o1', 1n) });
    const rejected = assert.rejects(async () => refused, { name: 'StoreError', code: 'corrupt' });
    await store.settlements.flush();
    await rejected;
    const accepted = store.settlements.settle({ entry: entry(owner, 'o1', 1n) });
    await store.settlements.flush();
    assert.equal((await accepted).settled, true);
    assert.deepEqual((await store.ledger.verify()).differences, []);
  });

  test('who waits until the queue has caught up reads what was settled before, and no row that came later is waited for', async (t) => {
    const store = await openStore(t, { clock: new FakeClock(), flushMs: 1000 });
    const owner = await funded(store, 1000n);
    const wallet = async () => (await store.accounts.find(owner.account.id))?.walletNanos;
    await store.settlements.caughtUp();
    for (let n = 0; n < 600; n++) void store.settlements.settle({ entry: entry(owner, `c${n}`, 1n) });
    const caught = store.settlements.caughtUp();
    const late = caught.then(() => void store.settlements.settle({ entry: entry(owner, 'late', 1n) }));
    await caught;
    assert.equal(await wallet(), 400n);
    await late;
    await store.settlements.caughtUp();
    assert.equal(await wallet(), 399n);
  });

  test('an exchange settled before its opening was flushed is never written as open', async (t) => {
    const clock = new FakeClock();
    const store = await openStore(t, { clock });
    const owner = await funded(store, 1000n);
    const opened = store.settlements.open(openOf(owner, 'o1'));
    const settled = store.settlements.settle({ entry: entry(owner, 'o1', 4n) });
    assert.equal(store.settlements.pending, 1);
    await store.settlements.flush();
    await opened;
    assert.equal((await settled).settled, true);
  });

  test('an exchange settles once whenever its settlement comes: with its opening, while that is written, or twice', async (t) => {
    const store = await openStore(t, { clock: new FakeClock() });
    const owner = await funded(store, 1000n);
    const { settlements } = store;
    const settle = (id: string) => settlements.settle({ entry: entry(owner, id, 7n) });
    void settlements.open(openOf(owner, 'twice'));
    const twice = [settle('twice'), settle('twice')];
    void settlements.open(openOf(owner, 'meanwhile'));
    const flushed = settlements.flush();
    const meanwhile = settle('meanwhile');
    await flushed;
    await settlements.flush();
    assert.deepEqual(
      (await Promise.all([...twice, meanwhile])).map(({ settled }) => settled),
      [true, false, true],
    );
    assert.equal((await store.accounts.find(owner.account.id))?.walletNanos, 986n);
    await store.close();
  });

  test('F34, F35: windows roll over at fixed UTC hours and days; total never', async (t) => {
    const clock = new FakeClock();
    const store = await openStore(t, { clock });
    const owner = await funded(store, 1000n, { limits: { hourly: 10n, daily: 15n } });
    const settle = async (id: string, nanos: bigint) => {
      const settled = store.settlements.settle({ entry: entry(owner, id, nanos) });
      await store.settlements.flush();
      return settled;
    };
    const admit = () => store.admission.admit(owner, 0n, clock.now());
    await settle('w1', 10n);
    assert.deepEqual(refusal(await admit()), { reason: 'spend_limit_reached', window: 'hourly' });
    clock.advance(29 * 60_000 + 59_999);
    assert.equal((await admit()).ok, false);
    clock.advance(1);
    ok(await admit());
    await settle('w2', 5n);
    assert.deepEqual(refusal(await admit()), { reason: 'spend_limit_reached', window: 'daily' });
    clock.advance(11 * 3_600_000);
    ok(await admit());
    assert.deepEqual(await store.spend.spend(owner.key.id, clock.now()), { total: 15n, hourly: 0n, daily: 0n, held: 0n });
    const days = await store.spend.usageByDay(owner.key.id, { from: '2026-03-01', to: '2026-03-01' });
    assert.deepEqual(
      days.map(({ day, chargedNanos }) => [day, chargedNanos]),
      [['2026-03-01', 15n]],
    );
  });

  test('the log is listed newest first, paged, followed, bounded by time, and pruned', async (t) => {
    const clock = new FakeClock();
    const store = await openStore(t, { clock });
    const owner = await funded(store, 1000n);
    const other = await funded(store, 1000n);
    for (let n = 1; n <= 10; n += 1) {
      void store.settlements.settle({ entry: entry(n % 2 === 0 ? owner : other, `l${n}`, 1n) });
      await store.settlements.flush();
      clock.advance(1000);
    }
    const ids = (rows: readonly { readonly exchangeId: string }[]) => rows.map(({ exchangeId }) => exchangeId).join(' ');
    assert.equal(ids(await store.requestLog.list({ limit: 3 })), 'l10 l9 l8');
    assert.equal(ids(await store.requestLog.list({ limit: 2, before: 8 })), 'l7 l6');
    assert.equal(ids(await store.requestLog.list({ after: 7 })), 'l8 l9 l10');
    assert.equal(ids(await store.requestLog.list({ keyId: owner.key.id })), 'l10 l8 l6 l4 l2');
    assert.equal(ids(await store.requestLog.list({ keyId: owner.key.id, after: 4 })), 'l6 l8 l10');
    assert.deepEqual(
      await store.requestLog.list({ keyId: `${owner.key.id}\u0000` }),
      [],
      'another word, though no engine can hold it',
    );
    assert.deepEqual(await store.requestLog.list({ accountId: `\u0000${owner.account.id}` }), []);
    assert.equal(ids(await store.requestLog.list({ sinceMs: T0 + 2000, untilMs: T0 + 5000 })), 'l5 l4 l3');
    assert.equal(await store.requestLog.head(), 10);
    assert.equal(await store.requestLog.prune(T0 + 4000), 4);
    assert.equal(ids(await store.requestLog.list({ sinceMs: 0 })), 'l10 l9 l8 l7 l6 l5');
    assert.equal(ids(await store.requestLog.list({ sinceMs: T0 + 6000 })), 'l10 l9 l8 l7');
    assert.deepEqual(await store.requestLog.find('l1'), []);
    assert.deepEqual((await store.ledger.verify()).differences, []);
  });

  test('words that no engine keeps as they are make the same cause, the same id and a journal that adds up', async (t) => {
    const store = await openStore(t);
    const { account } = await funded(store, 10n);
    const odd = { id: 'a\u0000b\ud800', by: 'c\u0000\udc00', note: '\ud800\u0000d' };
    for (let n = 0; n < 2; n += 1) assert.equal(ok(await store.accounts.credit(account.id, 5n, odd)).walletNanos, 15n);
    const [row, ...more] = await store.ledger.journal({ ref: odd.id });
    assert.deepEqual([row?.ref, row?.by, row?.note], ['a\ufffdb\ufffd', 'c\ufffd\ufffd', '\ufffd\ufffdd']);
    assert.deepEqual(more, []);
    assert.deepEqual((await store.ledger.verify()).differences, []);
  });

  test('a request is found by the very id that its client gave it, also where no engine keeps it as it is', async (t) => {
    const store = await openStore(t);
    const owner = await funded(store, 10n);
    const clientRequestId = 'a\u0000b\ud800';
    void store.settlements.settle({ entry: entry(owner, 'ex_odd', 1n, { clientRequestId }) });
    await store.settlements.flush();
    const found = async (id: string) => (await store.requestLog.find(id)).map(({ exchangeId }) => exchangeId);
    assert.deepEqual([await found(clientRequestId), await found('a\u0000b')], [['ex_odd'], []]);
    assert.equal(await store.requestLog.prune(Number.MAX_SAFE_INTEGER), 1);
    assert.deepEqual(await found(clientRequestId), []);
  });

  test('times never go back along the log, whatever the clock does', async (t) => {
    const clock = new FakeClock();
    const store = await openStore(t, { clock });
    const owner = await funded(store, 1000n);
    for (const [id, ms] of [
      ['first', 5_000],
      ['back', -4_000],
      ['later', 8_000],
    ] as const) {
      clock.advance(ms);
      void store.settlements.settle({ entry: entry(owner, id, 1n) });
      await store.settlements.flush();
    }
    const rows = await store.requestLog.list({ after: 0 });
    assert.deepEqual(
      rows.map(({ exchangeId, loggedAtMs }) => [exchangeId, loggedAtMs - T0]),
      [
        ['first', 5_000],
        ['back', 5_000],
        ['later', 9_000],
      ],
    );
    assert.equal((await store.requestLog.list({ sinceMs: T0 + 5_000 })).length, 3);
    assert.equal(await store.requestLog.prune(T0 + 5_000), 0, 'what is as old as that stays');
    assert.equal(await store.requestLog.prune(T0 + 5_001), 2);
  });

  test('F28: 64 at once on a balance for a few: what is in flight bounds the overshoot', async (t) => {
    const store = await openStore(t);
    const owner = await funded(store, 1000n);
    const admitted = await Promise.all(
      Array.from({ length: 64 }, async (_, n) => {
        const admission = await store.admission.admit(owner, 100n, Date.now());
        if (!admission.ok) return false;
        await store.settlements.settle({ entry: entry(owner, `r${n}`, 100n), reservation: admission.value });
        return true;
      }),
    );
    assert.equal(admitted.filter(Boolean).length, 10);
    assert.equal((await store.accounts.find(owner.account.id))?.walletNanos, 0n);
    assert.equal(store.admission.reserved(owner.key.id), 0n);
    assert.deepEqual((await store.ledger.verify()).differences, []);
  });

  test('64 at once that all cost more than estimated: over by at most Σ max(0, C − E) and the last one', async (t) => {
    const store = await openStore(t);
    const owner = await funded(store, 5000n, { limits: { total: 700n } });
    const charges = await Promise.all(
      Array.from({ length: 64 }, async (_, n) => {
        const admission = await store.admission.admit(owner, 60n, Date.now());
        if (!admission.ok) return 0n;
        await store.settlements.settle({ entry: entry(owner, `o${n}`, 90n), reservation: admission.value });
        return 90n;
      }),
    );
    const count = BigInt(charges.filter((nanos) => nanos > 0n).length);
    const spent = (await store.spend.spend(owner.key.id, Date.now())).total;
    assert.equal(spent, count * 90n);
    assert.ok(spent <= 700n + 90n + count * 30n, `${spent} spent by ${count}`);
    assert.deepEqual(refusal(await store.admission.admit(owner, 1n, Date.now())), {
      reason: 'spend_limit_reached',
      window: 'total',
    });
  });

  test('F35: a reservation that is released gives its room back, once', async (t) => {
    const store = await openStore(t);
    const owner = await funded(store, 100n);
    const first = ok(await store.admission.admit(owner, 100n, Date.now()));
    assert.equal(refusal(await store.admission.admit(owner, 1n, Date.now())).reason, 'insufficient_balance');
    first.release();
    first.release();
    first.handOver(50n);
    assert.equal(store.admission.reserved(owner.key.id), 0n);
    ok(await store.admission.admit(owner, 1n, Date.now()));
  });

  test('what is in flight is all that has not ended: each ending gives back its own, and a charge counts until it is on disk', async (t) => {
    const store = await openStore(t);
    const owner = await funded(store, 101n);
    const other = {
      ...owner,
      key: ok(await store.keys.create({ accountId: owner.account.id, name: 'other', limits: { hourly: 61n } }, cause())).key,
    };
    const admit = (who: Principal, nanos: bigint) => store.admission.admit(who, nanos, Date.now());
    const first = ok(await admit(owner, 40n));
    const second = ok(await admit(other, 30n));
    const third = ok(await admit(other, 30n));
    // One nano-dollar is left of the wallet and of the limit, and lets one more in.
    const last = ok(await admit(other, 1n));
    assert.equal(refusal(await admit(owner, 0n)).reason, 'insufficient_balance');
    first.release();
    assert.equal(refusal(await admit(other, 0n)).reason, 'spend_limit_reached');
    last.release();
    const settled = store.settlements.settle({ entry: entry(other, 's', 31n), reservation: second });
    third.release();
    assert.equal(store.admission.reserved(owner.key.id), 0n);
    assert.equal(store.admission.reserved(other.key.id), 31n, 'the charge, and no estimate');
    await settled;
    assert.equal(store.admission.reserved(other.key.id), 0n);
    for (const rest of [69n, 1n]) ok(await admit(owner, rest));
    assert.equal(refusal(await admit(owner, 0n)).reason, 'insufficient_balance');
  });

  test('each limit of a key holds alone', async (t) => {
    const store = await openStore(t);
    for (const window of ['total', 'hourly', 'daily'] as const) {
      const owner = await funded(store, 100n, { limits: { [window]: 10n } });
      const first = ok(await store.admission.admit(owner, 10n, Date.now()));
      assert.deepEqual(refusal(await store.admission.admit(owner, 0n, Date.now())), { reason: 'spend_limit_reached', window });
      first.release();
      ok(await store.admission.admit(owner, 0n, Date.now()));
    }
  });

  test('F32: a lease has one holder; its token rises and fences', async (t) => {
    const store = await openStore(t);
    const first = ok(await store.leases.acquire('job', 'a', 100, 0));
    assert.deepEqual(first, { name: 'job', holder: 'a', token: first.token, expiresAtMs: 100 });
    assert.equal(ok(await store.leases.acquire('job', 'a', 100, 50)).token, first.token);
    const held = { ...first, expiresAtMs: 150 };
    assert.deepEqual(refusal(await store.leases.acquire('job', 'b', 100, 149)), { reason: 'held', lease: held });
    assert.deepEqual(ok(await store.leases.renew('job', first.token, 100, 50)), held);
    // Expired, it is another lease, also for who had it: what was begun under the old one is fenced off.
    const renewed = ok(await store.leases.acquire('other', 'a', 100, 0));
    assert.ok(ok(await store.leases.acquire('other', 'a', 100, 100)).token > renewed.token);
    const second = ok(await store.leases.acquire('job', 'b', 100, 151));
    await store.leases.release('job', first.token);
    assert.equal(refusal(await store.leases.acquire('job', 'c', 100, 152)).reason, 'held', 'released by who has it not');
    assert.ok(second.token > first.token);
    assert.equal(refusal(await store.leases.renew('job', first.token, 100, 152)).reason, 'lost');
    await store.leases.release('job', second.token);
    assert.equal((await store.leases.renew('job', second.token, 100, 153)).ok, false);
    assert.ok(ok(await store.leases.acquire('job', 'c', 100, 154)).token > second.token);
  });

  test('the envelope secret outlives the process; a rotated one still opens', async (t) => {
    const path = await place(t);
    const first = await openStore(t, { path });
    const old = first.secrets.current();
    assert.equal(old.bytes.length, 32);
    const next = await first.secrets.rotate(cause());
    assert.equal(next.id, old.id + 1);
    await first.close();
    const again = await openStore(t, { path });
    assert.deepEqual(again.secrets.current(), next);
    assert.deepEqual(again.secrets.byId(old.id), old);
    assert.equal(again.secrets.byId(9), undefined);
  });

  test('a rotation of the secret is made once for its cause', async (t) => {
    const store = await openStore(t);
    const [first, again] = [await store.secrets.rotate(cause('rotate: 1')), await store.secrets.rotate(cause('rotate: 1'))];
    assert.deepEqual([again.id, Buffer.from(again.bytes)], [first.id, Buffer.from(first.bytes)]);
    assert.equal((await store.secrets.rotate(cause('rotate: 2'))).id, first.id + 1);
    assert.equal(store.secrets.current().id, first.id + 1);
    assert.deepEqual((await store.ledger.verify()).differences, clean.differences);
  });

  test('there are 255 envelope secrets at the most, which a further rotation says and changes nothing', async (t) => {
    const store = await openStore(t);
    for (let id = 2; id <= 255; id += 1) assert.equal((await store.secrets.rotate(cause())).id, id);
    await assert.rejects(store.secrets.rotate(cause()), {
      name: 'StoreError',
      code: 'amount_out_of_range',
      message: 'there are 255 envelope secrets: no id is left',
    });
    assert.equal(store.secrets.current().id, 255);
    assert.deepEqual(await store.ledger.verify(), { rows: 255, differences: [] });
  });

  test('a deleted key is refused for good, pays back its sub-account, and is still found', async (t) => {
    const store = await openStore(t);
    const { account, key } = await funded(store, 1_000n, { subAccount: true });
    ok(await store.keys.transfer(key.id, 400n, cause()));
    const deleted = ok(await store.keys.change(key.id, { deleted: true }, cause('delete: 1')));
    assert.deepEqual([deleted.disabled, typeof deleted.deletedAtMs], [true, 'number']);
    assert.equal((await store.accounts.find(account.id))?.walletNanos, 1_000n);
    assert.deepEqual(ok(await store.keys.change(key.id, { deleted: true }, cause('delete: 1'))), deleted);
    for (const changes of [{ deleted: true }, { disabled: false }, { name: 'back' }] as const)
      assert.equal(refusal(await store.keys.change(key.id, changes, cause())).reason, 'unknown_key');
    assert.deepEqual(await store.keys.find(key.id), deleted);
    assert.deepEqual(await store.keys.list(account.id), [deleted]);
    assert.deepEqual((await store.ledger.verify()).differences, clean.differences);
  });

  test('F33: after close every part refuses with StoreError', async (t) => {
    const store = await openStore(t);
    const owner = await funded(store, 5n);
    await store.close();
    assert.equal(store.health().healthy, false);
    await assert.rejects(store.accounts.list(), { code: 'closed' });
    await assert.rejects(async () => store.settlements.settle({ entry: entry(owner, 'late', 1n) }), { code: 'closed' });
    await assert.rejects(async () => store.admission.admit(owner, 1n, T0), { code: 'closed' });
  });

  test('F30: exchanges left open by a dead process are closed free of charge; those of a living one are left alone', async (t) => {
    const path = await place(t);
    const clock = new FakeClock();
    const first = await openStore(t, { path, clock });
    const owner = await funded(first, 1000n);
    void first.settlements.open(openOf(owner, 'living'));
    await first.settlements.flush();
    const second = await openStore(t, { path, clock });
    assert.deepEqual(await second.settlements.closeInterrupted(), []);
    assert.deepEqual((await second.ledger.verify()).differences, [], 'what is open is no difference');
    await first.close();
    const rows = await second.requestLog.find('living');
    assert.deepEqual(
      rows.map(({ status, charge }) => [status, charge]),
      [['interrupted', undefined]],
    );
    assert.deepEqual(
      (await second.ledger.journal({ ref: 'living' })).map(({ kind, nanos }) => [kind, nanos]),
      [['interrupted', 0n]],
    );
    // It had only been stopped: its settlement still counts, once.
    const settle = () => second.settlements.settle({ entry: entry(owner, 'living', 7n) });
    const late = [settle(), settle()];
    await second.settlements.flush();
    assert.deepEqual(
      (await Promise.all(late)).map(({ settled }) => settled),
      [true, false],
    );
    assert.equal((await second.requestLog.find('living'))[0]?.status, 'success');
    assert.deepEqual((await second.ledger.verify()).differences, []);
  });
});
