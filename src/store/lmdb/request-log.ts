/** The request log on LMDB. */
import { askedWords, isWanted } from '../log-filters.ts';
import type { RequestLog, RequestLogQuery, RequestLogRow } from '../request-log.ts';
import { storable } from '../storable.ts';
import type { Environment } from './environment.ts';
import { forgetLogRow } from './exchange-index.ts';
import { filtersAfter, placesOf } from './log-index.ts';
import { exchangeNamedAfter, firstAt, loggedExchange, otherNames } from './log-rows.ts';
import { metaOf, type Tables } from './tables.ts';

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
          const indexedAfter = filtersAfter(tables);
          for (const { key: seq, value } of old) {
            work.remove(tables.log, seq);
            if (seq > indexedAfter) work.logIndex.remove(value, seq);
            forgetLogRow(work, value.exchangeId);
            for (const name of otherNames(value)) work.remove(tables.logIds, [name, seq]);
          }
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
  for (const seq of sequence(tables, query, lowest, highest, forward)) {
    const row = tables.log.get(seq);
    if (row === undefined || !isWanted(row, query)) continue;
    rows.push(row);
    if (rows.length >= limit) break;
  }
  return rows;
}

/** Places where a row may fit: of the index, and every one where rows are not in it yet. */
function* sequence(tables: Tables, query: RequestLogQuery, lowest: number, highest: number, forward: boolean): Generator<number> {
  const asked = askedWords(query);
  const edge = asked.length === 0 ? highest : Math.min(filtersAfter(tables), highest);
  const indexed = () => placesOf(tables, asked, Math.max(lowest, edge + 1), highest, forward);
  if (!forward) yield* indexed();
  // Ranges include their start and exclude their end, in the direction that they run.
  const [start, end] = forward ? [lowest, edge + 1] : [edge, lowest - 1];
  if (lowest <= edge) yield* tables.log.getKeys({ start, end, reverse: !forward });
  if (forward) yield* indexed();
}
