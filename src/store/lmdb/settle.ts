/** What one settlement writes, inside a transaction: the charge, the spend, the day's usage and the row of the request log. */
import { countsOf } from '../day-usage.ts';
import { payerOf } from '../payer.ts';
import { logNames, type RequestLogEntry, type RequestLogRow } from '../request-log.ts';
import type { OpenExchange, Settled } from '../settlement.ts';
import { StoreError } from '../store-error.ts';
import type { Tables } from './tables.ts';
import type { Work } from './work.ts';

/** Settles once: a second settlement of an exchange changes nothing. One that was closed as interrupted is settled late. */
export function settleExchange(work: Work, entry: RequestLogEntry, nowMs: number): Settled {
  const known = loggedExchange(work.tables, entry.exchangeId);
  if (known !== undefined && known.status !== 'interrupted') return { settled: false, reason: 'already_settled' };
  const chargedNanos = entry.charge?.total ?? 0n;
  if (chargedNanos < 0n) throw new StoreError('amount_out_of_range', `a charge of ${chargedNanos} nano-dollars`);
  const key = work.tables.keys.get(entry.keyId);
  if (key === undefined || key.accountId !== entry.accountId)
    throw new StoreError('corrupt', `no key ${entry.keyId} of ${entry.accountId}`);
  const { exchangeId, accountId, keyId } = entry;
  if (chargedNanos > 0n) {
    const from = payerOf(key, work.tables.accounts.get(accountId)?.unlimited ?? false);
    work.move({ kind: 'charge', ref: exchangeId, from, to: 'revenue', nanos: chargedNanos, accountId, keyId, atMs: nowMs });
    work.addSpend(keyId, chargedNanos, nowMs);
  }
  work.addUsage(keyId, nowMs, { requests: known === undefined ? 1 : 0, chargedNanos, ...(entry.usage && countsOf(entry.usage)) });
  if (known === undefined) appendLog(work, entry, nowMs);
  else work.put(work.tables.log, known.seq, { ...entry, seq: known.seq, loggedAtMs: known.loggedAtMs });
  return { settled: true, chargedNanos };
}

/** The process died with it open: free, and journaled as such. */
export function logInterrupted(work: Work, exchange: OpenExchange, nowMs: number): void {
  const { exchangeId, accountId, keyId } = exchange;
  if (loggedExchange(work.tables, exchangeId) !== undefined) return;
  work.note({ kind: 'interrupted', ref: exchangeId, accountId, keyId, atMs: nowMs });
  work.addUsage(keyId, nowMs, { requests: 1 });
  appendLog(
    work,
    { ...exchange, status: 'interrupted', durationMs: Math.max(0, nowMs - exchange.startedAtMs), attempts: [] },
    nowMs,
  );
}

export function loggedExchange(tables: Tables, exchangeId: string): RequestLogRow | undefined {
  for (const [, seq] of tables.logIds.getKeys({ start: [exchangeId, 0], end: [exchangeId, Number.MAX_SAFE_INTEGER] })) {
    const row = tables.log.get(seq);
    // The same words may be another exchange's request id.
    if (row?.exchangeId === exchangeId) return row;
  }
  return undefined;
}

function appendLog(work: Work, entry: RequestLogEntry, nowMs: number): void {
  const { tables } = work;
  const { seq, atMs } = work.nextLogRow(nowMs);
  work.put(tables.log, seq, { ...entry, seq, loggedAtMs: atMs });
  for (const name of logNames(entry)) work.put(tables.logIds, [name, seq], true);
  work.put(tables.logKeys, [entry.keyId, seq], true);
}
