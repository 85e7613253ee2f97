/** The rows of the rollups on PostgreSQL: how a transaction adds to them, and how they come back. */
import { type Rollup, type RollupChanges, SUM_NAMES, type SumName } from '../rollups.ts';
import { StoreError } from '../store-error.ts';
import { countsOf, int, type Row, text } from './rows.ts';
import type { Statement } from './session.ts';

export type RollupTable = 'usage_hours' | 'usage_days';

export const SUM_COLUMNS: Readonly<Record<SumName, string>> = {
  requests: 'requests',
  inputTokens: 'input_tokens',
  cachedInputTokens: 'cached_input_tokens',
  cacheWriteTokens: 'cache_write_tokens',
  outputTokens: 'output_tokens',
  reasoningTokens: 'reasoning_tokens',
  images: 'images',
  videos: 'videos',
  durationMs: 'duration_ms',
};
const AMOUNTS = [...Object.values(SUM_COLUMNS), 'charged_nanos'];
const COLUMNS = `key_id, at, model, channel_id, code, account_id, ${AMOUNTS.join(', ')}, first_token`;
/** What is nothing is left out of the JSON: that is half of it. */
const GIVEN = `x.key_id, x.at, x.model, x.channel_id, x.code, x.account_id, ${AMOUNTS.map((name) => `coalesce(x.${name}, 0)`).join(', ')}, x.first_token`;
const TYPES = `key_id text, at bigint, model text, channel_id text, code text, account_id text, ${AMOUNTS.map(
  (name) => `${name} bigint`,
).join(', ')}, first_token bigint[]`;

/** Adds the rows of the JSON array that `parameter` names. The shorter list of buckets counts as if it went on with zeros. */
export function addRows(table: RollupTable, parameter: string): string {
  return `INSERT INTO ${table} AS u (${COLUMNS})
  SELECT ${GIVEN} FROM json_to_recordset(${parameter}::json) AS x(${TYPES})
  ON CONFLICT (key_id, at, model, channel_id, code) DO UPDATE SET
    ${AMOUNTS.map((name) => `${name} = u.${name} + excluded.${name}`).join(', ')},
    first_token = ARRAY(SELECT coalesce(a, 0) + coalesce(b, 0) FROM unnest(u.first_token, excluded.first_token)
      WITH ORDINALITY AS t(a, b, place) ORDER BY place)`;
}

export const HOURS_OF_KEYS: Statement = {
  name: 'hours_of_keys',
  text: `SELECT * FROM usage_hours WHERE at >= $1 AND at < $2 AND key_id <> ''`,
};
export const REMOVE_HOURS: Statement = { name: 'hours_remove', text: 'DELETE FROM usage_hours WHERE at >= $1 AND at < $2' };
export const REMOVE_DAY: Statement = { name: 'day_remove', text: 'DELETE FROM usage_days WHERE at = $1' };
export const ADD_HOURS: Statement = { name: 'rollup_add_hours', text: addRows('usage_hours', '$1') };
export const ADD_DAYS: Statement = { name: 'rollup_add_days', text: addRows('usage_days', '$1') };

/** `hours`: by key. Rows of hours and of days, each of keys and of all keys together, as JSON arrays. */
export function columnsOf(hours: RollupChanges): { readonly hours: string; readonly days: string } {
  const all = hours.hoursOfAll();
  return { hours: jsonOf([...hours.hours(), ...all.hours()]), days: jsonOf([...hours.days(), ...all.days()]) };
}

export function jsonOf(rollups: readonly Rollup[]): string {
  const rows = rollups.map(({ keyId, accountId, at, model, channelId, code, sums }) => {
    const row: Record<string, unknown> = { key_id: keyId, at, model, channel_id: channelId, code, account_id: accountId };
    for (const name of SUM_NAMES) if (sums[name] !== 0) row[SUM_COLUMNS[name]] = sums[name];
    if (sums.chargedNanos !== 0n) row['charged_nanos'] = sums.chargedNanos.toString();
    row['first_token'] = sums.firstToken;
    return row;
  });
  return JSON.stringify(rows);
}

/** A row, or a sum of rows that has the same columns. */
export function rollupOf(row: Row): Rollup {
  return {
    keyId: text(row, 'key_id'),
    accountId: text(row, 'account_id'),
    at: int(row, 'at'),
    model: text(row, 'model'),
    channelId: text(row, 'channel_id'),
    code: text(row, 'code'),
    sums: { ...countsOf(row), durationMs: int(row, 'duration_ms'), firstToken: counts(row, 'first_token') },
  };
}

function counts(row: Row, column: string): number[] {
  const value: unknown = row[column];
  if (!Array.isArray(value)) throw new StoreError('corrupt', `column ${column} is no list`);
  return value.map((count: unknown) => int({ count }, 'count'));
}
