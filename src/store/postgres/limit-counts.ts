/** The counts of limits on PostgreSQL: one statement a second and process writes its own and reads those of the others. */
import { defined } from '../defined.ts';
import { type ForeignCount, HEARD_MS, type LimitCounts } from '../limit-counts.ts';
import type { Database } from './database.ts';
import { int, maybeInt, type Row, text } from './rows.ts';
import type { Statement } from './session.ts';

const OTHERS = `SELECT *, (extract(epoch FROM clock_timestamp() - at) * 1000)::bigint AS age_ms FROM limit_counts
  WHERE member <> $1 AND at > clock_timestamp() - interval '${HEARD_MS} milliseconds'`;
const READ: Statement = { name: 'limit_counts_read', text: OTHERS };
/** $1: the member, $2: its counts. The clock of the database is the one that all machines share. */
const EXCHANGE: Statement = {
  name: 'limit_counts_exchange',
  text: `WITH old AS (
  DELETE FROM limit_counts WHERE member <> $1 AND at < clock_timestamp() - interval '${2 * HEARD_MS} milliseconds'),
mine AS (
  INSERT INTO limit_counts (member, bucket, since, requests, tokens, in_flight, requests_per_minute, tokens_per_minute, at)
  SELECT $1, x.*, clock_timestamp() FROM json_to_recordset($2::json) AS x(bucket text, since bigint, requests bigint, tokens bigint,
    "inFlight" bigint, "requestsPerMinute" bigint, "tokensPerMinute" bigint)
  ON CONFLICT (member, bucket) DO UPDATE SET since = excluded.since, requests = excluded.requests, tokens = excluded.tokens,
    in_flight = excluded.in_flight, requests_per_minute = excluded.requests_per_minute,
    tokens_per_minute = excluded.tokens_per_minute, at = excluded.at)
${OTHERS}`,
};

export function createLimitCounts(database: Database): LimitCounts {
  return {
    async exchange(member, counts) {
      const rows =
        counts.length === 0
          ? await database.run(READ, [member])
          : await database.change(EXCHANGE, [member, JSON.stringify(counts)]);
      return rows.map(foreignCountOf);
    },
  };
}

function foreignCountOf(row: Row): ForeignCount {
  return {
    member: text(row, 'member'),
    bucket: text(row, 'bucket'),
    since: int(row, 'since'),
    requests: int(row, 'requests'),
    tokens: int(row, 'tokens'),
    inFlight: int(row, 'in_flight'),
    ...defined({
      requestsPerMinute: maybeInt(row, 'requests_per_minute'),
      tokensPerMinute: maybeInt(row, 'tokens_per_minute'),
    }),
    ageMs: int(row, 'age_ms'),
  };
}
