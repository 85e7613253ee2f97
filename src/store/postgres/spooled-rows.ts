/**
 * What of the settlement queue is on the local disk, too: rows as lines of the spool, and lines of dead processes as rows again. Knows
 * neither the order of the queue nor the database.
 */
import { logEntryOf, logText } from '../log-text.ts';
import type { OpenExchange } from '../settlement.ts';
import type { PostgresOptions } from './options.ts';
import { exchangeOf } from './owners.ts';
import { type QueueRow, settleRow } from './queue-row.ts';
import { maybeText, object } from './rows.ts';
import type { Orphan, Spool } from './spool.ts';

/** The checksum before a line and the line's end. */
const LINE_OVERHEAD_BYTES = 10;

export class SpooledRows {
  readonly #spool: Spool;
  readonly #onProblem: PostgresOptions['onProblem'];
  /** Rows in the file, or on their way into it, that the database does not have. */
  #rows = 0;

  constructor(spool: Spool, onProblem: PostgresOptions['onProblem']) {
    this.#spool = spool;
    this.#onProblem = onProblem;
  }

  /** Never rejects: rows that the disk does not take are as before, and `onProblem` is told. */
  async append(rows: readonly QueueRow[]): Promise<void> {
    const lines = rows.map(lineOf);
    const bytes = lines.reduce((sum, line) => sum + Buffer.byteLength(line) + LINE_OVERHEAD_BYTES, 0);
    if (!this.#spool.hasRoom(bytes)) {
      this.#onProblem?.({ what: `spool_full: ${rows.length} rows wait in memory only` });
      return;
    }
    const writing = this.#spool.append(lines);
    for (const row of rows) row.spooling = true;
    this.#rows += rows.length;
    try {
      await writing;
      for (const row of rows) row.spooled = true;
    } catch (error) {
      for (const row of rows) this.#leave(row);
      this.#onProblem?.({ what: `spool_failed: ${rows.length} rows wait in memory only`, error });
    }
  }

  /** The row is in the database, or lost: it needs no place on the disk any more. */
  release(row: QueueRow): void {
    row.onWritten?.();
    this.#leave(row);
  }

  /** Once: the database may take a row while the disk still refuses it. */
  #leave(row: QueueRow): void {
    if (!row.spooling) return;
    row.spooling = false;
    this.#rows -= 1;
  }

  /** Empties the file once the database has every row of it. Never rejects. */
  async clear(): Promise<void> {
    if (this.#rows > 0 || this.#spool.bytes === 0) return;
    try {
      await this.#spool.clear();
    } catch (error) {
      this.#onProblem?.({ what: 'spool_not_cleared', error });
    }
  }

  /**
   * The rows that dead processes of this machine left. Each of their files goes when the last of its rows is released. Throws
   * `StoreError` `unavailable` for a file that cannot be read, after the rows of all others.
   */
  *recovered(nowMs: number): Generator<QueueRow> {
    for (const orphan of this.#spool.orphans()) yield* this.#rowsOf(orphan, nowMs);
  }

  #rowsOf(orphan: Orphan, nowMs: number): QueueRow[] {
    const { rows, unknown } = readRows(orphan.lines, nowMs);
    const unread = orphan.damaged + unknown;
    if (unread > 0) this.#onProblem?.({ what: `spool_damaged: ${unread} lines could not be read; the file is kept` });
    if (rows.length === 0) orphan.done(unread);
    let left = rows.length;
    const onWritten = (): void => {
      left -= 1;
      if (left === 0) orphan.done(unread);
    };
    for (const row of rows) row.onWritten = onWritten;
    return rows;
  }
}

function lineOf({ what }: QueueRow): string {
  return JSON.stringify(what.kind === 'settle' ? { settle: logText(what.entry) } : { open: JSON.stringify(what.exchange) });
}

/** `unknown`: how many lines are of a kind that this version does not write. A newer one may have left them. */
function readRows(lines: readonly string[], nowMs: number): { readonly rows: QueueRow[]; readonly unknown: number } {
  const settled = new Set<string>();
  const rows: QueueRow[] = [];
  const opened: OpenExchange[] = [];
  let unknown = 0;
  for (const line of lines) {
    const found = object(line);
    const [settle, open] = [maybeText(found, 'settle'), maybeText(found, 'open')];
    if (settle !== undefined) {
      const entry = logEntryOf(settle);
      settled.add(entry.exchangeId);
      rows.push(settleRow({ kind: 'settle', entry }, nowMs));
    } else if (open !== undefined) opened.push(exchangeOf(open));
    else unknown += 1;
  }
  // Opened and never settled: its process died with it.
  for (const exchange of opened)
    if (!settled.has(exchange.exchangeId)) rows.push(settleRow({ kind: 'interrupt', exchange }, nowMs));
  return { rows, unknown };
}
