/**
 * Whose exchanges are closed by another process, and whose leases are free: only those of a process that is known to be dead. By
 * its pid on the same host, else by its heartbeat.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { openLmdbStore } from '../../src/store/lmdb/open.ts';
import type { StoreOptions } from '../../src/store/store.ts';
import { eventually } from '../support/test-gateway.ts';
import { editTables } from './support/edit-tables.ts';
import { FakeClock, funded, options, tempDirectory } from './support/store.ts';

const TTL_MS = 30_000;
const MONTH_MS = 31 * 24 * 3_600_000;
const ALIVE = 100;
const DEAD = 200;
const SELF: StoreOptions['process'] = { host: 'here', pid: 1, isAlive: (pid) => pid !== DEAD };

interface Other {
  readonly host: string;
  readonly pid: number;
  /** How long ago it was heard of. */
  readonly silentMs: number;
}

/**
 * A store that another process has open, as it left its rows: a registration (or none any more), `count` exchanges and a lease.
 */
async function sharedWith(t: TestContext, other: Other | undefined, count: number) {
  const path = tempDirectory(t);
  const clock = new FakeClock();
  const more = { clock, process: SELF, processTtlMs: TTL_MS };
  const first = await openLmdbStore(options(path, more));
  const { account, key } = await funded(first, 10n);
  await first.close();
  await editTables(path, ({ processes, openExchanges, leases }) => {
    const id = 'own_other';
    if (other !== undefined)
      processes.putSync(id, { id, host: other.host, pid: other.pid, heartbeatAtMs: clock.now() - other.silentMs });
    for (let n = 0; n < count; n += 1) {
      const exchangeId = `ex_${n}`;
      const of = { requestId: `req_${n}`, accountId: account.id, keyId: key.id, endpoint: 'chat', model: 'm' };
      openExchanges.putSync([id, exchangeId], { exchangeId, ...of, stream: false, startedAtMs: clock.now() });
    }
    leases.putSync('job', { name: 'job', holder: 'other', token: 7, expiresAtMs: clock.now() + 10 * TTL_MS, owner: id });
  });
  return { path, clock, store: await openLmdbStore(options(path, more)) };
}

const OTHERS: Record<string, readonly [other: Other | undefined, isDead: boolean]> = {
  'a living pid on this host, heard of just now': [{ host: 'here', pid: ALIVE, silentMs: 0 }, false],
  'a living pid on this host, last heard of a moment too long ago': [{ host: 'here', pid: ALIVE, silentMs: TTL_MS }, true],
  'a living pid on this host, heard of just in time': [{ host: 'here', pid: ALIVE, silentMs: TTL_MS - 1 }, false],
  'a dead pid on this host, heard of just now': [{ host: 'here', pid: DEAD, silentMs: 0 }, true],
  'our own pid in an earlier life, heard of just now': [{ host: 'here', pid: SELF.pid, silentMs: 0 }, true],
  'a pid on another host that would be dead here': [{ host: 'there', pid: DEAD, silentMs: 0 }, false],
  'our own pid on another host': [{ host: 'there', pid: SELF.pid, silentMs: 0 }, false],
  'another host that fell silent': [{ host: 'there', pid: ALIVE, silentMs: TTL_MS }, true],
  'another host whose clock is a little ahead': [{ host: 'there', pid: ALIVE, silentMs: -TTL_MS }, false],
  'another host that was heard of next month (F34)': [{ host: 'there', pid: ALIVE, silentMs: -MONTH_MS }, true],
  'a living pid on this host, from before the clock was put back': [{ host: 'here', pid: ALIVE, silentMs: -MONTH_MS }, false],
  'nobody who is registered': [undefined, true],
};

for (const [who, [other, isDead]] of Object.entries(OTHERS)) {
  test(`F30: what was opened by ${who} is ${isDead ? 'closed at start, and its lease is free' : 'left alone'}`, async (t) => {
    const { path, clock, store } = await sharedWith(t, other, 2);
    assert.equal((await store.requestLog.list({ status: 'interrupted' })).length, isDead ? 2 : 0);
    assert.deepEqual(await store.settlements.closeInterrupted(), []);
    assert.equal((await store.leases.acquire('job', 'me', 1_000, clock.now())).ok, isDead);
    assert.deepEqual((await store.ledger.verify()).differences, []);
    await store.close();
    const left = await editTables(path, ({ processes, openExchanges }) => [processes.getCount(), openExchanges.getCount()]);
    assert.deepEqual(left, isDead ? [0, 0] : [1, 2]);
  });
}

test('F30: however much a dead process left open, all of it is closed', async (t) => {
  const { store } = await sharedWith(t, { host: 'here', pid: DEAD, silentMs: 0 }, 450);
  t.after(() => store.close());
  assert.equal((await store.requestLog.list({ status: 'interrupted', limit: 1_000 })).length, 450);
  assert.deepEqual((await store.ledger.verify()).differences, []);
});

test('F30: a process that falls silent while this one runs is found by a later heartbeat', async (t) => {
  const { clock, store } = await sharedWith(t, { host: 'there', pid: ALIVE, silentMs: 0 }, 2);
  t.after(() => store.close());
  for (let beat = 0; beat < 2; beat += 1) {
    clock.advance(TTL_MS / 3);
    assert.deepEqual(await store.settlements.closeInterrupted(), []);
  }
  clock.advance(TTL_MS / 3);
  let closed = 0;
  await eventually(() => {
    void store.requestLog.list().then((rows) => {
      closed = rows.length;
    });
    return closed === 2;
  }, 'exchanges that were closed');
});
