/** Brings a database to the schema of this version: forward only, one process at a time, each migration whole or not at all. */
import type { Client } from 'pg';
import { StoreError } from '../store-error.ts';
import { newClient } from './connection.ts';
import { storeErrorOf } from './failure.ts';
import type { PostgresOptions } from './options.ts';
import { MIGRATIONS, SCHEMA } from './schema.ts';
import { newerSchema } from './watch.ts';

export interface MigrationReport {
  readonly from: number;
  readonly to: number;
  readonly applied: readonly string[];
}

/** Any number that no other program locks. */
export const LOCK = 5_068_361_904;

const RECORD = `CREATE TABLE IF NOT EXISTS schema_migrations (
  version integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())`;

/**
 * Applies what is missing. Throws `StoreError`: `bad_url`, `access_denied`, `read_only`, `unavailable`, `schema_newer`, and
 * `schema_older` when `options.migrate` is `never` and something is missing.
 */
export async function migratePostgres(options: PostgresOptions): Promise<MigrationReport> {
  const from = await connected(newClient(options), options, (client) => olderVersion(client, options));
  if (from === SCHEMA) return { from, to: from, applied: [] };
  // A migration may take longer than a request may, and others wait for it: neither the server nor the driver ends it.
  return await connected(newClient(options, { query_timeout: 0 }), options, (client) => migrate(client, from));
}

async function connected<T>(client: Client, options: PostgresOptions, use: (client: Client) => Promise<T>): Promise<T> {
  // A connection that ends by itself fails the query that is under way; the event only needs a listener.
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await use(client);
  } catch (error) {
    throw storeErrorOf(error, 'the database cannot be opened');
  } finally {
    await client.end().catch((error: unknown) => options.onProblem?.({ what: 'connection_lost', error }));
  }
}

/** The version that is there, where it may be used or brought up. */
async function olderVersion(client: Client, options: PostgresOptions): Promise<number> {
  const from = await versionOf(client);
  if (from > SCHEMA) throw newerSchema(from);
  if (await isReadOnly(client)) throw new StoreError('read_only', 'the database takes no writes: it is a replica');
  if (from < SCHEMA && options.migrate === 'never') {
    throw new StoreError(
      'schema_older',
      `the store has schema ${from}, this version needs ${SCHEMA}: run \`mizu store migrate\``,
    );
  }
  return from;
}

async function migrate(client: Client, from: number): Promise<MigrationReport> {
  await client.query('SET statement_timeout = 0');
  await client.query('SET lock_timeout = 0');
  await client.query('SET idle_in_transaction_session_timeout = 0');
  await client.query('SELECT pg_advisory_lock($1)', [LOCK]);
  const applied: string[] = [];
  await client.query(RECORD);
  const current = await versionOf(client);
  if (current > SCHEMA) throw newerSchema(current);
  for (const { version, name, sql } of MIGRATIONS) {
    if (version <= current) continue;
    await client.query('BEGIN');
    await client.query(sql);
    await client.query('INSERT INTO schema_migrations (version, name) VALUES ($1, $2)', [version, name]);
    await client.query('COMMIT');
    applied.push(`${version} ${name}`);
  }
  return { from, to: SCHEMA, applied };
}

async function versionOf(client: Client): Promise<number> {
  const known = await client.query<{ found: string | null }>(`SELECT to_regclass('schema_migrations')::text AS found`);
  if (known.rows[0]?.found === null || known.rows[0] === undefined) return 0;
  const newest = await client.query<{ version: number | null }>('SELECT max(version) AS version FROM schema_migrations');
  return newest.rows[0]?.version ?? 0;
}

async function isReadOnly(client: Client): Promise<boolean> {
  const found = await client.query<{ read_only: boolean }>(
    `SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' AS read_only`,
  );
  return found.rows[0]?.read_only ?? false;
}
