/**
 * The two statements that every change of the ledger shares: one reads all balances and spend rows that it needs, one writes all
 * that it collected. Each is one round trip, however long the batch, so that the ledger's lock is held shortly.
 */
import { addRows } from './rollup-rows.ts';
import { SPEND_JSON } from './rows.ts';
import type { Statement } from './session.ts';

/** $1: ledger accounts, $2: key ids. */
export const LOAD: Statement = {
  name: 'load',
  text: `SELECT 'balance' AS what, account AS id, nanos::text AS value FROM balances WHERE account = ANY ($1::text[])
    UNION ALL SELECT 'spend', s.key_id, ${SPEND_JSON} FROM spend s WHERE s.key_id = ANY ($2::text[])`,
};

export const LOCK_HEAD: Statement = { name: 'lock_head', text: 'SELECT * FROM ledger_head FOR UPDATE' };

/**
 * $1 proof, $2 to $6 the head (seq, hash, log seq, log time, video number), then one JSON array of rows for each table: $7 journal,
 * $8 balances, $9 spend, $10 days, $11 log, $12 rows of the log that are replaced, $13 exchanges opened, $14 and closed (an array
 * of ids), and of the sums $15 hours and $16 days. Amounts are text in the JSON, so that no JSON number stands between us and the column.
 */
export const WRITE_ALL: Statement = {
  name: 'write_all',
  text: `WITH proof AS (INSERT INTO commits (id) VALUES ($1)),
journal_rows AS (
  INSERT INTO journal (seq, at_ms, kind, ref, from_account, to_account, nanos, account_id, key_id, by_whom, note, hash, state)
  SELECT x.* FROM json_to_recordset($7::json) AS x(seq bigint, at_ms bigint, kind text, ref text, from_account text,
    to_account text, nanos bigint, account_id text, key_id text, by_whom text, note text, hash text, state text)),
balance_rows AS (
  INSERT INTO balances (account, nanos, seq)
  SELECT x.account, x.nanos, $2::bigint FROM json_to_recordset($8::json) AS x(account text, nanos bigint)
  ON CONFLICT (account) DO UPDATE SET nanos = excluded.nanos, seq = excluded.seq),
spend_rows AS (
  INSERT INTO spend (key_id, total, hour, hourly, day, daily, held)
  SELECT x.* FROM json_to_recordset($9::json)
    AS x(key_id text, total bigint, hour bigint, hourly bigint, day bigint, daily bigint, held bigint)
  ON CONFLICT (key_id) DO UPDATE SET total = excluded.total, hour = excluded.hour, hourly = excluded.hourly,
    day = excluded.day, daily = excluded.daily, held = excluded.held),
day_rows AS (
  INSERT INTO days AS d (key_id, day, requests, input_tokens, cached_input_tokens, cache_write_tokens, output_tokens,
    reasoning_tokens, images, videos, charged_nanos)
  SELECT x.* FROM json_to_recordset($10::json) AS x(key_id text, day bigint, requests bigint, input_tokens bigint,
    cached_input_tokens bigint, cache_write_tokens bigint, output_tokens bigint, reasoning_tokens bigint, images bigint,
    videos bigint, charged_nanos bigint)
  ON CONFLICT (key_id, day) DO UPDATE SET requests = d.requests + excluded.requests,
    input_tokens = d.input_tokens + excluded.input_tokens,
    cached_input_tokens = d.cached_input_tokens + excluded.cached_input_tokens,
    cache_write_tokens = d.cache_write_tokens + excluded.cache_write_tokens,
    output_tokens = d.output_tokens + excluded.output_tokens,
    reasoning_tokens = d.reasoning_tokens + excluded.reasoning_tokens,
    images = d.images + excluded.images, videos = d.videos + excluded.videos,
    charged_nanos = d.charged_nanos + excluded.charged_nanos),
log_rows AS (
  INSERT INTO request_log (seq, logged_at_ms, exchange_id, request_id, client_request_id, account_id, key_id, model, status,
    charged_nanos, entry, channel_id, error_code)
  SELECT x.* FROM json_to_recordset($11::json) AS x(seq bigint, logged_at_ms bigint, exchange_id text, request_id text,
    client_request_id text, account_id text, key_id text, model text, status text, charged_nanos bigint, entry text,
    channel_id text, error_code text)),
relogged AS (
  UPDATE request_log r SET request_id = x.request_id, client_request_id = x.client_request_id, model = x.model,
    status = x.status, charged_nanos = x.charged_nanos, entry = x.entry, channel_id = x.channel_id, error_code = x.error_code
  FROM json_to_recordset($12::json) AS x(seq bigint, request_id text, client_request_id text, model text, status text,
    charged_nanos bigint, entry text, channel_id text, error_code text)
  WHERE r.seq = x.seq),
opened AS (
  INSERT INTO open_exchanges (exchange_id, owner_id, exchange)
  SELECT x.* FROM json_to_recordset($13::json) AS x(exchange_id text, owner_id text, exchange text)
  ON CONFLICT (exchange_id) DO NOTHING),
closed AS (
  DELETE FROM open_exchanges WHERE exchange_id = ANY ($14::text[])),
usage_hour_rows AS (
  ${addRows('usage_hours', '$15')}),
usage_day_rows AS (
  ${addRows('usage_days', '$16')})
UPDATE ledger_head SET seq = $2::bigint, hash = $3, log_seq = $4, log_at_ms = $5, video_number = $6`,
};
