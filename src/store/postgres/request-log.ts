/** The request log on PostgreSQL. */
import type { RequestLog, RequestLogQuery, RequestLogRow } from '../request-log.ts';
import { storable } from '../storable.ts';
import type { Database } from './database.ts';
import { int, logRowOf } from './rows.ts';
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

/**
 * Rows that name the Channel anywhere, by a search of their text: PostgreSQL cannot read it as JSON where an upstream's words hold a NUL. Which of them
 * answered, or was asked last, is looked at here.
 */
async function ofChannel(database: Database, query: RequestLogQuery, channelId: string): Promise<RequestLogRow[]> {
  const limit = limitOf(query);
  const found: RequestLogRow[] = [];
  for (let from: Pick<RequestLogQuery, 'after' | 'before'> = {}; ; ) {
    const { statement, values } = listOf({ ...query, ...from, limit });
    const page = (await database.run(statement, values)).map(logRowOf);
    found.push(...page.filter((row) => (row.channelId ?? row.attempts.at(-1)?.channelId) === channelId));
    const last = page.at(-1)?.seq;
    if (found.length >= limit || page.length < limit || last === undefined) return found.slice(0, limit);
    from = query.after === undefined ? { before: last } : { after: last };
  }
}

const limitOf = ({ limit }: RequestLogQuery): number => Math.min(Math.max(limit ?? DEFAULT_LIMIT, 1), MAX_LIMIT);

export function createRequestLog(database: Database): RequestLog {
  return {
    async find(id) {
      if (id.length === 0 || id.length > MAX_ID) return [];
      return (await database.run(FIND, [storable(id)])).map(logRowOf);
    },

    async list(query = {}) {
      if (query.channelId !== undefined) return await ofChannel(database, query, query.channelId);
      const { statement, values } = listOf(query);
      return (await database.run(statement, values)).map(logRowOf);
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

/** One statement for each combination of what is asked, so that each has a plan of its own. */
function listOf(query: RequestLogQuery): { readonly statement: Statement; readonly values: readonly Value[] } {
  const values: Value[] = [];
  const conditions: string[] = [];
  let asked = '';
  const where = (letter: string, condition: string, value: Value): void => {
    if (value === undefined) return;
    values.push(value);
    conditions.push(`${condition} $${values.length}${letter === 'c' ? ')' : ''}`);
    asked += letter;
  };
  where('k', 'key_id =', query.keyId && storable(query.keyId));
  where('a', 'account_id =', query.accountId && storable(query.accountId));
  where('m', 'model =', query.model && storable(query.model));
  const { channelId } = query;
  where('c', '0 < strpos(entry,', channelId === undefined ? undefined : `"channelId":${JSON.stringify(storable(channelId))}`);
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
