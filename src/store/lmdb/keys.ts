/**
 * API keys on LMDB. Keys that were looked up are remembered, and one small read of the store tells whether any key or account
 * has changed since, so a change by another process counts at once.
 */
import type { Cause } from '../accounts.ts';
import { who } from '../account-rules.ts';
import { changedKey, describeKeyChanges } from '../key-changes.ts';
import { checkedKey } from '../key-fields.ts';
import { digestOf, KEY_PREFIX, MAX_TOKEN, newSecret, sameDigest } from '../key-rules.ts';
import type { Balance, KeyChanges, KeyRecord, Keys, NewKey, NotAccepted, Principal } from '../keys.ts';
import { inRange } from '../money.ts';
import { randomHex } from '../random-hex.ts';
import { done, invalid, refused } from '../result.ts';
import { keyState } from '../stated.ts';
import { paysFromSubAccount, subAccountOf, walletOf } from '../payer.ts';
import type { Environment } from './environment.ts';
import { metaOf, type Tables } from './tables.ts';
import type { Work } from './work.ts';

export function createKeys(environment: Environment): Keys {
  const { clock, randomBytes } = environment.options;
  const remembered = new PrincipalCache();

  return {
    async create(key: NewKey, cause: Cause) {
      const nowMs = clock.now();
      const checked = checkedKey(key);
      if (!checked.ok) return checked;
      const secret = key.secret ?? newSecret(randomBytes(32));
      return environment.transact((work) => {
        const { tables } = work;
        if (!tables.accounts.doesExist(key.accountId))
          return refused({ reason: 'unknown_account', account: key.accountId } as const);
        if (work.journaled(cause.id, 'key_created') !== undefined)
          return refused({ reason: 'cause_reused', cause: cause.id } as const);
        const digest = digestOf(secret);
        if (tables.keyDigests.doesExist(digest)) return invalid('secret', 'is taken');
        const record: KeyRecord = {
          ...checked.value,
          id: `key_${randomHex(randomBytes)}`,
          accountId: key.accountId,
          digest,
          prefix: secret.slice(0, KEY_PREFIX.length + 4),
          last4: secret.slice(-4),
          createdAtMs: nowMs,
          disabled: false,
          subAccount: key.subAccount ?? false,
        };
        work.putPrincipal(tables.keys, record.id, record);
        work.put(tables.keyDigests, digest, record.id);
        const state = keyState(record);
        work.note({
          kind: 'key_created',
          ref: cause.id,
          accountId: key.accountId,
          keyId: record.id,
          atMs: nowMs,
          state,
          ...who(cause),
        });
        return done({ key: record, secret });
      });
    },

    authenticate: (token, nowMs) => environment.read((tables) => authenticate(tables, remembered, token, nowMs)),

    find: (id) => environment.read((tables) => tables.keys.get(id)),

    list: (accountId) =>
      environment.read((tables) => {
        const all = [...tables.keys.getRange()].map(({ value }) => value);
        const wanted = accountId === undefined ? all : all.filter((key) => key.accountId === accountId);
        return wanted.sort((a, b) => a.createdAtMs - b.createdAtMs || (a.id < b.id ? -1 : 1));
      }),

    change: async (id, changes, cause) => environment.transact((work) => changeKey(work, id, changes, cause, clock.now())),

    async transfer(id, nanos, cause) {
      if (nanos === 0n || !inRange(nanos)) return invalid('amount', 'must not be zero and must be in range');
      return environment.transact((work) => transfer(work, id, nanos, cause, clock.now()));
    },

    balance: (keyId) =>
      environment.read((tables) => {
        const key = tables.keys.get(keyId);
        return key === undefined ? undefined : balanceOf(tables, key);
      }),
  };
}

function authenticate(tables: Tables, remembered: PrincipalCache, token: string, nowMs: number) {
  if (token.length === 0 || token.length > MAX_TOKEN) return refused<NotAccepted>({ reason: 'unknown' });
  const digest = digestOf(token);
  const principal = remembered.find(tables, digest);
  if (principal === undefined || !sameDigest(principal.key.digest, digest)) return refused<NotAccepted>({ reason: 'unknown' });
  const { key, account } = principal;
  if (key.disabled) return refused<NotAccepted>({ reason: 'disabled', keyId: key.id });
  if (key.expiresAtMs !== undefined && key.expiresAtMs <= nowMs)
    return refused<NotAccepted>({ reason: 'expired', keyId: key.id });
  if (account.disabled) return refused<NotAccepted>({ reason: 'account_disabled', keyId: key.id });
  return done(principal);
}

const REMEMBERED = 10_000;

/** Keys by digest, all of one generation; only keys that exist, so that guesses cannot fill it. */
class PrincipalCache {
  readonly #principals = new Map<string, Principal>();
  #generation = -1;

  find(tables: Tables, digest: string): Principal | undefined {
    const generation = metaOf(tables, 'keyGeneration') ?? 0;
    if (generation !== this.#generation || this.#principals.size >= REMEMBERED) {
      this.#principals.clear();
      this.#generation = generation;
    }
    const known = this.#principals.get(digest);
    if (known !== undefined) return known;
    const id = tables.keyDigests.get(digest);
    const key = id === undefined ? undefined : tables.keys.get(id);
    const account = key === undefined ? undefined : tables.accounts.get(key.accountId);
    if (key === undefined || account === undefined) return undefined;
    const principal = { key, account };
    this.#principals.set(digest, principal);
    return principal;
  }
}

function balanceOf(tables: Tables, key: KeyRecord): Balance {
  const sub = paysFromSubAccount(key);
  const unlimited = !sub && (tables.accounts.get(key.accountId)?.unlimited ?? false);
  const nanos = tables.balances.get(sub ? subAccountOf(key.id) : walletOf(key.accountId)) ?? 0n;
  return { source: sub ? 'sub_account' : 'wallet', nanos, unlimited };
}

function changeKey(work: Work, id: string, changes: KeyChanges, cause: Cause, nowMs: number) {
  const key = work.tables.keys.get(id);
  if (key === undefined) return refused({ reason: 'unknown_key', key: id } as const);
  const note = describeKeyChanges(changes, cause);
  const before = work.journaled(cause.id, 'key_changed');
  if (before !== undefined) {
    const same = before.keyId === id && before.note === note;
    return same ? done(key) : refused({ reason: 'cause_reused', cause: cause.id } as const);
  }
  if (key.deletedAtMs !== undefined) return refused({ reason: 'unknown_key', key: id } as const);
  const changed = changedKey(key, changes, nowMs);
  if (!changed.ok) return changed;
  if (changed.value.disabled && !key.disabled && key.subAccount) returnBalance(work, key, cause, nowMs);
  work.putPrincipal(work.tables.keys, id, changed.value);
  const state = keyState(changed.value);
  work.note({ kind: 'key_changed', ref: cause.id, accountId: key.accountId, keyId: id, atMs: nowMs, by: cause.by, note, state });
  return changed;
}

/** The signed balance of a sub-account goes to the wallet when its key is disabled. */
function returnBalance(work: Work, key: KeyRecord, cause: Cause, atMs: number): void {
  const [sub, wallet] = [subAccountOf(key.id), walletOf(key.accountId)];
  const nanos = work.balance(sub);
  if (nanos === 0n) return;
  const common = { ref: cause.id, accountId: key.accountId, keyId: key.id, atMs, ...who(cause) };
  if (nanos > 0n) work.move({ ...common, kind: 'sub_account_refund', from: sub, to: wallet, nanos });
  else work.move({ ...common, kind: 'sub_account_debt_transfer', from: wallet, to: sub, nanos: -nanos });
}

function transfer(work: Work, id: string, nanos: bigint, cause: Cause, atMs: number) {
  const key = work.tables.keys.get(id);
  if (key === undefined) return refused({ reason: 'unknown_key', key: id } as const);
  if (!key.subAccount) return refused({ reason: 'no_sub_account' } as const);
  const [sub, wallet] = [subAccountOf(key.id), walletOf(key.accountId)];
  const [giver, taker] = nanos > 0n ? [wallet, sub] : [sub, wallet];
  const size = nanos > 0n ? nanos : -nanos;
  const balance = (subNanos: bigint): Balance => ({ source: 'sub_account', nanos: subNanos, unlimited: false });

  const before = work.journaled(cause.id, 'sub_account_transfer_out');
  if (before !== undefined) {
    const same = before.keyId === id && before.from === giver && before.nanos === size;
    return same ? done(balance(work.balance(sub))) : refused({ reason: 'cause_reused', cause: cause.id } as const);
  }
  if (key.disabled) return refused({ reason: 'key_disabled' } as const);
  if (work.balance(giver) < size) return refused({ reason: 'insufficient_balance' } as const);
  const common = { ref: cause.id, accountId: key.accountId, keyId: id, atMs, nanos: size, ...who(cause) };
  work.move({ ...common, kind: 'sub_account_transfer_out', from: giver, to: 'transit' });
  work.move({ ...common, kind: 'sub_account_transfer_in', from: 'transit', to: taker });
  return done(balance(work.balance(sub)));
}
