/**
 * One unit of work: everything that a transaction changes goes through here. Money moves with the journal row that explains it,
 * balances and spend are collected and written once at the end. If anything throws, the transaction around it keeps nothing.
 */
import type { Database, Key } from 'lmdb';
import type { Movement, MoneyBooks } from '../books/books.ts';
import { addCounts, type DayCounts, NO_USAGE } from '../day-usage.ts';
import {
  chainHash,
  FIRST_HASH,
  isOfExchange,
  type JournalHead,
  type JournalKind,
  type JournalRow,
  journalText,
  type LedgerAccount,
} from '../ledger.ts';
import { inRange } from '../money.ts';
import type { RequestLogEntry } from '../request-log.ts';
import { RollupChanges } from '../rollups.ts';
import { addSpend, dayOf, NOTHING_SPENT, type SpendRow } from '../spend-windows.ts';
import { payerOf } from '../payer.ts';
import { storable } from '../storable.ts';
import { StoreError } from '../store-error.ts';
import { LogIndexChanges } from './log-places.ts';
import { addRollups } from './rollup-rows.ts';
import { closedText, type LogHead, metaOf, type Tables } from './tables.ts';

interface Payer {
  readonly accountId: string;
  readonly from: LedgerAccount;
}

const APPEND = { append: true } as const;
const NO_OVERWRITE = { noOverwrite: true } as const;

export class Work implements MoneyBooks {
  readonly tables: Tables;
  readonly rollups = new RollupChanges();
  readonly logIndex = new LogIndexChanges();
  readonly #afterWrite: (() => void) | undefined;
  readonly #balances = new Map<LedgerAccount, bigint>();
  readonly #spend = new Map<string, SpendRow>();
  readonly #days = new Map<string, { readonly key: [string, number]; row: DayCounts }>();
  readonly #payers = new Map<string, Payer>();
  #head: JournalHead | undefined;
  #logHead: LogHead | undefined;
  #hasLogged = false;
  #hasOlderRefs: boolean | undefined;

  constructor(tables: Tables, afterWrite: (() => void) | undefined) {
    this.tables = tables;
    this.#afterWrite = afterWrite;
  }

  put<V, K extends Key>(table: Database<V, K>, key: K, value: V): void {
    table.putSync(key, value);
    this.#afterWrite?.();
  }

  /** For a key above all others of the table: its place need not be looked for. Throws `corrupt` when it is not. */
  append<V, K extends Key>(table: Database<V, K>, key: K, value: V): void {
    const added: unknown = table.putSync(key, value, APPEND);
    if (added !== true) throw new StoreError('corrupt', `row ${String(key)} is not the last of its table`);
    this.#afterWrite?.();
  }

  /** False, and nothing is written, when the key is there already: one look fewer than asking before. */
  add<V, K extends Key>(table: Database<V, K>, key: K, value: V): boolean {
    // The typings say `void` for a put with options; it is the same answer as without.
    const added: unknown = table.putSync(key, value, NO_OVERWRITE);
    this.#afterWrite?.();
    return added === true;
  }

  remove<V, K extends Key>(table: Database<V, K>, key: K): void {
    table.removeSync(key);
    this.#afterWrite?.();
  }

  load(): void {
    // Each is read when it is asked for.
  }

  balance(account: LedgerAccount): bigint {
    return this.#balances.get(account) ?? this.tables.balances.get(account) ?? 0n;
  }

  spend(keyId: string): SpendRow {
    return this.#spend.get(keyId) ?? this.tables.spend.get(keyId) ?? NOTHING_SPENT;
  }

  /** A key and what it pays from, read once a transaction. Throws `corrupt` when there is no such key. */
  payer(keyId: string): Payer {
    const known = this.#payers.get(keyId);
    if (known !== undefined) return known;
    const key = this.tables.keys.get(keyId);
    if (key === undefined) throw new StoreError('corrupt', `no key ${keyId}`);
    const unlimited = this.tables.accounts.get(key.accountId)?.unlimited ?? false;
    const payer = { accountId: key.accountId, from: payerOf(key, unlimited) };
    this.#payers.set(keyId, payer);
    return payer;
  }

  /** Writes a key or an account, and tells every process that what it remembers of them is old. */
  putPrincipal<V>(table: Database<V, string>, id: string, record: V): void {
    this.#payers.clear();
    this.put(table, id, record);
    this.put(this.tables.meta, 'keyGeneration', (metaOf(this.tables, 'keyGeneration') ?? 0) + 1);
  }

  /** The row that already explains this cause, if there is one. */
  journaled(ref: string, kind: JournalKind): JournalRow | undefined {
    const seq = this.tables.journalRefs.get([storable(ref), kind]);
    return seq === undefined ? undefined : this.tables.journal.get(seq);
  }

  /** Writes the journal row and moves the money. Throws when the cause is already journaled: callers check before. */
  move(movement: Movement): void {
    const { kind, ref, from, to, nanos, by, note } = movement;
    // That of an exchange was entered with this row (`exchange-index.ts`).
    if (!isOfExchange(kind) && !this.add(this.tables.journalRefs, [storable(ref), kind], this.nextJournalSeq))
      throw new StoreError('corrupt', `${kind} of ${ref} is already journaled`);
    if (nanos < 0n || !inRange(nanos)) throw new StoreError('amount_out_of_range', `${kind} of ${nanos} nano-dollars`);
    if (nanos !== 0n) {
      this.#setBalance(from, this.balance(from) - nanos);
      this.#setBalance(to, this.balance(to) + nanos);
    }
    const head = this.#journalHead();
    const seq = head.seq + 1;
    // What is hashed is what comes back.
    const words = { ref: storable(ref), by: by && storable(by), note: note && storable(note) };
    const text = journalText({ ...movement, ...words, seq });
    const { state } = movement;
    const hash = chainHash(head.hash, text, state);
    this.#head = { seq, hash };
    this.append<JournalRow | string, number>(this.tables.journal, seq, closedText(text, hash, state));
  }

  /** A journal row that moves nothing: it says why something changed, or why nothing did. */
  note(movement: Omit<Movement, 'from' | 'to' | 'nanos'>): void {
    this.move({ ...movement, from: 'external', to: 'external', nanos: 0n });
  }

  /** Where the next row of the journal will be. */
  get nextJournalSeq(): number {
    return this.#journalHead().seq + 1;
  }

  /** Whether `journalRefs` may hold rows of exchanges, which an older version wrote. */
  get hasOlderRefs(): boolean {
    this.#hasOlderRefs ??= metaOf(this.tables, 'olderRefs') ?? false;
    return this.#hasOlderRefs;
  }

  addSpend(keyId: string, nanos: bigint, atMs: number): void {
    this.#spend.set(keyId, addSpend(this.spend(keyId), nanos, atMs));
  }

  addHeld(keyId: string, nanos: bigint): void {
    const row = this.spend(keyId);
    this.#spend.set(keyId, { ...row, held: row.held + nanos });
  }

  addUsage(keyId: string, atMs: number, usage: Partial<DayCounts>): void {
    const key: [string, number] = [keyId, dayOf(atMs)];
    const name = `${keyId} ${key[1]}`;
    const day = this.#days.get(name) ?? { key, row: this.tables.days.get(key) ?? NO_USAGE };
    day.row = addCounts(day.row, usage);
    this.#days.set(name, day);
  }

  /** Where the next row of the request log will be. */
  get nextLogSeq(): number {
    return this.#currentLogHead().seq + 1;
  }

  /** Takes that place for a row; times never go back along the log. */
  takeLogRow(entry: RequestLogEntry, nowMs: number): LogHead {
    const head = this.#currentLogHead();
    this.#logHead = { seq: head.seq + 1, atMs: Math.max(head.atMs, nowMs) };
    this.#hasLogged = true;
    this.logIndex.enter(entry, this.#logHead.seq);
    return this.#logHead;
  }

  #journalHead(): JournalHead {
    this.#head ??= metaOf(this.tables, 'journalHead') ?? { seq: 0, hash: FIRST_HASH };
    return this.#head;
  }

  #currentLogHead(): LogHead {
    this.#logHead ??= metaOf(this.tables, 'logHead') ?? { seq: 0, atMs: 0 };
    return this.#logHead;
  }

  /** Writes what was collected. Called once, at the end of the transaction. */
  finish(): void {
    for (const [account, nanos] of this.#balances) this.put(this.tables.balances, account, nanos);
    for (const [keyId, row] of this.#spend) this.put(this.tables.spend, keyId, row);
    for (const { key, row } of this.#days.values()) this.put(this.tables.days, key, row);
    if (!this.rollups.isEmpty) addRollups(this, this.rollups);
    if (this.#head !== undefined) this.put(this.tables.meta, 'journalHead', this.#head);
    this.logIndex.write(this);
    if (this.#hasLogged && this.#logHead !== undefined) this.put(this.tables.meta, 'logHead', this.#logHead);
  }

  #setBalance(account: LedgerAccount, nanos: bigint): void {
    if (!inRange(nanos)) throw new StoreError('amount_out_of_range', `the balance of ${account} would be ${nanos} nano-dollars`);
    this.#balances.set(account, nanos);
  }
}
