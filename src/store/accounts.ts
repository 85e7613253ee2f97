/** Accounts: who pays. An account has a wallet (a ledger account) and a class that decides which Channels serve it. */
import type { CreatedQuery } from './created-rows.ts';
import type { RateLimitChanges, RateLimits } from './rate-limits.ts';
import type { Invalid, Result } from './result.ts';

/** Of an account that was given no other. */
export const DEFAULT_CLASS = 'default';

export interface AccountRecord {
  readonly id: string;
  /** Unique. */
  readonly name: string;
  readonly class: string;
  /** Its usage is journaled, but its wallet is never debited and never refuses. */
  readonly unlimited: boolean;
  readonly disabled: boolean;
  readonly createdAtMs: number;
  /** Of all its keys together. */
  readonly rateLimits?: RateLimits;
}

export interface Account extends AccountRecord {
  /** The wallet, in nano-dollars; kept beside the journal and checked against it by `verify`. */
  readonly walletNanos: bigint;
}

/**
 * Why a change was made. `id` makes it repeatable: the same id and the same change is done once; it is the journal's request id.
 */
export interface Cause {
  readonly id: string;
  /** Who asked, for the journal: `cli`, `demo`, an operator's name. */
  readonly by: string;
  readonly note?: string;
}

export interface NewAccount {
  readonly name: string;
  readonly class?: string;
  readonly unlimited?: boolean;
  /** Opening credit in nano-dollars, ≥ 0. */
  readonly creditNanos?: bigint;
  readonly rateLimits?: RateLimits;
}

export interface AccountChanges {
  readonly class?: string;
  readonly unlimited?: boolean;
  readonly disabled?: boolean;
  readonly rateLimits?: RateLimitChanges;
}

export type UnknownAccount = { readonly reason: 'unknown_account'; readonly account: string };
export type ReusedCause = { readonly reason: 'cause_reused'; readonly cause: string };

export interface Accounts {
  /** Repeated under the same cause it gives the same account, unless that was changed meanwhile. */
  create(account: NewAccount, cause: Cause): Promise<Result<Account, Invalid | ReusedCause | { readonly reason: 'name_taken' }>>;
  /** By id or by name. */
  find(idOrName: string): Promise<Account | undefined>;
  /** Oldest first. */
  list(page?: CreatedQuery<AccountRecord>): Promise<Account[]>;
  change(id: string, changes: AccountChanges, cause: Cause): Promise<Result<Account, Invalid | UnknownAccount | ReusedCause>>;
  /** Adds to the wallet (or, with a negative amount, corrects it). Resolves when it is on disk. Zero is refused. */
  credit(id: string, nanos: bigint, cause: Cause): Promise<Result<Account, Invalid | UnknownAccount | ReusedCause>>;
}
