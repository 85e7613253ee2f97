/** A failover to a replica that had not received the last commits: what processes remember is of a history that is gone. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { startServer } from '../../support/postgres.ts';
import { clean, open, until } from '../support/postgres-store.ts';
import { cause, entry, funded, ok, T0 } from '../support/store.ts';
import { onPostgres } from '../support/stores.ts';

/** Several looks of the watcher. */
const looks = () => new Promise((resolve) => setTimeout(resolve, 200));

onPostgres(() => {
  test('a process that saw rows which the journal has lost stays unready, however long the journal grows again', async (t) => {
    const own = await startServer();
    t.after(() => own.stop());
    const url = await own.createDatabase();
    const data = join(own.socket, 'data');
    const replica = `${data}-replica`;
    const store = await open(t, url, { pollMs: 20 });
    const owner = await funded(store, 1_000n);
    await own.stop();
    execFileSync('cp', ['-a', data, replica]);
    await own.start();
    await until(() => store.health().healthy);
    // The replica never hears of this key: what it uses can be charged to nobody.
    const lost = ok(await store.keys.create({ accountId: owner.account.id, name: 'lost' }, cause()));
    assert.ok((await store.keys.authenticate(lost.secret, T0)).ok);
    await looks();

    await own.stop();
    rmSync(data, { recursive: true });
    renameSync(replica, data);
    const waiting = Array.from({ length: 20 }, (_, n) => store.settlements.settle({ entry: entry(owner, `waits-${n}`, 1n) }));
    await until(() => !store.health().healthy);
    await own.start();
    await Promise.all(waiting);
    await until(() => store.settlements.pending === 0);

    await looks();
    assert.match(JSON.stringify(store.health()), /the journal has lost rows/);
    await assert.rejects(async () => store.admission.admit(owner, 1n, T0), { code: 'unhealthy' });

    // Whoever starts on what is left begins with that, and what waited is in it.
    const after = await open(t, url);
    assert.equal((await after.keys.authenticate(lost.secret, T0)).ok, false);
    assert.equal((await after.accounts.find(owner.account.id))?.walletNanos, 980n);
    await clean(after);
  });
});
