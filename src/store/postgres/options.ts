/** How a store on PostgreSQL is opened. Times in milliseconds. */
import type { StoreOptions } from '../store.ts';

export interface PostgresOptions
  extends Pick<StoreOptions, 'clock' | 'randomBytes' | 'process' | 'flushMs' | 'processTtlMs' | 'onProblem'> {
  /** `postgres://user:password@host:port/database`, with TLS by `?sslmode=verify-full&sslrootcert=…`. */
  readonly url: string;
  /** A folder on the local disk: settlements wait here while the database is away. One folder may serve several processes. */
  readonly spoolPath: string;
  /** At most this much waits on the local disk. Default 256 MiB. */
  readonly spoolMaxBytes?: number;
  /** Connections beside the one that listens. Default 8. */
  readonly poolSize?: number;
  /** One statement may take this long. Default 5000. */
  readonly statementTimeoutMs?: number;
  /** One statement may wait this long for a lock. Default 3000. */
  readonly lockTimeoutMs?: number;
  /** How often changes of other processes are looked for, also when no notification came. Default 500. */
  readonly pollMs?: number;
  /** What is cached counts for at most this long after it was last confirmed. Default 1000. */
  readonly staleMs?: number;
  /** `auto` (default): migrate at start. `never`: refuse to start on an older schema. */
  readonly migrate?: 'auto' | 'never';
}

export const DEFAULTS = {
  poolSize: 8,
  statementTimeoutMs: 5_000,
  lockTimeoutMs: 3_000,
  pollMs: 500,
  staleMs: 1_000,
  spoolMaxBytes: 256 * 1024 * 1024,
  flushMs: 10,
  processTtlMs: 30_000,
} as const;

/**
 * For tests: called before every statement of a changing transaction and before its commit; what it throws undoes the
 * transaction.
 */
export interface PostgresSeams {
  readonly beforeStatement?: (text: string) => void;
  /** Called for everything that is sent to the database, also the watcher's own queries. */
  readonly onQuery?: (name: string) => void;
}
