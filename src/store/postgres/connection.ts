/**
 * The address of the database and what each connection is told. TLS is in the parameters of the URL (`sslmode`, `sslrootcert`,
 * `sslcert`, `sslkey`; see `tls-mode.ts`). Nothing that this file throws repeats the password.
 */
import { type Client, type ClientConfig, types } from 'pg';
import { StoreError } from '../store-error.ts';
import { CheckedClient } from './checked-client.ts';
import { messageOf } from './failure.ts';
import { DEFAULTS, type PostgresOptions } from './options.ts';
import { withTlsMode } from './tls-mode.ts';

/** PostgreSQL's own number of the type `bigint`. */
const INT8 = 20;

/** Every bigint comes back as a bigint: money never passes through a float. */
const exactTypes: ClientConfig['types'] = {
  getTypeParser(id: number, format?: 'text' | 'binary') {
    if (id === INT8 && format !== 'binary') return BigInt;
    return types.getTypeParser(id, format);
  },
};

export function clientConfig(options: PostgresOptions): ClientConfig {
  const { statementTimeoutMs = DEFAULTS.statementTimeoutMs, lockTimeoutMs = DEFAULTS.lockTimeoutMs } = options;
  return {
    connectionString: withTlsMode(options.url),
    application_name: 'mizu',
    types: exactTypes,
    statement_timeout: statementTimeoutMs,
    lock_timeout: lockTimeoutMs,
    // Whoever is cut off in the middle of a change has the ledger's lock: it must be free again before those who wait give up.
    idle_in_transaction_session_timeout: Math.ceil(lockTimeoutMs / 4),
    // The server cannot report that the line to it is cut: the client stops waiting by itself, a little later than the server
    // would.
    query_timeout: statementTimeoutMs + 1_000,
    connectionTimeoutMillis: statementTimeoutMs,
    keepAlive: true,
  };
}

/**
 * A connection of its own, not from the pool. Its errors outside of a query must be listened to by the caller. `unlike`: what it
 * is told otherwise. Throws `StoreError` `bad_url`.
 */
export function newClient(options: PostgresOptions, unlike: ClientConfig = {}): Client {
  if (!/^postgres(ql)?:\/\/./.test(options.url)) {
    throw new StoreError('bad_url', 'the address of the database must be postgres:// and where it is');
  }
  try {
    return new CheckedClient({ ...clientConfig(options), ...unlike });
  } catch (error) {
    if (error instanceof StoreError) throw error;
    // The driver reads the URL and the files that its parameters name. Its words may repeat the URL, and with it a password.
    const said = messageOf(error);
    throw new StoreError(
      'bad_url',
      `the address of the database cannot be used: ${said.includes('://') ? 'it is no URL' : said}`,
    );
  }
}
