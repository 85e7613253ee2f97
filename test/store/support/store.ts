/** Stores for tests: a clock that is moved by hand, counted randomness, a directory of its own. */
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Charge } from '../../../src/store/charge.ts';
import type { Cause } from '../../../src/store/accounts.ts';
import type { Principal } from '../../../src/store/keys.ts';
import type { RequestLogEntry } from '../../../src/store/request-log.ts';
import type { Result } from '../../../src/store/result.ts';
import { openLmdbStore } from '../../../src/store/lmdb/open.ts';
import type { Seams } from '../../../src/store/lmdb/environment.ts';
import type { Clock, Store, StoreOptions } from '../../../src/store/store.ts';

export const T0 = Date.UTC(2026, 2, 1, 12, 30);

/** Time stands still until `advance`. */
export class FakeClock implements Clock {
  #now = T0;
  readonly #timers = new Set<{ readonly at: number; readonly callback: () => void }>();

  now(): number {
    return this.#now;
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { at: this.#now + ms, callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  advance(ms: number): void {
    this.#now += ms;
    for (const timer of [...this.#timers]) {
      if (timer.at > this.#now) continue;
      this.#timers.delete(timer);
      timer.callback();
    }
  }
}

/** The machine's own clock: for tests that only wait for promises. */
export const realClock: Clock = {
  now: () => Date.now(),
  after(ms, callback) {
    const timer = setTimeout(callback, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

let made = 0;

/** Different every time, and the same in every run. */
export function countedBytes(size: number): Uint8Array {
  made += 1;
  return createHash('sha512').update(`bytes ${process.pid} ${made}`).digest().subarray(0, size);
}

export function tempDirectory(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'mizu-store-'));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

export const thisProcess: StoreOptions['process'] = { host: 'test', pid: process.pid, isAlive: () => true };

export function options(path: string, more: Partial<StoreOptions> = {}): StoreOptions {
  return { path, clock: realClock, randomBytes: countedBytes, process: thisProcess, freeSpaceFloor: 0, ballastBytes: 0, ...more };
}

/** A store of its own for one test, closed after it. */
export async function openStore(
  t: Pick<TestContext, 'after'>,
  more: Partial<StoreOptions> = {},
  seams: Seams = {},
): Promise<Store> {
  const path = more.path ?? mkdtempSync(join(tmpdir(), 'mizu-store-'));
  const store = await openLmdbStore(options(path, more), seams);
  t.after(async () => {
    await store.close();
    if (more.path === undefined) rmSync(path, { recursive: true, force: true });
  });
  return store;
}

let causes = 0;
export function cause(id = `cause-${++causes}`): Cause {
  return { id, by: 'test' };
}

/** The value, or a failure that shows the refusal. */
export function ok<Value>(result: Result<Value, unknown>): Value {
  if (!result.ok) throw new Error(`refused: ${JSON.stringify(result.refusal)}`);
  return result.value;
}

export function refusal<Refusal>(result: Result<unknown, Refusal>): Refusal {
  if (result.ok) throw new Error('was not refused');
  return result.refusal;
}

/** A funded account with a key. */
export async function funded(
  store: Store,
  nanos: bigint,
  key: Partial<Parameters<Store['keys']['create']>[0]> = {},
): Promise<Principal & { readonly secret: string }> {
  const account = ok(await store.accounts.create({ name: `account ${++causes}`, creditNanos: nanos }, cause()));
  const created = ok(await store.keys.create({ accountId: account.id, name: 'key', ...key }, cause()));
  return { account, key: created.key, secret: created.secret };
}

export function chargeOf(nanos: bigint): Charge {
  return { lines: [], total: nanos, flags: [] };
}

export function entry(
  { account, key }: Principal,
  exchangeId: string,
  nanos: bigint,
  more: Partial<RequestLogEntry> = {},
): RequestLogEntry {
  return {
    exchangeId,
    requestId: `req_${exchangeId}`,
    accountId: account.id,
    keyId: key.id,
    endpoint: 'chat',
    model: 'model',
    stream: false,
    status: 'success',
    startedAtMs: T0,
    durationMs: 5,
    attempts: [],
    charge: chargeOf(nanos),
    ...more,
  };
}
