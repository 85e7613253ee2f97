/** The local file of settlements by itself, without a database: a disk that refuses, and what counts as kept after that. */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { crc32 } from 'node:zlib';
import { logText } from '../../../src/store/log-text.ts';
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
const lineOf = (text: string): string => `${crc32(text).toString(16).padStart(8, '0')} ${text}\n`;

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
  const { what } = opening('left');
  const left = what.kind === 'open' ? what.exchange : undefined;
  for (const [n, owner] of ['own_0a', 'own_0b', 'own_0c'].entries()) {
    const path = join(spoolPath, `99999999${n}-${owner}.spool`);
    if (owner === 'own_0b') writeFileSync(path, lineOf(JSON.stringify({ open: JSON.stringify(left) })));
    else mkdirSync(path);
  }
  const found: string[] = [];
  const takeOver = (): void => {
    for (const { what } of new SpooledRows(spool, undefined).recovered(T0)) found.push(what.kind);
  };
  assert.throws(takeOver, { name: 'StoreError', code: 'unavailable' });
  assert.deepEqual(found, ['interrupt']);
});

test('the spools of the dead are taken over once, and no others', async (t) => {
  const spoolPath = tempDirectory(t);
  const self = { ...thisProcess, isAlive: (pid: number) => pid === 7 || pid === process.pid };
  const [spool, neighbour] = ['own_01', 'own_02'].map(
    (owner) => new Spool(postgresOptions('', { spoolPath, process: self }), owner),
  );
  assert.ok(spool && neighbour);
  await spool.append(['its own']);
  await neighbour.append(['of a neighbour in the same process']);
  const files = {
    '8-own_0a.spool': 'dead',
    '7-own_0b.spool': 'alive',
    [`${self.pid}-own_0c.spool`]: 'an earlier life of this pid',
    '8-own_0d-3.spool': 'taken over before by one that is dead now',
    '8-own_0e.spool.damaged': 'kept for a person',
    'notes.txt': 'none at all',
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(spoolPath, name), lineOf(text));
  const taken = (): string[] => [...spool.orphans()].flatMap(({ lines }) => lines).sort();
  assert.deepEqual(taken(), ['an earlier life of this pid', 'dead', 'taken over before by one that is dead now']);
  assert.deepEqual(taken(), []);
  await neighbour.close();
  assert.deepEqual(taken(), ['of a neighbour in the same process']);
  await spool.close();
});

test('a line of a kind that nobody here writes is told, and its file is kept', (t) => {
  const spoolPath = tempDirectory(t);
  const problems: string[] = [];
  const spool = new Spool(postgresOptions('', { spoolPath, process: { ...thisProcess, isAlive: () => false } }), 'own_01');
  const { what } = opening('left');
  const left = JSON.stringify({ open: JSON.stringify(what.kind === 'open' ? what.exchange : undefined) });
  const text = lineOf('{"refund":"of a newer version"}') + lineOf(left);
  writeFileSync(join(spoolPath, '999999998-own_0a.spool'), text);
  const rows = new SpooledRows(spool, ({ what: problem }) => problems.push(problem));
  const recovered = [...rows.recovered(T0)];
  assert.deepEqual(
    recovered.map((row) => row.what.kind),
    ['interrupt'],
  );
  assert.deepEqual(problems, ['spool_damaged: 1 lines could not be read; the file is kept']);
  for (const row of recovered) rows.release(row);
  const [kept = '', ...more] = readdirSync(spoolPath);
  assert.match(kept, /\.damaged$/);
  assert.deepEqual(more, []);
  assert.equal(readFileSync(join(spoolPath, kept), 'utf8'), text);
});

test('a spool that was taken over goes when it is done with; one with damaged lines stays under another name', (t) => {
  const spoolPath = tempDirectory(t);
  const spool = new Spool(postgresOptions('', { spoolPath, process: { ...thisProcess, isAlive: () => false } }), 'own_01');
  writeFileSync(join(spoolPath, '999999998-own_0a.spool'), lineOf('whole'));
  const damaged = `${lineOf('first')}00000000 changed\n${lineOf('x').replace(' ', '_')}${lineOf('last')}${lineOf('torn').slice(0, -1)}`;
  writeFileSync(join(spoolPath, '999999998-own_0b.spool'), damaged);
  const orphans = [...spool.orphans()].sort((one, other) => one.damaged - other.damaged);
  assert.deepEqual(
    orphans.map((orphan) => [orphan.lines, orphan.damaged]),
    [
      [['whole'], 0],
      [['first', 'last'], 2],
    ],
  );
  for (const orphan of orphans) orphan.done(orphan.damaged);
  const [kept = '', ...more] = readdirSync(spoolPath);
  assert.match(kept, /\.damaged$/);
  assert.deepEqual(more, []);
  assert.equal(readFileSync(join(spoolPath, kept), 'utf8'), damaged);
});

test('the spool is for its own user, is full to the byte, and begins anew where it was emptied', async (t) => {
  const spoolPath = tempDirectory(t);
  const spool = new Spool(postgresOptions('', { spoolPath, spoolMaxBytes: 20 }), 'own_01');
  await spool.append(['one']);
  const [name = ''] = readdirSync(spoolPath);
  assert.equal(statSync(join(spoolPath, name)).mode & 0o777, 0o600);
  assert.deepEqual([spool.bytes, spool.hasRoom(7), spool.hasRoom(8)], [13, true, false]);
  await spool.clear();
  assert.deepEqual([spool.bytes, spool.hasRoom(20), readdirSync(spoolPath)], [0, true, []]);
  await spool.append(['two']);
  assert.deepEqual(linesAt(spoolPath), { lines: ['two'], damaged: 0 });
  await spool.close();
});

test('what a dead process left is settled where it was settled, else interrupted; its file goes with the last of its rows', (t) => {
  const spoolPath = tempDirectory(t);
  const spool = new Spool(postgresOptions('', { spoolPath, process: { ...thisProcess, isAlive: () => false } }), 'own_01');
  const exchange = (exchangeId: string) => {
    const { what } = opening(exchangeId);
    assert.ok(what.kind === 'open');
    return what.exchange;
  };
  const opened = (id: string) => lineOf(JSON.stringify({ open: JSON.stringify(exchange(id)) }));
  const settled = { ...exchange('settled'), status: 'success', durationMs: 1, attempts: [] } as const;
  writeFileSync(
    join(spoolPath, '999999998-own_0a.spool'),
    opened('settled') + opened('cut') + lineOf(JSON.stringify({ settle: logText(settled) })),
  );
  writeFileSync(join(spoolPath, '999999998-own_0b.spool'), '');
  const problems: string[] = [];
  const spooled = new SpooledRows(spool, ({ what }) => problems.push(what));
  const rows = [...spooled.recovered(T0)];
  assert.deepEqual(
    rows.map(({ what }) => [what.kind, what.kind === 'settle' ? what.entry.exchangeId : what.exchange.exchangeId]),
    [
      ['settle', 'settled'],
      ['interrupt', 'cut'],
    ],
  );
  for (const row of rows) {
    assert.equal(readdirSync(spoolPath).length, 1, 'the empty one is gone');
    spooled.release(row);
  }
  assert.deepEqual([readdirSync(spoolPath), problems], [[], []]);

  writeFileSync(join(spoolPath, '999999998-own_0c.spool'), '00000000 changed\n');
  assert.deepEqual([...spooled.recovered(T0)], []);
  assert.match(problems.join(), /^spool_damaged: 1 /);
});

test('rows for which the spool has no room wait in memory, which is said', async (t) => {
  const spoolPath = tempDirectory(t);
  const problems: string[] = [];
  const spool = new Spool(postgresOptions('', { spoolPath, spoolMaxBytes: 100 }), 'own_01');
  const row = opening('large');
  await new SpooledRows(spool, ({ what }) => problems.push(what)).append([row]);
  assert.deepEqual([problems, row.spooling, row.spooled], [['spool_full: 1 rows wait in memory only'], false, false]);
  assert.deepEqual(readdirSync(spoolPath), []);
  await spool.close();
});
