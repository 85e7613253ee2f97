/**
 * What of the settlement queue is on the local disk, too: each turn's rows are appended to this process's current file in one
 * write, and from there a killed process loses nothing. A file goes when the engine has every row of it. Never throws: what the
 * disk does not take waits in memory only, and `onProblem` is told.
 */
import { existsSync } from 'node:fs';
import { addOpening, addSettlement } from './records.ts';
import type { QueueRow } from './row.ts';
import { Lines, type Segment } from './segment.ts';
import { type FolderOptions, type Orphan, SegmentFolder } from './segment-folder.ts';

/** A file of this size gets a successor. */
const LARGE_BYTES = 4 * 1024 * 1024;
/** A file that the engine has all of goes on being used below this size: to make one costs more than to fill it. */
const SMALL_BYTES = 1024 * 1024;

const MAX_BYTES = 256 * 1024 * 1024;

export interface LogOptions extends FolderOptions {
  /** At most so much waits on the disk. Default 256 MiB. */
  readonly maxBytes?: number;
}

/** What tells a store from every other, and from a copy of none: its journal's first row, where it has one. */
export function storeIdOf(firstHash = ''): string {
  return firstHash.slice(0, 16).padEnd(16, '0');
}

export class SettlementLog {
  readonly #folder: SegmentFolder;
  readonly #options: LogOptions;
  #current: Segment | undefined;
  /** Others of this process that hold rows which the engine does not have. */
  readonly #older = new Set<Segment>();
  readonly #unsynced = new Set<Segment>();
  readonly #lines = new Lines();
  #syncing = false;
  /** The disk refused the last rows, which was told. */
  #failing = false;

  /** Throws `StoreError` `unavailable` where the folder cannot be used. */
  constructor(options: LogOptions) {
    this.#options = options;
    this.#folder = new SegmentFolder(options);
  }

  /** Appends the rows in one write. False, and none is logged, when the disk does not take them. */
  write(rows: readonly QueueRow[]): boolean {
    const lines = this.#lines;
    lines.clear();
    for (const { text, exchange } of rows) {
      if (text !== undefined) addSettlement(lines, text);
      else if (exchange !== undefined) addOpening(lines, exchange);
    }
    const { bytes } = lines;
    if (this.#bytes() + bytes.length > (this.#options.maxBytes ?? MAX_BYTES)) {
      this.#fail(`settlement_log_full: ${rows.length} rows wait in memory only`);
      return false;
    }
    try {
      this.#current ??= this.#folder.create();
      this.#current.append(bytes);
    } catch (error) {
      this.#fail(`settlement_log_failed: ${rows.length} rows wait in memory only`, error);
      if (this.#current?.isTorn === true) this.#retire();
      return false;
    }
    this.#failing = false;
    this.#unsynced.add(this.#current);
    for (const row of rows) {
      this.#current.rows += 1;
      if (row.entry === undefined) row.openedIn = this.#current;
      else row.settledIn = this.#current;
    }
    return true;
  }

  /** One at a time. False when the disk refused: what was written since the last one may not be there. */
  async sync(): Promise<boolean> {
    const segments = [...this.#unsynced];
    this.#unsynced.clear();
    this.#syncing = true;
    try {
      for (const segment of segments) {
        await segment.sync();
        if (segment !== this.#current) segment.close();
      }
      return true;
    } catch (error) {
      this.#fail('settlement_log_failed: what was written last may not be on the disk', error);
      this.#retire();
      return false;
    } finally {
      this.#syncing = false;
      this.tidy();
    }
  }

  /** The engine has the row, or it is lost: it needs no place on the disk any more. */
  forget(row: QueueRow): void {
    const { openedIn, settledIn } = row;
    row.openedIn = undefined;
    row.settledIn = undefined;
    for (const segment of [openedIn, settledIn]) {
      if (segment === undefined) continue;
      segment.rows -= 1;
      if (segment.rows === 0 && segment !== this.#current) this.#remove(segment);
    }
  }

  /** True when another process took this one for dead and has its file: what is in there must be written anew. */
  isTaken(): boolean {
    return this.#current !== undefined && !existsSync(this.#current.path);
  }

  /** Leaves the current file to its rows; the next write begins another. What stands in it may have to be synced first. */
  #retire(): void {
    const segment = this.#current;
    if (segment === undefined) return;
    this.#current = undefined;
    if (!this.#syncing && !this.#unsynced.has(segment)) segment.close();
    if (segment.rows === 0) this.#remove(segment);
    else this.#older.add(segment);
  }

  /** After rows were forgotten or synced: a file that is full, or that nobody needs, gives way. */
  tidy(): void {
    if (this.#syncing || this.#current === undefined) return;
    const { rows, bytes } = this.#current;
    if (bytes > LARGE_BYTES || (rows === 0 && bytes > SMALL_BYTES) || this.isTaken()) this.#retire();
  }

  orphans(): Promise<Orphan[]> {
    return this.#folder.orphans();
  }

  /** Rows of another process's file belong to this one now. */
  adopted(segment: Segment): void {
    if (segment.rows === 0) this.#remove(segment);
    else this.#older.add(segment);
  }

  /** Rows that are still in it are left to the next process. */
  close(): void {
    this.#retire();
    for (const segment of this.#older) segment.close();
  }

  #bytes(): number {
    let bytes = this.#current?.bytes ?? 0;
    for (const segment of this.#older) bytes += segment.bytes;
    return bytes;
  }

  #remove(segment: Segment): void {
    this.#older.delete(segment);
    this.#unsynced.delete(segment);
    try {
      segment.remove();
    } catch (error) {
      this.#options.onProblem?.({ what: `settlements_not_removed: ${segment.path}`, error });
    }
  }

  /** Told once, until it is well again. */
  #fail(what: string, error?: unknown): void {
    if (!this.#failing) this.#options.onProblem?.({ what, ...(error === undefined ? {} : { error }) });
    this.#failing = true;
  }
}
