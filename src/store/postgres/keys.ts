/** API keys on PostgreSQL. Authentication reads the cache while that is fresh, else the database. */
import { who } from '../account-rules.ts';
import type { AccountRecord, Cause } from '../accounts.ts';
import { changedKey, describeKeyChanges } from '../key-changes.ts';
import { checkedKey } from '../key-fields.ts';
import { digestOf, KEY_PREFIX, MAX_TOKEN, newSecret, sameDigest } from '../key-rules.ts';
import type { Balance, KeyChanges, KeyRecord, Keys, NotAccepted, Principal } from '../keys.ts';
import { inRange } from '../money.ts';
import { paysFromSubAccount, subAccountOf, walletOf } from '../payer.ts';
import { randomHex } from '../random-hex.ts';
import { done, invalid, refused, type Result } from '../result.ts';
import { keyState } from '../stated.ts';
import { isStorable, storable } from '../storable.ts';
import { KEY, type PostgresBooks } from './books.ts';
import { NO_CHANGES } from './cache.ts';
import type { Database } from './database.ts';
import { ACCOUNT_JSON, accountOf, flag, int, KEY_JSON, keyOf, maybeBig, maybeText, object } from './rows.ts';
import type { Session, Statement } from './session.ts';
import type { Watch } from './watch.ts';

const TAKEN: Statement = { name: 'key_taken', text: 'SELECT 1 AS one FROM keys WHERE digest = $1' };
const LIST: Statement = {
  name: 'key_list',
  text: 'SELECT * FROM keys WHERE $1::text IS NULL OR account_id = $1 ORDER BY created_at_ms, id COLLATE "C"',
};
/** $1: a digest. One row always: the head tells as of when the answer holds, also when there is no such key. */
const PRINCIPAL: Statement = {
  name: 'principal',
  text: `SELECT h.seq, ${KEY_JSON} AS key, ${ACCOUNT_JSON} AS account, k.id IS NOT NULL AS known
    FROM ledger_head h LEFT JOIN keys k ON k.digest = $1 LEFT JOIN accounts a ON a.id = k.account_id`,
};
const BALANCE: Statement = {
  name: 'key_balance',
  text: `SELECT k.*, a.unlimited, w.nanos AS wallet, s.nanos AS sub FROM keys k JOIN accounts a ON a.id = k.account_id
    LEFT JOIN balances w ON w.account = 'wallet:' || k.account_id LEFT JOIN balances s ON s.account = 'sub:' || k.id
    WHERE k.id = $1`,
};
const INSERT: Statement = {
  name: 'key_insert',
  text: `INSERT INTO keys (id, account_id, name, digest, prefix, last4, created_at_ms, expires_at_ms, disabled, models, ips,
    limit_total, limit_hourly, limit_daily, sub_account, requests_per_minute, tokens_per_minute, max_concurrency, deleted_at_ms)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)`,
};
const UPDATE: Statement = {
  name: 'key_update',
  text: `UPDATE keys SET name = $2, expires_at_ms = $3, disabled = $4, models = $5, ips = $6, limit_total = $7,
    limit_hourly = $8, limit_daily = $9, requests_per_minute = $10, tokens_per_minute = $11, max_concurrency = $12,
    deleted_at_ms = $13 WHERE id = $1`,
};

export function createKeys(database: Database, watch: Watch): Keys {
  const { clock, randomBytes } = database.options;
  const one = async (statement: Statement, id: string) => (isStorable(id) ? database.run(statement, [id]) : []);

  return {
    async create(key, cause) {
      const nowMs = clock.now();
      const checked = checkedKey(key);
      if (!checked.ok) return checked;
      const secret = key.secret ?? newSecret(randomBytes(32));
      const record: KeyRecord = {
        ...checked.value,
        id: `key_${randomHex(randomBytes)}`,
        accountId: key.accountId,
        digest: digestOf(secret),
        prefix: secret.slice(0, KEY_PREFIX.length + 4),
        last4: secret.slice(-4),
        createdAtMs: nowMs,
        disabled: false,
        subAccount: key.subAccount ?? false,
      };
      return database.transact(async (work) => {
        if ((await work.account(key.accountId)) === undefined)
          return refused({ reason: 'unknown_account', account: key.accountId } as const);
        if ((await work.journaled(cause.id, 'key_created')) !== undefined)
          return refused({ reason: 'cause_reused', cause: cause.id } as const);
        if ((await work.run(TAKEN, [record.digest])).length > 0) return invalid('secret', 'is taken');
        await insertKey(work, record);
        const { accountId, id: keyId } = record;
        const state = keyState(record);
        work.note({ kind: 'key_created', ref: cause.id, accountId, keyId, atMs: nowMs, state, ...who(cause) });
        work.changedKey(record);
        return done({ key: record, secret });
      });
    },

    async authenticate(token, nowMs) {
      if (token.length === 0 || token.length > MAX_TOKEN) return refused<NotAccepted>({ reason: 'unknown' });
      const digest = digestOf(token);
      const { key, account } = await lookUp(database, watch, digest);
      return accepted(digest, key, account, nowMs);
    },

    async find(id) {
      const [row] = await one(KEY, id);
      return row === undefined ? undefined : keyOf(row);
    },

    list: async (accountId) => (await database.run(LIST, [accountId === undefined ? undefined : storable(accountId)])).map(keyOf),

    change: (id, changes, cause) => database.transact((work) => change(work, id, changes, cause, clock.now())),

    async transfer(id, nanos, cause) {
      if (nanos === 0n || !inRange(nanos)) return invalid('amount', 'must not be zero and must be in range');
      return database.transact((work) => transfer(work, id, nanos, cause, clock.now()));
    },

    async balance(keyId) {
      const [row] = await one(BALANCE, keyId);
      if (row === undefined) return undefined;
      const sub = paysFromSubAccount(keyOf(row));
      const nanos = maybeBig(row, sub ? 'sub' : 'wallet') ?? 0n;
      return { source: sub ? 'sub_account' : 'wallet', nanos, unlimited: !sub && flag(row, 'unlimited') };
    },
  };
}

interface Found {
  readonly key?: KeyRecord | undefined;
  readonly account?: AccountRecord | undefined;
}

/** From the cache while it is fresh; else from the database, which fails with `StoreError` when it is away. */
async function lookUp(database: Database, watch: Watch, digest: string): Promise<Found> {
  const { cache } = database;
  if (watch.isFresh()) {
    const key = cache.keyByDigest(digest);
    const account = key === undefined ? undefined : cache.account(key.accountId);
    if (account !== undefined || cache.isUnknown(digest)) return { key, account };
  }
  const [row] = await database.run(PRINCIPAL, [digest]);
  if (row === undefined) return {};
  const seq = int(row, 'seq');
  if (!flag(row, 'known')) {
    cache.rememberUnknown(digest, seq);
    return {};
  }
  const key = keyOf(object(maybeText(row, 'key') ?? '{}'));
  const account = accountOf(object(maybeText(row, 'account') ?? '{}'));
  cache.remember({ ...NO_CHANGES, seq, keys: [key], accounts: [account] });
  return { key, account };
}

function accepted(
  digest: string,
  key: KeyRecord | undefined,
  account: AccountRecord | undefined,
  nowMs: number,
): Result<Principal, NotAccepted> {
  if (key === undefined || !sameDigest(key.digest, digest)) return refused<NotAccepted>({ reason: 'unknown' });
  if (account === undefined) return refused<NotAccepted>({ reason: 'unknown', keyId: key.id });
  if (key.disabled) return refused<NotAccepted>({ reason: 'disabled', keyId: key.id });
  if (key.expiresAtMs !== undefined && key.expiresAtMs <= nowMs)
    return refused<NotAccepted>({ reason: 'expired', keyId: key.id });
  if (account.disabled) return refused<NotAccepted>({ reason: 'account_disabled', keyId: key.id });
  return done({ key, account });
}

export async function insertKey(work: Pick<Session, 'run'>, key: KeyRecord): Promise<void> {
  const { limits, rateLimits } = key;
  await work.run(INSERT, [
    key.id,
    key.accountId,
    key.name,
    key.digest,
    key.prefix,
    key.last4,
    key.createdAtMs,
    key.expiresAtMs,
    key.disabled,
    key.models,
    key.ips,
    limits.total,
    limits.hourly,
    limits.daily,
    key.subAccount,
    rateLimits?.requestsPerMinute,
    rateLimits?.tokensPerMinute,
    rateLimits?.maxConcurrency,
    key.deletedAtMs,
  ]);
}

async function change(work: PostgresBooks, id: string, changes: KeyChanges, cause: Cause, nowMs: number) {
  const key = await work.key(id);
  if (key === undefined) return refused({ reason: 'unknown_key', key: id } as const);
  const note = describeKeyChanges(changes, cause);
  const before = await work.journaled(cause.id, 'key_changed');
  if (before !== undefined) {
    const same = before.keyId === id && before.note === note;
    return same ? done(key) : refused({ reason: 'cause_reused', cause: cause.id } as const);
  }
  if (key.deletedAtMs !== undefined) return refused({ reason: 'unknown_key', key: id } as const);
  const changed = changedKey(key, changes, nowMs);
  if (!changed.ok) return changed;
  const { name, expiresAtMs, disabled, deletedAtMs, models, ips, limits, rateLimits } = changed.value;
  if (disabled && !key.disabled && key.subAccount) await returnBalance(work, key, cause, nowMs);
  const rates = [rateLimits?.requestsPerMinute, rateLimits?.tokensPerMinute, rateLimits?.maxConcurrency];
  const windows = [limits.total, limits.hourly, limits.daily];
  await work.run(UPDATE, [id, name, expiresAtMs, disabled, models, ips, ...windows, ...rates, deletedAtMs]);
  const state = keyState(changed.value);
  work.note({ kind: 'key_changed', ref: cause.id, accountId: key.accountId, keyId: id, atMs: nowMs, by: cause.by, note, state });
  work.changedKey(changed.value);
  return changed;
}

/** The signed balance of a sub-account goes to the wallet when its key is disabled. */
async function returnBalance(work: PostgresBooks, key: KeyRecord, cause: Cause, atMs: number): Promise<void> {
  const [sub, wallet] = [subAccountOf(key.id), walletOf(key.accountId)];
  await work.load([sub, wallet]);
  const nanos = work.balance(sub);
  if (nanos === 0n) return;
  const common = { ref: cause.id, accountId: key.accountId, keyId: key.id, atMs, ...who(cause) };
  if (nanos > 0n) work.move({ ...common, kind: 'sub_account_refund', from: sub, to: wallet, nanos });
  else work.move({ ...common, kind: 'sub_account_debt_transfer', from: wallet, to: sub, nanos: -nanos });
}

async function transfer(work: PostgresBooks, id: string, nanos: bigint, cause: Cause, atMs: number) {
  const key = await work.key(id);
  if (key === undefined) return refused({ reason: 'unknown_key', key: id } as const);
  if (!key.subAccount) return refused({ reason: 'no_sub_account' } as const);
  const [sub, wallet] = [subAccountOf(key.id), walletOf(key.accountId)];
  await work.load([sub, wallet, 'transit']);
  const [giver, taker] = nanos > 0n ? [wallet, sub] : [sub, wallet];
  const size = nanos > 0n ? nanos : -nanos;
  const balance = (): Balance => ({ source: 'sub_account', nanos: work.balance(sub), unlimited: false });

  const before = await work.journaled(cause.id, 'sub_account_transfer_out');
  if (before !== undefined) {
    const same = before.keyId === id && before.from === giver && before.nanos === size;
    return same ? done(balance()) : refused({ reason: 'cause_reused', cause: cause.id } as const);
  }
  if (key.disabled) return refused({ reason: 'key_disabled' } as const);
  if (work.balance(giver) < size) return refused({ reason: 'insufficient_balance' } as const);
  const common = { ref: cause.id, accountId: key.accountId, keyId: id, atMs, nanos: size, ...who(cause) };
  work.move({ ...common, kind: 'sub_account_transfer_out', from: giver, to: 'transit' });
  work.move({ ...common, kind: 'sub_account_transfer_in', from: 'transit', to: taker });
  return done(balance());
}
