/**
 * The two statements that every change of the ledger shares: one reads all balances and spend rows that it needs, one writes all
 * that it collected. Each is one round trip, however long the batch, so that the ledger's lock is held shortly.
 */
import { addRows } from './rollup-rows.ts';
import { DAYS, JOURNAL, LOG, SPEND } from './record-tables.ts';
import type { Statement } from './session.ts';

/** $1: ledger accounts, $2: key ids. */
export const LOAD: Statement = {
  name: 'load',
  text: `SELECT 'balance' AS what, account AS id, nanos::text AS value FROM balances WHERE account = ANY ($1::text[])
    UNION ALL SELECT 'spend', s.key_id, ${SPEND.json('s')} FROM spend s WHERE s.key_id = ANY ($2::text[])`,
};

export const LOCK_HEAD: Statement = { name: 'lock_head', text: 'SELECT * FROM ledger_head FOR UPDATE' };

const ADDED = DAYS.names
  .slice(2)
  .map((name) => `${name} = d.${name} + excluded.${name}`)
  .join(', ');
/** What a row keeps of itself when its exchange is settled late. */
const FIXED = ['seq', 'logged_at_ms', 'exchange_id', 'account_id', 'key_id'];

/**
 * $1 proof, $2 to $6 the head (seq, hash, log seq, log time, video number), then one JSON array of rows for each table: $7
 * journal, $8 balances, $9 spend, $10 days, $11 log, $12 rows of the log that are replaced, $13 exchanges opened, $14 and closed
 * (an array of ids), and of the sums $15 hours and $16 days.
 */
export const WRITE_ALL: Statement = {
  name: 'write_all',
  text: `WITH proof AS (INSERT INTO commits (id) VALUES ($1)),
journal_rows AS (
  ${JOURNAL.insert('$7')}),
balance_rows AS (
  INSERT INTO balances (account, nanos, seq)
  SELECT x.account, x.nanos, $2::bigint FROM json_to_recordset($8::json) AS x(account text, nanos bigint)
  ON CONFLICT (account) DO UPDATE SET nanos = excluded.nanos, seq = excluded.seq),
spend_rows AS (
  ${SPEND.insert('$9', ` ON CONFLICT (key_id) DO UPDATE SET ${SPEND.set('excluded', ['key_id'])}`)}),
day_rows AS (
  ${DAYS.insert('$10', ` ON CONFLICT (key_id, day) DO UPDATE SET ${ADDED}`, ' AS d')}),
log_rows AS (
  ${LOG.insert('$11')}),
relogged AS (
  UPDATE request_log r SET ${LOG.set('x', FIXED)} FROM ${LOG.recordset('$12')} WHERE r.seq = x.seq),
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
