/** What the settlement queue needs of LMDB: its rows in one transaction, and how a row of the request log is kept. */
import type { SettlementEngine } from '../settlements/engine.ts';
import { settleAll } from '../books/settlements.ts';
import type { StoreProcess } from '../processes.ts';
import type { Environment } from './environment.ts';
import { entryOf, entryText } from './row-shapes.ts';

/** A commit costs the same whatever is in it, and nobody waits for it: what is settled is in the log. */
const FLUSH_MS = 100;
/** Rows in one transaction: enough to share its cost, few enough not to hold the event loop for long. */
const BATCH = 384;

export function createSettlementEngine(environment: Environment, process: StoreProcess): SettlementEngine {
  const { clock, onProblem, flushMs = FLUSH_MS } = environment.options;
  return {
    clock,
    onProblem,
    flushMs,
    batchRows: BATCH,
    textOf: entryText,
    entryOf,
    batch: (rows) => ({ run: () => environment.follow((books) => settleAll(books, rows, process.id, clock)) }),
    health: () => environment.health(),
    rowsRefused: () => environment.rowsRefused(),
    rowsWritten: () => environment.rowsWritten(),
    closeInterrupted: () => process.closeInterrupted(),
  };
}
