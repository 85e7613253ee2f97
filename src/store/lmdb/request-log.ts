/** The request log on LMDB. */
import type { RequestLog, RequestLogQuery, RequestLogRow } from '../request-log.ts';
import { storable } from '../storable.ts';
import type { Environment } from './environment.ts';
import { forgetLogRow } from './exchange-index.ts';
import { exchangeNamedAfter, firstAt, loggedExchange, otherNames } from './settle.ts';
import { metaOf, type Tables } from './tables.ts';
import type { Work } from './work.ts';

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1000;
/** Rows removed in one transaction, which holds the event loop: a millisecond or two, and never ten. */
export const PRUNE_BATCH = 32;
/** Longer words are no id; LMDB could not even look them up. */
const MAX_ID = 256;

export function createRequestLog(environment: Environment): RequestLog {
  return {
    find: (words) =>
      environment.read((tables) => {
        if (words.length === 0 || words.length > MAX_ID) return [];
        const id = storable(words);
        const range = {
          start: [id, Number.MAX_SAFE_INTEGER] as [string, number],
          end: [id, 0] as [string, number],
          reverse: true,
          limit: MAX_LIMIT,
        };
        const rows = [...tables.logIds.getKeys(range)].map(([, seq]) => tables.log.get(seq));
        const namesake = loggedExchange(tables, exchangeNamedAfter(id) ?? id);
        const own = namesake?.requestId === id ? namesake : loggedExchange(tables, id);
        return [own, ...rows].filter((row) => row !== undefined);
      }),

    list: (query = {}) => environment.read((tables) => list(tables, query)),

    head: () => environment.read((tables) => metaOf(tables, 'logHead')?.seq ?? 0),

    async prune(beforeMs) {
      let removed = 0;
      for (;;) {
        const count = await environment.transact((work) => {
          const { tables } = work;
          const old: { readonly key: number; readonly value: RequestLogRow }[] = [];
          // Times never go back along the log: a row that is young enough has no older one behind it.
          for (const row of tables.log.getRange({ limit: PRUNE_BATCH })) {
            if (row.value.loggedAtMs >= beforeMs) break;
            old.push(row);
          }
          for (const { key: seq, value } of old) {
            work.remove(tables.log, seq);
            forgetLogRow(work, value.exchangeId);
            for (const name of otherNames(value)) work.remove(tables.logIds, [name, seq]);
          }
          const last = old.at(-1)?.key ?? 0;
          for (const keyId of new Set(old.map(({ value }) => value.keyId))) removeKeyRows(work, keyId, last);
          return old.length;
        });
        removed += count;
        if (count < PRUNE_BATCH) return removed;
      }
    },
  };
}

function list(tables: Tables, query: RequestLogQuery): RequestLogRow[] {
  const limit = Math.min(Math.max(query.limit ?? DEFAULT_LIMIT, 1), MAX_LIMIT);
  const head = metaOf(tables, 'logHead')?.seq ?? 0;
  const forward = query.after !== undefined;
  const { after = 0, above = 0, sinceMs } = query;
  const lowest = Math.max(after + 1, above + 1, sinceMs === undefined ? 1 : firstAt(tables, sinceMs, head));
  const last = query.untilMs === undefined ? head : firstAt(tables, query.untilMs, head) - 1;
  const highest = Math.min((query.before ?? head + 1) - 1, last);
  if (lowest > highest) return [];

  const rows: RequestLogRow[] = [];
  for (const seq of sequence(tables, query.keyId, lowest, highest, forward)) {
    const row = tables.log.get(seq);
    if (row === undefined || !wanted(row, query)) continue;
    rows.push(row);
    if (rows.length >= limit) break;
  }
  return rows;
}

function wanted(row: RequestLogRow, { accountId, status, untilMs, model, channelId }: RequestLogQuery): boolean {
  if (model !== undefined && row.model !== model) return false;
  if (channelId !== undefined && (row.channelId ?? row.attempts.at(-1)?.channelId) !== channelId) return false;
  if (accountId !== undefined && row.accountId !== accountId) return false;
  if (status !== undefined && row.status !== status) return false;
  return untilMs === undefined || row.loggedAtMs < untilMs;
}

/** The index rows of a key that point to nothing above `last`. */
function removeKeyRows(work: Work, keyId: string, last: number): void {
  const rows = [...work.tables.logKeys.getRange({ start: [keyId, 0], end: [keyId, last + 1] })];
  for (const { key, value } of rows) if ((value.at(-1) ?? 0) <= last) work.remove(work.tables.logKeys, key);
}

function* sequence(
  tables: Tables,
  keyId: string | undefined,
  lowest: number,
  highest: number,
  forward: boolean,
): Iterable<number> {
  // Ranges include their start and exclude their end, in the direction that they run.
  if (keyId === undefined) {
    const [start, end] = forward ? [lowest, highest + 1] : [highest, lowest - 1];
    yield* tables.log.getKeys({ start, end, reverse: !forward });
    return;
  }
  // Rows are named after their first seq, so the one before `lowest` may reach over it.
  const [before] = tables.logKeys.getKeys({ start: [keyId, lowest], end: [keyId, 0], reverse: true, limit: 1 });
  const first = before?.[1] ?? lowest;
  const [start, end] = forward ? [first, highest + 1] : [highest, first - 1];
  for (const { value } of tables.logKeys.getRange({ start: [keyId, start], end: [keyId, end], reverse: !forward })) {
    const seqs = value.filter((seq) => seq >= lowest && seq <= highest);
    yield* forward ? seqs : seqs.reverse();
  }
}
