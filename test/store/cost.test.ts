/**
 * What admission and settlement cost: processor time a request at 32 in flight, printed. The bound is wide: it catches a mistake,
 * not a slow machine.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { entry, funded, ok, openStore } from './support/store.ts';

const LANES = 32;
const REQUESTS = 4_096;

test('processor time of admission and settlement', async (t) => {
  const store = await openStore(t);
  const owner = await funded(store, 10n ** 15n, { limits: { total: 10n ** 15n } });
  const lane = async (start: number, name: string, settleOnly: boolean): Promise<void> => {
    for (let n = start; n < REQUESTS; n += LANES) {
      const reservation = settleOnly
        ? undefined
        : ok(await store.admission.admit(ok(await store.keys.authenticate(owner.secret, Date.now())), 100n, Date.now()));
      const row = entry(owner, `ex_${name}-${n}`, 5n, { requestId: `req_${name}-${n}`, usage: { input: 100, output: 20 } });
      void store.settlements.open(row);
      void store.settlements.settle({ entry: row, ...(reservation && { reservation }) });
      if (n % (LANES * 4) === start) await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const run = async (name: string, settleOnly: boolean): Promise<number> => {
    const before = process.cpuUsage();
    await Promise.all(Array.from({ length: LANES }, (_, n) => lane(n, name, settleOnly)));
    await store.settlements.flush();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / REQUESTS;
  };
  await run('warm', false);
  const whole = await run('whole', false);
  const settling = await run('settling', true);
  t.diagnostic(
    `authenticate + admit + open + settle: ${whole.toFixed(1)} µs a request; open + settle alone: ${settling.toFixed(1)} µs`,
  );
  assert.ok(whole < 500, `${whole} µs a request`);
  assert.deepEqual((await store.ledger.verify()).differences, []);
});
