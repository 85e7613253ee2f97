/** The queue of LMDB where a row is wrong and the disk refuses at once. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cause, entry, FakeClock, funded, ok, openStore } from './support/store.ts';

/** As LMDB tells it. */
const EIO = Object.assign(new Error('Input/output error'), { code: 5 });

test('F31: rows that the disk refuses one by one keep their order, are paused for, and settle once it is well', async (t) => {
  const clock = new FakeClock();
  const problems: string[] = [];
  let refuses = (): boolean => false;
  const store = await openStore(
    t,
    { clock, onProblem: ({ what }) => void problems.push(what) },
    {
      afterWrite() {
        if (refuses()) throw EIO;
      },
    },
  );
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
    startedAtMs: clock.now(),
  };
  refuses = () => true;
  const opened = settlements.open(exchange);
  const flushed = settlements.flush();
  // The opening is in hand now, so the settlement is a row of its own.
  const settled = settlements.settle({ entry: entry(owner, 'ex_1', 7n) });
  await assert.rejects(flushed, { code: 'unavailable' });
  // The batch gets as far as the row that is wrong; from then on each row meets the disk alone.
  refuses = () => false;
  let isFirst = true;
  const wrong = settlements.settle({
    entry: {
      ...entry(owner, 'ex_2', 0n),
      get charge() {
        if (isFirst) refuses = () => true;
        isFirst = false;
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
