/**
 * One unit of work on LMDB: everything that a transaction changes goes through here. If anything throws, the transaction around
 * it keeps nothing.
 */
import type { Database, Key } from 'lmdb';
import type { Movement, MoneyBooks } from '../books/books.ts';
import { Money } from '../books/money.ts';
import { addCounts, NO_USAGE } from '../day-usage.ts';
import { FIRST_HASH, isOfExchange, type JournalHead, type JournalKind, type JournalRow, type LedgerAccount } from '../ledger.ts';
import type { RequestLogEntry } from '../request-log.ts';
import { NOTHING_SPENT, type SpendRow } from '../spend-windows.ts';
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

export class Work extends Money implements MoneyBooks {
  readonly tables: Tables;
  readonly logIndex = new LogIndexChanges();
  readonly #afterWrite: (() => void) | undefined;
  readonly #payers = new Map<string, Payer>();
  #head: JournalHead | undefined;
  #logHead: LogHead | undefined;
  #hasLogged = false;
  #hasOlderRefs: boolean | undefined;

  constructor(tables: Tables, afterWrite: (() => void) | undefined) {
    super();
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
    // The typings give `void` for a put with options; the result is the same as without.
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

  protected storedBalance(account: LedgerAccount): bigint {
    return this.tables.balances.get(account) ?? 0n;
  }

  protected storedSpend(keyId: string): SpendRow {
    return this.tables.spend.get(keyId) ?? NOTHING_SPENT;
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

  /** Throws `corrupt` when the cause is already journaled: callers check before. */
  override move(movement: Movement): void {
    const { kind, ref } = movement;
    // That of an exchange was entered with this row (`exchange-index.ts`).
    if (!isOfExchange(kind) && !this.add(this.tables.journalRefs, [storable(ref), kind], this.nextJournalSeq))
      throw new StoreError('corrupt', `${kind} of ${ref} is already journaled`);
    super.move(movement);
  }

  protected addJournalRow({ seq, hash, state }: JournalRow, text: string): void {
    this.#head = { seq, hash };
    this.append<JournalRow | string, number>(this.tables.journal, seq, closedText(text, hash, state));
  }

  /** Where the next row of the journal will be. */
  get nextJournalSeq(): number {
    return this.journalHead.seq + 1;
  }

  /** Whether `journalRefs` may hold rows of exchanges, which an older version wrote. */
  get hasOlderRefs(): boolean {
    this.#hasOlderRefs ??= metaOf(this.tables, 'olderRefs') ?? false;
    return this.#hasOlderRefs;
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

  protected get journalHead(): JournalHead {
    this.#head ??= metaOf(this.tables, 'journalHead') ?? { seq: 0, hash: FIRST_HASH };
    return this.#head;
  }

  #currentLogHead(): LogHead {
    this.#logHead ??= metaOf(this.tables, 'logHead') ?? { seq: 0, atMs: 0 };
    return this.#logHead;
  }

  /** Writes what was collected. Called once, at the end of the transaction. */
  finish(): void {
    const { balances, spend, days } = this.tables;
    for (const [account, nanos] of this.changedBalances) this.put(balances, account, nanos);
    for (const [keyId, row] of this.changedSpend) this.put(spend, keyId, row);
    for (const { keyId, day, counts } of this.days) {
      const key: [string, number] = [keyId, day];
      this.put(days, key, addCounts(days.get(key) ?? NO_USAGE, counts));
    }
    if (!this.rollups.isEmpty) addRollups(this, this.rollups);
    if (this.#head !== undefined) this.put(this.tables.meta, 'journalHead', this.#head);
    this.logIndex.write(this);
    if (this.#hasLogged && this.#logHead !== undefined) this.put(this.tables.meta, 'logHead', this.#logHead);
  }
}
