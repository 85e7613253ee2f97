/**
 * Every exchange that was ever logged or journaled, by its id: where its row of the request log is, and where its rows of the
 * journal are. This one entry is what makes an exchange settle once. It outlives the log row where money moved.
 */
import type { JournalRow } from '../ledger.ts';
import type { RequestLogRow } from '../request-log.ts';
import { storable } from '../storable.ts';
import type { StoredEntry, Tables } from './tables.ts';
import type { Work } from './work.ts';

export interface ExchangeEntry {
  /** Undefined when that row was pruned. */
  readonly logSeq: number | undefined;
  readonly journalSeqs: readonly number[];
}

/**
 * Enters an exchange that goes to the next place of the log, and if `journaled` to the next of the journal. False, and nothing is
 * entered, when it was seen before.
 */
export function enterExchange(work: Work, exchangeId: string, journaled: boolean): boolean {
  if (work.hasOlderRefs && chargeRef(work.tables, exchangeId) !== undefined) return false;
  const entry = journaled ? [work.nextLogSeq, work.nextJournalSeq] : [work.nextLogSeq];
  return work.add(work.tables.exchanges, exchangeId, entry);
}

/** Enters the next row of the journal, and where the row of the log is from now on. */
export function reenterExchange(work: Work, exchangeId: string, before: ExchangeEntry, logSeq: number, journaled: boolean): void {
  const seqs = journaled ? [...before.journalSeqs, work.nextJournalSeq] : before.journalSeqs;
  work.put(work.tables.exchanges, exchangeId, [logSeq, ...seqs]);
}

/** Its row of the log is gone; where money moved, the entry stays. */
export function forgetLogRow(work: Work, exchangeId: string): void {
  const { exchanges } = work.tables;
  const { journalSeqs } = exchangeEntry(work.tables, exchangeId) ?? { journalSeqs: [] };
  if (journalSeqs.length === 0) work.remove(exchanges, exchangeId);
  else work.put(exchanges, exchangeId, [0, ...journalSeqs]);
}

export function exchangeEntry(tables: Tables, exchangeId: string): ExchangeEntry | undefined {
  const stored = tables.exchanges.get(exchangeId);
  return stored && entryOf(stored);
}

export function entryOf([logSeq, ...journalSeqs]: StoredEntry): ExchangeEntry {
  return { logSeq: logSeq === 0 ? undefined : logSeq, journalSeqs };
}

/** Whether money moved for it. */
export function isCharged(tables: Tables, exchangeId: string, { journalSeqs }: ExchangeEntry): boolean {
  const isCharge = (seq: number): boolean => tables.journal.get(seq)?.kind === 'charge';
  return journalSeqs.some(isCharge) || chargeRef(tables, exchangeId) !== undefined;
}

/** Before schema 3 the rows of exchanges were indexed as all others are. */
function chargeRef(tables: Tables, exchangeId: string): number | undefined {
  return tables.journalRefs.get([storable(exchangeId), 'charge']);
}

/** For copies: a row of the journal that exists already. */
export function enterJournalRow(work: Work, { ref, seq }: JournalRow): void {
  const { logSeq = 0, journalSeqs = [] } = exchangeEntry(work.tables, ref) ?? {};
  work.put(work.tables.exchanges, ref, [logSeq, ...journalSeqs, seq]);
}

/** For copies: a row of the log that exists already. */
export function enterLogRow(work: Work, { exchangeId, seq }: RequestLogRow): void {
  const { journalSeqs = [] } = exchangeEntry(work.tables, exchangeId) ?? {};
  work.put(work.tables.exchanges, exchangeId, [seq, ...journalSeqs]);
}
