/** How rows of the settlement queue are written: openings alone in one statement, everything else in one transaction on the ledger. */
import type { Settled } from '../settlement.ts';
import type { Database, Unit } from './database.ts';
import type { Owner } from './owners.ts';
import type { QueueRow } from './queue-row.ts';
import type { Statement } from './session.ts';
import { Settler } from './settle.ts';
import type { Work } from './work.ts';

/** What became of the settlements among the rows. */
export type Written = ReadonlyMap<QueueRow, Settled>;

const OPEN: Statement = {
  name: 'exchanges_open',
  text: `INSERT INTO open_exchanges (exchange_id, owner_id, exchange)
    SELECT x.exchange_id, $1, x.exchange FROM json_to_recordset($2::json) AS x(exchange_id text, exchange text)
    WHERE NOT EXISTS (SELECT 1 FROM request_log r WHERE r.exchange_id = x.exchange_id) ON CONFLICT (exchange_id) DO NOTHING`,
};

/** To be run, and after an unclear end run again, until it is known to be in the database. */
export function unitOf(database: Database, owner: Owner, rows: readonly QueueRow[]): Unit<Written> {
  // Openings change no money: they need no lock on the ledger, and may be repeated.
  if (rows.every(({ what }) => what.kind === 'open')) return { run: () => openAll(database, owner, rows) };
  return database.unit((work) => writeAll(work, owner, rows, database.options.clock.now()));
}

async function openAll(database: Database, owner: Owner, rows: readonly QueueRow[]): Promise<Written> {
  const exchanges = rows.flatMap(({ what }) => (what.kind === 'open' ? [what.exchange] : []));
  const list = exchanges.map((exchange) => ({ exchange_id: exchange.exchangeId, exchange: JSON.stringify(exchange) }));
  await database.change(OPEN, [owner.id, JSON.stringify(list)]);
  return new Map();
}

async function writeAll(work: Work, owner: Owner, rows: readonly QueueRow[], nowMs: number): Promise<Written> {
  const exchanges = rows.map(({ what }) => (what.kind === 'settle' ? what.entry : what.exchange));
  const settler = await Settler.prepare(work, exchanges, nowMs);
  const written = new Map<QueueRow, Settled>();
  for (const row of rows) {
    const { what } = row;
    if (what.kind === 'open') {
      if (!settler.isLogged(what.exchange.exchangeId)) work.open(owner.id, what.exchange);
    } else if (what.kind === 'interrupt') {
      work.closeExchange(what.exchange.exchangeId);
      settler.interrupt(what.exchange);
    } else {
      written.set(row, settler.settle(what.entry));
      work.closeExchange(what.entry.exchangeId);
    }
  }
  return written;
}
