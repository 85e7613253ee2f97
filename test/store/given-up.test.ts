/**
 * LMDB gives its environment up when the last write of a commit fails, that of a meta page: then it reads and writes no more,
 * however well the disk is. That write goes through a descriptor of its own, which is put out of order here.
 */
import assert from 'node:assert/strict';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openLmdbStore } from '../../src/store/lmdb/open.ts';
import { eventually } from '../support/test-gateway.ts';
import { breakDescriptor, descriptorsOf, noDescriptors as skip } from './support/descriptors.ts';
import { cause, entry, funded, ok, options, tempDirectory } from './support/store.ts';

const O_DSYNC = 0o10000;

/** The descriptor by which LMDB writes meta pages: the synchronous one of the store's file. */
function metaDescriptor(path: string): number {
  const found = descriptorsOf(join(path, 'data.mdb')).find((descriptor) => {
    const flags = /^flags:\s+([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, 'utf8'))?.[1] ?? '0';
    return (Number.parseInt(flags, 8) & O_DSYNC) !== 0;
  });
  assert.ok(found !== undefined, 'LMDB has no descriptor of its own for meta pages');
  return found;
}

test('F31: a store whose last write of a commit failed goes on by itself, with everything settled once', { skip }, async (t) => {
  const problems: string[] = [];
  const path = tempDirectory(t);
  const store = await openLmdbStore(options(path, { onProblem: ({ what }) => problems.push(what) }));
  const owner = await funded(store, 1_000n);
  breakDescriptor(t, metaDescriptor(path));

  const settled = store.settlements.settle({ entry: entry(owner, 'ex_1', 5n) });
  // Whoever writes in the same moment fails alike, and who comes a moment later waits: nobody waits for ever.
  const credits = [store.accounts.credit(owner.account.id, 1n, cause()), store.leases.acquire('job', 'me', 1_000, 0)];
  const refused = Promise.all(credits.map((credit) => assert.rejects(credit, { code: 'unavailable' })));
  const flushed = store.settlements.flush();
  await new Promise((resolve) => setImmediate(resolve));
  const later = store.accounts.credit(owner.account.id, 10n, cause());
  // The settlement is in the log.
  await flushed;
  await refused;
  assert.equal(store.health().healthy, false);
  ok(await later);

  assert.equal((await settled).settled, true);
  await eventually(() => store.health().healthy && store.settlements.pending === 0, 'a store that is well again');
  assert.equal((await store.accounts.find(owner.account.id))?.walletNanos, 1_000n - 5n + 10n);
  assert.equal((await store.leases.acquire('job', 'another', 1_000, 0)).ok, true, 'what failed left nothing behind');
  assert.deepEqual(store.secrets.byId(store.secrets.current().id), store.secrets.current());
  assert.deepEqual((await store.ledger.verify()).differences, []);
  assert.deepEqual(problems, ['store_write_failed', 'store_healthy']);
  await store.close();
});

test('F31: what cannot be read says that it is not well, before the commit that failed has told so', { skip }, async (t) => {
  const path = tempDirectory(t);
  const store = await openLmdbStore(options(path));
  const owner = await funded(store, 1_000n);
  breakDescriptor(t, metaDescriptor(path));
  let hasEnded = false;
  const credit = assert.rejects(store.accounts.credit(owner.account.id, 1n, cause()), { name: 'StoreError' }).finally(() => {
    hasEnded = true;
  });
  while (!hasEnded) {
    await new Promise((resolve) => setTimeout(resolve, 0));
    const [read] = await Promise.allSettled([store.accounts.find(owner.account.id)]);
    if (read.status === 'rejected') assert.equal(store.health().healthy, false, 'a store that refuses to read is not well');
  }
  await credit;
  await store.close();
});

test('F31: a store is closed whatever state the failure left it in', { skip }, async (t) => {
  const path = tempDirectory(t);
  const store = await openLmdbStore(options(path));
  const owner = await funded(store, 1_000n);
  breakDescriptor(t, metaDescriptor(path));
  const credit = assert.rejects(store.accounts.credit(owner.account.id, 1n, cause()), { name: 'StoreError' });
  await store.close();
  await credit;
  const again = await openLmdbStore(options(path));
  assert.equal((await again.accounts.find(owner.account.id))?.walletNanos, 1_000n);
  await again.close();
});

test('F31: a store that cannot be opened anew at once is tried until it can', { skip }, async (t) => {
  const problems: string[] = [];
  const path = tempDirectory(t);
  const store = await openLmdbStore(options(path, { onProblem: ({ what, error }) => problems.push(`${what}: ${error}`) }));
  const owner = await funded(store, 1_000n);
  breakDescriptor(t, metaDescriptor(path));
  const file = join(path, 'data.mdb');
  renameSync(file, join(path, 'kept'));
  writeFileSync(file, 'no store');

  const settled = store.settlements.settle({ entry: entry(owner, 'ex_1', 5n) });
  await store.settlements.flush();
  await eventually(() => problems.length === 2, 'a store that was not opened anew');
  assert.match(problems.join('\n'), /^store_write_failed: .*Bad file descriptor\nstore_write_failed: .*data\.mdb is cut short/);
  await assert.rejects(store.accounts.find(owner.account.id), { code: 'unavailable' });
  await store.settlements.flush();
  assert.equal(store.health().healthy, false);
  assert.equal(store.settlements.pending, 1);

  renameSync(join(path, 'kept'), file);
  assert.equal((await settled).settled, true);
  await eventually(() => store.health().healthy && store.settlements.pending === 0, 'a store that is well again');
  assert.equal((await store.accounts.find(owner.account.id))?.walletNanos, 995n);
  assert.equal(problems.length, 3, problems.join('\n'));
  await store.close();
});
