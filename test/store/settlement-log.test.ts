/** The settlement log in front of the engines: what a killed process left counts once, whatever became of its file meanwhile. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { readLines, Segment } from '../../src/store/settlements/segment.ts';
import { SegmentFolder } from '../../src/store/settlements/segment-folder.ts';
import type { Store } from '../../src/store/store.ts';
import { StoreError } from '../../src/store/store-error.ts';
import { smallDisk } from '../support/small-disk.ts';
import { alive } from './support/alive.ts';
import { entry, FakeClock, funded, tempDirectory } from './support/store.ts';
import { eachStore, logOf } from './support/stores.ts';

const CHILD = fileURLToPath(new URL('./support/leave-child.ts', import.meta.url));
const FUNDS = 1_000_000n;
const COUNT = 40;
const mine = { process: { host: 'test', pid: process.pid, isAlive: alive } };

/** What a killed process of that key leaves: the one file of its log. */
function leave(place: string, secret: string): string {
  const ran = spawnSync(process.execPath, [CHILD, place, secret, String(COUNT)], { encoding: 'utf8' });
  assert.equal(ran.signal, 'SIGKILL', ran.stderr);
  const [file, ...more] = readdirSync(logOf(place));
  assert.ok(file !== undefined);
  assert.deepEqual(more, []);
  return join(logOf(place), file);
}

const wallet = async (store: Store): Promise<bigint | undefined> => (await store.accounts.list())[0]?.walletNanos;
const sound = async (store: Store) => assert.deepEqual((await store.ledger.verify()).differences, []);
const turn = () => new Promise((resolve) => setImmediate(resolve));

eachStore(({ openStore, place }) => {
  test('what a process settled before the turn in which it was killed is settled by the next one, once', async (t) => {
    const path = await place(t);
    const first = await openStore(t, { path, ...mine });
    const owner = await funded(first, FUNDS);
    await first.close();
    const file = leave(path, owner.secret);
    const kept = join(tempDirectory(t), 'kept');
    copyFileSync(file, kept);

    const store = await openStore(t, { path, ...mine });
    assert.equal(await wallet(store), FUNDS - 7n * BigInt(COUNT));
    const rows = await store.requestLog.list({ limit: 1_000 });
    assert.deepEqual(rows.map(({ status }) => status).sort(), ['interrupted', ...Array.from({ length: COUNT }, () => 'success')]);
    const [row] = await store.requestLog.find('ex_3');
    assert.deepEqual([row?.usage?.meters, row?.errorText], [new Map([['web_search', 3]]), 'ü\n水\ufffd']);
    await sound(store);
    await store.close();
    assert.deepEqual(readdirSync(logOf(path)), []);

    // The engine had all of it, and the process was killed before its file was gone.
    copyFileSync(kept, file);
    const again = await openStore(t, { path, ...mine });
    assert.equal(await wallet(again), FUNDS - 7n * BigInt(COUNT));
    assert.equal((await again.requestLog.list({ limit: 1_000 })).length, rows.length);
    await sound(again);
  });

  test('a process that lives on takes over what another one left when it looks, and both count', async (t) => {
    const path = await place(t);
    const store = await openStore(t, { path, ...mine });
    const owner = await funded(store, FUNDS);
    leave(path, owner.secret);
    void store.settlements.settle({ entry: entry(owner, 'mine', 5n) });
    const closed = await store.settlements.closeInterrupted();
    assert.deepEqual(
      closed.map(({ exchangeId }) => exchangeId),
      ['ex_cut'],
    );
    await store.settlements.flush();
    assert.equal(await wallet(store), FUNDS - 7n * BigInt(COUNT) - 5n);
    await sound(store);
  });

  test('an exchange that is closed as interrupted and settled late in one transaction has one row, which says so, and its charge', async (t) => {
    const path = await place(t);
    let isAway = false;
    const refuse = () => {
      if (isAway) throw new StoreError('unavailable', 'away');
    };
    const store = await openStore(t, { path, ...mine, clock: new FakeClock() }, refuse);
    const owner = await funded(store, FUNDS);
    leave(path, owner.secret);
    isAway = true;
    // In hand while the engine is away: what comes after it waits for the next transaction, all of it for the same one.
    void store.settlements.settle({ entry: entry(owner, 'before', 1n) });
    await store.settlements.flush();
    // Takes the log over; what it would then write of its own is refused.
    await Promise.allSettled([store.settlements.closeInterrupted()]);
    const late = store.settlements.settle({ entry: entry(owner, 'ex_cut', 9n) });
    assert.equal(store.settlements.pending, COUNT + 3);
    isAway = false;
    await store.settlements.flush();

    assert.deepEqual(await late, { settled: true, chargedNanos: 9n });
    const [row, ...more] = await store.requestLog.find('ex_cut');
    assert.deepEqual([row?.status, row?.charge?.total, more], ['success', 9n, []]);
    assert.equal((await store.requestLog.list({ limit: 1_000 })).length, COUNT + 2);
    assert.equal(await wallet(store), FUNDS - 7n * BigInt(COUNT) - 1n - 9n);
    await sound(store);
  });

  test('a bit that flipped in the middle of the log is named, and all else of it counts; a torn last line is nothing', async (t) => {
    const path = await place(t);
    const first = await openStore(t, { path, ...mine });
    const owner = await funded(first, FUNDS);
    await first.close();
    const file = leave(path, owner.secret);
    const bytes = readFileSync(file);
    const at = bytes.indexOf('"ex_20"');
    bytes[at + 4] = (bytes[at + 4] ?? 0) ^ 1;
    writeFileSync(file, bytes.subarray(0, -10));
    const problems: string[] = [];
    const store = await openStore(t, { path, ...mine, onProblem: ({ what }) => problems.push(what) });
    assert.equal(await wallet(store), FUNDS - 7n * BigInt(COUNT - 2));
    assert.equal(problems.length, 1);
    assert.match(problems.join(), /^settlements_damaged: 1 lines of .* could not be read; the file is kept$/);
    await sound(store);
    const [kept = '', ...more] = readdirSync(logOf(path));
    assert.deepEqual([kept.endsWith('.damaged'), more], [true, []]);
    await store.close();
  });

  test('the log of another store is left as it is, and named', async (t) => {
    const [path, other] = [await place(t), await place(t)];
    const stores = [await openStore(t, { path, ...mine }), await openStore(t, { path: other, ...mine })];
    const [owner] = await Promise.all(stores.map((store) => funded(store, FUNDS)));
    assert.ok(owner);
    for (const store of stores) await store.close();
    const file = leave(path, owner.secret);
    const moved = file.replace(logOf(path), logOf(other));
    mkdirSync(logOf(other), { recursive: true });
    copyFileSync(file, moved);
    const problems: string[] = [];
    const store = await openStore(t, { path: other, ...mine, onProblem: ({ what }) => problems.push(what) });
    await store.settlements.closeInterrupted();
    assert.equal(await wallet(store), FUNDS);
    assert.match(problems.join('\n'), /^settlements_of_another_store: \S+ is left as it is$/);
    assert.deepEqual(readFileSync(moved), readFileSync(file));
  });

  test('a process that was taken for dead writes what it still has into a new file', async (t) => {
    const path = await place(t);
    const store = await openStore(t, { path, ...mine, clock: new FakeClock() });
    const owner = await funded(store, FUNDS);
    void store.settlements.settle({ entry: entry(owner, 'before', 1n) });
    await turn();
    const [file = ''] = readdirSync(logOf(path));
    assert.equal(statSync(join(logOf(path), file)).mode & 0o777, 0o600);
    rmSync(join(logOf(path), file));
    await store.settlements.flush();
    void store.settlements.settle({ entry: entry(owner, 'after', 2n) });
    await turn();
    const [next = ''] = readdirSync(logOf(path));
    assert.match(readLines(join(logOf(path), next)).lines.join('\n'), /^s.*after[^\n]*$/);
    await store.settlements.flush();
    assert.equal(await wallet(store), FUNDS - 3n);
    await sound(store);
  });

  test('without a log settlements count all the same, and that it is missing is told once', async (t) => {
    const path = await place(t);
    const problems: string[] = [];
    const store = await openStore(t, { path, ...mine, onProblem: ({ what }) => problems.push(what) });
    const owner = await funded(store, FUNDS);
    rmSync(logOf(path), { recursive: true });
    for (let n = 0; n < 3; n += 1) {
      await turn();
      void store.settlements.settle({ entry: entry(owner, `ex_${n}`, 1n) });
    }
    await turn();
    await store.settlements.flush();
    assert.equal(await wallet(store), FUNDS - 3n);
    assert.deepEqual(problems, ['settlement_log_failed: 1 rows wait in memory only']);
  });
});

test('a line that a full disk cut off spoils none of those that follow', async (t) => {
  const path = smallDisk(t, '64k');
  if (path === undefined) return;
  const segment = Segment.create(join(path, 'log'));
  segment.append(Buffer.from('before\n'));
  writeFileSync(join(path, 'filler'), Buffer.alloc(32 * 1024));
  assert.throws(() => segment.append(Buffer.alloc(48 * 1024)), { code: 'ENOSPC' });
  rmSync(join(path, 'filler'));
  segment.append(Buffer.from('after\n'));
  await segment.sync();
  assert.equal(readFileSync(segment.path, 'utf8'), 'before\nafter\n');
  segment.remove();
  assert.deepEqual(readdirSync(path), []);
});

test('two processes that take themselves for the same have a file each', (t) => {
  const path = tempDirectory(t);
  const folder = (): SegmentFolder =>
    new SegmentFolder({ path, storeId: '0'.repeat(16), processId: 'own_01', mayLive: async () => true, onProblem: undefined });
  const segments = [folder().create(), folder().create()];
  for (const segment of segments) segment.append(Buffer.from('x'));
  assert.equal(readdirSync(path).length, 2);
  for (const segment of segments) segment.close();
});

test('a folder that takes no log is refused at start', (t) => {
  const file = join(tempDirectory(t), 'file');
  writeFileSync(file, '');
  const open = () =>
    new SegmentFolder({ path: file, storeId: '', processId: 'own_01', mayLive: async () => true, onProblem: undefined });
  assert.throws(open, { name: 'StoreError', code: 'unavailable' });
});
