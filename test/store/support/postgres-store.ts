/** What tests of the store on PostgreSQL share: opening, waiting, and the proof that nothing was lost. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { openPostgresStore } from '../../../src/store/postgres/open.ts';
import type { PostgresOptions, PostgresSeams } from '../../../src/store/postgres/options.ts';
import type { Store } from '../../../src/store/store.ts';
import { postgresOptions } from './stores.ts';

/** The store's timers keep no process alive, and for a moment of these tests there is no connection that would. */
export function stayAlive(t: TestContext): void {
  const timer = setInterval(() => undefined, 1_000);
  t.after(() => clearInterval(timer));
}

/** Closed after the test. */
export async function open(
  t: TestContext,
  url: string,
  more: Partial<PostgresOptions> = {},
  seams: PostgresSeams = {},
): Promise<Store> {
  stayAlive(t);
  const store = await openPostgresStore(postgresOptions(url, more), seams);
  t.after(() => store.close());
  return store;
}

/** For a start that must be refused. */
export const fails = (url: string, more: Partial<PostgresOptions> = {}) => openPostgresStore(postgresOptions(url, more));

/** Waits until `reached` says so; the test's own time limit is the only other end. */
export async function until(reached: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await reached())) await new Promise((resolve) => setTimeout(resolve, 10));
}

export const clean = async (store: Store) => assert.deepEqual((await store.ledger.verify()).differences, []);
