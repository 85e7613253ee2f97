/** A backup of a store that is being written to is one moment of it, on every engine; and it can be restored. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Archive } from '../../src/store/archive.ts';
import { copyStore } from '../../src/store/copy.ts';
import { openLmdbArchive } from '../../src/store/lmdb/archive.ts';
import { openPostgresArchive } from '../../src/store/postgres/archive.ts';
import { cause, entry, funded, ok, options } from './support/store.ts';
import { eachStore, openPlace, postgresOptions } from './support/stores.ts';

const archiveOf = (place: string): Promise<Archive> =>
  place.startsWith('postgres://') ? openPostgresArchive(postgresOptions(place)) : openLmdbArchive(options(place));

eachStore(({ place }) => {
  test('a backup while everything writes is one moment: it adds up, is a past of the store, and restores', async (t) => {
    const at = await place(t);
    const folder = mkdtempSync(join(tmpdir(), 'mizu-backup-'));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const store = await openPlace(at);
    t.after(() => store.close());
    const owner = await funded(store, 10n ** 15n, { subAccount: true });
    for (let n = 0; n < 600; n += 1) void store.settlements.settle({ entry: entry(owner, `before ${n}`, 3n) });
    await store.settlements.flush();
    const open = { exchangeId: 'open', requestId: 'req_open', accountId: owner.account.id, keyId: owner.key.id };
    await store.settlements.open({ ...open, endpoint: 'chat', model: 'm', stream: false, startedAtMs: 0 });

    let isOver = false;
    let during = 0;
    const write = async (): Promise<void> => {
      while (!isOver) {
        const batch = Array.from({ length: 20 }, () => entry(owner, `during ${during++}`, 3n));
        for (const row of batch) void store.settlements.settle({ entry: row });
        ok(await store.keys.transfer(owner.key.id, 7n, cause()));
        ok(await store.accounts.credit(owner.account.id, 5n, cause()));
        await store.settlements.flush();
      }
    };
    const writing = write();
    const copy = join(folder, 'copy');
    let before: number;
    try {
      before = (await store.ledger.head()).seq;
      assert.ok((await store.backup.openExchanges()) >= 1, 'one exchange is open');
      await store.backup.backUp(copy, archiveOf);
    } finally {
      isOver = true;
      await writing;
    }
    assert.ok(during > 0);

    const backup = await archiveOf(copy);
    const target = await archiveOf(join(folder, 'restored'));
    t.after(() => Promise.all([backup.close(), target.close()]));
    assert.equal(await backup.openExchanges(), 0);
    const { differences, rows } = await backup.verify();
    assert.deepEqual(differences, []);
    assert.ok(rows >= before && rows <= (await store.ledger.head()).seq, `${before} ${rows}`);
    ok(await copyStore(backup, target));
    const refused = await copyStore(backup, target);
    assert.deepEqual(refused, { ok: false, refusal: { reason: 'target_not_empty' } });

    const restored = await openPlace(join(folder, 'restored'));
    const head = await restored.ledger.head();
    assert.equal(head.seq, rows);
    assert.deepEqual((await store.ledger.verify({ head })).differences, [], 'the copy is a past of the store');
    assert.equal((await restored.keys.find(owner.key.id))?.digest, owner.key.digest);
    assert.deepEqual(restored.secrets.current(), store.secrets.current());
    await restored.close();
  });
});
