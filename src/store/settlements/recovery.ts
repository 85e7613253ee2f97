/**
 * What dead processes left in the settlement log, as rows of the queue: settled where it was settled, else closed as interrupted.
 */
import type { RequestLogEntry } from '../request-log.ts';
import type { OpenExchange } from '../settlement.ts';
import { StoreError } from '../store-error.ts';
import type { SettlementEngine } from './engine.ts';
import type { SettlementLog } from './log.ts';
import { type LogRecord, recordOf } from './records.ts';
import { QueueRow } from './row.ts';
import { Segment } from './segment.ts';
import { allLines, type Orphan } from './segment-folder.ts';

/** Each file goes when the last of its rows is written. */
export async function recovered(engine: SettlementEngine, log: SettlementLog): Promise<QueueRow[]> {
  const rows: QueueRow[] = [];
  const opened: { readonly exchange: OpenExchange; readonly segment: Segment }[] = [];
  const segments: Segment[] = [];
  for (const orphan of await log.orphans()) {
    const { records, unread } = read(engine, orphan);
    const segment = Segment.adopt(orphan.path, unread);
    segments.push(segment);
    if (unread > 0)
      engine.onProblem?.({ what: `settlements_damaged: ${unread} lines of ${orphan.path} could not be read; the file is kept` });
    for (const record of records) {
      if ('exchange' in record) opened.push({ exchange: record.exchange, segment });
      else rows.push(settledRow(record, segment));
    }
  }
  const settled = new Set(rows.map(({ exchangeId }) => exchangeId));
  for (const { exchange, segment } of opened) if (!settled.has(exchange.exchangeId)) rows.push(interruptedRow(exchange, segment));
  for (const segment of segments) log.adopted(segment);
  return rows;
}

/** The exchanges in the log of a store at rest, whoever left them. */
export function exchangesIn(path: string, engine: Pick<SettlementEngine, 'entryOf'>): string[] {
  const ids = new Set<string>();
  for (const lines of allLines(path)) {
    for (const record of read(engine, { lines, damaged: 0 }).records)
      ids.add('exchange' in record ? record.exchange.exchangeId : record.entry.exchangeId);
  }
  return [...ids];
}

type ReadRecord = Extract<LogRecord, { readonly kind: 'opened' }> | Settlement;

interface Settlement {
  readonly entry: RequestLogEntry;
  readonly text: string;
}

function read(engine: Pick<SettlementEngine, 'entryOf'>, { lines, damaged }: Pick<Orphan, 'lines' | 'damaged'>) {
  const records: ReadRecord[] = [];
  let unread = damaged;
  for (const line of lines) {
    const record = readRecord(engine, line);
    if (record === undefined) unread += 1;
    else records.push(record);
  }
  return { records, unread };
}

/** Undefined where it is none: a line whose checksum holds was written so, by another version or by mistake. */
function readRecord(engine: Pick<SettlementEngine, 'entryOf'>, line: string): ReadRecord | undefined {
  try {
    const record = recordOf(line);
    return record?.kind === 'settled' ? { text: record.text, entry: engine.entryOf(record.text) } : record;
  } catch (error) {
    if (error instanceof StoreError || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function settledRow({ entry, text }: Settlement, segment: Segment): QueueRow {
  const row = new QueueRow(entry.exchangeId);
  row.entry = entry;
  row.text = text;
  row.settledIn = segment;
  return counted(row, segment);
}

function interruptedRow(exchange: OpenExchange, segment: Segment): QueueRow {
  const row = new QueueRow(exchange.exchangeId);
  row.exchange = exchange;
  row.isInterrupted = true;
  row.openedIn = segment;
  return counted(row, segment);
}

function counted(row: QueueRow, segment: Segment): QueueRow {
  row.isKept = true;
  segment.rows += 1;
  return row;
}
