/** The files of the settlement log: which rows stand in them, when a file gives way to another, and whose files are taken over. */
import assert from 'node:assert/strict';
import fs, { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type LogOptions, SettlementLog, storeIdOf } from '../../src/store/settlements/log.ts';
import { exchangeOf, recordOf } from '../../src/store/settlements/records.ts';
import { QueueRow } from '../../src/store/settlements/row.ts';
import { Lines, readLines, Segment } from '../../src/store/settlements/segment.ts';
import { allLines, SegmentFolder } from '../../src/store/settlements/segment-folder.ts';
import { breakDescriptor, descriptorsOf, noDescriptors } from './support/descriptors.ts';
import { chargeOf, T0, tempDirectory } from './support/store.ts';

const STORE = 'ab'.repeat(8);
const MIB = 1024 * 1024;

interface Problem {
  readonly what: string;
  readonly error?: unknown;
}

function openLog(t: TestContext, more: Partial<LogOptions> = {}) {
  const path = tempDirectory(t);
  const problems: Problem[] = [];
  const log = new SettlementLog({
    path,
    storeId: STORE,
    processId: 'own_01',
    mayLive: async () => true,
    onProblem: (problem) => problems.push(problem),
    ...more,
  });
  t.after(() => log.close());
  const files = (): string[] =>
    readdirSync(path)
      .map((name) => name.replace(`${STORE}-own_01-`, ''))
      .sort();
  return { path, log, problems, files };
}

/** A row that was settled, whose text has that many bytes. */
function settled(exchangeId: string, bytes = 10): QueueRow {
  const row = new QueueRow(exchangeId);
  row.text = exchangeId.padEnd(bytes, '.');
  const common = { exchangeId, requestId: 'r', accountId: 'a', keyId: 'k', endpoint: 'chat', model: 'm', stream: false };
  row.entry = { ...common, status: 'success', startedAtMs: T0, durationMs: 1, attempts: [], charge: chargeOf(1n) };
  return row;
}

test('a log that is full takes no row, which is told once, and takes rows again when the engine has what was in it', (t) => {
  const { log, problems, files } = openLog(t, { maxBytes: 2 * MIB });
  const [first, second, third] = [settled('first', MIB), settled('second', MIB), settled('third', MIB)];
  assert.equal(log.write([first]), true);
  for (let n = 0; n < 2; n += 1) assert.equal(log.write([second, third]), false);
  assert.deepEqual(problems, [{ what: 'settlement_log_full: 2 rows wait in memory only' }]);
  assert.deepEqual([first.isLogged, second.isLogged], [true, false]);
  assert.deepEqual(files(), ['1.segment']);

  log.forget(first);
  log.tidy();
  assert.deepEqual(files(), []);
  assert.equal(log.write([second]), true);
  assert.equal(log.write([third]), false);
  assert.equal(problems.length, 2, 'it was well meanwhile, so it is told again');
  log.forget(second);
});

test('a log takes as many bytes as it may have, and not one more', (t) => {
  // The checksum, a space and the kind before the text, a line break behind it.
  const line = 9 + 1 + 10 + 1;
  for (const [maxBytes, isTaken] of [
    [2 * line, true],
    [2 * line - 1, false],
  ] as const) {
    const { log } = openLog(t, { maxBytes });
    assert.equal(log.write([settled('a')]), true);
    assert.equal(log.write([settled('b')]), isTaken);
  }
});

test('a file goes on being used while it is small or holds rows, and gives way when it is large', (t) => {
  const { path, log, files } = openLog(t);
  const small = settled('small');
  log.write([small]);
  log.forget(small);
  log.tidy();
  // With what stands before and behind its text, and behind the first line, that makes 1 MiB.
  const exact = settled('exact', MIB - 21 - 11);
  log.write([exact]);
  log.forget(exact);
  log.tidy();
  const large = settled('large', 2 * MIB);
  log.write([large]);
  log.tidy();
  const more = settled('more', 3 * MIB);
  log.write([more]);
  assert.deepEqual(files(), ['1.segment'], 'below 1 MiB it is used on, and below 4 MiB while it holds rows');
  assert.deepEqual(
    readLines(join(path, `${STORE}-own_01-1.segment`)).lines.map((line) => line.slice(0, 5)),
    ['ssmal', 'sexac', 'slarg', 'smore'],
  );

  log.tidy();
  const next = settled('next');
  log.write([next]);
  assert.deepEqual(files(), ['1.segment', '2.segment'], 'it is large, and holds rows');
  log.forget(large);
  assert.deepEqual(files(), ['1.segment', '2.segment']);
  log.forget(more);
  assert.deepEqual(files(), ['2.segment'], 'the engine has every row of it');
  log.forget(next);
});

test('a row that was opened in one file and settled in another keeps both until the engine has it', (t) => {
  const { log, files } = openLog(t);
  const row = new QueueRow('ex');
  row.exchange = settled('ex').entry;
  log.write([row]);
  log.write([settled('filler', 5 * MIB)]);
  log.tidy();
  row.entry = settled('ex').entry;
  row.text = 'settled';
  log.write([row]);
  assert.deepEqual(files(), ['1.segment', '2.segment']);
  log.close();
  log.forget(row);
  assert.deepEqual(files(), ['1.segment'], 'that of the filler');
});

test('a file whose sync fails is not relied on: that is told, and the next rows stand in another', {
  skip: noDescriptors,
}, async (t) => {
  const { path, log, problems, files } = openLog(t);
  const row = settled('doubtful');
  log.write([row]);
  assert.equal(await log.sync(), true);
  log.write([settled('more')]);
  const [descriptor] = descriptorsOf(join(path, `${STORE}-own_01-1.segment`));
  assert.ok(descriptor !== undefined);
  breakDescriptor(t, descriptor);
  assert.equal(await log.sync(), false);
  assert.deepEqual(
    problems.map(({ what, error }) => [what, error instanceof Error]),
    [['settlement_log_failed: what was written last may not be on the disk', true]],
  );
  log.write([settled('next')]);
  assert.deepEqual(files(), ['1.segment', '2.segment']);
  assert.equal(await log.sync(), true);
});

test('a file that gives way is synced before what stands in it counts as kept, also where it gave way before the sync', {
  skip: noDescriptors,
}, async (t) => {
  const { path, log, files } = openLog(t);
  const [large, next] = [settled('large', 5 * MIB), settled('next')];
  log.write([large]);
  // The engine took a batch meanwhile: the file is full, and gives way.
  log.tidy();
  log.write([next]);
  assert.deepEqual(files(), ['1.segment', '2.segment']);
  const [descriptor] = descriptorsOf(join(path, `${STORE}-own_01-1.segment`));
  assert.ok(descriptor !== undefined, 'what stands in it was not synced yet');
  breakDescriptor(t, descriptor);
  assert.equal(await log.sync(), false, 'nobody knows whether it is on the disk');
});

test('a file that gave way is closed by its sync, and one that goes while it is synced closes no other', async (t) => {
  const { path, log, files } = openLog(t);
  const rows = [settled('one', 5 * MIB), settled('two', 5 * MIB)] as const;
  const file = join(path, `${STORE}-own_01-1.segment`);
  log.write([rows[0]]);
  log.tidy();
  const syncing = log.sync();
  log.forget(rows[0]);
  assert.deepEqual(files(), [], 'the engine has it');
  log.write([rows[1]]);
  assert.equal(await syncing, true);
  assert.equal(await log.sync(), true);
  assert.deepEqual(descriptorsOf(file), []);
  log.forget(rows[1]);
  log.tidy();
  assert.deepEqual(files(), []);
});

test('what was written into a file while its sync failed is not relied on either', async (t) => {
  const { log, files } = openLog(t);
  log.write([settled('before')]);
  const failing = t.mock.method(fs, 'fdatasync', (_: number, done: (error: Error) => void) =>
    setImmediate(done, new Error('EIO')),
  );
  syncBuiltinESMExports();
  t.after(() => syncBuiltinESMExports());
  const syncing = log.sync();
  log.write([settled('meanwhile')]);
  assert.equal(await syncing, false);
  failing.mock.restore();
  syncBuiltinESMExports();
  assert.equal(await log.sync(), false, 'the disk forgets what it could not write, and says so once');
  log.write([settled('next')]);
  assert.deepEqual(files(), ['1.segment', '2.segment']);
  assert.equal(await log.sync(), true);
});

test('where a line that a full disk cut off cannot be taken back, the next lines stand in another file', (t) => {
  const { path, log, files } = openLog(t);
  const row = settled('before');
  log.write([row]);
  const { writeSync } = fs;
  const writes = t.mock.method(fs, 'writeSync', (file: number, bytes: Uint8Array, at = 0): number => {
    if (at > 0) throw Object.assign(new Error('no room'), { code: 'ENOSPC' });
    return writeSync(file, bytes.subarray(0, 5), 0);
  });
  const cuts = t.mock.method(fs, 'ftruncateSync', () => {
    throw Object.assign(new Error('the disk fails'), { code: 'EIO' });
  });
  syncBuiltinESMExports();
  t.after(() => syncBuiltinESMExports());
  assert.equal(log.write([settled('torn')]), false);
  writes.mock.restore();
  cuts.mock.restore();
  syncBuiltinESMExports();
  assert.equal(log.write([settled('after')]), true);
  assert.deepEqual(files(), ['1.segment', '2.segment']);
  const read = allLines(path).map((lines) => lines.map((line) => line.slice(0, 6)));
  assert.deepEqual(read, [['sbefor'], ['safter']]);
  for (const name of files()) assert.equal(readLines(join(path, `${STORE}-own_01-${name}`)).damaged, 0, name);
});

test('a line that could not be begun is refused with the reason, and nothing else of the file is touched', {
  skip: noDescriptors,
}, (t) => {
  const segment = Segment.create(join(tempDirectory(t), 'log'));
  segment.append(Buffer.from('before'));
  const [descriptor] = descriptorsOf(segment.path);
  assert.ok(descriptor !== undefined);
  breakDescriptor(t, descriptor);
  assert.throws(() => segment.append(Buffer.from('after')), { code: 'EBADF', syscall: 'write' });
  assert.deepEqual([readFileSync(segment.path, 'utf8'), segment.bytes], ['before', 6]);
  segment.close();
});

test('a file that cannot be removed is told, with the reason', (t) => {
  const { path, log, problems } = openLog(t);
  const row = settled('large', 2 * MIB);
  log.write([row]);
  const file = join(path, `${STORE}-own_01-1.segment`);
  rmSync(file);
  mkdirSync(join(file, 'inner'), { recursive: true });
  log.forget(row);
  log.tidy();
  assert.deepEqual(
    problems.map(({ what, error }) => [what, error instanceof Error]),
    [[`settlements_not_removed: ${file}`, true]],
  );
});

test('files of dead processes of this store are taken over in their order; those of others and of the living stay', async (t) => {
  const path = tempDirectory(t);
  const problems: Problem[] = [];
  const mayLive = async (processId: string): Promise<boolean> => processId === 'own_03';
  const options = { path, storeId: STORE, processId: 'own_01', mayLive, onProblem: (problem: Problem) => problems.push(problem) };
  const lines = new Lines();
  const leave = (name: string, ...contents: readonly string[]): void => {
    lines.clear();
    for (const content of contents) lines.add(content);
    writeFileSync(join(path, name), lines.bytes);
  };
  leave(`${STORE}-own_02-10.segment`, 'ten');
  leave(`${STORE}-own_02-2.segment`, 'two', 'more');
  leave('77-own_04-1.spool', 'spooled later');
  leave('77-own_04.spool', 'spooled');
  leave(`${STORE}-own_02-3.segment`);
  const left = [
    `${STORE}-own_01-9.segment`,
    `${STORE}-own_03-1.segment`,
    `${STORE}-own_02-4.segment.damaged`,
    `${'cd'.repeat(8)}-own_02-1.segment`,
    'notes',
  ];
  for (const name of left) leave(name, 'left');
  mkdirSync(join(path, `${STORE}-own_05-1.segment`));

  const folder = new SegmentFolder(options);
  const found = await folder.orphans();
  assert.deepEqual(
    found.map((orphan) => [orphan.lines, orphan.damaged]),
    [
      [['spooled'], 0],
      [['spooled later'], 0],
      [['two', 'more'], 0],
      [['ten'], 0],
    ],
  );
  const mine = found.map((orphan) => orphan.path);
  assert.ok(mine.every((name) => name.startsWith(join(path, `${STORE}-own_01-`))));
  const expected = [...left, `${STORE}-own_05-1.segment`].map((name) => join(path, name));
  assert.deepEqual(
    readdirSync(path)
      .map((name) => join(path, name))
      .sort(),
    [...mine, ...expected].sort(),
  );
  assert.deepEqual(await folder.orphans(), []);
  assert.deepEqual(
    problems.map(({ what, error }) => [what, error instanceof Error]).sort(),
    [
      [`settlements_of_another_store: ${'cd'.repeat(8)}-own_02-1.segment is left as it is`, false],
      [`settlements_unreadable: ${join(path, `${STORE}-own_05-1.segment`)} cannot be taken over`, true],
    ],
    'each is told once',
  );
});

test('of a store at rest the lines of every file of its log are read, and no other file', (t) => {
  const path = tempDirectory(t);
  assert.deepEqual(allLines(join(path, 'none')), []);
  const segment = Segment.create(join(path, `${STORE}-own_01-1.segment`));
  const lines = new Lines();
  lines.add('one');
  segment.append(lines.bytes);
  segment.close();
  assert.throws(() => segment.append(lines.bytes), { message: `${segment.path} is closed` });
  copyFileSync(segment.path, join(path, '5-own_02.spool'));
  for (const name of [`${STORE}-own_01-2.segment.damaged`, `x${STORE}-own_01-3.segment`, 'notes'])
    copyFileSync(segment.path, join(path, name));
  assert.deepEqual(allLines(path), [['one'], ['one']]);
});

test('lines of any length and of any characters are read as they were written; what is not one is counted', (t) => {
  const path = join(tempDirectory(t), 'log');
  const contents = ['a', 'ü水\u{1f600}'.repeat(30_000), ' ', 'b'.repeat(70_000), 'c'];
  const lines = new Lines();
  for (const content of contents) lines.add(content);
  writeFileSync(path, lines.bytes);
  assert.deepEqual(readLines(path), { lines: contents, damaged: 0 });
  writeFileSync(path, `${readFileSync(path, 'utf8')}\n0000000\n00000000 other\n00000000xc\ntorn`);
  assert.deepEqual(readLines(path), { lines: contents, damaged: 3 });
});

test('the records of the log are openings and settlements, also as the first version spooled them; others are none', () => {
  const exchange = { exchangeId: 'ex', keyId: 'k', startedAtMs: 1 };
  const opened = { kind: 'opened', exchange };
  assert.deepEqual(recordOf(`o${JSON.stringify(exchange)}`), opened);
  assert.deepEqual(recordOf('s{"a":1}'), { kind: 'settled', text: '{"a":1}' });
  assert.deepEqual(recordOf(JSON.stringify({ settle: 'text' })), { kind: 'settled', text: 'text' });
  assert.deepEqual(recordOf(JSON.stringify({ open: JSON.stringify(exchange) })), opened);
  for (const other of ['{}', 'x{}', '']) assert.equal(recordOf(other), undefined);
  for (const wrong of [
    null,
    'ex',
    ...['exchangeId', 'keyId', 'startedAtMs'].flatMap((name) => [
      { ...exchange, [name]: undefined },
      { ...exchange, [name]: name === 'startedAtMs' ? '1' : 1 },
    ]),
  ])
    assert.throws(() => exchangeOf(JSON.stringify(wrong)), {
      name: 'StoreError',
      code: 'corrupt',
      message: 'an open exchange is not one',
    });
});

test('a store is told from others by the first row of its journal, where it has one', () => {
  assert.equal(storeIdOf('0123456789abcdef0123'), '0123456789abcdef');
  assert.equal(storeIdOf(), '0'.repeat(16));
});

test('a folder that cannot be used is refused, with the reason', (t) => {
  const file = join(tempDirectory(t), 'file');
  writeFileSync(file, '');
  const options = { path: file, storeId: STORE, processId: 'own_01', mayLive: async () => true, onProblem: undefined };
  assert.throws(() => new SegmentFolder(options), {
    name: 'StoreError',
    code: 'unavailable',
    message: /^the folder of the settlement log cannot be used: E\w+/,
  });
});
