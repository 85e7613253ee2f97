/**
 * What a settlement writes: the charge, the key's spend, the usage of the day and its sums, and the row of the request log. A hot
 * path.
 */
import { countsOf } from '../day-usage.ts';
import type { RequestLogEntry } from '../request-log.ts';
import { type OpenExchange, openFields, type Settled } from '../settlement.ts';
import type { QueueRow } from '../settlements/row.ts';
import type { Clock } from '../store.ts';
import { StoreError } from '../store-error.ts';
import { type Books, got, type Rule } from './books.ts';

/** Rows of the settlement queue, of one process. Gives what became of each. */
export function* settleAll(
  books: Books,
  rows: readonly QueueRow[],
  processId: string,
  clock: Pick<Clock, 'now'>,
): Rule<(Settled | undefined)[]> {
  yield* got(books.loadExchanges(rows.flatMap(({ entry, exchange }) => entry ?? exchange ?? [])));
  return rows.map(({ exchangeId, entry, text, exchange, isInterrupted }) => {
    if (entry !== undefined && text !== undefined) {
      // The opening of a row that has both was never written.
      if (exchange === undefined) books.closeExchange(processId, exchangeId);
      return settle(books, entry, text, clock.now());
    }
    if (exchange === undefined) return undefined;
    if (isInterrupted) interrupt(books, processId, exchange, clock.now());
    else books.openExchange(processId, exchange);
    return undefined;
  });
}

/**
 * Settles once: a second settlement of an exchange changes nothing. One that was closed as interrupted is settled late. `text` is
 * the entry as the engine keeps it.
 */
function settle(books: Books, entry: RequestLogEntry, text: string, nowMs: number): Settled {
  const { exchangeId, accountId, keyId } = entry;
  const chargedNanos = entry.charge?.total ?? 0n;
  if (chargedNanos < 0n) throw new StoreError('amount_out_of_range', `a charge of ${chargedNanos} nano-dollars`);
  const isCharged = chargedNanos > 0n;
  const late = books.enter(exchangeId, isCharged) ? undefined : books.enterAgain(exchangeId, isCharged);
  if (late === 'settled') return { settled: false, reason: 'already_settled' };
  const payer = books.payer(keyId);
  if (payer.accountId !== accountId) throw new StoreError('corrupt', `key ${keyId} is not of ${accountId}`);
  if (isCharged) {
    const cause = { kind: 'charge', ref: exchangeId, accountId, keyId, atMs: nowMs } as const;
    books.move({ ...cause, from: payer.from, to: 'revenue', nanos: chargedNanos });
    books.addSpend(keyId, chargedNanos, nowMs);
  }
  const counts = countsOf(entry.usage);
  books.addUsage(keyId, nowMs, { requests: late === undefined ? 1 : 0, chargedNanos, ...counts });
  if (late === undefined) books.rollups.exchange(entry, counts, books.appendLog(entry, nowMs, text));
  else {
    const { model, loggedAtMs } = late;
    if (books.isSummedUp(loggedAtMs)) books.rollups.exchange(interruptedEntry({ ...entry, model }), {}, loggedAtMs, -1);
    books.replaceLog(late, entry, text);
    books.rollups.exchange(entry, counts, loggedAtMs);
  }
  return { settled: true, chargedNanos };
}

/**
 * The process died with it open: free, and journaled as such. False where it was settled or closed before. Its exchange was
 * loaded.
 */
export function interrupt(books: Books, processId: string, exchange: OpenExchange, nowMs: number): boolean {
  const { exchangeId, accountId, keyId, startedAtMs } = exchange;
  books.closeExchange(processId, exchangeId);
  if (!books.enter(exchangeId, true)) return false;
  books.note({ kind: 'interrupted', ref: exchangeId, accountId, keyId, atMs: nowMs });
  books.addUsage(keyId, nowMs, { requests: 1 });
  const entry = interruptedEntry(exchange, Math.max(0, nowMs - startedAtMs));
  books.rollups.exchange(entry, {}, books.appendLog(entry, nowMs));
  return true;
}

function interruptedEntry(exchange: OpenExchange, durationMs = 0): RequestLogEntry {
  return { ...openFields(exchange), status: 'interrupted', durationMs, attempts: [] };
}
