/**
 * The folder of a store: made where there is none, for the gateway's user alone; one that is there keeps the rights that its
 * owner gave it.
 */
import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { FreeSpace } from '../../src/store/lmdb/free-space.ts';
import { openLmdbStore } from '../../src/store/lmdb/open.ts';
import { eventually } from '../support/test-gateway.ts';
import { FakeClock, options, tempDirectory } from './support/store.ts';

/** Why tests of missing rights say nothing here. */
const NOBODY = 'root may write everything';

const rightsOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);

test('a folder that the gateway makes is for its own user', async (t) => {
  const parent = tempDirectory(t);
  const made = join(parent, 'deep', 'data');
  await (await openLmdbStore(options(made))).close();
  assert.equal(rightsOf(made), '700');
  const given = join(parent, 'given');
  mkdirSync(given);
  chmodSync(given, 0o750);
  await (await openLmdbStore(options(given))).close();
  assert.equal(rightsOf(given), '750');
});

test('the files of a store are for the gateway’s user alone, also in a folder that was there, and those of an older version become so', async (t) => {
  const path = tempDirectory(t);
  chmodSync(path, 0o755);
  const open = async (): Promise<void> => {
    const clock = new FakeClock();
    const store = await openLmdbStore(options(path, { clock, ballastBytes: 1024 }));
    for (let look = 0; look < 100 && !existsSync(join(path, 'ballast')); look++) {
      clock.advance(1_000);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await store.close();
    const files = readdirSync(path);
    assert.ok(files.includes('data.mdb') && files.includes('lock.mdb') && files.includes('ballast'), files.join());
    for (const file of files) assert.equal(rightsOf(join(path, file)), file === 'settlements' ? '700' : '600', file);
  };
  await open();
  for (const file of readdirSync(path)) if (file !== 'settlements') chmodSync(join(path, file), 0o644);
  await open();
});

test('a folder that cannot be made is refused, and not asked for ever', { skip: !existsSync('/proc/self') }, async () => {
  await assert.rejects(openLmdbStore(options('/proc/no-such-folder/data')), { name: 'StoreError', code: 'unavailable' });
});

for (const [name, make] of [
  ['a folder in the place of the data', (path: string) => mkdirSync(join(path, 'data.mdb'))],
  ['a device in the place of the data', (path: string) => symlinkSync('/dev/null', join(path, 'data.mdb'))],
  ['a folder in the place of the lock', (path: string) => mkdirSync(join(path, 'lock.mdb'))],
  ['a device in the place of the lock', (path: string) => symlinkSync('/dev/null', join(path, 'lock.mdb'))],
] as const) {
  test(`${name} is refused by its name`, async (t) => {
    const path = tempDirectory(t);
    make(path);
    await assert.rejects(openLmdbStore(options(path)), { code: 'unavailable', message: /(data|lock)\.mdb is no file$/ });
  });
}

test('a lock that may not be written is refused with a sentence', { skip: process.getuid?.() === 0 && NOBODY }, async (t) => {
  const path = tempDirectory(t);
  await (await openLmdbStore(options(path))).close();
  chmodSync(join(path, 'lock.mdb'), 0o400);
  await assert.rejects(openLmdbStore(options(path)), { name: 'StoreError', code: 'unavailable', message: /EACCES/ });
});

test('a ballast that cannot be written is told once, and done without', async (t) => {
  const path = tempDirectory(t);
  mkdirSync(join(path, 'ballast'));
  const clock = new FakeClock();
  const problems: { readonly what: string; readonly error?: unknown }[] = [];
  const store = await openLmdbStore(options(path, { clock, ballastBytes: 1024, onProblem: (told) => problems.push(told) }));
  t.after(() => store.close());
  for (let second = 0; second < 130; second++) {
    clock.advance(1_000);
    // Those that have begun end first: on a slow machine they would take ten of these seconds, and count as hung.
    await store.accounts.create({ name: `account ${second}` }, { id: `second_${second}`, by: 'me' });
  }
  const told = problems.map(({ what }) => what);
  assert.deepEqual(told, ['ballast_not_written'], problems.map(({ error }) => String(error)).join('; '));
  assert.deepEqual(store.health(), { healthy: true });
});

test('a store that is closed while it looks at its folder says nothing more of its health', async (t) => {
  const clock = new FakeClock();
  const problems: string[] = [];
  const store = await openLmdbStore(options(tempDirectory(t), { clock, onProblem: ({ what }) => problems.push(what) }));
  const looks = Promise.withResolvers<void>();
  const look = t.mock.method(FreeSpace.prototype, 'look', () => looks.promise);
  clock.advance(1_000);
  await eventually(() => look.mock.callCount() === 1, 'a look at the room that is left');
  await store.close();
  looks.resolve();
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(problems, []);
});
