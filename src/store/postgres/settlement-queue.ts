/**
 * The queue of opened and settled exchanges: flushed a few milliseconds after its first row, or when it is long, in one transaction. While
 * the database is away, rows are also kept in the local spool (and count as kept from then on); they stay in this queue until
 * the database has them. A row that is itself wrong fails alone and is told to `onProblem`.
 */
import { Flusher } from '../flusher.ts';
import { isEngineFailure, openingLost, settlementLost } from '../lost-row.ts';
import { type OpenExchange, openFields, type Settled, type Settlement, type Settlements } from '../settlement.ts';
import { StoreError } from '../store-error.ts';
import type { Database, Unit } from './database.ts';
import { DEFAULTS } from './options.ts';
import type { Owner } from './owners.ts';
import { type QueueRow, quiet, settleRow } from './queue-row.ts';
import type { Spool } from './spool.ts';
import { SpooledRows } from './spooled-rows.ts';
import { unitOf, type Written } from './write-rows.ts';

/** Rows in one transaction: enough to share its cost, few enough to hold the ledger's lock shortly. */
const BATCH = 256;
/** A row that has waited this long is kept on the local disk, whatever the reason. */
const SPOOL_AFTER_MS = 100;

/** For rows that settle nothing: who waits for an opening is not told more. */
const NOTHING: Settled = { settled: false, reason: 'already_settled' };

interface Batch {
  readonly rows: readonly QueueRow[];
  readonly unit: Unit<Written>;
}

export class SettlementQueue implements Settlements {
  readonly #database: Database;
  readonly #owner: Owner;
  readonly #spooled: SpooledRows;
  readonly #flusher: Flusher;
  readonly #waiting = new Set<QueueRow>();
  readonly #openWaiting = new Map<string, QueueRow>();
  /** What is being written, or was and may or may not have been: it is run again with the same identity before anything else. */
  #batch: Batch | undefined;
  #cancelSpool: (() => void) | undefined;
  #closed = false;

  constructor(database: Database, owner: Owner, spool: Spool) {
    this.#database = database;
    this.#owner = owner;
    const { clock, flushMs = DEFAULTS.flushMs, onProblem } = database.options;
    this.#spooled = new SpooledRows(spool, onProblem);
    this.#flusher = new Flusher({ clock, flushMs, batch: BATCH, pending: () => this.pending, write: () => this.#write() });
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
    return row.kept;
  }

  /** Resolves when every row is in the database, or at least on the local disk. */
  async flush(): Promise<void> {
    while (this.pending > 0 || this.#flusher.flushing) {
      const written = await this.#flusher.flush();
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
      if (!this.#flusher.flushing && this.pending === 0) return;
      if (!(await this.#flusher.flush())) return;
    }
  }

  closeInterrupted(): Promise<OpenExchange[]> {
    return this.#owner.closeInterrupted();
  }

  /** Takes what dead processes of this machine left in their spools. Resolves when it is in the database or waits here. */
  async recover(): Promise<void> {
    for (const row of this.#spooled.recovered(this.#now())) this.#add(row);
  }

  /** Writes what waits; what cannot be written stays in the spool; what cannot even be spooled is reported, whole. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#flusher.stop();
    this.#cancelSpool?.();
    await this.flush();
  }

  #now(): number {
    return this.#database.options.clock.now();
  }

  #add(row: QueueRow): void {
    if (this.#closed) {
      this.#fail(row, new StoreError('closed', 'the store is closed'));
      return;
    }
    this.#waiting.add(row);
    this.#spoolLater();
    this.#flusher.rowAdded();
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

  /** False when the database refused: what waits is in the spool, too, where that has room. */
  async #write(): Promise<boolean> {
    const batch = this.#batch ?? this.#nextBatch();
    this.#batch = batch;
    try {
      this.#done(batch.rows, await batch.unit.run());
    } catch (error) {
      if (isEngineFailure(error)) return this.#refused();
      this.#batch = undefined;
      if (!(await this.#writeOneByOne(batch.rows))) return false;
    }
    this.#batch = undefined;
    this.#database.rowsWritten();
    await this.#spooled.clear();
    return true;
  }

  /** What could not be written is kept on the local disk, where that has room, and is tried again. */
  async #refused(): Promise<false> {
    this.#database.rowsRefused();
    await this.#spoolAll(0);
    return false;
  }

  #nextBatch(): Batch {
    const rows = [...this.#waiting].slice(0, BATCH);
    for (const row of rows) this.#take(row);
    return { rows, unit: unitOf(this.#database, this.#owner, rows) };
  }

  #take(row: QueueRow): void {
    this.#waiting.delete(row);
    if (row.what.kind === 'open') this.#openWaiting.delete(row.what.exchange.exchangeId);
  }

  /** One row of the batch is wrong: each gets its own transaction, so that the others are written. */
  async #writeOneByOne(rows: readonly QueueRow[]): Promise<boolean> {
    for (const [index, row] of rows.entries()) {
      const batch = { rows: [row], unit: unitOf(this.#database, this.#owner, [row]) };
      this.#batch = batch;
      try {
        this.#done(batch.rows, await batch.unit.run());
      } catch (error) {
        if (isEngineFailure(error)) {
          this.#putBack(rows.slice(index + 1));
          return this.#refused();
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

  /** Only now, with the rows in the database, does this process's memory follow. */
  #done(rows: readonly QueueRow[], written: Written): void {
    for (const row of rows) {
      row.release?.();
      row.opening?.keep(NOTHING);
      row.keep(written.get(row) ?? NOTHING);
      this.#spooled.release(row);
    }
  }

  #fail(row: QueueRow, error: unknown): void {
    const { what } = row;
    const said = what.kind === 'settle' ? settlementLost(what.entry) : openingLost(what.exchange.exchangeId);
    this.#database.options.onProblem?.({ what: said, error });
    row.release?.();
    row.opening?.lose(error);
    row.lose(error);
    this.#spooled.release(row);
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
    if (rows.length > 0) await this.#spooled.append(rows);
    // While the database is there, who waits is told what it says. While it is away, the disk must do.
    if (this.#database.health().healthy) return;
    for (const row of [...(this.#batch?.rows ?? []), ...this.#waiting]) {
      if (!row.spooled) continue;
      row.opening?.keep(NOTHING);
      row.keep({ settled: true, chargedNanos: row.what.kind === 'settle' ? (row.what.entry.charge?.total ?? 0n) : 0n });
    }
  }
}
