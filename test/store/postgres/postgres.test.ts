/**
 * What only an engine behind a connection must answer: bad starts, lost connections, a database that is away, several processes'
 * caches.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Principal } from '../../../src/store/keys.ts';
import { VIDEO_WORKER } from '../../../src/store/leases.ts';
import { LOCK, migratePostgres } from '../../../src/store/postgres/migrate.ts';
import { openPostgresStore } from '../../../src/store/postgres/open.ts';
import { SCHEMA } from '../../../src/store/postgres/schema.ts';
import { logText } from '../../../src/store/log-text.ts';
import { Lines, readLines } from '../../../src/store/settlements/segment.ts';
import { server, startServer } from '../../support/postgres.ts';
import { clean, fails, open, stayAlive, until } from '../support/postgres-store.ts';
import { cause, entry, FakeClock, funded, ok, realClock, refusal, T0 } from '../support/store.ts';
import { nameOf, onPostgres, postgresOptions, spoolOf } from '../support/stores.ts';

/** Waits until the notifications of one's own changes have come back and been looked into. */
async function quiet(asked: readonly string[]): Promise<void> {
  for (;;) {
    const count = asked.length;
    await new Promise((resolve) => setTimeout(resolve, 100));
    if (asked.length === count && asked.lastIndexOf('watch_state') > asked.lastIndexOf('notify')) return;
  }
}

onPostgres(({ place }) => {
  test('a bad address, an unknown database, user and host are named at start, and no password is repeated', async () => {
    const { url, socket } = await server();
    await assert.rejects(fails('mysql://u:secret@h/db'), { code: 'bad_url' });
    await assert.rejects(fails('postgres://u:secret@h:port/db'), (error: Error & { code?: string }) => {
      assert.equal(error.code, 'bad_url');
      assert.doesNotMatch(error.message, /secret/);
      return true;
    });
    await assert.rejects(fails(url('nowhere')), { name: 'StoreError', code: 'bad_url' });
    await assert.rejects(fails(url('postgres', 'nobody')), { name: 'StoreError', code: 'access_denied' });
    await assert.rejects(fails(`postgres://mizu@${encodeURIComponent(`${socket}/none`)}/postgres`), { code: 'unavailable' });
    await assert.rejects(fails(`${url('postgres')}?sslmode=verify-full&sslrootcert=/none.pem`), { code: 'bad_url' });
  });

  test('a notification that arrives while a store closes opens no connection that stays', async (t) => {
    const { admin } = await server();
    const url = await place(t);
    let isOver = false;
    const notify = async (): Promise<void> => {
      while (!isOver) await admin('NOTIFY mizu');
    };
    const notifying = [notify(), notify(), notify()];
    for (let round = 0; round < 30; round++) {
      const store = await openPostgresStore(postgresOptions(url));
      await store.close();
    }
    isOver = true;
    await Promise.all(notifying);
    const left = () => admin(`SELECT 1 FROM pg_stat_activity WHERE application_name = '${nameOf(url)}'`);
    await until(async () => (await left()).length === 0);
  });

  test('a wrong password is named at start', async (t) => {
    const guarded = await startServer();
    t.after(() => guarded.stop());
    await guarded.admin(`CREATE ROLE clerk LOGIN PASSWORD 'right'`);
    const hba = join(guarded.socket, 'data', 'pg_hba.conf');
    writeFileSync(hba, `local all clerk scram-sha-256\n${readFileSync(hba, 'utf8')}`);
    await guarded.admin('SELECT pg_reload_conf()');
    const as = (password: string) => guarded.url('postgres', `clerk:${password}`);
    await until(async () => {
      const refused = await fails(as('wrong')).then(
        async (store) => {
          await store.close();
          return undefined;
        },
        (error: unknown) => error,
      );
      // The server reads its rules again a moment after it was told to.
      return (
        refused instanceof Error && 'code' in refused && refused.code === 'access_denied' && !refused.message.includes('wrong')
      );
    });
  });

  test('a migration may take longer than a query may, and waits for another that does', async (t) => {
    const url = await place(t);
    const { admin } = await server();
    const first = admin(`BEGIN; SELECT pg_advisory_xact_lock(${LOCK}); SELECT pg_sleep(4); COMMIT`);
    const asleep = `SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE '%${LOCK}%'`;
    await until(async () => (await admin(asleep)).length > 0);
    // The driver gives a query up one second after the server would.
    const { to } = await migratePostgres(postgresOptions(url, { statementTimeoutMs: 1_000 }));
    assert.equal(to, SCHEMA);
    await first;
  });

  test('an empty database is migrated once, whoever comes first; a newer one is refused; an older one where told to', async (t) => {
    const url = await place(t);
    await assert.rejects(fails(url, { migrate: 'never' }), { code: 'schema_older' });
    const reports = await Promise.all(Array.from({ length: 4 }, () => migratePostgres(postgresOptions(url))));
    assert.equal(reports.filter(({ applied }) => applied.length > 0).length, 1);
    const store = await open(t, url, { migrate: 'never' });
    await funded(store, 5n);
    const { admin } = await server();
    await admin(`INSERT INTO ${nameOf(url)}.schema_migrations (version, name) VALUES (${SCHEMA + 1}, 'future')`);
    await assert.rejects(fails(url), { code: 'schema_newer' });
    // A process that runs meanwhile takes no more work.
    await until(() => !store.health().healthy);
    const health = store.health();
    assert.match(health.healthy ? '' : health.message, /schema/);
    await admin(`DELETE FROM ${nameOf(url)}.schema_migrations WHERE version > ${SCHEMA}`);
    await until(() => store.health().healthy);
  });

  test('admission and authentication ask the database nothing when warm; a cold one asks once for many', async (t) => {
    const asked: string[] = [];
    const store = await open(t, await place(t), { clock: new FakeClock() }, { onQuery: (name) => asked.push(name) });
    const owner = await funded(store, 10n ** 12n, { limits: { total: 10n ** 12n } });
    const request = async () => {
      const principal = ok(await store.keys.authenticate(owner.secret, T0));
      ok(await store.admission.admit(principal, 10n, T0)).release();
    };
    await Promise.all(Array.from({ length: 50 }, request));
    void store.settlements.settle({ entry: entry(owner, 'warm', 1n) });
    await store.settlements.flush();
    await quiet(asked);
    asked.length = 0;
    for (let n = 0; n < 100; n += 1) await request();
    assert.deepEqual(asked, []);
    assert.equal(refusal(await store.keys.authenticate('sk-mizu-guess', T0)).reason, 'unknown');
    asked.length = 0;
    for (let n = 0; n < 100; n += 1) await store.keys.authenticate('sk-mizu-guess', T0);
    assert.deepEqual(asked, []);
  });

  test('a key is revoked everywhere by its notification at once, and within a second when that is lost', async (t) => {
    const url = await place(t);
    const [here, there] = [await open(t, url), await open(t, url)];
    const owner = await funded(here, 100n);
    const revoked = async () => !(await there.keys.authenticate(owner.secret, Date.now())).ok;
    ok(await there.keys.authenticate(owner.secret, Date.now()));
    ok(await here.keys.change(owner.key.id, { disabled: true }, cause()));
    await until(revoked);
    ok(await here.keys.change(owner.key.id, { disabled: false }, cause()));
    await until(async () => !(await revoked()));
    const lost = (name: string): void => {
      if (name === 'notify') throw new Error('this notification is lost');
    };
    const silent = await open(t, url, {}, { onQuery: lost });
    const started = performance.now();
    ok(await silent.accounts.change(owner.account.id, { disabled: true }, cause()));
    await until(revoked);
    assert.ok(performance.now() - started < 1_500, 'revocation took too long');
  });

  test('what is cached is not used once it is older than the bound', async (t) => {
    const url = await place(t);
    const clock = new FakeClock();
    const asked: string[] = [];
    const store = await open(t, url, { clock }, { onQuery: (name) => asked.push(name) });
    const owner = await funded(store, 100n);
    ok(await store.keys.authenticate(owner.secret, T0));
    await quiet(asked);
    const { admin } = await server();
    // No journal row, no notification: only a look at the row itself can tell.
    await admin(`UPDATE ${nameOf(url)}.keys SET disabled = true`);
    clock.advance(999 - 500);
    ok(await store.keys.authenticate(owner.secret, T0));
    const other = await open(t, url, { clock, pollMs: 10 ** 9 });
    ok(await store.keys.authenticate(owner.secret, T0));
    assert.equal(refusal(await other.keys.authenticate(owner.secret, T0)).reason, 'disabled');
    await admin(`UPDATE ${nameOf(url)}.keys SET disabled = false`);
    assert.equal(refusal(await other.keys.authenticate(owner.secret, T0)).reason, 'disabled');
    clock.advance(1_000);
    ok(await other.keys.authenticate(owner.secret, T0));
  });

  test('processes that do not see each other pass a limit by no more than the formula says', async (t) => {
    const url = await place(t);
    // Two processes whose clocks stand still: neither looks at what the other does, the worst that staleness can be.
    const stores = [await open(t, url, { clock: new FakeClock() }), await open(t, url, { clock: new FakeClock() })];
    const [first] = stores;
    assert.ok(first);
    const limit = 1_000n;
    const owner = await funded(first, 10n ** 9n, { limits: { total: limit } });
    const [estimate, charge] = [50n, 70n];
    const inFlight: bigint[] = [];
    const admitted = await Promise.all(
      stores.map(async (store, index) => {
        let count = 0n;
        const settled: PromiseLike<unknown>[] = [];
        for (let n = 0; n < 60; n += 1) {
          const admission = await store.admission.admit(owner, estimate, T0);
          if (!admission.ok) continue;
          count += 1n;
          settled.push(store.settlements.settle({ entry: entry(owner, `f${index}-${n}`, charge), reservation: admission.value }));
          if (n % 5 === 0) await store.settlements.flush();
        }
        inFlight[index] = count * charge;
        await store.settlements.flush();
        await Promise.all(settled);
        return count;
      }),
    );
    const spent = (await first.spend.spend(owner.key.id, T0)).total;
    assert.equal(spent, admitted.reduce((sum, count) => sum + count, 0n) * charge);
    const others = inFlight.reduce((most, nanos) => (nanos > most ? nanos : most), 0n);
    const excess = admitted.reduce((sum, count) => sum + count, 0n) * (charge - estimate);
    assert.ok(spent >= limit, `${spent}`);
    assert.ok(spent <= limit + others + charge + excess, `${spent} spent`);
    // And once anybody looks, nobody is let in any more.
    for (const store of stores) assert.equal(refusal(await store.admission.admit(owner, 1n, T0)).reason, 'spend_limit_reached');
    await clean(first);
  });

  test('a backend that is ended before, in and after every statement: each change happens once', async (t) => {
    const url = await place(t);
    const { admin } = await server();
    const killer: { at: number; seen: number } = { at: Number.POSITIVE_INFINITY, seen: 0 };
    const kill = () => admin(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '${nameOf(url)}'`);
    let killing: Promise<unknown> = Promise.resolve();
    const store = await open(
      t,
      url,
      {},
      {
        beforeStatement: () => {
          killer.seen += 1;
          if (killer.seen === killer.at) killing = kill();
        },
      },
    );
    const owner = await funded(store, 10n ** 9n, { subAccount: true });
    ok(await store.keys.transfer(owner.key.id, 10n ** 6n, cause()));
    const token = ok(await store.leases.acquire(VIDEO_WORKER, 'w', 10 ** 6, Date.now())).token;
    let n = 0;
    const video = (id: string) =>
      store.videos.create({
        id,
        principal: owner,
        model: 'v',
        requestJson: '{}',
        priceNanos: 10n,
        idempotencyKey: id,
        bodyHash: 'h',
        nowMs: Date.now(),
      });
    const operations: readonly (() => Promise<void>)[] = [
      async () => void ok(await store.accounts.credit(owner.account.id, 5n, cause())),
      async () => void ok(await store.accounts.create({ name: `k${n}`, creditNanos: 3n }, cause())),
      async () => void ok(await store.keys.transfer(owner.key.id, 5n, cause())),
      async () => assert.equal((await store.settlements.settle({ entry: entry(owner, `k${n}`, 2n) })).settled, true),
      async () => {
        assert.equal(ok(await video(`v${n}`)).created, true);
        ok(await store.videos.change(`v${n}`, { event: 'submit', channelId: 'c', upstreamModel: 'u' }, token, Date.now()));
      },
    ];
    for (const run of operations) {
      for (let at = 1; at <= 8; at += 1) {
        n += 1;
        // The last kill ended the watcher's line too, and nothing new is let in until that stands again.
        await until(() => store.health().healthy);
        Object.assign(killer, { at, seen: 0 });
        await run();
        await killing;
      }
    }
    await until(() => store.health().healthy);
    await clean(store);
    const rows = await store.ledger.journal({ limit: 10_000 });
    assert.equal(rows.filter(({ kind, nanos }) => kind === 'credit' && nanos === 5n).length, 8);
    assert.equal(rows.filter(({ kind, nanos }) => kind === 'credit' && nanos === 3n).length, 8);
    assert.equal(rows.filter(({ kind, nanos }) => kind === 'charge' && nanos === 2n).length, 8);
    assert.equal(rows.filter(({ kind }) => kind === 'hold').length, 8);
  });

  test('while the database is away nothing is let in, what runs is kept on the disk, and all of it is settled once', async (t) => {
    stayAlive(t);
    const own = await startServer();
    const url = await own.createDatabase();
    const problems: string[] = [];
    const store = await openPostgresStore(postgresOptions(url, { onProblem: ({ what }) => problems.push(what) }));
    const owner = await funded(store, 10n ** 9n);
    const admitted = ok(await store.admission.admit(owner, 10n, Date.now()));
    void store.settlements.open({ ...openOf(owner, 'open-1') });
    await store.settlements.flush();
    await own.stop();
    await until(() => !store.health().healthy);
    await assert.rejects(async () => store.admission.admit(owner, 10n, Date.now()), { name: 'StoreError' });
    await assert.rejects(async () => store.keys.authenticate('sk-mizu-never-seen', Date.now()), { name: 'StoreError' });
    const settled = await store.settlements.settle({ entry: entry(owner, 'open-1', 7n), reservation: admitted });
    assert.deepEqual(settled, { settled: true, chargedNanos: 7n });
    assert.equal(store.admission.reserved(owner.key.id), 7n);
    const [file] = readdirSync(spoolOf(url));
    assert.ok(file !== undefined);
    assert.match(readLines(join(spoolOf(url), file)).lines.at(-1) ?? '', /^s.*open-1/);
    await own.start();
    await until(() => store.health().healthy && store.settlements.pending === 0);
    assert.equal(store.admission.reserved(owner.key.id), 0n);
    assert.equal((await store.requestLog.find('open-1')).length, 1);
    assert.equal((await store.accounts.find(owner.account.id))?.walletNanos, 10n ** 9n - 7n);
    await clean(store);
    assert.ok(problems.some((what) => what.startsWith('store_unhealthy')) && problems.includes('store_healthy'));

    // Away again, and this time the process ends before it comes back: the next one on this machine takes over.
    await own.stop();
    await until(() => !store.health().healthy);
    await store.settlements.settle({ entry: entry(owner, 'late', 9n) });
    await store.settlements.open(openOf(owner, 'cut'));
    await store.close();
    assert.equal(readdirSync(spoolOf(url)).length, 1);
    await own.start();
    const next = await openPostgresStore(postgresOptions(url));
    t.after(async () => {
      await next.close();
      await own.stop();
    });
    await until(() => next.settlements.pending === 0);
    assert.deepEqual(readdirSync(spoolOf(url)), []);
    assert.equal((await next.accounts.find(owner.account.id))?.walletNanos, 10n ** 9n - 16n);
    assert.deepEqual((await next.requestLog.list()).map(({ exchangeId, status }) => [exchangeId, status]).sort(), [
      ['cut', 'interrupted'],
      ['late', 'success'],
      ['open-1', 'success'],
    ]);
    await clean(next);
  });

  test('a full settlement log is said aloud, and the rows go on waiting in memory', async (t) => {
    stayAlive(t);
    const own = await startServer();
    const url = await own.createDatabase();
    const problems: string[] = [];
    const store = await openPostgresStore(
      postgresOptions(url, { spoolMaxBytes: 2_000, onProblem: ({ what }) => problems.push(what) }),
    );
    const owner = await funded(store, 10n ** 9n);
    await own.stop();
    await until(() => !store.health().healthy);
    for (let n = 0; n < 20; n += 1) void store.settlements.settle({ entry: entry(owner, `s${n}`, 1n) });
    await until(() => problems.some((what) => what.startsWith('settlement_log_full')));
    await own.start();
    await until(() => store.settlements.pending === 0);
    assert.equal((await store.spend.spend(owner.key.id, Date.now())).total, 20n);
    await clean(store);
    await store.close();
    await own.stop();
  });

  test('what another process left and nobody can read is named, stays, and keeps nobody from starting', async (t) => {
    const url = await place(t);
    const left = join(spoolOf(url), '999999999-own_0a.spool');
    mkdirSync(left, { recursive: true });
    const problems: string[] = [];
    await open(t, url, { onProblem: ({ what }) => problems.push(what) });
    assert.deepEqual(problems, [`settlements_unreadable: ${left} cannot be taken over`]);
    assert.ok(existsSync(left));
  });

  test('a spool that version 0.1 left is settled', async (t) => {
    const url = await place(t);
    const first = await open(t, url);
    const owner = await funded(first, 1_000n);
    await first.close();
    const lines = new Lines();
    lines.add(JSON.stringify({ open: JSON.stringify(openOf(owner, 'cut')) }));
    lines.add(JSON.stringify({ open: JSON.stringify(openOf(owner, 'done')) }));
    lines.add(JSON.stringify({ settle: logText(entry(owner, 'done', 9n)) }));
    writeFileSync(join(spoolOf(url), '999999999-own_0a.spool'), lines.bytes);
    const store = await open(t, url);
    assert.equal((await store.accounts.find(owner.account.id))?.walletNanos, 991n);
    assert.deepEqual((await store.requestLog.list()).map(({ exchangeId, status }) => [exchangeId, status]).sort(), [
      ['cut', 'interrupted'],
      ['done', 'success'],
    ]);
    assert.deepEqual(readdirSync(spoolOf(url)), []);
    await clean(store);
  });

  test('the ledger is checked as it is at one moment, whoever writes meanwhile', async (t) => {
    const url = await place(t);
    const [store, writer] = [await open(t, url), await open(t, url)];
    const owner = await funded(writer, 10n ** 9n, { subAccount: true });
    let checking = true;
    const writes = (async () => {
      while (checking) ok(await writer.keys.transfer(owner.key.id, 1n, cause()));
    })();
    for (let n = 0; n < 20; n += 1) await clean(store);
    checking = false;
    await writes;
  });

  test('proofs of commits and processes that nobody asks about any more are removed, and no others', async (t) => {
    const url = await place(t);
    const store = await open(t, url, { processTtlMs: 150 });
    await funded(store, 1n);
    const { admin } = await server();
    const at = (age: string): string => `now() - interval '${age}'`;
    const schema = nameOf(url);
    await admin(`INSERT INTO ${schema}.commits VALUES ('old', ${at('16 minutes')}), ('young', ${at('14 minutes')})`);
    await admin(
      `INSERT INTO ${schema}.owners VALUES ('own_old', 'elsewhere', 1, ${at('25 hours')}), ('own_young', 'elsewhere', 1, ${at('23 hours')})`,
    );
    const found = async (): Promise<unknown[]> => {
      const rows = await admin(`SELECT id FROM ${schema}.commits UNION ALL SELECT id FROM ${schema}.owners ORDER BY id`);
      return rows.map(({ id }) => id).filter((id) => ['old', 'young', 'own_old', 'own_young'].includes(String(id)));
    };
    await until(async () => !(await found()).includes('own_old'));
    assert.deepEqual(await found(), ['own_young', 'young']);
  });

  test('the columns of the log say what is in the entry beside them, also after a late settlement', async (t) => {
    const url = await place(t);
    const gone = await openPostgresStore(postgresOptions(url));
    const owner = await funded(gone, 100n);
    await gone.settlements.open(openOf(owner, 'late'));
    await gone.close();
    const store = await open(t, url);
    const words = { model: 'other', requestId: 'req_2', clientRequestId: 'mine', status: 'error' } as const;
    for (const id of ['late', 'at once']) await store.settlements.settle({ entry: entry(owner, id, 7n, words) });
    const { admin } = await server();
    const rows = await admin(`SELECT exchange_id, request_id, client_request_id, account_id, key_id, model, status, charged_nanos
      FROM ${nameOf(url)}.request_log ORDER BY seq`);
    const { account, key } = owner;
    assert.deepEqual(
      rows.map((row) => Object.values(row)),
      ['late', 'at once'].map((id) => [id, 'req_2', 'mine', account.id, key.id, 'other', 'error', '7']),
    );
  });

  test('of many workers one holds the lease, whatever they do at once', async (t) => {
    const url = await place(t);
    const stores = [await open(t, url), await open(t, url)];
    for (let round = 0; round < 5; round += 1) {
      const now = T0 + round * 1_000;
      const all = await Promise.all(
        Array.from({ length: 10 }, (_, n) => stores[n % 2]?.leases.acquire('job', `h${round}-${n}`, 500, now)),
      );
      assert.equal(all.filter((taken) => taken?.ok === true).length, 1);
    }
  });

  test('a lease does not outlive its process: not when that has left, not when that is known to be dead', async (t) => {
    const url = await place(t);
    const dead = { host: 'test', pid: 999_999_999, isAlive: () => false };
    const gone = await openPostgresStore(postgresOptions(url, { process: dead }));
    const first = ok(await gone.leases.acquire('job', 'gone', 10 ** 6, T0));
    const store = await open(t, url);
    assert.equal(refusal(await store.leases.acquire('job', 'next', 10 ** 6, T0)).reason, 'held');
    await gone.close();
    const second = ok(await store.leases.acquire('job', 'next', 10 ** 6, T0));
    assert.ok(second.token > first.token);
  });

  test('money beyond what a float can hold comes back to the last digit', async (t) => {
    const store = await open(t, await place(t), { clock: realClock });
    const odd = 9_007_199_254_740_993n;
    const owner = await funded(store, 2n ** 62n + 1n, { limits: { total: 2n ** 62n + 3n } });
    const charge = {
      lines: [{ item: 'input', quantity: 1, rate: odd, per: 'million', amount: odd * 7n }],
      total: odd,
      flags: ['f'],
    } as const;
    await store.settlements.settle({ entry: entry(owner, 'odd', 0n, { charge }) });
    assert.deepEqual((await store.requestLog.find('odd'))[0]?.charge, charge);
    assert.equal((await store.keys.find(owner.key.id))?.limits.total, 2n ** 62n + 3n);
    assert.equal((await store.accounts.find(owner.account.id))?.walletNanos, 2n ** 62n + 1n - odd);
    ok(await store.admission.admit(ok(await store.keys.authenticate(owner.secret, Date.now())), 1n, Date.now())).release();
    await clean(store);
  });
});

function openOf({ account, key }: Principal, exchangeId: string) {
  const names = { exchangeId, requestId: `req_${exchangeId}`, accountId: account.id, keyId: key.id };
  return { ...names, endpoint: 'chat', model: 'm', stream: true, startedAtMs: T0 };
}
