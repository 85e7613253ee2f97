/** The folder of a store: made where there is none, for the gateway's user alone; one that is there keeps the rights that its owner gave it. */
import assert from 'node:assert/strict';
import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openLmdbStore } from '../../src/store/lmdb/open.ts';
import { options, tempDirectory } from './support/store.ts';

const rightsOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);

test('a folder that the gateway makes is for its own user', async (t) => {
  const parent = tempDirectory(t);
  const made = join(parent, 'deep', 'data');
  await (await openLmdbStore(options(made))).close();
  assert.equal(rightsOf(made), '700');
  const given = join(parent, 'given');
  mkdirSync(given, { mode: 0o750 });
  await (await openLmdbStore(options(given))).close();
  assert.equal(rightsOf(given), '750');
});
