/** What the settlement queue needs of an engine. */
import type { RequestLogEntry } from '../request-log.ts';
import type { OpenExchange, Settled } from '../settlement.ts';
import type { Clock, StoreHealth } from '../store.ts';
import type { QueueRow } from './row.ts';

/**
 * A change with an identity: running it again after a failure never does it twice. Gives what became of each row, in their order.
 */
export interface Batch {
  run(): Promise<readonly (Settled | undefined)[]>;
}

export interface SettlementEngine {
  readonly clock: Clock;
  readonly onProblem: ((problem: { readonly what: string; readonly error?: unknown }) => void) | undefined;
  /** At most this long a row waits for the engine. */
  readonly flushMs: number;
  /** Rows in one transaction. */
  readonly batchRows: number;
  /** A row of the request log as it is kept, and back. */
  textOf(entry: RequestLogEntry): string;
  entryOf(text: string): RequestLogEntry;
  batch(rows: readonly QueueRow[]): Batch;
  health(): StoreHealth;
  /** Rows were refused and wait; they were written. */
  rowsRefused(): void;
  rowsWritten(): void;
  closeInterrupted(): Promise<OpenExchange[]>;
}
