/** What the settlement queue needs of LMDB: its rows in one transaction, and how a row of the request log is kept. */
import type { SettlementEngine } from '../settlements/engine.ts';
import type { QueueRow } from '../settlements/row.ts';
import { openFields, type Settled } from '../settlement.ts';
import type { Environment } from './environment.ts';
import type { StoreProcess } from './processes.ts';
import { entryOf, entryText } from './row-shapes.ts';
import { logInterrupted, settleExchange } from './settle.ts';
import type { Work } from './work.ts';

/** A commit costs the same whatever is in it, and nobody waits for it: what is settled is in the log. */
const FLUSH_MS = 100;
/** Rows in one transaction: enough to share its cost, few enough not to hold the event loop for long. */
const BATCH = 384;

export function createSettlementEngine(environment: Environment, process: StoreProcess): SettlementEngine {
  const { clock, onProblem, flushMs = FLUSH_MS } = environment.options;
  /** Exchanges of this process whose opening is in the store. */
  const opened = new Set<string>();

  const apply = (work: Work, row: QueueRow): Settled | undefined => {
    const { exchangeId, exchange, entry, text } = row;
    const { openExchanges } = work.tables;
    if (entry !== undefined && text !== undefined) {
      if (opened.has(exchangeId)) work.remove(openExchanges, [process.id, exchangeId]);
      return settleExchange(work, entry, text, clock.now());
    }
    if (exchange === undefined) return undefined;
    if (row.isInterrupted) logInterrupted(work, exchange, clock.now());
    else {
      work.put(openExchanges, [process.id, exchangeId], openFields(exchange));
      // Noted before it is on disk: its settlement may be in this same batch, and removing a row too many does no harm.
      opened.add(exchangeId);
    }
    return undefined;
  };

  return {
    clock,
    onProblem,
    flushMs,
    batchRows: BATCH,
    textOf: entryText,
    entryOf,
    batch: (rows) => ({
      async run() {
        const settled = await environment.transact((work) => rows.map((row) => apply(work, row)));
        for (const [index, row] of rows.entries()) if (settled[index] !== undefined) opened.delete(row.exchangeId);
        return settled;
      },
    }),
    health: () => environment.health(),
    rowsRefused: () => environment.rowsRefused(),
    rowsWritten: () => environment.rowsWritten(),
    closeInterrupted: () => process.closeInterrupted(),
  };
}
