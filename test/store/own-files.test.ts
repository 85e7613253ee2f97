/**
 * The files of a store that are deleted, moved away or replaced while it is open: it would go on as if nothing had happened, with
 * what is charged in a file that nobody opens again. Nobody is let in then, and what is under way waits for the next start.
 */
import assert from 'node:assert/strict';
import { copyFileSync, existsSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openLmdbStore } from '../../src/store/lmdb/open.ts';
import { eventually } from '../support/test-gateway.ts';
import { cause, entry, FakeClock, funded, ok, openStore, options, tempDirectory } from './support/store.ts';

const WAYS: readonly (readonly [string, (path: string) => void])[] = [
  ['the data is deleted', (path) => rmSync(join(path, 'data.mdb'))],
  [
    'the data is replaced by a backup',
    (path) => {
      copyFileSync(join(path, 'data.mdb'), join(path, 'backup'));
      renameSync(join(path, 'backup'), join(path, 'data.mdb'));
    },
  ],
  ['the lock is deleted', (path) => rmSync(join(path, 'lock.mdb'))],
  ['the folder is moved away', (path) => renameSync(path, `${path}-moved`)],
];

for (const [what, change] of WAYS) {
  test(`F31: ${what} while the store is open: told once, nobody is let in, and what is under way is kept`, async (t) => {
    const path = join(tempDirectory(t), 'data');
    const clock = new FakeClock();
    const problems: string[] = [];
    const store = await openStore(t, { path, clock, flushMs: 0, onProblem: ({ what: problem }) => problems.push(problem) });
    const owner = await funded(store, 10n);
    change(path);
    await eventually(() => {
      clock.advance(1_000);
      return !store.health().healthy;
    }, 'a store that is not well');
    await assert.rejects(async () => store.admission.admit(owner, 1n, clock.now()), { name: 'StoreError', code: 'unhealthy' });
    const unhealthy = problems.filter((problem) => problem.startsWith('store_unhealthy'));
    assert.equal(unhealthy.length, 1, problems.join());
    assert.match(unhealthy[0] ?? '', /(data|lock)\.mdb in .* was removed or replaced/);

    const settled = store.settlements.settle({ entry: entry(owner, 'late', 3n) });
    await store.settlements.flush();
    assert.equal((await settled).settled, true);
    await store.close();
    assert.deepEqual(
      problems.filter((problem) => /settlement_lost|store_watch_failed/.test(problem)),
      [],
    );
    // What was deleted is gone, with its accounts; everywhere else the next start finds it.
    if (what === 'the data is deleted') return;
    const next = await openLmdbStore(options(existsSync(path) ? path : `${path}-moved`));
    t.after(() => next.close());
    assert.equal((await next.spend.spend(owner.key.id, clock.now())).total, 3n);
    assert.deepEqual((await next.ledger.verify()).differences, []);
  });
}

test('files that are put back make the store well again', async (t) => {
  const path = join(tempDirectory(t), 'data');
  const clock = new FakeClock();
  const store = await openStore(t, { path, clock });
  const owner = await funded(store, 10n);
  const aside = join(path, 'aside');
  renameSync(join(path, 'data.mdb'), aside);
  const turns = (isHealthy: boolean) =>
    eventually(() => {
      clock.advance(1_000);
      return store.health().healthy === isHealthy;
    }, `a store whose health is ${isHealthy}`);
  await turns(false);
  await assert.rejects(store.accounts.credit(owner.account.id, 5n, cause()), { name: 'StoreError', code: 'unavailable' });
  renameSync(aside, join(path, 'data.mdb'));
  await turns(true);
  assert.equal(ok(await store.accounts.credit(owner.account.id, 5n, cause())).walletNanos, 15n);
});
