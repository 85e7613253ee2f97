/**
 * The engines that the contract holds for. A contract test is written once, inside `eachStore`, and runs against every engine;
 * one that cannot run here is skipped with its reason.
 */
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext } from 'node:test';
import { openLmdbStore } from '../../../src/store/lmdb/open.ts';
import type { PostgresOptions } from '../../../src/store/postgres/options.ts';
import { openPostgresStore } from '../../../src/store/postgres/open.ts';
import type { Store, StoreOptions } from '../../../src/store/store.ts';
import { noPostgres, server } from '../../support/postgres.ts';
import { type EngineName, skipped } from '../../support/engines.ts';
import { options } from './store.ts';

export interface Engine {
  readonly name: EngineName;
  /** How many random histories the model-based tests play: fewer where each step is a conversation with a server. */
  readonly histories: number;
  /** Somewhere new and empty; what is stored there can be opened again, also by another process. */
  makePlace(): Promise<string>;
  dropPlace(place: string): Promise<void>;
  /** A place that is dropped after the test. */
  place(t: TestContext): Promise<string>;
  /** A store of its own for one test, or at a given place; closed after the test. */
  openStore(t: TestContext, more?: Partial<StoreOptions>, beforeWrite?: () => void): Promise<Store>;
}

const isUrl = (place: string): boolean => place.startsWith('postgres://');

/** Where the settlement log of a place is. */
export const logOf = (place: string): string => (isUrl(place) ? spoolOf(place) : join(place, 'settlements'));

/** Where a place on PostgreSQL keeps what must wait on the local disk. */
export function spoolOf(place: string): string {
  return join(tmpdir(), `mizu-spool-${createHash('sha256').update(place).digest('hex').slice(0, 16)}`);
}

export function postgresOptions(url: string, more: Partial<StoreOptions & PostgresOptions> = {}): PostgresOptions {
  const { path: _path, freeSpaceFloor: _floor, ballastBytes: _ballast, ...rest } = options(url, more);
  return { url, spoolPath: spoolOf(url), ...rest };
}

/** Opens whatever is at the place. `beforeWrite` may throw, which must undo the transaction around it. */
export function openPlace(place: string, more: Partial<StoreOptions> = {}, beforeWrite?: () => void): Promise<Store> {
  if (!isUrl(place)) return openLmdbStore(options(place, more), beforeWrite === undefined ? {} : { afterWrite: beforeWrite });
  return openPostgresStore(postgresOptions(place, more), beforeWrite === undefined ? {} : { beforeStatement: beforeWrite });
}

function engine(name: EngineName, histories: number, makePlace: Engine['makePlace'], dropPlace: Engine['dropPlace']): Engine {
  return {
    name,
    histories,
    makePlace,
    dropPlace,
    async place(t) {
      const place = await makePlace();
      t.after(() => dropPlace(place));
      return place;
    },
    async openStore(t, more = {}, beforeWrite) {
      const path = more.path ?? (await makePlace());
      const store = await openPlace(path, more, beforeWrite);
      t.after(async () => {
        await store.close();
        if (more.path === undefined) await dropPlace(path);
      });
      return store;
    },
  };
}

const lmdb = engine(
  'lmdb',
  25,
  async () => mkdtempSync(join(tmpdir(), 'mizu-store-')),
  async (place) => rmSync(place, { recursive: true, force: true }),
);

let schemas = 0;

/** A schema of the one database: quicker to make than a database, and as separate. */
const postgres = engine(
  'postgres',
  6,
  async () => {
    schemas += 1;
    const name = `place_${process.pid}_${schemas}`;
    const { admin, url } = await server();
    await admin(`CREATE SCHEMA ${name}`);
    return `${url('postgres')}?application_name=${name}&options=${encodeURIComponent(`-c search_path=${name}`)}`;
  },
  async (place) => {
    rmSync(spoolOf(place), { recursive: true, force: true });
    const { admin } = await server();
    await admin(`DROP SCHEMA ${nameOf(place)} CASCADE`);
  },
);

/** The name of a place on PostgreSQL: its schema, and what its connections call themselves. */
export function nameOf(place: string): string {
  return new URLSearchParams(place.slice(place.indexOf('?'))).get('application_name') ?? '';
}

/** Defines the same tests for every engine. */
export function eachStore(define: (engine: Engine) => void): void {
  describe('lmdb', { skip: skipped('lmdb') }, () => define(lmdb));
  describe('postgres', { skip: noPostgres }, () => define(postgres));
}

/** Defines tests for PostgreSQL alone. */
export function onPostgres(define: (engine: Engine) => void): void {
  describe('postgres', { skip: noPostgres }, () => define(postgres));
}
