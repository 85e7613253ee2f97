/** The local file of settlements by itself, without a database: a disk that refuses, and what counts as kept after that. */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { crc32 } from 'node:zlib';
import { type QueueRow, settleRow } from '../../../src/store/postgres/queue-row.ts';
import { linesOf, Spool } from '../../../src/store/postgres/spool.ts';
import { SpooledRows } from '../../../src/store/postgres/spooled-rows.ts';
import { T0, tempDirectory, thisProcess } from '../support/store.ts';
import { smallDisk } from '../../support/small-disk.ts';
import { postgresOptions } from '../support/stores.ts';

const spoolAt = (spoolPath: string): Spool => new Spool(postgresOptions('postgres://nobody/none', { spoolPath }), 'own_01');

function linesAt(folder: string): ReturnType<typeof linesOf> {
  const [name = ''] = readdirSync(folder).filter((found) => found.endsWith('.spool'));
  return linesOf(readFileSync(join(folder, name), 'utf8'));
}

function opening(exchangeId: string): QueueRow {
  const asked = { requestId: 'req_1', accountId: 'acct_1', keyId: 'key_1', endpoint: 'responses', model: 'm', stream: false };
  return settleRow({ kind: 'open', exchange: { exchangeId, ...asked, startedAtMs: T0 } }, T0);
}

/** As the spool writes it. */
function lineOf({ what }: QueueRow): string {
  const line = JSON.stringify(what.kind === 'open' ? { open: JSON.stringify(what.exchange) } : {});
  return `${crc32(line).toString(16).padStart(8, '0')} ${line}\n`;
}

test('a line that a full disk cut off spoils none of those that follow, and takes no room', async (t) => {
  const path = smallDisk(t, '64k');
  if (path === undefined) return;
  const spool = spoolAt(path);
  await spool.append(['before']);
  const { bytes } = spool;
  writeFileSync(join(path, 'filler'), Buffer.alloc(32 * 1024));
  await assert.rejects(spool.append(['x'.repeat(48 * 1024)]), { code: 'ENOSPC' });
  assert.equal(spool.bytes, bytes);
  rmSync(join(path, 'filler'));
  await spool.append(['after']);
  assert.deepEqual(linesAt(path), { lines: ['before', 'after'], damaged: 0 });
  await spool.clear();
  assert.deepEqual([spool.bytes, readdirSync(path)], [0, []]);
  await spool.close();
});

test('a row that the database took while the disk refused it is counted once: the file stays as long as another needs it', async (t) => {
  const path = tempDirectory(t);
  const problems: string[] = [];
  const spool = spoolAt(path);
  const rows = new SpooledRows(spool, ({ what }) => problems.push(what));
  const inTheWay = join(path, `${process.pid}-own_01.spool`);
  mkdirSync(inTheWay);
  const quick = opening('quick');
  const refused = rows.append([quick]);
  rows.release(quick);
  await refused;
  assert.equal(problems.length, 1);
  rmdirSync(inTheWay);

  const slow = opening('slow');
  await rows.append([slow]);
  await rows.clear();
  assert.equal(linesAt(path).lines.length, 1, 'its row is in the file alone');
  rows.release(slow);
  await rows.clear();
  assert.deepEqual(readdirSync(path), []);
  await spool.close();
});

test('a spool that cannot be read keeps no other from being taken over, and is told after them', (t) => {
  const spoolPath = tempDirectory(t);
  const spool = new Spool(
    postgresOptions('postgres://nobody/none', { spoolPath, process: { ...thisProcess, isAlive: () => false } }),
    'own_01',
  );
  for (const [n, owner] of ['own_0a', 'own_0b', 'own_0c'].entries()) {
    const path = join(spoolPath, `99999999${n}-${owner}.spool`);
    if (owner === 'own_0b') writeFileSync(path, lineOf(opening('left')));
    else mkdirSync(path);
  }
  const found: string[] = [];
  const takeOver = (): void => {
    for (const { what } of new SpooledRows(spool, undefined).recovered(T0)) found.push(what.kind);
  };
  assert.throws(takeOver, { name: 'StoreError', code: 'unavailable' });
  assert.deepEqual(found, ['interrupt']);
});
