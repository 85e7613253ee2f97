/**
 * A store file that was damaged behind its header: whatever page it is, opening refuses with a sentence, or the page held nothing
 * and the books add up. A process that ended by a signal would fail this file as a whole.
 */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { checkFile } from '../../src/store/lmdb/check-file.ts';
import { openLmdbStore } from '../../src/store/lmdb/open.ts';
import { StoreError } from '../../src/store/store-error.ts';
import { entry, funded, options, tempDirectory } from './support/store.ts';

const PAGE = 4096;

/** Accounts, a journal and a log that is large enough for branches and overflow pages. */
async function storeFile(t: TestContext): Promise<{ readonly folder: string; readonly bytes: Buffer }> {
  const folder = join(tempDirectory(t), 'whole');
  mkdirSync(folder);
  const store = await openLmdbStore(options(folder));
  const owner = await funded(store, 10n ** 12n);
  for (let n = 0; n < 100; n++) {
    const errorText = n % 20 === 0 ? 'x'.repeat(9000) : 'short';
    void store.settlements.settle({ entry: entry(owner, `ex_${n}`, 5n, { errorText }) });
  }
  await store.settlements.flush();
  await store.close();
  return { folder, bytes: readFileSync(join(folder, 'data.mdb')) };
}

const DAMAGES: Readonly<Record<string, (page: Buffer, number: number) => void>> = {
  zeros: (page) => void page.fill(0),
  garbage: (page, number) => {
    for (let at = 0; at < page.length; at++) page[at] = (at * 7919 + number * 31) % 256;
  },
  'the header of another page': (page, number) => void page.writeBigUInt64LE(BigInt(number + 1)),
  'bounds that are none': (page) => void page.writeUInt16LE(0xffff, 22),
  'both a branch and a leaf': (page) => void page.writeUInt16LE(3, 18),
};

test('F31: a damaged page anywhere in the file is told at once, or was of no use to anybody', async (t) => {
  const { folder, bytes } = await storeFile(t);
  const path = join(folder, 'data.mdb');
  checkFile(path);
  const counts = { told: 0, unused: 0 };
  for (const [name, damage] of Object.entries(DAMAGES)) {
    for (let number = 2; number < bytes.length / PAGE; number++) {
      const broken = Buffer.from(bytes);
      damage(broken.subarray(number * PAGE, (number + 1) * PAGE), number);
      writeFileSync(path, broken);
      try {
        checkFile(path);
        counts.unused++;
      } catch (error) {
        assert.ok(error instanceof StoreError && error.code === 'corrupt', `${name} of page ${number}: ${String(error)}`);
        assert.match(error.message, /damaged: .*restore it from a backup/);
        counts.told++;
      }
    }
  }
  t.diagnostic(JSON.stringify(counts));
  assert.ok(counts.told > 5 * 20, `${counts.told} damages were told`);
});

test('F31: what was not told to be damaged opens and adds up, or refuses to be read; nothing is read wrongly', async (t) => {
  const { folder, bytes } = await storeFile(t);
  const path = join(folder, 'data.mdb');
  const unused: Buffer[] = [];
  for (let number = 2; number < bytes.length / PAGE; number++) {
    const broken = Buffer.from(bytes);
    DAMAGES['garbage']?.(broken.subarray(number * PAGE, (number + 1) * PAGE), number);
    writeFileSync(path, broken);
    try {
      checkFile(path);
      unused.push(broken);
    } catch (error) {
      assert.ok(error instanceof StoreError);
    }
  }
  const opened = unused.slice(0, 12);
  assert.ok(opened.length > 0, 'there are pages whose damage cannot be seen');
  let sound = 0;
  for (const [index, broken] of opened.entries()) {
    const copy = join(tempDirectory(t), `copy-${index}`);
    mkdirSync(copy);
    writeFileSync(join(copy, 'data.mdb'), broken);
    const store = await openLmdbStore(options(copy));
    try {
      assert.deepEqual((await store.ledger.verify()).differences, []);
      assert.equal((await store.requestLog.list({ limit: 1000 })).length, 100);
      sound += 1;
    } catch (error) {
      // The second page of a long record has no header that could be looked at: reading the record is refused, by name.
      assert.ok(error instanceof StoreError, String(error));
    }
    await store.close();
  }
  assert.ok(sound > 0, `${sound} of ${opened.length} were read as they were`);
});

test('a file that others write meanwhile is no damaged one', async (t) => {
  const { folder } = await storeFile(t);
  const store = await openLmdbStore(options(folder));
  const owner = await funded(store, 10n ** 12n);
  for (let n = 0; n < 100; n++) {
    void store.settlements.settle({ entry: entry(owner, `more_${n}`, 5n) });
    if (n % 10 === 0) await store.settlements.flush();
    checkFile(join(folder, 'data.mdb'));
  }
  await store.close();
});
