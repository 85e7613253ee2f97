/** Sums of years on PostgreSQL: what is asked of some hours reads the rows of those hours, however many others there are. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client } from 'pg';
import type { UsageDimension } from '../../../src/store/rollups.ts';
import { funded, T0 } from '../../store/support/store.ts';
import { openPlace } from '../../store/support/stores.ts';
import { noPostgres, server } from '../../support/postgres.ts';
import { waitFor } from '../../support/processes.ts';

const HOUR_MS = 3_600_000;
const YEAR_HOURS = 8_760;
const KEYS = 8;
const MOST_ROWS = 2_000;

test('a day of a year reads the rows of that day, by whatever it is grouped', { skip: noPostgres }, async (t) => {
  const url = await (await server()).createDatabase();
  const store = await openPlace(url);
  const client = new Client({ connectionString: url });
  await client.connect();
  t.after(() => Promise.all([store.close(), client.end()]));
  const owners = [];
  for (let n = 0; n < KEYS; n += 1) owners.push(await funded(store, 10n));
  const last = Math.floor(T0 / HOUR_MS);
  const counts =
    'requests, input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, images, videos';
  for (const [keyId, accountId] of [['', ''], ...owners.map(({ key, account }) => [key.id, account.id])])
    await client.query(
      `INSERT INTO usage_hours (key_id, at, model, channel_id, code, account_id, ${counts}, duration_ms, charged_nanos, first_token)
        SELECT $1, $2::bigint - n, 'm', 'c', '', $3, 1, 0, 0, 0, 0, 0, 0, 0, 5, 7, '{0,1}' FROM generate_series(0, $4::int - 1) AS n`,
      [keyId, last, accountId, YEAR_HOURS],
    );
  await client.query('ANALYZE');
  const read = async (): Promise<{ rows: number; looks: number }> => {
    const { rows } = await client.query(
      `SELECT coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) AS rows, coalesce(seq_scan, 0) + coalesce(idx_scan, 0) AS looks
        FROM pg_stat_user_tables WHERE relname = 'usage_hours'`,
    );
    return { rows: Number(rows[0].rows), looks: Number(rows[0].looks) };
  };

  const range = { fromMs: (last - 23) * HOUR_MS, toMs: (last + 1) * HOUR_MS };
  const [one] = owners;
  for (const [by, filters] of [
    ['key', {}],
    ['account', {}],
    ['hour', {}],
    ['hour', { accountId: one?.account.id ?? '' }],
    ['hour', { keyId: one?.key.id ?? '' }],
    ['model', { accountId: one?.account.id ?? '' }],
  ] as [UsageDimension, object][]) {
    const before = await read();
    const groups = await store.usageByHour(range, filters, ['hour', by]);
    const requests = groups.reduce((sum, group) => sum + group.requests, 0);
    assert.ok(requests === 24 || requests === 24 * KEYS, `${requests} requests`);
    // A server tells what it read some time later.
    await waitFor(
      async () => (await read()).looks > before.looks || undefined,
      () => 'it never told what it read',
    );
    const rows = (await read()).rows - before.rows;
    assert.ok(rows < MOST_ROWS, `by ${by} ${JSON.stringify(filters)}: ${rows} rows`);
  }
});
