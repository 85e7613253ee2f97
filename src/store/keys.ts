/**
 * API keys: a digest, what it may do, how much it may spend. The key itself is shown once and never stored.
 * Knows nothing of headers, statuses or models; whether a model exists is the caller's to know.
 */
import type { AccountRecord, Cause, ReusedCause, UnknownAccount } from './accounts.ts';
import type { CreatedQuery } from './created-rows.ts';
import type { RateLimitChanges, RateLimits } from './rate-limits.ts';
import type { Invalid, Result } from './result.ts';

/** Limits of what a key may spend, in nano-dollars, each > 0. Absent: no limit. Hours and days are fixed UTC windows. */
export interface SpendLimits {
  readonly total?: bigint;
  readonly hourly?: bigint;
  readonly daily?: bigint;
}

export interface KeyRecord {
  readonly id: string;
  readonly accountId: string;
  readonly name: string;
  /** SHA-256 of the key, hex. */
  readonly digest: string;
  /** What may be shown: the first characters and the last four. */
  readonly prefix: string;
  readonly last4: string;
  readonly createdAtMs: number;
  readonly expiresAtMs?: number;
  readonly disabled: boolean;
  /** It is gone for good, and disabled: what stays is for the rows that name it. Absent: it is not deleted. */
  readonly deletedAtMs?: number;
  /** Models that it may call. Absent: all. */
  readonly models?: readonly string[];
  /** Addresses and CIDR ranges that it may be used from. Absent: everywhere. */
  readonly ips?: readonly string[];
  readonly limits: SpendLimits;
  readonly rateLimits?: RateLimits;
  /** It pays from a balance of its own; the wallet is not consulted. */
  readonly subAccount: boolean;
}

/** A key that was accepted, and who owns it. */
export interface Principal {
  readonly key: KeyRecord;
  readonly account: AccountRecord;
}

export interface NewKey {
  readonly accountId: string;
  readonly name: string;
  readonly expiresAtMs?: number;
  readonly models?: readonly string[];
  readonly ips?: readonly string[];
  readonly limits?: SpendLimits;
  readonly rateLimits?: RateLimits;
  readonly subAccount?: boolean;
  /** A chosen key instead of a random one: for the demonstration and for tests only. */
  readonly secret?: string;
  /** When given, a model outside of it is refused. */
  readonly knownModels?: ReadonlySet<string>;
  /**
   * The key that it stands in for, which is changed so in the same transaction: two at once cannot both replace it. `note`: why.
   */
  readonly replaces?: { readonly id: string; readonly changes: KeyChanges; readonly note?: string };
}

/** `null` removes a restriction. */
export interface KeyChanges {
  readonly name?: string;
  readonly expiresAtMs?: number | null;
  /** An expiry counted from the change, instead of `expiresAtMs`: a repetition under the same cause then asks for the same. */
  readonly expiresInMs?: number;
  readonly models?: readonly string[] | null;
  readonly ips?: readonly string[] | null;
  readonly limits?: { readonly total?: bigint | null; readonly hourly?: bigint | null; readonly daily?: bigint | null };
  readonly rateLimits?: RateLimitChanges;
  readonly disabled?: boolean;
  /** Disables it for good: every later change is `unknown_key`. */
  readonly deleted?: true;
  /**
   * With `disabled`: the key whose sub-account gets what this one holds, in the same transaction. Of the same account, and with a
   * sub-account of its own; absent: the wallet gets it, or the key that is made in its place.
   */
  readonly heir?: string;
  readonly knownModels?: ReadonlySet<string>;
}

export type UnknownKey = { readonly reason: 'unknown_key'; readonly key: string };
/** Why a token was not accepted: for the log. A client is told the same in every case. */
export type NotAccepted = { readonly reason: 'unknown' | 'disabled' | 'expired' | 'account_disabled'; readonly keyId?: string };

/** What a key can pay with. */
export interface Balance {
  readonly source: 'wallet' | 'sub_account';
  readonly nanos: bigint;
  readonly unlimited: boolean;
}

export interface Keys {
  /** `secret` is `sk-mizu-` + 43 base64url characters, returned this once. */
  create(
    key: NewKey,
    cause: Cause,
  ): Promise<
    Result<
      { readonly key: KeyRecord; readonly secret: string },
      Invalid | UnknownAccount | UnknownKey | ReusedCause | { readonly reason: 'key_disabled' }
    >
  >;
  /**
   * Looks the token up by digest, compares in constant time, checks that it is neither disabled nor expired. No promise where the
   * engine need not wait for what it reads; it throws then where it would reject.
   */
  authenticate(token: string, nowMs: number): Result<Principal, NotAccepted> | Promise<Result<Principal, NotAccepted>>;
  find(id: string): Promise<KeyRecord | undefined>;
  /** Oldest first; deleted ones, too. */
  list(accountId?: string, page?: CreatedQuery<KeyRecord>): Promise<KeyRecord[]>;
  /** Disabling a key with a sub-account returns its signed balance to the wallet; later settlements of it charge the wallet. */
  change(id: string, changes: KeyChanges, cause: Cause): Promise<Result<KeyRecord, Invalid | UnknownKey | ReusedCause>>;
  /**
   * Wallet to sub-account; a negative amount takes back. Two journal rows in one transaction; never below zero on the giving
   * side.
   */
  transfer(
    id: string,
    nanos: bigint,
    cause: Cause,
  ): Promise<
    Result<
      Balance,
      Invalid | UnknownKey | ReusedCause | { readonly reason: 'insufficient_balance' | 'no_sub_account' | 'key_disabled' }
    >
  >;
  /** The sub-account's balance when the key has one (and is enabled), otherwise the wallet's. */
  balance(keyId: string): Promise<Balance | undefined>;
}
