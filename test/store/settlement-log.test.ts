/** The settlement log in front of the engines: what a killed process left counts once, whatever became of its file meanwhile. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Lines, readLines, Segment } from '../../src/store/settlements/segment.ts';
import { SegmentFolder } from '../../src/store/settlements/segment-folder.ts';
import type { Store } from '../../src/store/store.ts';
import { StoreError } from '../../src/store/store-error.ts';
import { smallDisk } from '../support/small-disk.ts';
import { eventually } from '../support/test-gateway.ts';
import { alive } from './support/alive.ts';
import { breakDescriptor, descriptorsOf, noDescriptors } from './support/descriptors.ts';
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

    const problems: string[] = [];
    const store = await openStore(t, { path, ...mine, onProblem: ({ what }) => problems.push(what) });
    assert.deepEqual(problems, [], 'nothing is damaged');
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
    const onProblem = ({ what, error }: { what: string; error?: unknown }) => problems.push(`${what}: ${error}`);
    const store = await openStore(t, { path, ...mine, onProblem });
    const owner = await funded(store, FUNDS);
    rmSync(logOf(path), { recursive: true });
    for (let n = 0; n < 3; n += 1) {
      await turn();
      void store.settlements.settle({ entry: entry(owner, `ex_${n}`, 1n) });
    }
    await turn();
    await store.settlements.flush();
    assert.equal(await wallet(store), FUNDS - 3n);
    assert.equal(problems.length, 1);
    assert.match(problems.join(), /^settlement_log_failed: 1 rows wait in memory only: Error: ENOENT: /);
  });

  test('the file of a process that lives is left to it, whoever looks', async (t) => {
    const path = await place(t);
    const clock = new FakeClock();
    const [first, second] = [await openStore(t, { path, ...mine, clock }), await openStore(t, { path, ...mine, clock })];
    const owner = await funded(first, FUNDS);
    void first.settlements.settle({ entry: entry(owner, 'ex_1', 1n) });
    await turn();
    const files = readdirSync(logOf(path));
    assert.equal(files.length, 1);
    for (const store of [second, first]) assert.deepEqual(await store.settlements.closeInterrupted(), []);
    assert.deepEqual(readdirSync(logOf(path)), files);
    assert.equal(await wallet(first), FUNDS - 1n);
    await sound(first);
  });

  test('a row that the engine has by the time the disk takes rows again is not logged any more', async (t) => {
    const path = await place(t);
    const clock = new FakeClock();
    const store = await openStore(t, { path, ...mine, clock });
    const owner = await funded(store, FUNDS);
    rmSync(logOf(path), { recursive: true });
    void store.settlements.settle({ entry: entry(owner, 'ex_1', 1n) });
    await turn();
    await store.settlements.flush();
    mkdirSync(logOf(path));
    clock.advance(1_000);
    await turn();
    assert.deepEqual(readdirSync(logOf(path)), []);
    assert.equal(await wallet(store), FUNDS - 1n);
  });

  test('who needs no more than the disk is answered when a row is kept, and the engine takes it once it can', async (t) => {
    let isAway = false;
    const refuse = () => {
      if (isAway) throw new StoreError('unavailable', 'away');
    };
    const clock = new FakeClock();
    const store = await openStore(t, { ...mine, clock }, refuse);
    const owner = await funded(store, FUNDS);
    isAway = true;
    let isOpened = false;
    const opened = Promise.resolve(store.settlements.open(entry(owner, 'ex_2', 0n), true)).then(() => {
      isOpened = true;
    });
    const settled = store.settlements.settle({ entry: entry(owner, 'ex_1', 5n), strict: true });
    await turn();
    assert.equal(isOpened, false, 'it is not on the disk yet');
    clock.advance(10);
    assert.deepEqual(await settled, { settled: true, chargedNanos: 5n });
    await opened;
    assert.equal(store.settlements.pending, 2);
    isAway = false;
    // The first may join a try that began while the engine was away.
    while (store.settlements.pending > 0) await store.settlements.flush();
    assert.equal(await wallet(store), FUNDS - 5n);
    await sound(store);
  });

  test('what the disk did not take is logged once it does, and is tried with a pause, not with every row', async (t) => {
    const path = await place(t);
    let isAway = false;
    const refuse = () => {
      if (isAway) throw new StoreError('unavailable', 'away');
    };
    const clock = new FakeClock();
    const store = await openStore(t, { path, ...mine, clock }, refuse);
    const owner = await funded(store, FUNDS);
    isAway = true;
    rmSync(logOf(path), { recursive: true });
    const settle = (id: string) => store.settlements.settle({ entry: entry(owner, id, 2n), strict: true });
    const first = settle('ex_1');
    await turn();
    mkdirSync(logOf(path));
    const second = settle('ex_2');
    await turn();
    clock.advance(999);
    await turn();
    assert.deepEqual(readdirSync(logOf(path)), [], 'a second has not gone by');
    clock.advance(1);
    for (const settled of [first, second]) assert.deepEqual(await settled, { settled: true, chargedNanos: 2n });
    const [file = '', ...more] = readdirSync(logOf(path));
    assert.deepEqual([readLines(join(logOf(path), file)).lines.length, more], [2, []]);
    isAway = false;
    // The first may join a try that began while the engine was away.
    while (store.settlements.pending > 0) await store.settlements.flush();
    assert.equal(await wallet(store), FUNDS - 4n);
    await sound(store);
  });

  test('rows of a turn are written and synced once, and a store at rest asks for no sync', async (t) => {
    const delays: number[] = [];
    class Clock extends FakeClock {
      override after(ms: number, callback: () => void): () => void {
        delays.push(ms);
        return super.after(ms, callback);
      }
    }
    const clock = new Clock();
    const store = await openStore(t, { ...mine, clock, flushMs: 1_000 });
    const owner = await funded(store, FUNDS);
    const syncs = (): number => delays.filter((ms) => ms === 10).length;
    const later = t.mock.method(globalThis, 'setImmediate');
    for (let n = 0; n < 3; n += 1) void store.settlements.settle({ entry: entry(owner, `ex_${n}`, 1n) });
    assert.equal(later.mock.callCount(), 1);
    later.mock.restore();
    await turn();
    assert.equal(syncs(), 1);
    for (let n = 0; n < 5; n += 1) {
      clock.advance(10);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    assert.equal(syncs(), 1);
    await store.settlements.flush();
    assert.equal(await wallet(store), FUNDS - 3n);
  });

  test('after a sync that failed all that waits stands in another file', { skip: noDescriptors }, async (t) => {
    const path = await place(t);
    let isAway = false;
    const refuse = () => {
      if (isAway) throw new StoreError('unavailable', 'away');
    };
    const clock = new FakeClock();
    const store = await openStore(t, { path, ...mine, clock }, refuse);
    const owner = await funded(store, FUNDS);
    isAway = true;
    const settled = store.settlements.settle({ entry: entry(owner, 'ex_1', 2n), strict: true });
    await turn();
    const [first = ''] = readdirSync(logOf(path));
    const [descriptor] = descriptorsOf(join(logOf(path), first));
    assert.ok(descriptor !== undefined);
    breakDescriptor(t, descriptor);
    clock.advance(10);
    await eventually(() => !readdirSync(logOf(path)).includes(first), 'a file that is given up');
    clock.advance(10);
    assert.deepEqual(await settled, { settled: true, chargedNanos: 2n });
    const [next = '', ...more] = readdirSync(logOf(path));
    assert.match(readLines(join(logOf(path), next)).lines.join('\n'), /^s.*ex_1[^\n]*$/);
    assert.deepEqual([next !== first, more], [true, []]);
    isAway = false;
    // The first may join a try that began while the engine was away.
    while (store.settlements.pending > 0) await store.settlements.flush();
    assert.equal(await wallet(store), FUNDS - 2n);
    await sound(store);
  });

  test('at the end only that is given up which stands nowhere: the next process settles the rest', {
    skip: noDescriptors,
  }, async (t) => {
    const path = await place(t);
    let isAway = false;
    const refuse = () => {
      if (isAway) throw new StoreError('unavailable', 'away');
    };
    const clock = new FakeClock();
    const problems: string[] = [];
    const store = await openStore(t, { path, ...mine, clock, onProblem: ({ what }) => problems.push(what) }, refuse);
    const owner = await funded(store, FUNDS);
    isAway = true;
    const kept = store.settlements.settle({ entry: entry(owner, 'kept', 2n), strict: true });
    await turn();
    clock.advance(10);
    await kept;
    const [file = ''] = readdirSync(logOf(path));
    const [descriptor] = descriptorsOf(join(logOf(path), file));
    assert.ok(descriptor !== undefined);
    breakDescriptor(t, descriptor);
    const lost = assert.rejects(async () => store.settlements.settle({ entry: entry(owner, 'lost', 3n) }), {
      code: 'unavailable',
      message: 'the store was closed while nothing took the row',
    });
    await turn();
    await store.close();
    await lost;
    assert.equal(problems.filter((what) => what.startsWith('settlement_lost')).length, 1);
    assert.match(problems.join('\n'), /settlement_lost: .*"lost"/);
    isAway = false;
    const again = await openStore(t, { path, ...mine });
    assert.equal(await wallet(again), FUNDS - 2n);
    await sound(again);
  });

  test('what a process took over, and its engine does not take, is lost by nobody: the next process settles it', async (t) => {
    const path = await place(t);
    let isAway = false;
    const refuse = () => {
      if (isAway) throw new StoreError('unavailable', 'away');
    };
    const problems: string[] = [];
    const store = await openStore(t, { path, ...mine, onProblem: ({ what }) => problems.push(what) }, refuse);
    const owner = await funded(store, FUNDS);
    leave(path, owner.secret);
    isAway = true;
    await store.settlements.closeInterrupted().catch((error: unknown) => assert.ok(error instanceof StoreError));
    await store.settlements.flush();
    await store.close();
    assert.deepEqual(
      problems.filter((what) => what.includes('_lost')),
      [],
    );
    isAway = false;
    const again = await openStore(t, { path, ...mine });
    assert.equal(await wallet(again), FUNDS - 7n * BigInt(COUNT));
    await sound(again);
  });

  test('a line that is none, though its checksum holds, is told, and its file is kept; what is one counts', async (t) => {
    const path = await place(t);
    const first = await openStore(t, { path, ...mine });
    const owner = await funded(first, FUNDS);
    await first.close();
    const lines = new Lines();
    const { account, key } = owner;
    const exchange = { ...entry(owner, 'ex_open', 0n), accountId: account.id, keyId: key.id };
    const { exchangeId, requestId, accountId, keyId, endpoint, model, stream, startedAtMs } = exchange;
    const open = JSON.stringify({ exchangeId, requestId, accountId, keyId, endpoint, model, stream, startedAtMs });
    for (const content of ['s{', 'o{}', 'x', JSON.stringify({ open })]) lines.add(content);
    mkdirSync(logOf(path), { recursive: true });
    writeFileSync(join(logOf(path), '5-own_0a.spool'), lines.bytes);
    const problems: string[] = [];
    const store = await openStore(t, { path, ...mine, onProblem: ({ what }) => problems.push(what) });
    assert.equal(problems.length, 1);
    assert.match(problems.join(), /^settlements_damaged: 3 lines of /);
    assert.deepEqual(
      (await store.requestLog.list()).map((row) => [row.exchangeId, row.status]),
      [['ex_open', 'interrupted']],
    );
    await store.settlements.flush();
    const [kept = '', ...more] = readdirSync(logOf(path));
    assert.deepEqual([kept.endsWith('.damaged'), more], [true, []]);
    await sound(store);
  });

  test('a store that is closed takes no opening and no settlement, also of one exchange', async (t) => {
    const store = await openStore(t, mine);
    const owner = await funded(store, FUNDS);
    await store.close();
    for (const refused of [
      store.settlements.open(entry(owner, 'ex_1', 0n)),
      store.settlements.settle({ entry: entry(owner, 'ex_1', 0n) }),
    ])
      await assert.rejects(async () => refused, { code: 'closed', message: 'the store is closed' });
  });

  test('an exchange that another process settled is not closed when its own process dies', async (t) => {
    const path = await place(t);
    let isAway = false;
    const refuse = () => {
      if (isAway) throw new StoreError('unavailable', 'away');
    };
    const [first, second] = [await openStore(t, { path, ...mine }, refuse), await openStore(t, { path, ...mine })];
    const owner = await funded(first, FUNDS);
    for (const id of ['settled', 'open']) void first.settlements.open(entry(owner, id, 0n));
    await first.settlements.flush();
    void second.settlements.settle({ entry: entry(owner, 'settled', 3n) });
    await second.settlements.flush();
    // It cannot write its farewell.
    isAway = true;
    await first.close();
    const closed = await second.settlements.closeInterrupted();
    assert.deepEqual(
      closed.map(({ exchangeId }) => exchangeId),
      ['open'],
    );
    assert.deepEqual(
      (await second.requestLog.list()).map(({ exchangeId, status }) => [exchangeId, status]),
      [
        ['open', 'interrupted'],
        ['settled', 'success'],
      ],
    );
    assert.equal(await wallet(second), FUNDS - 3n);
    await sound(second);
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
