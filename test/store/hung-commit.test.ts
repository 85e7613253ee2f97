/** A write that does not end: another process holds the lock and was stopped, or the disk hangs. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openLmdbStore } from '../../src/store/lmdb/open.ts';
import { holdLock } from '../support/lock-holder.ts';
import { cause, entry, FakeClock, funded, ok, options, T0, tempDirectory } from './support/store.ts';

test('a store whose write does not end is not well, said once, until it has ended; nothing of it is lost', async (t) => {
  const problems: string[] = [];
  const path = tempDirectory(t);
  const clock = new FakeClock();
  const store = await openLmdbStore(options(path, { clock, onProblem: ({ what }) => problems.push(what) }));
  const owner = await funded(store, 1_000n);
  const giveBack = await holdLock(t, path);
  const credit = store.accounts.credit(owner.account.id, 10n, cause());
  const settled = store.settlements.settle({ entry: entry(owner, 'ex_1', 5n) });
  const look = async (): Promise<void> => {
    clock.advance(1_000);
    await new Promise((resolve) => setTimeout(resolve, 20));
  };
  let looks = 0;
  for (; store.health().healthy; looks++) {
    assert.ok(looks < 200, 'it was never said');
    await look();
  }
  assert.ok(looks >= 10, `after ${looks} s`);
  assert.deepEqual(store.health(), { healthy: false, reason: 'write_failed', message: 'a write has not ended for 10 s' });
  assert.throws(() => store.admission.admit(owner, 1n, T0), { code: 'unhealthy' });
  await giveBack();
  ok(await credit);
  assert.equal((await settled).settled, true);
  for (let tries = 0; !store.health().healthy; tries++) {
    assert.ok(tries < 200, 'it is not well again');
    await look();
  }
  assert.deepEqual(problems, ['store_write_failed', 'store_healthy']);
  assert.equal((await store.accounts.find(owner.account.id))?.walletNanos, 1_005n);
  await store.close();
});
