/** The rows of the request log on LMDB: how they are written, and the names under which they are found. */
import type { RequestLogEntry, RequestLogRow } from '../request-log.ts';
import { EXCHANGE_PREFIX } from '../settlement.ts';
import { storable } from '../storable.ts';
import { exchangeEntry } from './exchange-index.ts';
import { filtersAfter } from './log-index.ts';
import { placedText } from './row-shapes.ts';
import type { Tables } from './tables.ts';
import type { Work } from './work.ts';

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

/** The row keeps its place. Names that only the old row had no longer lead to it. */
export function replaceLog(work: Work, known: RequestLogRow, entry: RequestLogEntry, text: string): void {
  const { tables } = work;
  const { seq, loggedAtMs } = known;
  for (const name of otherNames(known)) work.remove(tables.logIds, [name, seq]);
  for (const name of otherNames(entry)) work.put(tables.logIds, [name, seq], true);
  if (seq > filtersAfter(tables)) {
    work.logIndex.remove(known, seq);
    work.logIndex.enter(entry, seq);
  }
  work.put<RequestLogRow | string, number>(tables.log, seq, placedText(text, seq, loggedAtMs));
}

/** Gives when the row was logged. The index of exchanges has its place already. */
export function appendLog(work: Work, entry: RequestLogEntry, text: string, nowMs: number): number {
  const { tables } = work;
  const { seq, atMs } = work.takeLogRow(entry, nowMs);
  work.append<RequestLogRow | string, number>(tables.log, seq, placedText(text, seq, atMs));
  for (const name of otherNames(entry)) work.put(tables.logIds, [name, seq], true);
  return atMs;
}

/** The first seq logged at or after `ms`: times never go back along the log, so it is found by halving. */
export function firstAt(tables: Tables, ms: number, head: number): number {
  let [low, high] = [1, head + 1];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    // A missing row was pruned, so it is older than everything that is left.
    const at = tables.log.get(middle)?.loggedAtMs ?? Number.NEGATIVE_INFINITY;
    if (at < ms) low = middle + 1;
    else high = middle;
  }
  return low;
}
