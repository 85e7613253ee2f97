/**
 * The queue of opened and settled exchanges: flushed a few milliseconds after its first row, or when it is long, in one
 * transaction. A row that cannot be written for lack of disk stays in the queue and is tried again; a row that is itself wrong fails
 * alone and is told to `onProblem`. An exchange that is settled before its opening was flushed is never written as open.
 */
import type { RequestLogEntry } from '../request-log.ts';
import { Eventual } from '../eventual.ts';
import { Flusher } from '../flusher.ts';
import { isEngineFailure, openingLost, settlementLost } from '../lost-row.ts';
import { type OpenExchange, openFields, type Settled, type Settlement, type Settlements } from '../settlement.ts';
import { StoreError } from '../store-error.ts';
import type { Environment } from './environment.ts';
import type { Owner } from './owners.ts';
import { settleExchange } from './settle.ts';
import type { Work } from './work.ts';

const DEFAULT_FLUSH_MS = 10;
/** Rows in one transaction: enough to share its cost, few enough not to hold the event loop for long. */
const BATCH = 192;

/** One exchange in the queue: to be opened, to be settled, or both, which writes the settlement alone. */
class Row {
  readonly exchangeId: string;
  exchange: OpenExchange | undefined;
  opened: Eventual<void> | undefined;
  entry: RequestLogEntry | undefined;
  /** Gives the reservation back: the charge is on disk, or lost for good. */
  release: (() => void) | undefined;
  settled: Eventual<Settled> | undefined;

  constructor(exchangeId: string) {
    this.exchangeId = exchangeId;
  }
}

type Applied = { readonly row: Row; readonly settled: Settled | undefined };

export class SettlementQueue implements Settlements {
  readonly #environment: Environment;
  readonly #owner: Owner;
  readonly #flusher: Flusher;
  #waiting = new Set<Row>();
  /** Those of them that are only to be opened, and were never tried. */
  readonly #openWaiting = new Map<string, Row>();
  /** Exchanges of this process whose opening is on disk. */
  readonly #opened = new Set<string>();
  #closed = false;

  constructor(environment: Environment, owner: Owner) {
    this.#environment = environment;
    this.#owner = owner;
    const { clock, flushMs = DEFAULT_FLUSH_MS } = environment.options;
    this.#flusher = new Flusher({ clock, flushMs, batch: BATCH, pending: () => this.pending, write: () => this.#write() });
  }

  get pending(): number {
    return this.#waiting.size;
  }

  open(exchange: OpenExchange): Eventual<void> {
    const row = new Row(exchange.exchangeId);
    const opened = new Eventual<void>();
    row.exchange = exchange;
    row.opened = opened;
    this.#openWaiting.set(row.exchangeId, row);
    this.#add(row);
    return opened;
  }

  settle({ entry, reservation }: Settlement): Eventual<Settled> {
    const opening = this.#openWaiting.get(entry.exchangeId);
    const row = opening ?? new Row(entry.exchangeId);
    const settled = new Eventual<Settled>();
    row.entry = entry;
    row.release = reservation?.handOver(entry.charge?.total ?? 0n);
    row.settled = settled;
    if (opening === undefined) this.#add(row);
    else this.#openWaiting.delete(entry.exchangeId);
    return settled;
  }

  async flush(): Promise<void> {
    while (this.#waiting.size > 0 || this.#flusher.flushing) {
      const written = await this.#flusher.flush();
      if (!written && !this.#closed)
        throw new StoreError('unavailable', `${this.#waiting.size} rows could not be written and still wait`);
    }
  }

  async caughtUp(): Promise<void> {
    const inHand = this.#flusher.flushing ? 1 : 0;
    for (let left = inHand + Math.ceil(this.#waiting.size / BATCH); left > 0; left--) {
      if (!this.#flusher.flushing && (this.#waiting.size === 0 || this.#flusher.failing)) return;
      if (!(await this.#flusher.flush())) return;
    }
  }

  closeInterrupted(): Promise<OpenExchange[]> {
    return this.#owner.closeInterrupted();
  }

  /** Writes what waits, once more if it must; what still cannot be written is reported, whole, and its promises reject. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#flusher.stop();
    await this.flush();
  }

  #add(row: Row): void {
    if (this.#closed) {
      this.#fail(row, new StoreError('closed', 'the store is closed'));
      return;
    }
    this.#waiting.add(row);
    this.#flusher.rowAdded();
  }

  /** False when the disk refused: the rows are back at the head of the queue (or, on closing, given up aloud). */
  async #write(): Promise<boolean> {
    const batch = [...this.#waiting].slice(0, BATCH);
    for (const row of batch) {
      this.#waiting.delete(row);
      this.#openWaiting.delete(row.exchangeId);
    }
    try {
      this.#done(await this.#environment.transact((work) => batch.map((row) => this.#apply(work, row))));
      this.#environment.rowsWritten();
      return true;
    } catch (error) {
      return isEngineFailure(error) ? this.#refused(batch, error) : await this.#writeOneByOne(batch);
    }
  }

  /** One row of the batch is wrong: each gets its own transaction, so that the others are written. */
  async #writeOneByOne(batch: readonly Row[]): Promise<boolean> {
    for (const [index, row] of batch.entries()) {
      try {
        this.#done([await this.#environment.transact((work) => this.#apply(work, row))]);
      } catch (error) {
        if (isEngineFailure(error)) return this.#refused(batch.slice(index), error);
        this.#fail(row, error);
      }
    }
    this.#environment.rowsWritten();
    return true;
  }

  /** At the head of the queue again, in their order; on closing, given up aloud. */
  #refused(rows: readonly Row[], error: unknown): false {
    this.#environment.rowsRefused();
    if (this.#closed) {
      for (const row of rows) this.#fail(row, error);
      return false;
    }
    this.#waiting = new Set([...rows, ...this.#waiting]);
    return false;
  }

  #apply(work: Work, row: Row): Applied {
    const { exchangeId, exchange, entry } = row;
    const { openExchanges } = work.tables;
    if (entry !== undefined) {
      if (this.#opened.has(exchangeId)) work.remove(openExchanges, [this.#owner.id, exchangeId]);
      return { row, settled: settleExchange(work, entry, this.#environment.options.clock.now()) };
    }
    if (exchange !== undefined) {
      work.put(openExchanges, [this.#owner.id, exchangeId], openFields(exchange));
      // Noted before it is on disk: its settlement may be in this same batch, and removing a row too many does no harm.
      this.#opened.add(exchangeId);
    }
    return { row, settled: undefined };
  }

  /** Only now, with the rows on disk, does this process's memory follow. */
  #done(results: readonly Applied[]): void {
    for (const { row, settled } of results) {
      if (settled !== undefined) {
        this.#opened.delete(row.exchangeId);
        row.release?.();
        row.settled?.resolve(settled);
      }
      row.opened?.resolve();
    }
  }

  #fail({ exchangeId, entry, opened, release, settled }: Row, error: unknown): void {
    const what = entry === undefined ? openingLost(exchangeId) : settlementLost(entry);
    this.#environment.options.onProblem?.({ what, error });
    // A settlement that was refused leaves the exchange open on disk.
    if (entry === undefined) this.#opened.delete(exchangeId);
    release?.();
    opened?.reject(error);
    settled?.reject(error);
  }
}
