/** The stores that older commits wrote: see their README. */
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { Client } from 'pg';
import { server } from '../../support/postgres.ts';
import type { Engine } from './stores.ts';

export const FIXTURES = globSync(fileURLToPath(new URL('../../fixtures/stores-*', import.meta.url))).sort();

/** A copy of the fixture's store, where it can be opened. */
export async function placeOf({ name, place }: Engine, fixture: string, t: TestContext): Promise<string> {
  if (name === 'lmdb') {
    const path = await place(t);
    writeFileSync(join(path, 'data.mdb'), gunzipSync(readFileSync(join(fixture, 'data.mdb.gz'))));
    return path;
  }
  const url = await (await server()).createDatabase();
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query(readFileSync(join(fixture, 'postgres.sql'), 'utf8'));
  await client.end();
  return url;
}
