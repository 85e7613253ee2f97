/**
 * A full disk, for real: a small file system in memory. Needs the right to mount one; elsewhere the test says so and is skipped.
 * Nothing is half written, nothing is lost while the process lives, and no rejection goes unhandled.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openLmdbStore } from '../../src/store/lmdb/open.ts';
import type { Store } from '../../src/store/store.ts';
import { StoreError } from '../../src/store/store-error.ts';
import { eventually } from '../support/test-gateway.ts';
import { smallDisk } from '../support/small-disk.ts';
import { cause, entry, FakeClock, funded, ok, openStore, options, tempDirectory } from './support/store.ts';

/** A try that is under way when the second passes is no new one: seconds pass until it is well. */
async function heals(store: Store, clock: FakeClock): Promise<void> {
  await eventually(() => {
    clock.advance(1_000);
    return store.health().healthy;
  }, 'a store that is well again');
}

test('F31: a full disk refuses whole changes, keeps settlements waiting, and recovers', async (t) => {
  const path = smallDisk(t, '4m');
  if (path === undefined) return;
  const unhandled: unknown[] = [];
  const note = (reason: unknown): void => {
    unhandled.push(reason);
  };
  process.on('unhandledRejection', note);
  t.after(() => process.off('unhandledRejection', note));

  const clock = new FakeClock();
  const problems: string[] = [];
  const store = await openLmdbStore(
    options(path, { clock, ballastBytes: 256 * 1024, onProblem: ({ what }) => problems.push(what) }),
  );
  const owner = await funded(store, 10n ** 12n);
  const hasBallast = (): boolean => existsSync(join(path, 'ballast'));
  assert.equal(hasBallast(), true);
  writeFileSync(join(path, 'filler'), Buffer.alloc(2_900_000));

  let refusals = 0;
  let settled = 0;
  for (let n = 0; n < 400 && refusals === 0; n += 1) {
    const text = 'x'.repeat(20_000);
    const done = store.settlements.settle({ entry: entry(owner, `full-${n}`, 1n, { errorText: text }) });
    done.then(() => {
      settled += 1;
    }, assert.fail);
    try {
      await store.settlements.flush();
    } catch (error) {
      assert.ok(error instanceof StoreError);
      refusals += 1;
    }
  }
  assert.equal(refusals, 1, 'the disk was never full');
  assert.equal(store.health().healthy, false);
  // The last one is in memory alone; the log may have taken others that the engine refused.
  const { pending } = store.settlements;
  assert.ok(pending >= 1);
  assert.equal(hasBallast(), false, 'given up for what is in flight');
  await assert.rejects(async () => store.admission.admit(owner, 1n, clock.now()), { code: 'unhealthy' });
  assert.deepEqual((await store.ledger.verify()).differences, []);
  const { total } = await store.spend.spend(owner.key.id, clock.now());
  assert.ok(total <= BigInt(settled) && BigInt(settled) < total + BigInt(pending), `${total}, ${settled}, ${pending}`);

  rmSync(join(path, 'filler'));
  await heals(store, clock);
  assert.equal(hasBallast(), true);
  await store.settlements.flush();
  assert.equal((await store.spend.spend(owner.key.id, clock.now())).total, BigInt(settled));
  ok(await store.accounts.credit(owner.account.id, 1n, cause()));
  assert.deepEqual((await store.ledger.verify()).differences, []);
  await store.close();
  assert.deepEqual(unhandled, []);
  assert.ok(problems.includes('store_write_failed'));
});

test('F31: below the floor of free space no new work is taken, and what is in flight still settles', async (t) => {
  const store = await openStore(t, { freeSpaceFloor: Number.MAX_SAFE_INTEGER });
  const owner = await funded(store, 10n);
  const health = store.health();
  assert.equal(!health.healthy && health.reason, 'free_space');
  await assert.rejects(async () => store.admission.admit(owner, 1n, 0), { name: 'StoreError', code: 'unhealthy' });
  const video = {
    id: 'v',
    principal: owner,
    model: 'v',
    requestJson: '{}',
    priceNanos: 1n,
    idempotencyKey: 'k',
    bodyHash: 'h',
    nowMs: 0,
  };
  await assert.rejects(store.videos.create(video), { name: 'StoreError', code: 'unhealthy' });
  assert.equal((await store.settlements.settle({ entry: entry(owner, 'f1', 1n) })).settled, true);
});

for (const [what, prepare] of [
  ['a new folder', () => undefined],
  ['a folder that a process has left so', (path: string) => truncateSync(path, 8_192)],
] as const) {
  test(`F31: ${what} on a disk without room is a StoreError at start, and no end by a signal`, async (t) => {
    const disk = smallDisk(t, '256k');
    if (disk === undefined) return;
    const path = join(disk, 'data');
    mkdirSync(path);
    const lock = join(path, 'lock.mdb');
    writeFileSync(lock, '');
    prepare(lock);
    assert.throws(() => writeFileSync(join(disk, 'filler'), Buffer.alloc(512 * 1024)), /ENOSPC/);
    const child = join(import.meta.dirname, 'support/open-child.ts');
    const { status, signal, stdout } = spawnSync(process.execPath, [child, path], { encoding: 'utf8' });
    assert.deepEqual([status, signal, stdout.split(':')[0]], [0, null, 'disk_full'], stdout);
    rmSync(join(disk, 'filler'));
    assert.equal(spawnSync(process.execPath, [child, path], { encoding: 'utf8' }).stdout.trim(), 'opened');
  });
}

test('a path that cannot be used is a StoreError at start', async (t) => {
  const path = join(tempDirectory(t), 'file');
  writeFileSync(path, 'not a directory');
  await assert.rejects(openLmdbStore(options(path)), { name: 'StoreError', code: 'unavailable' });
});

test('F31: while settlements are refused, a smaller write that goes through makes nothing well; what is wrong is said once', async (t) => {
  const clock = new FakeClock();
  const problems: string[] = [];
  let refusing = false;
  let writes = 0;
  // A quota, which free space does not show: the first write of a transaction still finds a page.
  const afterWrite = (): void => {
    writes += 1;
    queueMicrotask(() => {
      writes = 0;
    });
    if (refusing && writes > 1) throw Object.assign(new Error('Disk quota exceeded'), { code: 122 });
  };
  const store = await openStore(t, { clock, onProblem: ({ what }) => problems.push(what) }, { afterWrite });
  const owner = await funded(store, 10n);
  refusing = true;
  const settled = store.settlements.settle({ entry: entry(owner, 'waits', 1n) });
  await store.settlements.flush();
  for (let second = 0; second < 5; second += 1) {
    clock.advance(1_000);
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert.equal(store.health().healthy, false, `after ${second} s`);
  }
  refusing = false;
  await heals(store, clock);
  assert.equal((await settled).settled, true);
  assert.deepEqual(problems, ['store_write_failed', 'store_healthy']);
});

test('F31: that a store is well again is told once, whoever saw it first: the queue, or who looks at the disk', async (t) => {
  const clock = new FakeClock();
  const problems: string[] = [];
  let refusing = false;
  const afterWrite = (): void => {
    if (refusing) throw Object.assign(new Error('Input/output error'), { code: 5 });
  };
  const store = await openStore(t, { clock, onProblem: ({ what }) => problems.push(what) }, { afterWrite });
  const owner = await funded(store, 100n);
  refusing = true;
  // A second passes just when the row is on disk: the look that begins then ends after the queue has told.
  const reservation = { release: () => undefined, handOver: () => () => clock.advance(1_000) };
  void store.settlements.settle({ entry: entry(owner, 'waits', 1n), reservation });
  await store.settlements.flush();
  assert.equal(store.settlements.pending, 1);
  refusing = false;
  await store.settlements.flush();
  assert.equal(store.settlements.pending, 0);
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.deepEqual(problems, ['store_write_failed', 'store_healthy']);
});

test('F31: a disk that is too full at the start is told', async (t) => {
  const problems: string[] = [];
  await openStore(t, { freeSpaceFloor: Number.MAX_SAFE_INTEGER, onProblem: ({ what }) => problems.push(what) });
  assert.equal(problems.length, 1);
  assert.match(problems.join(), /^store_unhealthy: \d+ bytes are free, the floor is \d+$/);
});

test('F31: heartbeats that fail are told once, until one goes through', async (t) => {
  const clock = new FakeClock();
  const problems: string[] = [];
  let refusing = false;
  let beats = 0;
  const afterWrite = (): void => {
    beats += 1;
    if (refusing) throw Object.assign(new Error('Disk quota exceeded'), { code: 122 });
  };
  const store = await openStore(t, { clock, onProblem: ({ what }) => problems.push(what) }, { afterWrite });
  for (const refused of [true, true, true, false, true]) {
    refusing = refused;
    const before = beats;
    clock.advance(10_000);
    await eventually(() => beats > before, 'a heartbeat');
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
  refusing = false;
  assert.equal(problems.filter((what) => what === 'heartbeat_failed').length, 2);
  assert.equal(store.settlements.pending, 0);
});
