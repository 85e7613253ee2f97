/**
 * The queue of opened and settled exchanges: flushed a few milliseconds after its first row, or when it is long, in one
 * transaction. A row that cannot be written for lack of disk stays in the queue and is tried again; a row that is itself wrong fails
 * alone and is told to `onProblem`. An exchange that is settled before its opening was flushed is never written as open.
 */
import type { RequestLogEntry } from '../request-log.ts';
import { Outcome } from '../outcome.ts';
import { type OpenExchange, openFields, type Settled, type Settlement, type Settlements } from '../settlement.ts';
import { StoreError } from '../store-error.ts';
import type { Environment } from './environment.ts';
import type { Owner } from './owners.ts';
import { settleExchange } from './settle.ts';
import type { Work } from './work.ts';

const DEFAULT_FLUSH_MS = 10;
/** Rows in one transaction: enough to share its cost, few enough not to hold the event loop for long. */
const BATCH = 192;
/** How long to wait after a flush that the disk refused. */
const RETRY_MS = 250;

/** One exchange in the queue: to be opened, to be settled, or both, which writes the settlement alone. */
class Row {
  readonly exchangeId: string;
  exchange: OpenExchange | undefined;
  opened: Outcome<void> | undefined;
  entry: RequestLogEntry | undefined;
  /** Gives the reservation back: the charge is on disk, or lost for good. */
  release: (() => void) | undefined;
  settled: Outcome<Settled> | undefined;

  constructor(exchangeId: string) {
    this.exchangeId = exchangeId;
  }
}

type Result = { readonly row: Row; readonly settled: Settled | undefined };

export class SettlementQueue implements Settlements {
  readonly #environment: Environment;
  readonly #owner: Owner;
  readonly #flushMs: number;
  #waiting = new Set<Row>();
  /** Those of them that are only to be opened. */
  readonly #openWaiting = new Map<string, Row>();
  /** Exchanges of this process whose opening is on disk. */
  readonly #opened = new Set<string>();
  #cancelTimer: (() => void) | undefined;
  #flushing: Promise<boolean> | undefined;
  /** The last flush was refused by the disk: the timer decides when the next one is tried, not the length of the queue. */
  #failing = false;
  #closed = false;

  constructor(environment: Environment, owner: Owner) {
    this.#environment = environment;
    this.#owner = owner;
    this.#flushMs = environment.options.flushMs ?? DEFAULT_FLUSH_MS;
  }

  get pending(): number {
    return this.#waiting.size;
  }

  open(exchange: OpenExchange): Outcome<void> {
    const row = new Row(exchange.exchangeId);
    const opened = new Outcome<void>();
    row.exchange = exchange;
    row.opened = opened;
    this.#openWaiting.set(row.exchangeId, row);
    this.#add(row);
    return opened;
  }

  settle({ entry, reservation }: Settlement): Outcome<Settled> {
    const opening = this.#openWaiting.get(entry.exchangeId);
    const row = opening ?? new Row(entry.exchangeId);
    const settled = new Outcome<Settled>();
    row.entry = entry;
    row.release = reservation?.handOver(entry.charge?.total ?? 0n);
    row.settled = settled;
    if (opening === undefined) this.#add(row);
    else this.#openWaiting.delete(entry.exchangeId);
    return settled;
  }

  async flush(): Promise<void> {
    while (this.#waiting.size > 0 || this.#flushing !== undefined) {
      const written = await (this.#flushing ?? this.#start());
      if (!written && !this.#closed)
        throw new StoreError('unavailable', `${this.#waiting.size} rows could not be written and still wait`);
    }
  }

  async caughtUp(): Promise<void> {
    const inHand = this.#flushing === undefined ? 0 : 1;
    for (let left = inHand + Math.ceil(this.#waiting.size / BATCH); left > 0; left--) {
      if (this.#flushing === undefined && (this.#waiting.size === 0 || this.#failing)) return;
      if (!(await (this.#flushing ?? this.#start()))) return;
    }
  }

  closeInterrupted(): Promise<OpenExchange[]> {
    return this.#owner.closeInterrupted();
  }

  /** Writes what waits, once more if it must; what still cannot be written is reported, whole, and its promises reject. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelTimer?.();
    await this.flush();
  }

  #add(row: Row): void {
    if (this.#closed) {
      this.#fail(row, new StoreError('closed', 'the store is closed'));
      return;
    }
    this.#waiting.add(row);
    if (this.#waiting.size >= BATCH && this.#flushing === undefined && !this.#failing) this.#flushLater(0);
    else if (this.#cancelTimer === undefined && this.#flushing === undefined) this.#flushLater(this.#flushMs);
  }

  #flushLater(ms: number): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    if (ms === 0) void this.#start();
    else this.#cancelTimer = this.#environment.options.clock.after(ms, () => void this.#start());
  }

  /** One flush at a time; false when the disk refused. Never rejects: what failed is told to those who wait and to `onProblem`. */
  #start(): Promise<boolean> {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    this.#flushing ??= this.#write().then((written) => {
      this.#flushing = undefined;
      this.#failing = !written;
      if (this.#waiting.size > 0 && (written || !this.#closed)) this.#flushLater(written ? 0 : RETRY_MS);
      return written;
    });
    return this.#flushing;
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
      return true;
    } catch (error) {
      if (!isEngineFailure(error)) {
        await this.#writeOneByOne(batch);
        return true;
      }
      if (this.#closed) for (const row of batch) this.#fail(row, error);
      else this.#putBack(batch);
      return false;
    }
  }

  /** One row of the batch is wrong: each gets its own transaction, so that the others are written. */
  async #writeOneByOne(batch: readonly Row[]): Promise<void> {
    for (const row of batch) {
      try {
        this.#done([await this.#environment.transact((work) => this.#apply(work, row))]);
      } catch (error) {
        if (isEngineFailure(error) && !this.#closed) this.#putBack([row]);
        else this.#fail(row, error);
      }
    }
  }

  #apply(work: Work, row: Row): Result {
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
  #done(results: readonly Result[]): void {
    for (const { row, settled } of results) {
      if (settled !== undefined) {
        this.#opened.delete(row.exchangeId);
        row.release?.();
        row.settled?.resolve(settled);
      }
      row.opened?.resolve();
    }
  }

  #putBack(batch: readonly Row[]): void {
    const later = this.#waiting;
    this.#waiting = new Set(batch);
    for (const row of later) this.#waiting.add(row);
    for (const row of batch) if (row.entry === undefined) this.#openWaiting.set(row.exchangeId, row);
  }

  #fail({ exchangeId, entry, opened, release, settled }: Row, error: unknown): void {
    const what = entry === undefined ? `opening_lost: ${exchangeId}` : `settlement_lost: ${describe(entry)}`;
    this.#environment.options.onProblem?.({ what, error });
    this.#opened.delete(exchangeId);
    release?.();
    opened?.reject(error);
    settled?.reject(error);
  }
}

/** The whole charge in words, since this line is then the only record of it. */
function describe({ exchangeId, accountId, keyId, model, status, charge }: RequestLogEntry): string {
  return JSON.stringify({ exchangeId, accountId, keyId, model, status, chargedNanos: (charge?.total ?? 0n).toString() });
}

const ROW_ERRORS: ReadonlySet<string> = new Set(['corrupt', 'amount_out_of_range']);

function isEngineFailure(error: unknown): boolean {
  return error instanceof StoreError && !ROW_ERRORS.has(error.code);
}
