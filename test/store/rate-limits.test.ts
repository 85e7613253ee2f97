/** Limits by time of keys and accounts, as both engines keep them, and what the journal says of every change. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkedState } from './support/journal-state.ts';
import { cause, funded, ok, refusal } from './support/store.ts';
import { eachStore, nameOf, openPlace, onPostgres, postgresOptions } from './support/stores.ts';
import { migratePostgres } from '../../src/store/postgres/migrate.ts';
import { MIGRATIONS } from '../../src/store/postgres/schema.ts';
import { server } from '../support/postgres.ts';

const LIMITS = { requestsPerMinute: 60, tokensPerMinute: 1_000_000_000, maxConcurrency: 3 };

eachStore(({ openStore, place }) => {
  test('keys and accounts keep their limits, also over a restart; a record without limits has none', async (t) => {
    const path = await place(t);
    const store = await openPlace(path);
    const account = ok(await store.accounts.create({ name: 'ada', creditNanos: 1n, rateLimits: LIMITS }, cause()));
    const { key, secret } = ok(
      await store.keys.create({ accountId: account.id, name: 'k', rateLimits: { maxConcurrency: 1 } }, cause()),
    );
    const bare = await funded(store, 1n);
    assert.deepEqual(account.rateLimits, LIMITS);
    assert.deepEqual(key.rateLimits, { maxConcurrency: 1 });
    assert.equal('rateLimits' in bare.key || 'rateLimits' in bare.account, false);
    const seen = ok(await store.keys.authenticate(secret, 0));
    await store.close();
    const again = await openStore(t, { path });
    assert.deepEqual(ok(await again.keys.authenticate(secret, 0)), seen);
    assert.deepEqual((await again.accounts.find('ada'))?.rateLimits, LIMITS);
    assert.deepEqual(await again.keys.find(key.id), key);
    assert.deepEqual((await again.ledger.verify()).differences, []);
  });

  test('a change sets and removes each limit by itself, counts at once, and is done once under its cause', async (t) => {
    const store = await openStore(t);
    const { account, key, secret } = await funded(store, 1n);
    const set = ok(await store.keys.change(key.id, { rateLimits: LIMITS }, cause('set')));
    assert.deepEqual(set.rateLimits, LIMITS);
    assert.deepEqual(ok(await store.keys.authenticate(secret, 0)).key, set);
    const less = ok(await store.keys.change(key.id, { rateLimits: { requestsPerMinute: null, maxConcurrency: 9 } }, cause()));
    assert.deepEqual(less.rateLimits, { tokensPerMinute: 1_000_000_000, maxConcurrency: 9 });
    assert.deepEqual(ok(await store.keys.change(key.id, { rateLimits: LIMITS }, cause('set'))), less);
    assert.equal(
      refusal(await store.keys.change(key.id, { rateLimits: { maxConcurrency: 1 } }, cause('set'))).reason,
      'cause_reused',
    );
    assert.deepEqual(ok(await store.keys.change(key.id, { name: 'other' }, cause())).rateLimits, less.rateLimits);
    const none = { requestsPerMinute: null, tokensPerMinute: null, maxConcurrency: null };
    assert.equal('rateLimits' in ok(await store.keys.change(key.id, { rateLimits: none }, cause())), false);

    const changed = ok(await store.accounts.change(account.id, { rateLimits: { tokensPerMinute: 5 } }, cause('account')));
    assert.deepEqual(changed.rateLimits, { tokensPerMinute: 5 });
    assert.deepEqual(ok(await store.accounts.change(account.id, { class: 'gold' }, cause())).rateLimits, { tokensPerMinute: 5 });
    assert.deepEqual(ok(await store.keys.authenticate(secret, 0)).account.rateLimits, { tokensPerMinute: 5 });
    assert.equal('rateLimits' in ok(await store.accounts.change(account.id, { rateLimits: none }, cause())), false);
    assert.deepEqual((await store.ledger.verify()).differences, []);
  });

  test('an account that is made again under the same cause is the same one only with the same limits', async (t) => {
    const store = await openStore(t);
    const asked = { name: 'ada', rateLimits: LIMITS };
    const made = ok(await store.accounts.create(asked, cause('made')));
    assert.deepEqual(ok(await store.accounts.create(asked, cause('made'))), made);
    const other = await store.accounts.create({ name: 'ada', rateLimits: { maxConcurrency: 3 } }, cause('made'));
    assert.equal(refusal(other).reason, 'cause_reused');
  });

  test('a limit that is no whole number from 1 up is refused by its name, and nothing is changed', async (t) => {
    const store = await openStore(t);
    const { account, key } = await funded(store, 1n);
    const journal = await store.ledger.journal();
    for (const [name, most] of Object.entries({ requestsPerMinute: 1e9, tokensPerMinute: 1e9, maxConcurrency: 1e6 })) {
      for (const limit of [0, -1, 1.5, Number.NaN, most + 1]) {
        const expected = {
          reason: 'invalid',
          field: `rateLimits.${name}`,
          message: `must be a whole number from 1 to ${most}`,
        };
        const rateLimits = { [name]: limit };
        assert.deepEqual(refusal(await store.keys.change(key.id, { rateLimits }, cause())), expected);
        assert.deepEqual(refusal(await store.accounts.change(account.id, { rateLimits }, cause())), expected);
        assert.deepEqual(refusal(await store.accounts.create({ name: 'x', rateLimits }, cause())), expected);
        assert.deepEqual(refusal(await store.keys.create({ accountId: account.id, name: 'x', rateLimits }, cause())), expected);
      }
    }
    assert.deepEqual(await store.ledger.journal(), journal);
  });

  test('each row that makes or changes a key or an account says all that it is from then on, but for the digest itself', async (t) => {
    const store = await openStore(t);
    const { account, key } = await funded(store, 1n, { limits: { total: 7n }, models: ['m'] });
    await store.keys.change(key.id, { rateLimits: LIMITS, ips: ['10.0.0.0/8'] }, cause());
    await store.accounts.change(account.id, { rateLimits: { maxConcurrency: 2 }, disabled: true }, cause());
    const stating = (await store.ledger.journal()).filter(({ state }) => state !== undefined);
    assert.deepEqual(
      stating.map(({ kind }) => kind),
      ['account_created', 'key_created', 'key_changed', 'account_changed'],
    );
    const [, created, changed, accountChanged] = stating.map(checkedState);
    assert.equal(created?.['limit_total'], '7');
    assert.deepEqual(created?.['models'], ['m']);
    assert.equal(created?.['requests_per_minute'], undefined);
    assert.equal(changed?.['requests_per_minute'], 60);
    assert.equal(changed?.['max_concurrency'], 3);
    assert.deepEqual(changed?.['ips'], ['10.0.0.0/8']);
    assert.deepEqual([accountChanged?.['max_concurrency'], accountChanged?.['disabled']], [2, true]);
    assert.ok(stating.every(({ state }) => state?.includes(key.digest) === false));
  });
});

onPostgres(({ place }) => {
  test('a database of the schema before has keys and accounts without limits, and its journal is sound', async (t) => {
    const url = await place(t);
    const { admin } = await server();
    const before = MIGRATIONS.filter(({ version }) => version < 3);
    const names = before.map(
      ({ version, name }) => `INSERT INTO schema_migrations (version, name) VALUES (${version}, '${name}');`,
    );
    await admin(`SET search_path = ${nameOf(url)}; ${before.map(({ sql }) => `${sql};`).join('\n')}
      CREATE TABLE schema_migrations (version integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now());
      ${names.join('\n')}
      INSERT INTO accounts VALUES ('acct_1', 'old', 'default', false, false, 1);
      INSERT INTO keys VALUES ('key_1', 'acct_1', 'k', '${'0'.repeat(64)}', 'sk-mizu-abcd', 'wxyz', 1, NULL, false, NULL, NULL, NULL, NULL, NULL, false);`);
    const { applied } = await migratePostgres(postgresOptions(url));
    assert.deepEqual(
      applied,
      MIGRATIONS.slice(before.length).map(({ version, name }) => `${version} ${name}`),
    );
    assert.equal(applied[0], '3 rate limits');
    const store = await openPlace(url);
    t.after(() => store.close());
    const key = await store.keys.find('key_1');
    assert.equal(key !== undefined && 'rateLimits' in key, false);
    assert.equal((await store.accounts.find('old'))?.rateLimits, undefined);
    assert.deepEqual(ok(await store.keys.change('key_1', { rateLimits: LIMITS }, cause())).rateLimits, LIMITS);
  });
});
