/**
 * A store in memory for tests of the http room: keys, admission and settlements that can be looked at. Everything else refuses
 * loudly.
 */
import { createHash } from 'node:crypto';
import type { AccountRecord } from '../../src/store/accounts.ts';
import type { BillableUsage, Charge } from '../../src/store/charge.ts';
import type { KeyRecord } from '../../src/store/keys.ts';
import type { Rates } from '../../src/store/prices.ts';
import type { RequestLogEntry } from '../../src/store/request-log.ts';
import type { OpenExchange } from '../../src/store/settlement.ts';
import type { Store } from '../../src/store/store.ts';
import { StoreError } from '../../src/store/store-error.ts';

export interface MemoryStore extends Store {
  readonly settled: RequestLogEntry[];
  readonly opened: OpenExchange[];
  /** Reservations that nobody released. */
  readonly held: ReadonlySet<{ readonly nanos: bigint }>;
  /** A settlement's promise resolves after this one. */
  disk: Promise<void>;
  /** An opening's promise resolves after this one. */
  openDisk: Promise<void>;
  walletNanos: bigint;
  limitReached: boolean;
  /** Makes every look at a key throw. */
  broken: boolean;
  addKey(secret: string, changes?: Partial<KeyRecord>, account?: Partial<AccountRecord>): void;
}

export function memoryStore(): MemoryStore {
  const accounts = new Map<string, AccountRecord>();
  const keys = new Map<string, KeyRecord>();
  const settled: RequestLogEntry[] = [];
  /** Ids of all that was settled: a law settles thousands, and looking each of them through would be the longest turn itself. */
  const settledIds = new Set<string>();
  const opened: OpenExchange[] = [];
  const held = new Set<{ readonly nanos: bigint }>();
  const missing = (name: string, there: object = {}) =>
    new Proxy(Object.create(null), {
      get: (_target, property) =>
        Reflect.get(there, property) ??
        (() => {
          throw new Error(`memory store: ${name}.${String(property)} is not there`);
        }),
    });

  const store: MemoryStore = {
    settled,
    opened,
    held,
    disk: Promise.resolve(),
    openDisk: Promise.resolve(),
    walletNanos: 1_000_000_000n,
    limitReached: false,
    broken: false,
    addKey(secret, changes = {}, account = {}) {
      const owner: AccountRecord = {
        id: 'acct_1',
        name: 'tests',
        class: 'default',
        unlimited: false,
        disabled: false,
        createdAtMs: 0,
        ...account,
      };
      accounts.set(owner.id, owner);
      const digest = createHash('sha256').update(secret).digest('hex');
      keys.set(digest, {
        id: `key_${keys.size + 1}`,
        accountId: owner.id,
        name: 'test',
        digest,
        prefix: 'sk-mizu-',
        last4: secret.slice(-4),
        createdAtMs: 0,
        disabled: false,
        limits: {},
        subAccount: false,
        ...changes,
      });
    },
    accounts: missing('accounts'),
    ledger: missing('ledger'),
    requestLog: missing('requestLog'),
    videos: missing('videos', { openByState: async () => new Map() }),
    leases: missing('leases'),
    limitCounts: { exchange: async () => [] },
    keys: {
      ...missing('keys'),
      async authenticate(token: string, nowMs: number) {
        if (store.broken) throw new StoreError('unavailable', 'the test broke the store');
        const key = keys.get(createHash('sha256').update(token).digest('hex'));
        const account = key === undefined ? undefined : accounts.get(key.accountId);
        if (key === undefined || account === undefined) return { ok: false, refusal: { reason: 'unknown' } };
        if (key.disabled) return { ok: false, refusal: { reason: 'disabled', keyId: key.id } };
        if ((key.expiresAtMs ?? Number.POSITIVE_INFINITY) <= nowMs)
          return { ok: false, refusal: { reason: 'expired', keyId: key.id } };
        return { ok: true, value: { key, account } };
      },
      async balance() {
        return { source: 'wallet', nanos: store.walletNanos, unlimited: false };
      },
    },
    usageByHour: async () => [],
    spend: {
      ...missing('spend'),
      async usageByDay() {
        return [];
      },
    },
    admission: {
      async admit(_principal, estimateNanos) {
        if (store.limitReached) return { ok: false, refusal: { reason: 'spend_limit_reached', window: 'daily' } };
        if (store.walletNanos <= 0n) return { ok: false, refusal: { reason: 'insufficient_balance', source: 'wallet' } };
        const reservation = {
          nanos: estimateNanos,
          release() {
            held.delete(reservation);
          },
          handOver: () => () => reservation.release(),
        };
        held.add(reservation);
        return { ok: true, value: reservation };
      },
      reserved: () => [...held].reduce((sum, { nanos }) => sum + nanos, 0n),
    },
    settlements: {
      async open(exchange) {
        opened.push(exchange);
        await store.openDisk;
      },
      async settle({ entry, reservation }) {
        reservation?.release();
        if (settledIds.has(entry.exchangeId)) return { settled: false, reason: 'already_settled' };
        settledIds.add(entry.exchangeId);
        settled.push(entry);
        const chargedNanos = entry.charge?.total ?? 0n;
        store.walletNanos -= chargedNanos;
        await store.disk;
        return { settled: true, chargedNanos };
      },
      async flush() {
        // Nothing waits.
      },
      async caughtUp() {
        // Nothing waits.
      },
      pending: 0,
      async closeInterrupted() {
        return [];
      },
    },
    controls: { list: async () => [], ...missing('controls') },
    adminTokens: missing('adminTokens'),
    backup: missing('backup'),
    secrets: {
      current: () => ({ id: 1, bytes: new Uint8Array(32).fill(7) }),
      byId: (id) => (id === 1 ? { id, bytes: new Uint8Array(32).fill(7) } : undefined),
      ...{ rotate: () => Promise.reject(new Error('memory store: no rotation')) },
    },
    health: () => ({ healthy: true }),
    async close() {
      // Nothing is open.
    },
  };
  return store;
}

/** Charges tokens alone, by plain rates. */
export function memoryCharge(usage: BillableUsage, rates: Rates): Charge {
  const input = rates.tokens.get('input') ?? 0n;
  const output = rates.tokens.get('output') ?? 0n;
  const total = (BigInt(usage.input ?? 0) * input + BigInt((usage.output ?? 0) + (usage.reasoning ?? 0)) * output) / 1_000_000n;
  return { lines: [], total, flags: [] };
}
