/**
 * What the settlement queue needs of PostgreSQL: openings alone in one statement, everything else in one transaction on the
 * ledger.
 */
import { awaited } from '../books/books.ts';
import { settleAll } from '../books/settlements.ts';
import { logEntryOf, logText } from '../log-text.ts';
import type { StoreProcess } from '../processes.ts';
import type { Batch, SettlementEngine } from '../settlements/engine.ts';
import type { QueueRow } from '../settlements/row.ts';
import { openFields, type Settled } from '../settlement.ts';
import type { Database } from './database.ts';
import { DEFAULTS } from './options.ts';
import type { Statement } from './session.ts';

/** Rows in one transaction: enough to share its cost, few enough to hold the ledger's lock shortly. */
const BATCH = 256;

const OPEN: Statement = {
  name: 'exchanges_open',
  text: `INSERT INTO open_exchanges (exchange_id, owner_id, exchange)
    SELECT x.exchange_id, $1, x.exchange FROM json_to_recordset($2::json) AS x(exchange_id text, exchange text)
    WHERE NOT EXISTS (SELECT 1 FROM request_log r WHERE r.exchange_id = x.exchange_id) ON CONFLICT (exchange_id) DO NOTHING`,
};

export function createSettlementEngine(database: Database, process: StoreProcess): SettlementEngine {
  const { clock, onProblem, flushMs = DEFAULTS.flushMs } = database.options;
  return {
    clock,
    onProblem,
    flushMs,
    batchRows: BATCH,
    textOf: logText,
    entryOf: logEntryOf,
    batch: (rows) => batchOf(database, process, rows),
    health: () => database.health(),
    rowsRefused: () => database.rowsRefused(),
    rowsWritten: () => database.rowsWritten(),
    closeInterrupted: () => process.closeInterrupted(),
  };
}

function batchOf(database: Database, process: StoreProcess, rows: readonly QueueRow[]): Batch {
  // Openings change no money: they need no lock on the ledger, and may be repeated.
  if (rows.every(({ entry, isInterrupted }) => entry === undefined && !isInterrupted))
    return { run: () => openAll(database, process, rows) };
  return database.unit((books) => awaited(settleAll(books, rows, process.id, database.options.clock)));
}

async function openAll(database: Database, process: StoreProcess, rows: readonly QueueRow[]): Promise<Settled[]> {
  const list = rows.flatMap(({ exchangeId, exchange }) =>
    exchange === undefined ? [] : [{ exchange_id: exchangeId, exchange: JSON.stringify(openFields(exchange)) }],
  );
  await database.change(OPEN, [process.id, JSON.stringify(list)]);
  return [];
}
