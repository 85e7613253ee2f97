/** What one settlement writes, inside a transaction: the charge, the spend, the day's usage and the row of the request log. */
import type { BillableUsage } from '../charge.ts';
import type { RequestLogEntry, RequestLogRow } from '../request-log.ts';
import type { OpenExchange, Settled } from '../settlement.ts';
import { StoreError } from '../store-error.ts';
import { payerOf } from './money-moves.ts';
import type { DayRow, Tables } from './tables.ts';
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
  work.addUsage(keyId, nowMs, { requests: known === undefined ? 1 : 0, chargedNanos, ...(entry.usage && dayUsage(entry.usage)) });
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

/** The names under which a row can be found. */
export function logNames({ exchangeId, requestId, clientRequestId }: RequestLogEntry): Set<string> {
  return new Set([exchangeId, requestId, ...(clientRequestId === undefined ? [] : [clientRequestId.slice(0, 256)])]);
}

function appendLog(work: Work, entry: RequestLogEntry, nowMs: number): void {
  const { tables } = work;
  const { seq, atMs } = work.nextLogRow(nowMs);
  work.put(tables.log, seq, { ...entry, seq, loggedAtMs: atMs });
  for (const name of logNames(entry)) work.put(tables.logIds, [name, seq], true);
  work.put(tables.logKeys, [entry.keyId, seq], true);
}

function dayUsage(usage: BillableUsage): Partial<DayRow> {
  const { cacheWrite5m = 0, cacheWrite1h = 0, cacheWriteUnsplit = 0, reasoning = 0 } = usage;
  return {
    inputTokens: sane((usage.input ?? 0) + (usage.imageInput ?? 0)),
    cachedInputTokens: sane(usage.cachedInput ?? 0),
    cacheWriteTokens: sane(cacheWrite5m + cacheWrite1h + cacheWriteUnsplit),
    outputTokens: sane((usage.output ?? 0) + (usage.imageOutput ?? 0)),
    reasoningTokens: sane(reasoning),
    images: sane(usage.images ?? 0),
  };
}

/** Counts come from upstreams: nonsense is not added up. The row of the log keeps it. */
function sane(count: number): number {
  return Number.isSafeInteger(count) && count > 0 ? count : 0;
}
