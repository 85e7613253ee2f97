/**
 * One unit of work: everything that a transaction changes in the ledger goes through here. The ledger's head is locked before, so
 * what is read here is the newest and nobody else writes meanwhile. Money moves with the journal row that explains it; all that
 * was collected is written by one statement at the end. If anything throws, the transaction around it keeps nothing.
 */
import type { AccountRecord } from '../accounts.ts';
import type { InterruptedRow, MoneyBooks } from '../books/books.ts';
import { Money } from '../books/money.ts';
import type { JournalKind, JournalHead, JournalRow, LedgerAccount } from '../ledger.ts';
import type { KeyRecord } from '../keys.ts';
import { logText } from '../log-text.ts';
import type { RequestLogEntry } from '../request-log.ts';
import { hourOf } from '../rollups.ts';
import { type OpenExchange, openFields } from '../settlement.ts';
import { NOTHING_SPENT, type SpendRow } from '../spend-windows.ts';
import { StoreError } from '../store-error.ts';
import { storable } from '../storable.ts';
import type { Changes } from './cache.ts';
import { KnownExchanges } from './exchanges.ts';
import { columnsOf } from './rollup-rows.ts';
import { DAYS, JOURNAL, LOG, type LogRow, SPEND } from './record-tables.ts';
import { int, journalOf, object, type Row, spendOf, text } from './rows.ts';
import type { Session, Statement, Value } from './session.ts';
import { LOAD, WRITE_ALL } from './write-all.ts';

export interface Head {
  readonly seq: number;
  readonly hash: string;
  readonly logSeq: number;
  readonly logAtMs: number;
  readonly videoNumber: number;
  readonly rollupsAfter: number;
}

const JOURNALED: Statement = { name: 'journaled', text: 'SELECT * FROM journal WHERE ref = $1 AND kind = $2' };

export class Work extends Money implements MoneyBooks {
  readonly session: Session;
  readonly #commitId: string;
  #head: Head;
  readonly #balances = new Map<string, bigint>();
  readonly #spend = new Map<string, SpendRow>();
  readonly #journal: JournalRow[] = [];
  readonly #exchanges = new KnownExchanges();
  /** Rows of the request log by their place. */
  readonly #log = new Map<number, LogRow>();
  readonly #relog: LogRow[] = [];
  readonly #opened = new Map<string, object>();
  readonly #closed = new Set<string>();
  readonly #accounts: AccountRecord[] = [];
  readonly #keys: KeyRecord[] = [];

  constructor(session: Session, head: Head, commitId: string) {
    super();
    this.session = session;
    this.#head = head;
    this.#commitId = commitId;
  }

  run(statement: Statement, values: readonly Value[] = []): Promise<Row[]> {
    return this.session.run(statement, values);
  }

  /** Fetches balances and spend rows in one round trip; without it they cannot be read or changed. */
  async load(balances: Iterable<LedgerAccount>, spend: Iterable<string> = []): Promise<void> {
    const accounts = [...new Set(balances)].filter((name) => !this.#balances.has(name));
    const keys = [...new Set(spend)].filter((id) => !this.#spend.has(id));
    if (accounts.length === 0 && keys.length === 0) return;
    for (const name of accounts) this.#balances.set(name, 0n);
    for (const id of keys) this.#spend.set(id, NOTHING_SPENT);
    for (const row of await this.run(LOAD, [accounts, keys])) {
      const [id, value] = [text(row, 'id'), text(row, 'value')];
      if (row['what'] === 'balance') this.#balances.set(id, BigInt(value));
      else this.#spend.set(id, spendOf(object(value)));
    }
  }

  protected storedBalance(account: LedgerAccount): bigint {
    return loaded(this.#balances, account);
  }

  protected storedSpend(keyId: string): SpendRow {
    return loaded(this.#spend, keyId);
  }

  protected get journalHead(): JournalHead {
    return this.#head;
  }

  protected addJournalRow(row: JournalRow): void {
    this.#head = { ...this.#head, seq: row.seq, hash: row.hash };
    this.#journal.push(row);
  }

  /** The row that already explains this cause, if there is one. */
  async journaled(ref: string, kind: JournalKind): Promise<JournalRow | undefined> {
    const [row] = await this.run(JOURNALED, [storable(ref), kind]);
    return row === undefined ? undefined : journalOf(row);
  }

  async loadExchanges(exchanges: readonly Pick<OpenExchange, 'exchangeId' | 'keyId'>[]): Promise<void> {
    const payers = await this.#exchanges.load(this, exchanges);
    await this.load(['revenue', ...payers], this.#exchanges.keyIds);
  }

  payer(keyId: string): { readonly accountId: string; readonly from: LedgerAccount } {
    return this.#exchanges.payer(keyId);
  }

  enter(exchangeId: string): boolean {
    return this.#exchanges.enter(exchangeId);
  }

  enterAgain(exchangeId: string): InterruptedRow | 'settled' {
    return this.#exchanges.enterAgain(exchangeId);
  }

  appendLog(entry: RequestLogEntry, nowMs: number, text = logText(entry)): number {
    const { logSeq, logAtMs } = this.#head;
    const [seq, loggedAtMs] = [logSeq + 1, Math.max(logAtMs, nowMs)];
    this.#head = { ...this.#head, logSeq: seq, logAtMs: loggedAtMs };
    this.#log.set(seq, { seq, loggedAtMs, entry, text });
    if (entry.status === 'interrupted') this.#exchanges.interrupted(entry.exchangeId, { seq, loggedAtMs, model: entry.model });
    return loggedAtMs;
  }

  replaceLog({ seq }: InterruptedRow, entry: RequestLogEntry, text: string): void {
    const mine = this.#log.get(seq);
    if (mine === undefined) this.#relog.push({ seq, entry, text });
    else this.#log.set(seq, { ...mine, entry, text });
  }

  openExchange(processId: string, exchange: OpenExchange): void {
    if (this.#exchanges.has(exchange.exchangeId)) return;
    const exchange_id = storable(exchange.exchangeId);
    this.#opened.set(exchange_id, { exchange_id, owner_id: processId, exchange: JSON.stringify(openFields(exchange)) });
  }

  closeExchange(_processId: string, exchangeId: string): void {
    const id = storable(exchangeId);
    this.#opened.delete(id);
    this.#closed.add(id);
  }

  isSummedUp(loggedAtMs: number): boolean {
    return hourOf(loggedAtMs) > this.#head.rollupsAfter;
  }

  nextVideoNumber(): number {
    this.#head = { ...this.#head, videoNumber: this.#head.videoNumber + 1 };
    return this.#head.videoNumber;
  }

  /** For the cache, once it is committed; the rows themselves are written by their own statements. */
  changedAccount(account: AccountRecord): void {
    this.#accounts.push(account);
  }

  changedKey(key: KeyRecord): void {
    this.#keys.push(key);
  }

  /** True when other processes should look at once instead of at their next poll. */
  get urgent(): boolean {
    return this.#accounts.length > 0 || this.#keys.length > 0;
  }

  /** Writes what was collected, with the row that proves the commit. Called once, at the end of the transaction. */
  async finish(): Promise<void> {
    const balances = [...this.changedBalances].map(([account, nanos]) => ({ account, nanos: nanos.toString() }));
    const { seq, hash, logSeq, logAtMs, videoNumber } = this.#head;
    const spend = [...this.changedSpend].map(([keyId, row]) => ({ keyId, ...row }));
    const days = [...this.days].map(({ keyId, day, counts }) => ({ keyId, day, ...counts }));
    const rollups = columnsOf(this.rollups);
    await this.run(WRITE_ALL, [
      this.#commitId,
      ...[seq, hash, logSeq, logAtMs, videoNumber],
      ...[JOURNAL.many(this.#journal), JSON.stringify(balances), SPEND.many(spend), DAYS.many(days)],
      ...[LOG.many([...this.#log.values()]), LOG.many(this.#relog), JSON.stringify([...this.#opened.values()])],
      [...this.#closed],
      ...[rollups.hours, rollups.days],
    ]);
  }

  /** What the cache must know after the commit. */
  changes(): Changes {
    return {
      seq: this.#head.seq,
      accounts: this.#accounts,
      keys: this.#keys,
      balances: this.changedBalances,
      spend: this.changedSpend,
    };
  }
}

function loaded<T>(map: ReadonlyMap<string, T>, name: string): T {
  const found = map.get(name);
  if (found === undefined) throw new StoreError('corrupt', `${name} was not loaded before it was used`);
  return found;
}

export function headOf(row: Row): Head {
  return {
    seq: int(row, 'seq'),
    hash: text(row, 'hash'),
    logSeq: int(row, 'log_seq'),
    logAtMs: int(row, 'log_at_ms'),
    videoNumber: int(row, 'video_number'),
    rollupsAfter: int(row, 'rollups_after'),
  };
}
