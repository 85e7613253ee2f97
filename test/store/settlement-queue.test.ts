/** The settlement queue on LMDB, without a log that could keep its rows, where a row is wrong and the disk refuses at once. */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { Reservation } from '../../src/store/reservations.ts';
import { StoreError } from '../../src/store/store-error.ts';
import type { Seams } from '../../src/store/lmdb/environment.ts';
import { eventually } from '../support/test-gateway.ts';
import { cause, entry, FakeClock, funded, ok, openStore, tempDirectory } from './support/store.ts';

/** As LMDB tells it. */
const EIO = Object.assign(new Error('Input/output error'), { code: 5 });

async function openWithoutLog(t: TestContext, onProblem: (what: string) => void, seams: Seams) {
  const path = tempDirectory(t);
  const store = await openStore(t, { path, clock: new FakeClock(), onProblem: ({ what }) => onProblem(what) }, seams);
  rmSync(join(path, 'settlements'), { recursive: true });
  return store;
}

test('F31: rows that the disk refuses one by one keep their order, are paused for, and settle once it is well', async (t) => {
  let refuses = (): boolean => false;
  const afterWrite = (): void => {
    if (refuses()) throw EIO;
  };
  const store = await openWithoutLog(t, () => undefined, { afterWrite });
  const owner = await funded(store, 1_000n);
  const { settlements } = store;
  const exchange = {
    exchangeId: 'ex_1',
    requestId: 'req_1',
    accountId: owner.account.id,
    keyId: owner.key.id,
    endpoint: 'chat',
    model: 'm',
    stream: false,
    startedAtMs: 0,
  };
  refuses = () => true;
  const opened = settlements.open(exchange);
  const flushed = settlements.flush();
  // The opening is in hand now, so the settlement is a row of its own.
  const settled = settlements.settle({ entry: entry(owner, 'ex_1', 7n) });
  await assert.rejects(flushed, { code: 'unavailable' });
  // The batch gets as far as the row that is wrong; from then on each row meets the disk alone.
  refuses = () => false;
  let reads = 0;
  const wrong = settlements.settle({
    entry: {
      ...entry(owner, 'ex_2', 0n),
      get charge() {
        reads += 1;
        // Its text was made before.
        if (reads === 2) refuses = () => true;
        return { lines: [], total: -1n, flags: [] };
      },
    },
  });
  const last = settlements.settle({ entry: entry(owner, 'ex_3', 5n) });
  const failed = assert.rejects(Promise.resolve(wrong), { code: 'amount_out_of_range' });
  await assert.rejects(settlements.flush(), { code: 'unavailable' });
  refuses = () => false;
  await settlements.flush();
  await failed;
  await opened;
  assert.deepEqual(
    [await settled, await last].map((one) => one.settled),
    [true, true],
  );
  assert.equal((await store.accounts.find(owner.account.id))?.walletNanos, 1_000n - 12n);
  ok(await store.accounts.credit(owner.account.id, 1n, cause()));
  assert.deepEqual((await store.ledger.verify()).differences, []);
});

test('F31: of rows that are written one by one, only those that the disk refused wait', async (t) => {
  const problems: string[] = [];
  const lost = () => problems.filter((what) => what.startsWith('settlement_lost'));
  let isSick = (): boolean => lost().length > 0;
  const afterWrite = (): void => {
    if (isSick()) throw EIO;
  };
  const store = await openWithoutLog(t, (what) => problems.push(what), { afterWrite });
  const owner = await funded(store, 1_000n);
  const { settlements } = store;
  const settle = (id: string, nanos: bigint, more: { reservation?: Reservation } = {}) =>
    settlements.settle({ entry: entry(owner, id, nanos), ...more });
  const reservation = ok(await store.admission.admit(owner, 9n, 0));
  const [first, wrong, last] = [settle('ex_1', 7n), settle('ex_2', -1n, { reservation }), settle('ex_3', 5n)];
  const failed = assert.rejects(Promise.resolve(wrong), { code: 'amount_out_of_range' });
  await assert.rejects(settlements.flush(), { code: 'unavailable' });
  await failed;
  assert.equal(settlements.pending, 1);
  assert.equal(store.admission.reserved(owner.key.id), 0n, 'what is lost holds nothing back');
  isSick = () => false;
  await settlements.flush();
  assert.deepEqual([(await first).settled, (await last).settled], [true, true]);
  assert.equal(lost().length, 1, 'a row that is lost is told once');
  assert.equal((await store.accounts.find(owner.account.id))?.walletNanos, 1_000n - 12n);

  isSick = () => true;
  const fourth = settle('ex_4', 1n);
  await assert.rejects(settlements.flush(), { code: 'unavailable', message: '1 rows could not be written and still wait' });
  assert.equal(store.health().healthy, false);
  isSick = () => false;
  const another = assert.rejects(Promise.resolve(settle('ex_5', -1n)), { code: 'amount_out_of_range' });
  await settlements.flush();
  await another;
  assert.equal((await fourth).settled, true);
  assert.equal(store.health().healthy, true, 'rows that were written one by one were written, too');
});

test('F33: what cannot be written at the end is given up aloud, whole, and the store closes', async (t) => {
  const problems: string[] = [];
  let isSick = false;
  const afterWrite = (): void => {
    if (isSick) throw EIO;
  };
  const store = await openWithoutLog(t, (what) => problems.push(what), { afterWrite });
  const owner = await funded(store, 1_000n);
  isSick = true;
  const settled = assert.rejects(async () => store.settlements.settle({ entry: entry(owner, 'ex_1', 7n) }), StoreError);
  await store.close();
  await settled;
  const said = problems.filter((what) => what.startsWith('settlement_lost'));
  assert.equal(said.length, 1);
  assert.match(said.join(), /"exchangeId":"ex_1".*"chargedNanos":"7"/);
});

test('F31: after rows that are written one by one and meet a disk that refuses, it is tried again with a pause', async (t) => {
  const problems: string[] = [];
  const delays: number[] = [];
  let isSick = (): boolean => problems.some((what) => what.startsWith('settlement_lost'));
  const afterWrite = (): void => {
    if (isSick()) throw EIO;
  };
  class Clock extends FakeClock {
    override after(ms: number, callback: () => void): () => void {
      delays.push(ms);
      return super.after(ms, callback);
    }
  }
  const clock = new Clock();
  const path = tempDirectory(t);
  const store = await openStore(t, { path, clock, flushMs: 77, onProblem: ({ what }) => problems.push(what) }, { afterWrite });
  rmSync(join(path, 'settlements'), { recursive: true });
  const owner = await funded(store, 1_000n);
  const failed = assert.rejects(async () => store.settlements.settle({ entry: entry(owner, 'ex_1', -1n) }), StoreError);
  const settled = store.settlements.settle({ entry: entry(owner, 'ex_2', 5n) });
  const tries = (): number[] => delays.filter((ms) => ms === 77 || ms === 250);
  assert.deepEqual(tries(), [77]);
  clock.advance(77);
  await failed;
  await eventually(() => tries().length > 1, 'another try');
  assert.deepEqual(tries(), [77, 250]);
  isSick = () => false;
  clock.advance(250);
  assert.deepEqual(await settled, { settled: true, chargedNanos: 5n });
});
