/**
 * What a process keeps beside requests and their history (docs/operating.md, "Memory"): settlements while the store is away, live
 * tails that nobody reads, caches. Each is driven to its bound and beyond; heap and buffers after a collection stay under what is
 * documented.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Affinity } from '../../../src/http/dispatch/affinity.ts';
import { TokenRates } from '../../../src/http/money/token-rates.ts';
import { Solvency } from '../../../src/http/request/solvency.ts';
import { Cache } from '../../../src/store/postgres/cache.ts';
import { NOTHING_SPENT } from '../../../src/store/spend-windows.ts';
import type { Store } from '../../../src/store/store.ts';
import { systemClock } from '../../../src/streams/clock.ts';
import { adminGateway } from '../../admin/admin-gateway.ts';
import { eventually } from '../../support/test-gateway.ts';
import { figure } from '../../support/figures.ts';
import { monthExchange, monthOwners } from '../../support/month.ts';
import { cause, ok, openStore } from '../../store/support/store.ts';

const MIB = 1024 * 1024;

setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');

async function heldBytes(): Promise<number> {
  for (let round = 0; round < 4; round += 1) {
    collect();
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** What `fill` leaves behind stays under the bound; what it returns is kept until that is known. */
async function keepsUnder(t: TestContext, bytes: number, fill: () => Promise<unknown>): Promise<void> {
  const before = await heldBytes();
  const kept = [await fill()];
  const held = (await heldBytes()) - before;
  assert.ok(kept.length === 1 && held <= bytes, `${(held / MIB).toFixed(1)} MiB, for a bound of ${bytes / MIB}`);
  figure(
    t,
    `${t.name.replace('F47: memory: ', '')}: held for a bound of ${Math.round(bytes / MIB)} MiB`,
    `${(held / MIB).toFixed(1)} MiB`,
  );
}

/** As LMDB tells that the disk fails. */
const EIO = Object.assign(new Error('Input/output error'), { code: 5 });
/** `limits.connections`: nothing new is admitted while the store is away, so what is in flight then is all that can settle. */
const IN_FLIGHT = 20_000;
const ROW_BYTES = 4 * 1024;

for (const hasLog of [true, false]) {
  test(`F47: memory: settlements of a store that is away, ${hasLog ? 'logged on the disk' : 'with no room on the disk'}`, async (t) => {
    const path = mkdtempSync(join(tmpdir(), 'mizu-kept-'));
    t.after(() => rmSync(path, { recursive: true, force: true }));
    let isAway = false;
    const afterWrite = (): void => {
      if (isAway) throw EIO;
    };
    const store = await openStore(t, { path }, { afterWrite });
    if (!hasLog) rmSync(join(path, 'settlements'), { recursive: true });
    const owners = await monthOwners(store, 5);
    isAway = true;
    const settle = (from: number, to: number): void => {
      for (let n = from; n < to; n += 1) void store.settlements.settle({ entry: monthExchange(owners, 'kept', n) });
    };
    settle(0, 1);
    await eventually(() => !store.health().healthy, 'a store that is away');
    const [owner] = owners;
    assert.ok(owner);
    // The admission that every request needs is refused from here on.
    await assert.rejects(async () => store.admission.admit(owner, 1n, Date.now()), { code: 'unhealthy' });
    await keepsUnder(t, IN_FLIGHT * ROW_BYTES, async () => {
      for (let n = 1; n < IN_FLIGHT; n += 500) {
        settle(n, Math.min(n + 500, IN_FLIGHT));
        await new Promise(setImmediate);
      }
    });
    assert.equal(store.settlements.pending, IN_FLIGHT);
    const away = await heldBytes();
    isAway = false;
    await eventually(() => store.settlements.pending === 0, 'everything written');
    assert.equal(await store.requestLog.head(), IN_FLIGHT, 'each of them once');
    // What the disk did not take is looked at again within a second.
    for (let tries = 0; tries < 20 && (await heldBytes()) > away - (IN_FLIGHT * ROW_BYTES) / 8; tries += 1);
    const left = (await heldBytes()) - away;
    assert.ok(left < -(IN_FLIGHT * ROW_BYTES) / 8, `${(left / MIB).toFixed(1)} MiB: what was written is let go of`);
  });
}

/** A connection that asks for the live tail and reads nothing of it. */
async function tail(port: number, token: string): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port });
  await once(socket, 'connect');
  socket.write(`GET /admin/v1/exchanges/live HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\n\r\n`);
  await once(socket, 'readable');
  return socket;
}

test('F47: memory: live tails that nobody reads', async (t) => {
  const MOST_TAILS = 64;
  const store = await openStore(t);
  const gateway = await adminGateway(t, { store });
  const owners = await monthOwners(store, 5);
  const sockets: Socket[] = [];
  t.after(() => {
    for (const socket of sockets) socket.destroy();
  });
  for (let at = 0; at < MOST_TAILS; at += 1) sockets.push(await tail(gateway.port, gateway.tokens.read));
  const one = await gateway.ask('exchanges/live');
  assert.deepEqual([one.status, one.json.error.code], [409, 'too_many_tails']);
  // A batch of a thousand rows for each, and what comes while that is not read.
  await keepsUnder(t, MOST_TAILS * MIB, async () => {
    for (let look = 0; look < 6; look += 1) {
      for (let n = 0; n < 1_000; n += 1) void store.settlements.settle({ entry: monthExchange(owners, `look-${look}`, n) });
      await store.settlements.flush();
      await new Promise((resolve) => setTimeout(resolve, 600));
    }
  });
});

const digest = (at: number, encoding: 'base64url' | 'hex' = 'hex'): string =>
  createHash('sha256').update(`${at}`).digest(encoding);

test('F47: memory: which Channel a conversation had', async (t) => {
  const maxEntries = 50_000;
  const affinity = new Affinity(systemClock, { maxEntries, idleMs: 1_800_000 });
  await keepsUnder(t, 16 * MIB, async () => {
    for (let at = 0; at < 2 * maxEntries; at += 1) affinity.succeeded(digest(at, 'base64url'), 'a-channel');
  });
  assert.equal(affinity.size, maxEntries);
});

/** A key as `keys create` makes it. */
const keyRecord = (at: number) => ({
  id: `key_${digest(at).slice(0, 32)}`,
  accountId: `acct_${digest(at % 1_000).slice(0, 32)}`,
  name: `key ${at}`,
  digest: digest(at),
  prefix: 'sk-mizu-',
  last4: 'abcd',
  createdAtMs: 1_700_000_000_000 + at,
  disabled: false,
  limits: { daily: 10n ** 9n },
  subAccount: false,
});

test('F47: memory: keys, accounts, balances and spend of a database', async (t) => {
  const most = 100_000;
  const cache = new Cache();
  await keepsUnder(t, 160 * MIB, async () => {
    for (let at = 0; at < 2 * most; at += 1) {
      const key = keyRecord(at);
      const account = {
        id: `acct_${key.id}`,
        name: `account ${at}`,
        class: 'default',
        unlimited: false,
        disabled: false,
        createdAtMs: at,
      };
      const balances = new Map([[`wallet:${account.id}`, 10n ** 9n]]);
      cache.remember({ seq: at, accounts: [account], keys: [key], balances, spend: new Map([[key.id, { ...NOTHING_SPENT }]]) });
      cache.rememberUnknown(`unknown ${key.digest}`, at);
    }
  });
  assert.equal(cache.keyByDigest(digest(0)), undefined, 'what was not asked for longest is forgotten');
  assert.equal(cache.keyByDigest(digest(2 * most - 1))?.name, `key ${2 * most - 1}`);
});

test('F47: memory: keys of a store in a folder', async (t) => {
  const most = 10_000;
  const store: Store = await openStore(t);
  const [owner] = await monthOwners(store, 1);
  const secret = (at: number): string => `sk-mizu-${digest(at)}`;
  const accountId = owner?.account.id ?? '';
  for (let at = 0; at < 1.5 * most; at += 500) {
    const made = Array.from({ length: 500 }, (_, more) => at + more);
    await Promise.all(
      made.map(async (n) => ok(await store.keys.create({ accountId, name: `k${n}`, secret: secret(n) }, cause()))),
    );
  }
  await keepsUnder(t, 16 * MIB, async () => {
    for (let at = 0; at < 1.5 * most; at += 1) ok(await store.keys.authenticate(secret(at), Date.now()));
  });
});

test('F47: memory: keys that had money, and how fast models generate', async (t) => {
  const balance = async () => ({ source: 'wallet', nanos: 1n, unlimited: false }) as const;
  const solvency = new Solvency({ balance } as never, systemClock);
  const rates = new TokenRates();
  await keepsUnder(t, 8 * MIB, async () => {
    for (let at = 0; at < 30_000; at += 1) {
      assert.equal(await solvency.hasMoney(`key_${digest(at).slice(0, 32)}`), true);
      rates.learn('a-channel', `model ${digest(at)}`, 1_000, 5_000);
    }
  });
  assert.equal(rates.of('a-channel', `model ${digest(29_999)}`) > 50, true);
});
