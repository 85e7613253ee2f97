/**
 * Which engine a place means, and how each is opened there: a folder is LMDB, a `postgres://` address is PostgreSQL. PostgreSQL's
 * engine and driver are loaded only where they are used: they are a tenth of what every start would have to load.
 */
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Archive } from './archive.ts';
import { openLmdbArchive } from './lmdb/archive.ts';
import { openLmdbStore } from './lmdb/open.ts';
import type { MigrationReport } from './postgres/migrate.ts';
import type { PostgresOptions } from './postgres/options.ts';
import type { Store, StoreOptions } from './store.ts';

/** What every engine needs from outside. */
export interface StoreEnvironment extends Pick<StoreOptions, 'clock' | 'randomBytes' | 'process' | 'onProblem'> {
  /** A folder of this machine for what must wait while a database is away. */
  readonly localPath: string;
}

export const isDatabaseUrl = (place: string): boolean => /^postgres(ql)?:\/\//.test(place);

/** Opening a folder makes a store of it, also of an empty file that a copy left: whoever must find one asks first. */
export function isStoreFolder(place: string): boolean {
  const file = join(place, 'data.mdb');
  return existsSync(file) && statSync(file).size > 0;
}

/** Throws `StoreError`. */
export async function openStoreAt(place: string, environment: StoreEnvironment): Promise<Store> {
  if (!isDatabaseUrl(place)) return await openLmdbStore({ ...environment, path: place });
  const { openPostgresStore } = await import('./postgres/open.ts');
  return await openPostgresStore(postgresOptions(place, environment));
}

/** Throws `StoreError`. What is opened so is not served meanwhile. */
export async function openArchiveAt(place: string, environment: StoreEnvironment): Promise<Archive> {
  if (!isDatabaseUrl(place)) return await openLmdbArchive({ ...environment, path: place });
  const { openPostgresArchive } = await import('./postgres/archive.ts');
  return await openPostgresArchive(postgresOptions(place, environment));
}

/** Throws `StoreError`. */
export async function migrateAt(url: string, environment: StoreEnvironment): Promise<MigrationReport> {
  const { migratePostgres } = await import('./postgres/migrate.ts');
  return await migratePostgres(postgresOptions(url, environment));
}

function postgresOptions(url: string, { localPath, ...environment }: StoreEnvironment): PostgresOptions {
  return { ...environment, url, spoolPath: join(localPath, 'waiting') };
}
