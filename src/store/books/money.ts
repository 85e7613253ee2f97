/**
 * The money of one transaction, whatever the engine: each movement with the row of the journal that explains it; balances, spend
 * and days are collected, and written once at the end by the engine.
 */
import { addCounts, type DayCounts, NO_USAGE } from '../day-usage.ts';
import { chainHash, type JournalHead, type JournalRow, journalText, type LedgerAccount } from '../ledger.ts';
import { inRange } from '../money.ts';
import { RollupChanges } from '../rollups.ts';
import { addSpend, dayOf, type SpendRow } from '../spend-windows.ts';
import { storable } from '../storable.ts';
import { StoreError } from '../store-error.ts';
import type { Movement } from './books.ts';

/** What a transaction adds to a key's day. */
export interface DayChange {
  readonly keyId: string;
  readonly day: number;
  counts: DayCounts;
}

export abstract class Money {
  readonly rollups = new RollupChanges();
  protected readonly changedBalances = new Map<LedgerAccount, bigint>();
  protected readonly changedSpend = new Map<string, SpendRow>();
  readonly #days = new Map<string, DayChange>();

  /** What is stored, before this transaction. */
  protected abstract storedBalance(account: LedgerAccount): bigint;
  protected abstract storedSpend(keyId: string): SpendRow;
  /** The newest row of the journal, those of this transaction included. */
  protected abstract readonly journalHead: JournalHead;
  /** `text`: of the row without its hash and state (`journalText`). */
  protected abstract addJournalRow(row: JournalRow, text: string): void;

  protected get days(): Iterable<DayChange> {
    return this.#days.values();
  }

  balance(account: LedgerAccount): bigint {
    return this.changedBalances.get(account) ?? this.storedBalance(account);
  }

  spend(keyId: string): SpendRow {
    return this.changedSpend.get(keyId) ?? this.storedSpend(keyId);
  }

  move(movement: Movement): void {
    const { kind, ref, from, to, nanos, by, note, state } = movement;
    if (nanos < 0n || !inRange(nanos)) throw new StoreError('amount_out_of_range', `${kind} of ${nanos} nano-dollars`);
    if (nanos !== 0n && from !== to) {
      this.#setBalance(from, this.balance(from) - nanos);
      this.#setBalance(to, this.balance(to) + nanos);
    }
    const head = this.journalHead;
    // What is hashed is what comes back.
    const words = {
      ref: storable(ref),
      ...(by === undefined ? {} : { by: storable(by) }),
      ...(note === undefined ? {} : { note: storable(note) }),
    };
    const row = { ...movement, ...words, seq: head.seq + 1 };
    const text = journalText(row);
    this.addJournalRow({ ...row, hash: chainHash(head.hash, text, state) }, text);
  }

  note(movement: Omit<Movement, 'from' | 'to' | 'nanos'>): void {
    this.move({ ...movement, from: 'external', to: 'external', nanos: 0n });
  }

  addSpend(keyId: string, nanos: bigint, atMs: number): void {
    this.changedSpend.set(keyId, addSpend(this.spend(keyId), nanos, atMs));
  }

  addHeld(keyId: string, nanos: bigint): void {
    const row = this.spend(keyId);
    this.changedSpend.set(keyId, { ...row, held: row.held + nanos });
  }

  addUsage(keyId: string, atMs: number, usage: Partial<DayCounts>): void {
    const day = dayOf(atMs);
    const name = `${keyId} ${day}`;
    const change = this.#days.get(name) ?? { keyId, day, counts: NO_USAGE };
    change.counts = addCounts(change.counts, usage);
    this.#days.set(name, change);
  }

  #setBalance(account: LedgerAccount, nanos: bigint): void {
    if (!inRange(nanos)) throw new StoreError('amount_out_of_range', `the balance of ${account} would be ${nanos} nano-dollars`);
    this.changedBalances.set(account, nanos);
  }
}
