/**
 * The queue of opened and settled exchanges: flushed a few milliseconds after its first row, or when it is long, in one transaction. While
 * the database is away, rows are also kept in the local spool (and count as kept from then on); they stay in this queue until
 * the database has them. A row that is itself wrong fails alone and is told to `onProblem`.
 */
import { logEntryOf, logText } from '../log-text.ts';
import type { RequestLogEntry } from '../request-log.ts';
import { type OpenExchange, openFields, type Settled, type Settlement, type Settlements } from '../settlement.ts';
import { StoreError } from '../store-error.ts';
import type { Database, Unit } from './database.ts';
import { DEFAULTS } from './options.ts';
import { exchangeOf, type Owner } from './owners.ts';
import { maybeText, object } from './rows.ts';
import { type QueueRow, settleRow } from './queue-row.ts';
import type { Statement } from './session.ts';
import { Settler } from './settle.ts';
import type { Orphan, Spool } from './spool.ts';
import type { Work } from './work.ts';

/** Rows in one transaction: enough to share its cost, few enough to hold the ledger's lock shortly. */
const BATCH = 256;
/** How long to wait after a flush that failed. */
const RETRY_MS = 250;
/** A row that has waited this long is kept on the local disk, whatever the reason. */
const SPOOL_AFTER_MS = 1_000;

const OPEN: Statement = {
  name: 'exchanges_open',
  text: `INSERT INTO open_exchanges (exchange_id, owner_id, exchange)
    SELECT x.exchange_id, $1, x.exchange FROM json_to_recordset($2::json) AS x(exchange_id text, exchange text)
    WHERE NOT EXISTS (SELECT 1 FROM request_log r WHERE r.exchange_id = x.exchange_id) ON CONFLICT (exchange_id) DO NOTHING`,
};

/** For rows that settle nothing: who waits for an opening is not told more. */
const NOTHING: Settled = { settled: false, reason: 'already_settled' };

type Outcome = ReadonlyMap<QueueRow, Settled>;
interface Batch {
  readonly rows: readonly QueueRow[];
  readonly unit: Unit<Outcome>;
}

export class SettlementQueue implements Settlements {
  readonly #database: Database;
  readonly #owner: Owner;
  readonly #spool: Spool;
  readonly #flushMs: number;
  readonly #waiting = new Set<QueueRow>();
  readonly #openWaiting = new Map<string, QueueRow>();
  /** What is being written, or was and may or may not have been: it is run again with the same identity before anything else. */
  #batch: Batch | undefined;
  #spooled = 0;
  #cancelFlush: (() => void) | undefined;
  #cancelSpool: (() => void) | undefined;
  #flushing: Promise<boolean> | undefined;
  #closed = false;

  constructor(database: Database, owner: Owner, spool: Spool) {
    this.#database = database;
    this.#owner = owner;
    this.#spool = spool;
    this.#flushMs = database.options.flushMs ?? DEFAULTS.flushMs;
  }

  get pending(): number {
    return this.#waiting.size + (this.#batch?.rows.length ?? 0);
  }

  open(exchange: OpenExchange): Promise<void> {
    const row = settleRow({ kind: 'open', exchange: openFields(exchange) }, this.#now());
    this.#openWaiting.set(exchange.exchangeId, row);
    this.#add(row);
    return quiet(row.kept.then(() => undefined));
  }

  settle({ entry, reservation }: Settlement): Promise<Settled> {
    const opening = this.#openWaiting.get(entry.exchangeId);
    // Both are written by this row alone. One that is in the spool already stays: its successor may need it.
    if (opening !== undefined && !opening.spooling) {
      this.#waiting.delete(opening);
      this.#openWaiting.delete(entry.exchangeId);
    }
    const release = reservation?.handOver(entry.charge?.total ?? 0n);
    const row = settleRow({ kind: 'settle', entry }, this.#now(), release, opening);
    this.#add(row);
    return quiet(row.kept);
  }

  /** Resolves when every row is in the database, or at least on the local disk. */
  async flush(): Promise<void> {
    while (this.pending > 0 || this.#flushing !== undefined) {
      const written = await (this.#flushing ?? this.#start());
      if (written) continue;
      await this.#spoolAll(0);
      const lost = this.#unspooled().length;
      if (lost === 0) return;
      if (!this.#closed) throw new StoreError('unavailable', `${lost} rows could not be written and still wait`);
      this.#giveUp();
    }
  }

  async caughtUp(): Promise<void> {
    const inHand = this.#batch === undefined ? 0 : 1;
    for (let left = inHand + Math.ceil(this.#waiting.size / BATCH); left > 0; left--) {
      if (this.#flushing === undefined && this.pending === 0) return;
      if (!(await (this.#flushing ?? this.#start()))) return;
    }
  }

  closeInterrupted(): Promise<OpenExchange[]> {
    return this.#owner.closeInterrupted();
  }

  /** Takes what dead processes of this machine left in their spools. Resolves when it is in the database or waits here. */
  async recover(): Promise<void> {
    for (const orphan of this.#spool.orphans()) this.#recover(orphan);
  }

  /** Writes what waits; what cannot be written stays in the spool; what cannot even be spooled is reported, whole. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelFlush?.();
    this.#cancelSpool?.();
    await this.flush();
  }

  #now(): number {
    return this.#database.options.clock.now();
  }

  #recover(orphan: Orphan): void {
    const { onProblem } = this.#database.options;
    if (orphan.damaged > 0) onProblem?.({ what: `spool_damaged: ${orphan.damaged} lines could not be read; the file is kept` });
    const settled = new Set<string>();
    const rows: QueueRow[] = [];
    const opened: OpenExchange[] = [];
    for (const line of orphan.lines) {
      const found = object(line);
      const [entry, exchange] = [maybeText(found, 'settle'), maybeText(found, 'open')];
      if (entry !== undefined) {
        const row = settleRow({ kind: 'settle', entry: logEntryOf(entry) }, this.#now());
        settled.add(logEntryOf(entry).exchangeId);
        rows.push(row);
      } else if (exchange !== undefined) opened.push(exchangeOf(exchange));
    }
    // Opened and never settled: its process died with it.
    for (const exchange of opened)
      if (!settled.has(exchange.exchangeId)) rows.push(settleRow({ kind: 'interrupt', exchange }, this.#now()));
    if (rows.length === 0) {
      orphan.done();
      return;
    }
    // They are on the disk already, in the orphan's file, until the last of them is written.
    let left = rows.length;
    const one = (): void => {
      left -= 1;
      if (left === 0) orphan.done();
    };
    for (const row of rows) {
      row.onWritten = one;
      this.#add(row);
    }
  }

  #add(row: QueueRow): void {
    if (this.#closed) {
      this.#fail(row, new StoreError('closed', 'the store is closed'));
      return;
    }
    this.#waiting.add(row);
    this.#spoolLater();
    if (this.#flushing !== undefined) return;
    if (this.#waiting.size >= BATCH) this.#flushLater(0);
    else if (this.#cancelFlush === undefined) this.#flushLater(this.#flushMs);
  }

  #flushLater(ms: number): void {
    this.#cancelFlush?.();
    this.#cancelFlush = undefined;
    if (ms === 0) void this.#start();
    else this.#cancelFlush = this.#database.options.clock.after(ms, () => void this.#start());
  }

  #spoolLater(): void {
    if (this.#cancelSpool !== undefined) return;
    this.#cancelSpool = this.#database.options.clock.after(SPOOL_AFTER_MS, () => {
      this.#cancelSpool = undefined;
      void this.#spoolAll(SPOOL_AFTER_MS).then(() => {
        if (!this.#closed && this.pending > 0) this.#spoolLater();
      });
    });
  }

  /** One flush at a time; false when the database refused. Never rejects: what failed is told to those who wait and to `onProblem`. */
  #start(): Promise<boolean> {
    this.#cancelFlush?.();
    this.#cancelFlush = undefined;
    this.#flushing ??= this.#write().then((written) => {
      this.#flushing = undefined;
      if (this.pending > 0 && !this.#closed) this.#flushLater(written ? 0 : RETRY_MS);
      return written;
    });
    return this.#flushing;
  }

  async #write(): Promise<boolean> {
    const batch = this.#batch ?? this.#nextBatch();
    this.#batch = batch;
    try {
      this.#done(batch.rows, await batch.unit.run());
    } catch (error) {
      if (isEngineFailure(error)) {
        await this.#spoolAll(0);
        return false;
      }
      this.#batch = undefined;
      return this.#writeOneByOne(batch.rows);
    }
    this.#batch = undefined;
    if (this.#spooled === 0) await this.#clearSpool();
    return true;
  }

  #nextBatch(): Batch {
    const rows = [...this.#waiting].slice(0, BATCH);
    for (const row of rows) this.#take(row);
    return { rows, unit: this.#unitOf(rows) };
  }

  #take(row: QueueRow): void {
    this.#waiting.delete(row);
    if (row.what.kind === 'open') this.#openWaiting.delete(row.what.exchange.exchangeId);
  }

  #unitOf(rows: readonly QueueRow[]): Unit<Outcome> {
    // Openings change no money: they need no lock on the ledger, and may be repeated.
    if (rows.every(({ what }) => what.kind === 'open')) return { run: () => this.#openAll(rows) };
    return this.#database.unit((work) => this.#apply(work, rows));
  }

  async #openAll(rows: readonly QueueRow[]): Promise<Outcome> {
    const exchanges = rows.flatMap(({ what }) => (what.kind === 'open' ? [what.exchange] : []));
    const list = exchanges.map((exchange) => ({ exchange_id: exchange.exchangeId, exchange: JSON.stringify(exchange) }));
    await this.#database.change(OPEN, [this.#owner.id, JSON.stringify(list)]);
    return new Map();
  }

  /** One row of the batch is wrong: each gets its own transaction, so that the others are written. */
  async #writeOneByOne(rows: readonly QueueRow[]): Promise<boolean> {
    for (const [index, row] of rows.entries()) {
      const batch = { rows: [row], unit: this.#unitOf([row]) };
      this.#batch = batch;
      try {
        this.#done(batch.rows, await batch.unit.run());
      } catch (error) {
        if (isEngineFailure(error)) {
          this.#putBack(rows.slice(index + 1));
          await this.#spoolAll(0);
          return false;
        }
        this.#fail(row, error);
      }
      this.#batch = undefined;
    }
    return true;
  }

  /** At the head of the queue again, in their order. */
  #putBack(rows: readonly QueueRow[]): void {
    const later = [...this.#waiting];
    this.#waiting.clear();
    for (const row of [...rows, ...later]) this.#waiting.add(row);
  }

  async #apply(work: Work, rows: readonly QueueRow[]): Promise<Outcome> {
    const exchanges = rows.map(({ what }) => (what.kind === 'settle' ? what.entry : what.exchange));
    const settler = await Settler.prepare(work, exchanges, this.#now());
    const outcome = new Map<QueueRow, Settled>();
    for (const row of rows) {
      const { what } = row;
      if (what.kind === 'open') {
        if (!settler.isLogged(what.exchange.exchangeId)) work.open(this.#owner.id, what.exchange);
      } else if (what.kind === 'interrupt') {
        work.closeExchange(what.exchange.exchangeId);
        settler.interrupt(what.exchange);
      } else {
        outcome.set(row, settler.settle(what.entry));
        work.closeExchange(what.entry.exchangeId);
      }
    }
    return outcome;
  }

  /** Only now, with the rows in the database, does this process's memory follow. */
  #done(rows: readonly QueueRow[], outcome: Outcome): void {
    for (const row of rows) {
      row.release?.();
      row.opening?.keep(NOTHING);
      row.keep(outcome.get(row) ?? NOTHING);
      this.#gone(row);
    }
  }

  /** It needs no place any more, here or in the spool. */
  #gone(row: QueueRow): void {
    row.onWritten?.();
    if (row.spooling) this.#spooled -= 1;
  }

  #fail(row: QueueRow, error: unknown): void {
    const { what } = row;
    const said =
      what.kind === 'settle' ? `settlement_lost: ${describe(what.entry)}` : `opening_lost: ${what.exchange.exchangeId}`;
    this.#database.options.onProblem?.({ what: said, error });
    row.release?.();
    row.opening?.lose(error);
    row.lose(error);
    this.#gone(row);
  }

  #giveUp(): void {
    const lost = this.#unspooled();
    for (const row of lost) {
      this.#take(row);
      this.#fail(row, new StoreError('unavailable', 'the store was closed while neither the database nor the disk took the row'));
    }
    for (const row of [...this.#waiting]) this.#waiting.delete(row);
    this.#batch = undefined;
  }

  #unspooled(): QueueRow[] {
    return [...(this.#batch?.rows ?? []), ...this.#waiting].filter((row) => !row.spooling && row.onWritten === undefined);
  }

  /** Puts on the local disk what has waited for at least this long. Never rejects. */
  async #spoolAll(agedMs: number): Promise<void> {
    const now = this.#now();
    const rows = this.#unspooled().filter(({ atMs }) => now - atMs >= agedMs);
    if (rows.length > 0) await this.#append(rows);
    // While the database is there, who waits is told what it says. While it is away, the disk must do.
    if (this.#database.health().healthy) return;
    for (const row of [...(this.#batch?.rows ?? []), ...this.#waiting]) {
      if (!row.spooled) continue;
      row.opening?.keep(NOTHING);
      row.keep({ settled: true, chargedNanos: row.what.kind === 'settle' ? (row.what.entry.charge?.total ?? 0n) : 0n });
    }
  }

  async #append(rows: readonly QueueRow[]): Promise<void> {
    const { onProblem } = this.#database.options;
    const lines = rows.map(({ what }) =>
      JSON.stringify(what.kind === 'settle' ? { settle: logText(what.entry) } : { open: JSON.stringify(what.exchange) }),
    );
    const bytes = lines.reduce((sum, line) => sum + Buffer.byteLength(line) + 10, 0);
    if (!this.#spool.hasRoom(bytes)) {
      onProblem?.({ what: `spool_full: ${rows.length} rows wait in memory only` });
      return;
    }
    const writing = this.#spool.append(lines);
    for (const row of rows) row.spooling = true;
    this.#spooled += rows.length;
    try {
      await writing;
      for (const row of rows) row.spooled = true;
    } catch (error) {
      this.#spooled -= rows.length;
      onProblem?.({ what: `spool_failed: ${rows.length} rows wait in memory only`, error });
      for (const row of rows) row.spooling = false;
    }
  }

  async #clearSpool(): Promise<void> {
    if (this.#spool.bytes === 0) return;
    try {
      await this.#spool.clear();
    } catch (error) {
      this.#database.options.onProblem?.({ what: 'spool_not_cleared', error });
    }
  }
}

/** The whole charge in words, since this line is then the only record of it. */
function describe({ exchangeId, accountId, keyId, model, status, charge }: RequestLogEntry): string {
  return JSON.stringify({ exchangeId, accountId, keyId, model, status, chargedNanos: (charge?.total ?? 0n).toString() });
}

/** The hot path does not look at these promises; a failure is reported by `onProblem`, so it must not count as unhandled. */
function quiet<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

const ROW_ERRORS: ReadonlySet<string> = new Set(['corrupt', 'amount_out_of_range']);

function isEngineFailure(error: unknown): boolean {
  return error instanceof StoreError && !ROW_ERRORS.has(error.code);
}
