/**
 * The one queue of opened and settled exchanges, in front of every engine. What was settled in a turn of the event loop is
 * appended to the log at the end of that turn and synced a few milliseconds later; the engine takes it in larger batches, exactly
 * once. A row that is itself wrong fails alone and is told to `onProblem`; when the engine refuses, rows wait and are tried
 * again.
 */
import type { OpenExchange, Settled, Settlement, Settlements } from '../settlement.ts';
import { StoreError } from '../store-error.ts';
import { Deferred } from './deferred.ts';
import type { Batch, SettlementEngine } from './engine.ts';
import { Flusher } from './flusher.ts';
import type { SettlementLog } from './log.ts';
import { isEngineFailure, openingLost, settlementLost } from './lost-row.ts';
import { recovered } from './recovery.ts';
import { QueueRow } from './row.ts';

/** How long what was written may wait for its sync: what a power cut may cost. */
const SYNC_MS = 10;
/** How long to wait after the disk has refused the log. */
const RETRY_MS = 1_000;
/** Rows in one write: a queue that has waited for long must not become one text. */
const WRITE_ROWS = 1_000;

interface InHand {
  readonly rows: readonly QueueRow[];
  readonly batch: Batch;
}

export class SettlementQueue implements Settlements {
  readonly #engine: SettlementEngine;
  readonly #log: SettlementLog;
  readonly #flusher: Flusher;
  #waiting: QueueRow[] = [];
  /** Those of them that are only to be opened. */
  readonly #openWaiting = new Map<string, QueueRow>();
  /** Rows that the log gets with its next write: at the end of a turn where one of them was settled, else with the sync. */
  #unlogged: QueueRow[] = [];
  /** Openings that wait for the sync. One that was settled by then is never written. */
  #unloggedOpenings: QueueRow[] = [];
  /** Those that are in the log and wait for the sync. */
  #unsynced: QueueRow[] = [];
  #turnEnds = false;
  /** The disk took no rows: nothing is appended before the next sync. */
  #logRefuses = false;
  #cancelSync: (() => void) | undefined;
  #syncing: Promise<void> | undefined;
  /** What is being written, or was and may or may not have been: it is run again with the same identity before anything else. */
  #inHand: InHand | undefined;
  #closed = false;

  constructor(engine: SettlementEngine, log: SettlementLog) {
    this.#engine = engine;
    this.#log = log;
    const { clock, flushMs, batchRows } = engine;
    this.#flusher = new Flusher({ clock, flushMs, batch: batchRows, pending: () => this.pending, write: () => this.#write() });
  }

  get pending(): number {
    return this.#waiting.length + (this.#inHand?.rows.length ?? 0);
  }

  open(exchange: OpenExchange, strict = false): PromiseLike<void> {
    const row = new QueueRow(exchange.exchangeId);
    const opened = new Deferred<void>();
    row.exchange = exchange;
    row.opened = opened;
    row.isStrict = strict;
    if (!this.#add(row)) return opened;
    this.#openWaiting.set(row.exchangeId, row);
    this.#unloggedOpenings.push(row);
    this.#syncLater();
    return opened;
  }

  settle({ entry, reservation, strict = false }: Settlement): PromiseLike<Settled> {
    const settled = new Deferred<Settled>();
    const release = reservation?.handOver(entry.charge?.total ?? 0n);
    let text: string;
    try {
      text = this.#engine.textOf(entry);
    } catch (error) {
      this.#lose(settlementLost(entry), error);
      release?.();
      settled.reject(error);
      return settled;
    }
    const opening = this.#openWaiting.get(entry.exchangeId);
    const row = opening ?? new QueueRow(entry.exchangeId);
    row.entry = entry;
    row.text = text;
    row.release = release;
    row.settled = settled;
    row.isKept = false;
    row.isStrict = strict;
    if (opening !== undefined) this.#openWaiting.delete(entry.exchangeId);
    else if (!this.#add(row)) return settled;
    this.#unlogged.push(row);
    if (!this.#turnEnds) {
      this.#turnEnds = true;
      setImmediate(this.#endTurn);
    }
    return settled;
  }

  /** Resolves when every row is in the engine, or at least on the local disk. */
  async flush(): Promise<void> {
    while (this.pending > 0 || this.#flusher.flushing) {
      if (await this.#flusher.flush()) continue;
      await this.#sync();
      const lost = this.#rows().filter(({ isKept }) => !isKept).length;
      if (lost === 0) return;
      if (!this.#closed) throw new StoreError('unavailable', `${lost} rows could not be written and still wait`);
      this.#giveUp();
    }
  }

  async caughtUp(): Promise<void> {
    const inHand = this.#inHand === undefined ? 0 : 1;
    for (let left = inHand + Math.ceil(this.#waiting.length / this.#engine.batchRows); left > 0; left--) {
      if (!this.#flusher.flushing && (this.pending === 0 || this.#flusher.failing)) return;
      if (!(await this.#flusher.flush())) return;
    }
  }

  /** What dead processes left in the log counts before what they left open does. */
  async closeInterrupted(): Promise<OpenExchange[]> {
    const found = await recovered(this.#engine, this.#log);
    for (const row of found) this.#add(row);
    await this.caughtUp();
    const closed = new Map<string, OpenExchange>();
    for (const { exchange, isInterrupted } of found)
      if (exchange !== undefined && isInterrupted) closed.set(exchange.exchangeId, exchange);
    for (const exchange of await this.#engine.closeInterrupted()) closed.set(exchange.exchangeId, exchange);
    return [...closed.values()];
  }

  /** Writes what waits; what the engine refuses stays in the log; what cannot even be logged is reported, whole. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#flusher.stop();
    await this.flush();
    this.#cancelSync?.();
    await this.#syncing;
    this.#log.close();
  }

  #add(row: QueueRow): boolean {
    if (this.#closed) {
      this.#fail(row, new StoreError('closed', 'the store is closed'));
      return false;
    }
    this.#waiting.push(row);
    this.#flusher.rowAdded();
    return true;
  }

  readonly #endTurn = (): void => {
    this.#turnEnds = false;
    this.#writeLog();
    this.#syncWhatIsLeft();
  };

  /** Appends what is not in the log. What the disk does not take is tried again later. */
  #writeLog(): void {
    while (this.#unlogged.length > 0 && !this.#logRefuses) {
      const rows = this.#unlogged.splice(0, WRITE_ROWS).filter((row) => !row.isLogged && !row.isDone);
      if (rows.length === 0) continue;
      if (this.#log.write(rows)) this.#written(rows);
      else {
        this.#logRefuses = true;
        this.#unlogged.unshift(...rows);
      }
    }
  }

  /** An opening is no money: a power cut may cost it, unless somebody waits for it. */
  #written(rows: readonly QueueRow[]): void {
    for (const row of rows) {
      if (row.entry === undefined && !row.isStrict) row.keep();
      else this.#unsynced.push(row);
    }
  }

  #syncLater(): void {
    if (this.#cancelSync !== undefined || this.#syncing !== undefined || this.#closed) return;
    this.#cancelSync = this.#engine.clock.after(this.#logRefuses ? RETRY_MS : SYNC_MS, () => {
      this.#cancelSync = undefined;
      void this.#sync();
    });
  }

  /** Resolves when all that waits was appended and synced, or the disk refused. Never rejects. */
  async #sync(): Promise<void> {
    while (this.#syncing !== undefined) await this.#syncing;
    this.#syncing = this.#syncOnce();
    await this.#syncing;
    this.#syncing = undefined;
    this.#syncWhatIsLeft();
  }

  #syncWhatIsLeft(): void {
    if (this.#unlogged.length > 0 || this.#unsynced.length > 0) this.#syncLater();
  }

  async #syncOnce(): Promise<void> {
    this.#cancelSync?.();
    this.#cancelSync = undefined;
    this.#logRefuses = false;
    const openings = this.#unloggedOpenings;
    this.#unloggedOpenings = [];
    for (const row of openings) if (row.entry === undefined) this.#unlogged.push(row);
    this.#writeLog();
    const rows = this.#unsynced;
    if (rows.length === 0) return;
    this.#unsynced = [];
    const synced = rows.map(({ entry }) => entry);
    if (!(await this.#log.sync())) {
      this.#logAnew(rows);
      return;
    }
    const isAway = !this.#engine.health().healthy;
    for (const [index, row] of rows.entries()) {
      // An opening whose settlement came meanwhile is kept with that.
      if (row.entry !== synced[index]) continue;
      row.keep();
      if (isAway) row.answerKept();
    }
  }

  /** What the rows stand in is not to be relied on. */
  #logAnew(rows: readonly QueueRow[]): void {
    const left = rows.filter(({ isDone }) => !isDone);
    for (const row of left) this.#log.forget(row);
    const waiting = new Set(this.#unlogged);
    for (const row of left) if (!waiting.has(row)) this.#unlogged.push(row);
    this.#syncLater();
  }

  #rows(): QueueRow[] {
    return [...(this.#inHand?.rows ?? []), ...this.#waiting];
  }

  /** False when the engine refused: what waits is on the local disk, too, where that has room. */
  async #write(): Promise<boolean> {
    const { rows, batch } = this.#inHand ?? this.#next(this.#taken(this.#engine.batchRows));
    try {
      this.#done(rows, await batch.run());
    } catch (error) {
      if (isEngineFailure(error)) return await this.#refused();
      if (!(await this.#writeOneByOne(rows))) return false;
    }
    this.#inHand = undefined;
    this.#engine.rowsWritten();
    if (this.#syncing === undefined) this.#tidyLog();
    return true;
  }

  #next(rows: readonly QueueRow[]): InHand {
    this.#inHand = { rows, batch: this.#engine.batch(rows) };
    return this.#inHand;
  }

  /** The oldest rows, which wait no longer. */
  #taken(most: number): QueueRow[] {
    const rows = this.#waiting.splice(0, most);
    for (const { entry, exchangeId } of rows) if (entry === undefined) this.#openWaiting.delete(exchangeId);
    return rows;
  }

  /** While the engine is there, whoever waits gets its answer. While it is away, the disk must do. */
  async #refused(): Promise<false> {
    this.#engine.rowsRefused();
    await this.#sync();
    if (!this.#engine.health().healthy) for (const row of this.#rows()) if (row.isKept) row.answerKept();
    return false;
  }

  /** One row of the batch is wrong: each gets its own transaction, so that the others are written. */
  async #writeOneByOne(rows: readonly QueueRow[]): Promise<boolean> {
    for (const [index, row] of rows.entries()) {
      try {
        const { batch } = this.#next([row]);
        this.#done([row], await batch.run());
      } catch (error) {
        if (isEngineFailure(error)) {
          this.#putBack(rows.slice(index + 1));
          return await this.#refused();
        }
        this.#fail(row, error);
      }
    }
    return true;
  }

  /** At the head of the queue again, in their order. */
  #putBack(rows: readonly QueueRow[]): void {
    this.#waiting = [...rows, ...this.#waiting];
  }

  /** Only now, with the rows in the engine, does this process's memory follow. */
  #done(rows: readonly QueueRow[], written: readonly (Settled | undefined)[]): void {
    for (const [index, row] of rows.entries()) {
      row.resolve(written[index]);
      this.#log.forget(row);
    }
  }

  #fail(row: QueueRow, error: unknown): void {
    this.#lose(row.entry === undefined ? openingLost(row.exchangeId) : settlementLost(row.entry), error);
    row.reject(error);
    this.#log.forget(row);
  }

  #lose(what: string, error: unknown): void {
    this.#engine.onProblem?.({ what, error });
  }

  #giveUp(): void {
    for (const row of [...(this.#inHand?.rows ?? []), ...this.#taken(this.#waiting.length)]) {
      if (!row.isKept) this.#fail(row, new StoreError('unavailable', 'the store was closed while nothing took the row'));
    }
    this.#inHand = undefined;
  }

  #tidyLog(): void {
    if (this.#log.isTaken()) this.#logAnew(this.#waiting.filter(({ isLogged }) => isLogged));
    this.#log.tidy();
  }
}
