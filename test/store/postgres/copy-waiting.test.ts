/** What a killed gateway left on its disk for the database belongs to a copy of it, wherever the verb is typed. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { command } from '../../support/command.ts';
import { server } from '../../support/postgres.ts';
import { funded, tempDirectory } from '../support/store.ts';
import { nameOf, onPostgres, openPlace, spoolOf } from '../support/stores.ts';

const CHILD = fileURLToPath(new URL('../support/leave-child.ts', import.meta.url));
const [FUNDS, COUNT] = [1_000_000n, 5];

onPostgres(({ place }) => {
  test('a backup tells what waits on the disk of the configured gateway, and a copy settles it first', async (t) => {
    const url = await place(t);
    const store = await openPlace(url);
    const owner = await funded(store, FUNDS);
    await store.close();
    assert.equal(spawnSync(process.execPath, [CHILD, url, owner.secret, String(COUNT)]).signal, 'SIGKILL');
    // It named a machine of its own, where it may still live.
    const { admin } = await server();
    await admin(`DELETE FROM ${nameOf(url)}.owners`);
    const folder = tempDirectory(t);
    const local = join(folder, 'local');
    mkdirSync(local);
    renameSync(spoolOf(url), join(local, 'waiting'));
    const config = join(folder, 'mizu.config.json');
    const channel = { id: 'a', type: 'messages', base_url: 'http://127.0.0.1:1', api_key: 'k', models: ['m'] };
    const models = { m: { price: { input: '1', output: '2' } } };
    writeFileSync(config, JSON.stringify({ store: { url, path: local }, channels: [channel], models }));

    const backup = await command(['store', 'backup', join(folder, 'backup'), '--config', config]);
    assert.equal(backup.code, 0, backup.err);
    assert.match(backup.out, new RegExp(`\n${COUNT + 1} exchanges were open and are not in it\n$`));

    const unreadable = join(folder, 'unreadable.json');
    writeFileSync(unreadable, '{');
    const to = join(folder, 'copy');
    assert.equal((await command(['store', 'copy', '--from', url, '--to', to, '--config', unreadable])).code, 1);
    const copied = await command(['store', 'copy', '--from', url, '--to', to, '--config', config]);
    assert.equal(copied.code, 0, copied.err);
    assert.deepEqual(readdirSync(join(local, 'waiting')), [], 'nothing waits any more');
    const copy = await openPlace(to);
    t.after(() => copy.close());
    assert.equal((await copy.accounts.list())[0]?.walletNanos, FUNDS - 7n * BigInt(COUNT));
    assert.deepEqual((await copy.ledger.verify()).differences, []);
  });
});
