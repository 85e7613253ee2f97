/** A database that is there and not well: read-only, full, slow, locked, or held up by another process that was cut off. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import { openPostgresStore } from '../../../src/store/postgres/open.ts';
import { server, startServer } from '../../support/postgres.ts';
import { cuttableSocket } from '../support/cuttable-socket.ts';
import { clean, fails, open, stayAlive, until } from '../support/postgres-store.ts';
import { cause, entry, FakeClock, funded, ok, T0 } from '../support/store.ts';
import { nameOf, onPostgres, postgresOptions, spoolOf } from '../support/stores.ts';

const logged = (url: string): string[] => (existsSync(spoolOf(url)) ? readdirSync(spoolOf(url)) : []);

onPostgres(({ place, makePlace, dropPlace }) => {
  test('a database that takes no writes is refused at start, and nothing is written', async (t) => {
    const url = await place(t);
    await assert.rejects(fails(url.replace('search_path', 'default_transaction_read_only%3Don%20-c%20search_path')), {
      code: 'read_only',
    });
    assert.deepEqual(await tablesOf(url), []);
  });

  test('a database that stops taking writes is found out while running; nobody is let in until it does again', async (t) => {
    const own = await startServer();
    t.after(() => own.stop());
    const url = await own.createDatabase();
    const store = await open(t, url);
    const owner = await funded(store, 1_000n);
    const readOnly = async (only: 'on' | 'off'): Promise<void> => {
      await own.admin(`ALTER DATABASE ${url.split('/').at(-1)} SET default_transaction_read_only = ${only}`);
      await own.admin(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'mizu'`);
    };
    await readOnly('on');
    await until(() => !store.health().healthy);
    await assert.rejects(async () => store.admission.admit(owner, 10n, T0), { name: 'StoreError' });
    await assert.rejects(store.accounts.credit(owner.account.id, 5n, cause()), { name: 'StoreError', code: 'read_only' });
    const settled = store.settlements.settle({ entry: entry(owner, 'meanwhile', 7n) });
    await readOnly('off');
    await settled;
    await until(() => store.health().healthy && store.settlements.pending === 0);
    assert.equal((await store.accounts.find(owner.account.id))?.walletNanos, 993n);
    await clean(store);
  });

  test('sessions that were told to take no writes are given up when the database takes them again', async (t) => {
    const own = await startServer();
    t.after(() => own.stop());
    const url = await own.createDatabase();
    const owned = await open(t, url);
    const owner = await funded(owned, 1_000n);
    const name = url.split('/').at(-1);
    await own.admin(`ALTER DATABASE ${name} SET default_transaction_read_only = on`);
    await own.admin(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'mizu'`);
    await until(() => !owned.health().healthy);
    await assert.rejects(owned.accounts.credit(owner.account.id, 5n, cause()), { code: 'read_only' });
    await own.admin(`BEGIN READ WRITE; ALTER DATABASE ${name} RESET default_transaction_read_only; COMMIT`);
    await until(() => owned.health().healthy);
    ok(await owned.accounts.credit(owner.account.id, 5n, cause()));
    await clean(owned);
  });

  test('a database whose tables may not be written is unwell, said once, until its rows are written', async (t) => {
    const url = await makePlace();
    t.after(() => dropPlace(url));
    const problems: string[] = [];
    const store = await open(t, url, { pollMs: 20, onProblem: ({ what }) => problems.push(what) });
    const owner = await funded(store, 1_000n);
    // Only the journal: what the store writes to try the database goes through.
    const allow = await refuseJournal(url, '42501', 'permission denied for table journal');
    const settled = store.settlements.settle({ entry: entry(owner, 'meanwhile', 7n) });
    await until(() => !store.health().healthy);
    for (let n = 0; n < 50; n += 1) {
      await assert.rejects(async () => store.admission.admit(owner, 10n, T0), { code: 'unhealthy' });
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await allow();
    await settled;
    await until(() => store.health().healthy);
    assert.equal((await store.accounts.find(owner.account.id))?.walletNanos, 993n);
    assert.deepEqual(problems, ['store_unhealthy: permission denied for table journal', 'database_failed', 'store_healthy']);
    await clean(store);
  });

  test('a change whose commit was not answered is said to be in doubt', async (t) => {
    stayAlive(t);
    const url = await place(t);
    const { socket } = await server();
    const line = await cuttableSocket(socket);
    t.after(() => line.close());
    let cutNext = false;
    const store = await openPostgresStore(
      postgresOptions(url.replace(encodeURIComponent(socket), encodeURIComponent(line.folder)), { statementTimeoutMs: 300 }),
      {
        beforeStatement(text) {
          if (cutNext && text === 'COMMIT') line.cut();
        },
      },
    );
    t.after(() => store.close());
    const owner = await funded(store, 10n);
    cutNext = true;
    const message = /whether the change was made is not known$/;
    await assert.rejects(store.accounts.credit(owner.account.id, 5n, cause()), { code: 'unavailable', message });
    cutNext = false;
    line.heal();
    await until(() => store.health().healthy);
    await clean(store);
  });

  test('a change whose commit went through, and whose answer was lost, is made once and told', async (t) => {
    stayAlive(t);
    const url = await place(t);
    const { socket } = await server();
    const line = await cuttableSocket(socket);
    t.after(() => line.close());
    let losses = 0;
    const store = await openPostgresStore(
      postgresOptions(url.replace(encodeURIComponent(socket), encodeURIComponent(line.folder)), { statementTimeoutMs: 5_000 }),
      {
        beforeStatement(text) {
          if (losses === 0 || text !== 'COMMIT') return;
          losses -= 1;
          line.loseReply();
        },
      },
    );
    t.after(() => store.close());
    const owner = await funded(store, 10n);
    losses = 1;
    assert.equal(ok(await store.accounts.credit(owner.account.id, 5n, cause('once'))).walletNanos, 15n);
    losses = 1;
    const settled = await store.settlements.settle({ entry: entry(owner, 'ex_once', 3n) });
    assert.deepEqual(settled, { settled: true, chargedNanos: 3n });
    assert.equal(losses, 0);
    assert.equal((await store.ledger.journal({ ref: 'once' })).length, 1);
    assert.equal((await store.ledger.journal({ ref: 'ex_once' })).length, 1);
    assert.equal((await store.accounts.find(owner.account.id))?.walletNanos, 12n);
    await clean(store);
  });

  test('a full database refuses the write by name and keeps nothing of it', async (t) => {
    const url = await makePlace();
    const store = await open(t, url);
    const owner = await funded(store, 10n);
    const allow = await refuseJournal(url, '53100', 'could not extend file');
    await assert.rejects(store.accounts.credit(owner.account.id, 5n, cause('once')), { name: 'StoreError', code: 'disk_full' });
    await allow();
    assert.equal(ok(await store.accounts.credit(owner.account.id, 5n, cause('once'))).walletNanos, 15n);
    await clean(store);
    t.after(() => dropPlace(url));
  });

  test('a row that is wrong is given up beside one that is kept, also when both waited in the log', async (t) => {
    const url = await makePlace();
    t.after(() => dropPlace(url));
    const problems: string[] = [];
    const store = await open(t, url, { onProblem: ({ what }) => problems.push(what) });
    const owner = await funded(store, 10n);
    const allow = await refuseJournal(url, '53100', 'could not extend file');
    const good = store.settlements.settle({ entry: entry(owner, 'good', 3n) });
    const wrong = store.settlements.settle({ entry: entry(owner, 'wrong', -1n) });
    assert.equal((await good).settled, true, 'it is kept on the local disk');
    assert.equal(readdirSync(spoolOf(url)).length, 1);
    await allow();
    await until(() => store.settlements.pending === 0);
    await wrong;
    assert.ok(problems.some((what) => what.startsWith('settlement_lost') && what.includes('"wrong"')));
    assert.equal((await store.accounts.find(owner.account.id))?.walletNanos, 7n);
    await clean(store);
    await store.close();
    assert.deepEqual(logged(url), []);
  });

  test('a transaction that the server undoes for the sake of another is tried again, and not for ever', async (t) => {
    const url = await makePlace();
    t.after(() => dropPlace(url));
    const store = await open(t, url);
    const owner = await funded(store, 10n);
    const { admin } = await server();
    const schema = nameOf(url);
    // What a sequence has given stays given when its transaction is undone.
    await admin(`CREATE SEQUENCE ${schema}.tries; CREATE FUNCTION ${schema}.undone() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF nextval('${schema}.tries') <= 4 THEN RAISE EXCEPTION 'undone' USING ERRCODE = TG_ARGV[0]; END IF; RETURN NULL; END $$`);
    for (const state of ['40001', '40P01']) {
      await admin(`CREATE TRIGGER undone BEFORE INSERT ON ${schema}.journal EXECUTE FUNCTION ${schema}.undone('${state}')`);
      await admin(`ALTER SEQUENCE ${schema}.tries RESTART`);
      ok(await store.accounts.credit(owner.account.id, 5n, cause(state)));
      assert.equal((await store.ledger.journal({ ref: state })).length, 1);
      await admin(`ALTER SEQUENCE ${schema}.tries RESTART`);
      assert.equal((await store.settlements.settle({ entry: entry(owner, `ex_${state}`, 1n) })).settled, true);
      assert.equal(store.health().healthy, true);
      await admin(`DROP TRIGGER undone ON ${schema}.journal`);
    }
    assert.equal((await store.accounts.find(owner.account.id))?.walletNanos, 18n);
    await admin(`ALTER SEQUENCE ${schema}.tries MINVALUE -1000000 RESTART -1000000`);
    await admin(`CREATE TRIGGER undone BEFORE INSERT ON ${schema}.journal EXECUTE FUNCTION ${schema}.undone('40001')`);
    await assert.rejects(store.accounts.credit(owner.account.id, 5n, cause('never')), {
      name: 'StoreError',
      code: 'unavailable',
    });
    await admin(`DROP TRIGGER undone ON ${schema}.journal`);
    await until(() => store.health().healthy);
    assert.deepEqual(await store.ledger.journal({ ref: 'never' }), []);
    await clean(store);
  });

  test('a lock that is held too long is an error by name, not a wait for ever', async (t) => {
    const url = await place(t);
    const store = await open(t, url, { lockTimeoutMs: 100 });
    const owner = await funded(store, 10n);
    const { admin } = await server();
    const holding = admin(`BEGIN; SELECT * FROM ${nameOf(url)}.ledger_head FOR UPDATE; SELECT pg_sleep(3); COMMIT`);
    // It sleeps once it holds the lock.
    const asleep = `SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE '%${nameOf(url)}%'`;
    for (let tries = 0; (await admin(asleep)).length === 0; tries++) {
      assert.ok(tries < 400, 'the lock was never held');
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await assert.rejects(store.accounts.credit(owner.account.id, 5n, cause()), { code: 'unavailable' });
    await holding;
    await until(() => store.health().healthy);
    ok(await store.accounts.credit(owner.account.id, 5n, cause()));
    await clean(store);
  });

  test('a slow database is away, and not waited for; what it did not take in time is settled once', async (t) => {
    const url = await place(t);
    const store = await open(t, url, { statementTimeoutMs: 200 });
    const owner = await funded(store, 1_000n);
    const { admin } = await server();
    const schema = nameOf(url);
    await admin(`CREATE FUNCTION ${schema}.slowly() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN PERFORM pg_sleep(2); RETURN NULL; END $$`);
    await admin(`CREATE TRIGGER slowly BEFORE INSERT ON ${schema}.journal EXECUTE FUNCTION ${schema}.slowly()`);
    const settled = store.settlements.settle({ entry: entry(owner, 'slow', 7n) });
    await until(() => !store.health().healthy);
    assert.deepEqual(await settled, { settled: true, chargedNanos: 7n }, 'it is kept on the local disk');
    await assert.rejects(async () => store.admission.admit(owner, 10n, T0), { name: 'StoreError' });
    await admin(`DROP TRIGGER slowly ON ${schema}.journal`);
    await until(() => store.health().healthy && store.settlements.pending === 0);
    assert.equal((await store.accounts.find(owner.account.id))?.walletNanos, 993n);
    await clean(store);
  });

  test('a settlement is on the local disk at once, also while the database takes its time', async (t) => {
    const url = await place(t);
    const clock = new FakeClock();
    const store = await open(t, url, { clock });
    const owner = await funded(store, 1_000n);
    const { admin } = await server();
    const schema = nameOf(url);
    await admin(`CREATE TABLE ${schema}.open_gate (); CREATE FUNCTION ${schema}.wait() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN WHILE NOT EXISTS (SELECT FROM ${schema}.open_gate) LOOP PERFORM pg_sleep(0.01); END LOOP; RETURN NULL; END $$`);
    await admin(`CREATE TRIGGER wait BEFORE INSERT ON ${schema}.journal FOR EACH STATEMENT EXECUTE FUNCTION ${schema}.wait()`);
    const settled = store.settlements.settle({ entry: entry(owner, 'waits', 7n) });
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(logged(url).length, 1);
    clock.advance(100);
    assert.deepEqual([store.settlements.pending, store.health().healthy], [1, true]);
    await admin(`INSERT INTO ${schema}.open_gate DEFAULT VALUES`);
    assert.deepEqual(await settled, { settled: true, chargedNanos: 7n });
    assert.equal((await store.accounts.find(owner.account.id))?.walletNanos, 993n);
    await clean(store);
  });

  test('a process that is cut off in the middle of a change does not hold the others up', async (t) => {
    stayAlive(t);
    const url = await place(t);
    const { socket, admin } = await server();
    const line = await cuttableSocket(socket);
    t.after(() => line.close());
    const problems: string[] = [];
    const steady = await open(t, url, { onProblem: ({ what }) => problems.push(what) });
    const owner = await funded(steady, 1_000n);
    let cutNext = false;
    const cut = await openPostgresStore(
      postgresOptions(url.replace(encodeURIComponent(socket), encodeURIComponent(line.folder)), { statementTimeoutMs: 2_000 }),
      {
        beforeStatement(text) {
          // Every statement of the change is done, and it is never committed.
          if (cutNext && text === 'COMMIT') line.cut();
        },
      },
    );
    t.after(() => cut.close());
    cutNext = true;
    const lost = cut.accounts.credit(owner.account.id, 5n, cause('cut off'));
    const holding = `SELECT 1 FROM pg_stat_activity WHERE state = 'idle in transaction' AND query LIKE '%WITH%'`;
    await until(async () => (await admin(holding)).length > 0);
    for (let n = 0; n < 5; n += 1) await steady.settlements.settle({ entry: entry(owner, `steady-${n}`, 1n) });
    assert.deepEqual(
      problems.filter((what) => what.startsWith('store_unhealthy')),
      [],
    );
    cutNext = false;
    line.heal();
    await lost.then(
      () => undefined,
      (error: unknown) => assert.ok(error instanceof Error && error.name === 'StoreError', String(error)),
    );
    await until(() => cut.health().healthy);
    ok(await cut.accounts.credit(owner.account.id, 5n, cause('cut off')));
    assert.equal((await steady.accounts.find(owner.account.id))?.walletNanos, 1_000n);
    await clean(steady);
  });
});

/** The database refuses every row of the journal with this SQLSTATE, until what is returned is called. */
async function refuseJournal(url: string, state: string, message: string): Promise<() => Promise<unknown>> {
  const { admin } = await server();
  const schema = nameOf(url);
  await admin(`CREATE FUNCTION ${schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION '${message}' USING ERRCODE = '${state}'; END $$`);
  await admin(`CREATE TRIGGER refuse BEFORE INSERT ON ${schema}.journal EXECUTE FUNCTION ${schema}.refuse()`);
  return () => admin(`DROP TRIGGER refuse ON ${schema}.journal`);
}

async function tablesOf(url: string): Promise<unknown[]> {
  const { admin } = await server();
  return [...(await admin(`SELECT table_name FROM information_schema.tables WHERE table_schema = '${nameOf(url)}'`))];
}
