/**
 * The journal: every change of money is one row that moves a positive amount from one ledger account to another (both legs
 * in one row, so that a half-entry cannot exist) or explains why nothing moved (amount 0). Rows are numbered without gaps
 * and each carries the hash of the one before. Balances are derived from it and kept beside it.
 */
import { hash } from 'node:crypto';
import type { RebuiltRollups } from './rollups.ts';
import { illegal as no, type Transitions } from './transitions.ts';

export const JOURNAL_KINDS = [
  'credit',
  'admin_adjustment',
  'sub_account_transfer_out',
  'sub_account_transfer_in',
  'sub_account_refund',
  'sub_account_debt_transfer',
  'charge',
  'interrupted',
  'hold',
  'settle',
  'refund',
  'keep',
  'account_created',
  'account_changed',
  'key_created',
  'key_changed',
  'secret_rotated',
  'admin_token_created',
  'admin_token_deleted',
  'channel_out_of_service',
  'channel_in_service',
] as const;
export type JournalKind = (typeof JOURNAL_KINDS)[number];

/** Whether an exchange caused the row, and no task and no operator. */
export const isOfExchange = (kind: JournalKind): boolean => kind === 'charge' || kind === 'interrupted';

/** A hold is closed at most once; `keep` records that an unclear outcome left it open. */
export const HOLD = {
  held: { settle: 'settled', refund: 'refunded', keep: 'held' },
  settled: { settle: no, refund: no, keep: no },
  refunded: { settle: no, refund: no, keep: no },
} as const satisfies Transitions<'held' | 'settled' | 'refunded', 'settle' | 'refund' | 'keep'>;
export type HoldState = keyof typeof HOLD;
export type HoldEvent = keyof (typeof HOLD)['held'];

export interface Hold {
  /** The id of the record that caused it (a video task). */
  readonly id: string;
  readonly accountId: string;
  readonly keyId: string;
  readonly state: HoldState;
  readonly nanos: bigint;
  readonly openedAtMs: number;
  readonly closedAtMs?: number;
}

/** A hold, and the ledger account that its money came from. */
export interface HoldRow extends Hold {
  readonly from: LedgerAccount;
}

/** Where money can be. `external` and `revenue` close the circle, so that the sum over all is always zero. */
export type LedgerAccount =
  | 'external'
  | 'revenue'
  | 'transit'
  | `wallet:${string}`
  | `sub:${string}`
  | `house:${string}`
  | `hold:${string}`;

export interface JournalRow {
  /** From 1, without gaps. */
  readonly seq: number;
  readonly atMs: number;
  readonly kind: JournalKind;
  /** The exchange, task or operator's action that caused it; unique together with `kind`. */
  readonly ref: string;
  readonly from: LedgerAccount;
  readonly to: LedgerAccount;
  /** Nano-dollars, ≥ 0. */
  readonly nanos: bigint;
  readonly accountId?: string;
  readonly keyId?: string;
  readonly by?: string;
  readonly note?: string;
  /** All that a key or an account is after this row, which made or changed it (`stated.ts`). Rows of older versions have none. */
  readonly state?: string;
  /** SHA-256 over the hash before and this row, hex. */
  readonly hash: string;
}

/** One difference that `verify` found, in words. */
export interface Difference {
  readonly what:
    | 'balance'
    | 'chain'
    | 'hold'
    | 'spend'
    | 'day'
    | 'unique'
    | 'sum'
    | 'exchange'
    | 'task'
    | 'account'
    | 'key'
    | 'index'
    | 'rollup'
    | 'control';
  readonly subject: string;
  readonly expected: string;
  readonly found: string;
}

/** `seq` 0 and {@link FIRST_HASH} before the first row. */
export interface JournalHead {
  readonly seq: number;
  readonly hash: string;
}

export interface Verification {
  readonly rows: number;
  readonly differences: readonly Difference[];
}

export interface Ledger {
  /**
   * Recomputes everything from the journal over one snapshot. No differences: the ledger is sound. `head` is one that somebody
   * kept: a journal that was written anew differs from it, however well it adds up.
   */
  verify(options?: { readonly head?: JournalHead }): Promise<Verification>;
  /** The newest row: its number and its hash, which vouches for all rows before it. */
  head(): Promise<JournalHead>;
  /** Rows after `after` (a seq), oldest first; with `account`, only those that touch it. */
  journal(query?: {
    readonly after?: number;
    readonly limit?: number;
    readonly accountId?: string;
    readonly ref?: string;
  }): Promise<JournalRow[]>;
  /**
   * Counts the sums by hour anew from the rows of the log and the videos. Hours of which rows were pruned are kept as they are.
   */
  rebuildRollups(): Promise<RebuiltRollups>;
  holds(query?: { readonly state?: HoldState; readonly keyId?: string }): Promise<Hold[]>;
}

/** The hash before the first row. */
export const FIRST_HASH = '0'.repeat(64);

type Unhashed = Omit<JournalRow, 'hash' | 'by' | 'note'> & {
  readonly by?: string | undefined;
  readonly note?: string | undefined;
};

/** Every field of a row but its state and its hash, in a fixed order: a JSON list. Absent ones are null there. */
export function journalText({ seq, atMs, kind, ref, from, to, nanos, accountId, keyId, by, note }: Unhashed): string {
  return JSON.stringify([seq, atMs, kind, ref, from, to, nanos.toString(), accountId, keyId, by, note]);
}

/**
 * The hash of a row, given as its {@link journalText}: over the hash of the row before it, that text and the state, in one list.
 */
export function chainHash(previous: string, text: string, state?: string): string {
  const rest = state === undefined ? text.slice(1) : `${text.slice(1, -1)},${JSON.stringify(state)}]`;
  return hash('sha256', `["${previous}",${rest}`, 'hex');
}

/** The hash of a row over that of the row before it (`FIRST_HASH` before the first). */
export function journalHash(previous: string, row: Omit<JournalRow, 'hash'>): string {
  return chainHash(previous, journalText(row), row.state);
}
