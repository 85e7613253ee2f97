/** What one settlement writes, inside a transaction: the charge, the spend, the day's usage and the row of the request log. */
import { countsOf } from '../day-usage.ts';
import type { RequestLogEntry, RequestLogRow } from '../request-log.ts';
import { EXCHANGE_PREFIX, type OpenExchange, openFields, type Settled } from '../settlement.ts';
import { hourOf } from '../rollups.ts';
import { storable } from '../storable.ts';
import { StoreError } from '../store-error.ts';
import { enterExchange, exchangeEntry, isCharged, reenterExchange } from './exchange-index.ts';
import { filtersAfter } from './log-index.ts';
import { entryText, placedText } from './row-shapes.ts';
import { metaOf, type Tables } from './tables.ts';
import type { Work } from './work.ts';

/**
 * Settles once: a second settlement of an exchange changes nothing. One that was closed as interrupted is settled late. `text` is what
 * `entryText` made of the entry.
 */
export function settleExchange(work: Work, entry: RequestLogEntry, text: string, nowMs: number): Settled {
  const chargedNanos = entry.charge?.total ?? 0n;
  if (chargedNanos < 0n) throw new StoreError('amount_out_of_range', `a charge of ${chargedNanos} nano-dollars`);
  const late = enterExchange(work, entry.exchangeId, chargedNanos > 0n) ? undefined : interrupted(work.tables, entry.exchangeId);
  if (late === 'settled') return { settled: false, reason: 'already_settled' };
  const known = late?.row;
  if (late !== undefined) reenterExchange(work, entry.exchangeId, late.entry, known?.seq ?? work.nextLogSeq, chargedNanos > 0n);
  const { key, from } = work.payer(entry.keyId);
  if (key.accountId !== entry.accountId) throw new StoreError('corrupt', `key ${entry.keyId} is not of ${entry.accountId}`);
  const { exchangeId, accountId, keyId } = entry;
  if (chargedNanos > 0n) {
    const to = 'revenue';
    work.moveOfExchange({ kind: 'charge', ref: exchangeId, from, to, nanos: chargedNanos, accountId, keyId, atMs: nowMs });
    work.addSpend(keyId, chargedNanos, nowMs);
  }
  const counts = entry.usage === undefined ? {} : countsOf(entry.usage);
  work.addUsage(keyId, nowMs, { requests: known === undefined ? 1 : 0, chargedNanos, ...counts });
  if (known !== undefined && isSummedUp(work.tables, known)) work.rollups.exchange(known, {}, known.loggedAtMs, -1);
  const loggedAtMs = known === undefined ? appendLog(work, entry, text, nowMs) : replaceLog(work, known, entry, text);
  work.rollups.exchange(entry, counts, loggedAtMs);
  return { settled: true, chargedNanos };
}

/** The process died with it open: free, and journaled as such. */
export function logInterrupted(work: Work, exchange: OpenExchange, nowMs: number): void {
  const { exchangeId, accountId, keyId, startedAtMs } = exchange;
  if (!enterExchange(work, exchangeId, true)) return;
  const nothing = { from: 'external', to: 'external', nanos: 0n } as const;
  work.moveOfExchange({ kind: 'interrupted', ref: exchangeId, accountId, keyId, atMs: nowMs, ...nothing });
  work.addUsage(keyId, nowMs, { requests: 1 });
  const durationMs = Math.max(0, nowMs - startedAtMs);
  const entry: RequestLogEntry = { ...openFields(exchange), status: 'interrupted', durationMs, attempts: [] };
  work.rollups.exchange(entry, {}, appendLog(work, entry, entryText(entry), nowMs));
}

/** What is known of an exchange that was closed as interrupted and may still settle. */
function interrupted(tables: Tables, exchangeId: string) {
  const entry = exchangeEntry(tables, exchangeId);
  if (entry === undefined) return 'settled';
  const row = entry.logSeq === undefined ? undefined : tables.log.get(entry.logSeq);
  const isSettled = row === undefined ? isCharged(tables, exchangeId, entry) : row.status !== 'interrupted';
  return isSettled ? 'settled' : { entry, row };
}

/** An older version logged rows without adding them to the sums of their hour. */
function isSummedUp(tables: Tables, { loggedAtMs }: RequestLogRow): boolean {
  return hourOf(loggedAtMs) > (metaOf(tables, 'rollupsAfter') ?? -1);
}

export function loggedExchange(tables: Tables, exchangeId: string): RequestLogRow | undefined {
  const seq = exchangeEntry(tables, exchangeId)?.logSeq;
  return seq === undefined ? undefined : tables.log.get(seq);
}

/** The exchange that was named after the gateway's own request id, if it was. */
export function exchangeNamedAfter(requestId: string): string | undefined {
  const at = requestId.indexOf('_');
  return at < 0 ? undefined : EXCHANGE_PREFIX + requestId.slice(at + 1);
}

/** A client may send any words as its request id; this much of them is an index. */
const MAX_NAME = 256;

/** The other names under which a row must be looked up: not its own, and not the request id that it is named after. */
export function otherNames({ exchangeId, requestId, clientRequestId }: RequestLogEntry): string[] {
  const names: string[] = [];
  const add = (name: string): void => {
    if (name !== '' && name !== exchangeId && !names.includes(name)) names.push(name);
  };
  if (exchangeNamedAfter(requestId) !== exchangeId) add(requestId);
  if (clientRequestId !== undefined) add(storable(clientRequestId.slice(0, MAX_NAME)));
  return names;
}

/** Gives when the row was logged. It keeps its place; the names of what is said now lead to it, and those of what was said before no longer do. */
function replaceLog(work: Work, known: RequestLogRow, entry: RequestLogEntry, text: string): number {
  const { tables } = work;
  const { seq, loggedAtMs } = known;
  for (const name of otherNames(known)) work.remove(tables.logIds, [name, seq]);
  for (const name of otherNames(entry)) work.put(tables.logIds, [name, seq], true);
  if (seq > filtersAfter(tables)) {
    work.logIndex.remove(known, seq);
    work.logIndex.enter(entry, seq);
  }
  work.put<RequestLogRow | string, number>(tables.log, seq, placedText(text, seq, loggedAtMs));
  return loggedAtMs;
}

/** Gives when the row was logged. The index of exchanges has its place already. */
function appendLog(work: Work, entry: RequestLogEntry, text: string, nowMs: number): number {
  const { tables } = work;
  const { seq, atMs } = work.takeLogRow(entry, nowMs);
  work.append<RequestLogRow | string, number>(tables.log, seq, placedText(text, seq, atMs));
  for (const name of otherNames(entry)) work.put(tables.logIds, [name, seq], true);
  return atMs;
}
