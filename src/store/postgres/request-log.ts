/** The request log on PostgreSQL. */
import { isWanted } from '../log-filters.ts';
import type { RequestLog, RequestLogQuery, RequestLogRow } from '../request-log.ts';
import { storable } from '../storable.ts';
import type { Database } from './database.ts';
import { filterColumns } from './record-tables.ts';
import { int, logRowOf, text } from './rows.ts';
import type { Statement, Value } from './session.ts';

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1000;
/** Rows removed in one transaction. */
const PRUNE_BATCH = 500;
const MAX_ID = 256;

const FIND: Statement = {
  name: 'log_find',
  text: `SELECT * FROM request_log WHERE seq IN (
      SELECT seq FROM request_log WHERE exchange_id = $1 UNION SELECT seq FROM request_log WHERE request_id = $1
      UNION SELECT seq FROM request_log WHERE client_request_id = $1)
    ORDER BY exchange_id = $1 DESC, seq DESC LIMIT ${MAX_LIMIT}`,
};
const HEAD: Statement = { name: 'log_head', text: 'SELECT log_seq FROM ledger_head' };
const PRUNE: Statement = {
  name: 'log_prune',
  text: `DELETE FROM request_log WHERE seq IN (
    SELECT seq FROM request_log WHERE logged_at_ms < $1 ORDER BY seq LIMIT ${PRUNE_BATCH}) RETURNING seq`,
};

/** Rows whose columns are filled in at once. */
const OLDER: Statement = {
  name: 'log_older',
  text: 'SELECT * FROM request_log WHERE channel_id IS NULL ORDER BY seq DESC LIMIT 200',
};
/** A row that was settled late meanwhile has other words, and its columns already. */
const FILL: Statement = {
  name: 'log_fill',
  text: `UPDATE request_log r SET channel_id = x.channel_id, error_code = x.error_code
    FROM json_to_recordset($1::json) AS x(seq bigint, entry text, channel_id text, error_code text)
    WHERE r.seq = x.seq AND r.entry = x.entry AND r.channel_id IS NULL RETURNING r.seq`,
};

const limitOf = ({ limit }: RequestLogQuery): number => Math.min(Math.max(limit ?? DEFAULT_LIMIT, 1), MAX_LIMIT);

export function createRequestLog(database: Database): RequestLog {
  return {
    async find(id) {
      if (id.length === 0 || id.length > MAX_ID) return [];
      return (await database.run(FIND, [storable(id)])).map(logRowOf);
    },

    async list(query = {}) {
      // In these columns '' stands for a row that has no such word.
      if (query.channelId === '' || query.code === '') return [];
      // Older ones first: a row that is filled in meanwhile is found twice, and not missed.
      const needsColumns = query.channelId !== undefined || query.code !== undefined;
      const older = needsColumns ? await olderOf(database, query) : [];
      const { statement, values } = listOf(query, true);
      const rows = (await database.run(statement, values)).map(logRowOf);
      if (older.length === 0) return rows;
      const bySeq = new Map([...older, ...rows].map((row) => [row.seq, row] as const));
      const sign = query.after === undefined ? -1 : 1;
      return [...bySeq.values()].sort((a, b) => sign * (a.seq - b.seq)).slice(0, limitOf(query));
    },

    async head() {
      const [row] = await database.run(HEAD);
      return row === undefined ? 0 : int(row, 'log_seq');
    },

    async prune(beforeMs) {
      let removed = 0;
      for (;;) {
        const rows = await database.change(PRUNE, [beforeMs]);
        removed += rows.length;
        if (rows.length < PRUNE_BATCH) return removed;
      }
    },
  };
}

/** Of the rows that an older version wrote and whose columns are not filled in yet, those that fit. */
async function olderOf(database: Database, query: RequestLogQuery): Promise<RequestLogRow[]> {
  const limit = limitOf(query);
  const found: RequestLogRow[] = [];
  for (let from: Pick<RequestLogQuery, 'after' | 'before'> = {}; ; ) {
    const { statement, values } = listOf({ ...query, ...from, limit: MAX_LIMIT }, false);
    const page = (await database.run(statement, values)).map(logRowOf);
    found.push(...page.filter((row) => isWanted(row, query)));
    const last = page.at(-1)?.seq;
    if (found.length >= limit || page.length < MAX_LIMIT || last === undefined) return found;
    from = query.after === undefined ? { before: last } : { after: last };
  }
}

/** Fills them in, some at a time, newest first; false where none is left. */
export async function fillColumns(database: Database): Promise<boolean> {
  const rows = await database.run(OLDER);
  if (rows.length === 0) return false;
  const columns = rows.map((row) => ({ ...filterColumns(logRowOf(row)), seq: int(row, 'seq'), entry: text(row, 'entry') }));
  await database.change(FILL, [JSON.stringify(columns)]);
  return true;
}

/** One statement for each combination of what is asked, so that each has a plan of its own. */
function listOf(query: RequestLogQuery, isFilled: boolean): { readonly statement: Statement; readonly values: readonly Value[] } {
  const values: Value[] = [];
  const conditions: string[] = [];
  let asked = '';
  const where = (letter: string, condition: string, value: Value): void => {
    if (value === undefined) return;
    values.push(value);
    conditions.push(`${condition} $${values.length}`);
    asked += letter;
  };
  where('k', 'key_id =', query.keyId && storable(query.keyId));
  where('a', 'account_id =', query.accountId && storable(query.accountId));
  where('m', 'model =', query.model && storable(query.model));
  if (isFilled) {
    where('c', 'channel_id =', query.channelId && storable(query.channelId));
    where('e', 'error_code =', query.code && storable(query.code));
  } else {
    conditions.push('channel_id IS NULL');
    asked += 'o';
  }
  where('s', 'status =', query.status);
  where('f', 'logged_at_ms >=', query.sinceMs);
  where('t', 'logged_at_ms <', query.untilMs);
  where('n', 'seq >', query.after);
  where('b', 'seq >', query.above);
  where('p', 'seq <', query.before);
  values.push(limitOf(query));
  const order = query.after === undefined ? 'DESC' : 'ASC';
  const filter = conditions.length === 0 ? '' : ` WHERE ${conditions.join(' AND ')}`;
  const sql = `SELECT * FROM request_log${filter} ORDER BY seq ${order} LIMIT $${values.length}`;
  return { statement: { name: `log_list_${order}_${asked}`, text: sql }, values };
}
