/** Which engine a place means, and how each is opened there: a folder is LMDB, a `postgres://` address is PostgreSQL. */
import { join } from 'node:path';
import type { Archive } from './archive.ts';
import { openLmdbArchive } from './lmdb/archive.ts';
import { openLmdbStore } from './lmdb/open.ts';
import { openPostgresArchive } from './postgres/archive.ts';
import { type MigrationReport, migratePostgres } from './postgres/migrate.ts';
import { openPostgresStore } from './postgres/open.ts';
import type { PostgresOptions } from './postgres/options.ts';
import type { Store, StoreOptions } from './store.ts';

/** What every engine needs from outside. */
export interface StoreEnvironment extends Pick<StoreOptions, 'clock' | 'randomBytes' | 'process' | 'onProblem'> {
  /** A folder of this machine for what must wait while a database is away. */
  readonly localPath: string;
}

export const isDatabaseUrl = (place: string): boolean => /^postgres(ql)?:\/\//.test(place);

/** Throws `StoreError`. */
export function openStoreAt(place: string, environment: StoreEnvironment): Promise<Store> {
  return isDatabaseUrl(place)
    ? openPostgresStore(postgresOptions(place, environment))
    : openLmdbStore({ ...environment, path: place });
}

/** Throws `StoreError`. What is opened so is not served meanwhile. */
export function openArchiveAt(place: string, environment: StoreEnvironment): Promise<Archive> {
  return isDatabaseUrl(place)
    ? openPostgresArchive(postgresOptions(place, environment))
    : openLmdbArchive({ ...environment, path: place });
}

/** Throws `StoreError`. */
export function migrateAt(url: string, environment: StoreEnvironment): Promise<MigrationReport> {
  return migratePostgres(postgresOptions(url, environment));
}

function postgresOptions(url: string, { localPath, ...environment }: StoreEnvironment): PostgresOptions {
  return { ...environment, url, spoolPath: join(localPath, 'waiting') };
}
