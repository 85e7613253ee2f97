/**
 * A configuration file that is followed while the gateway runs. Signals and real edits: `test/slow/processes/workers.test.ts`.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { FileConfig } from '../../../src/http/config/source.ts';
import { parsePrice } from '../../../src/store/prices.ts';

interface Followed {
  readonly folder: string;
  readonly source: FileConfig;
  /** Resolves with the next revision that is accepted. */
  next(): Promise<number>;
}

function followed(t: TestContext, make: (folder: string) => void): Followed {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-config-'));
  make(folder);
  let told = (_revision: number): void => undefined;
  const options = { env: {}, readFile: () => '', parsePrice, now: () => 0 };
  const source = new FileConfig(join(folder, 'mizu.config.json'), options, {
    onAccepted: ({ revision }) => told(revision),
    onRefused: ({ message }) => assert.fail(message),
    onUnwatched: (error) => assert.fail(String(error)),
  });
  t.after(() => {
    source.close();
    rmSync(folder, { recursive: true });
  });
  source.startWatching();
  return {
    folder,
    source,
    next: () =>
      new Promise((resolve) => {
        told = resolve;
      }),
  };
}

const quiet = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 400));

test('a file that changes is read again, one revision further each time; its neighbours are nothing to it', async (t) => {
  const { folder, source, next } = followed(t, (made) => writeFileSync(join(made, 'mizu.config.json'), '{}'));
  for (const revision of [2, 3]) {
    const accepted = next();
    writeFileSync(join(folder, 'mizu.config.json'), `{ "drain_ms": ${revision} }`);
    assert.equal(await accepted, revision);
    assert.equal(source.current().drainMs, revision);
  }
  writeFileSync(join(folder, 'other.json'), '{}');
  await quiet();
  assert.equal(source.current().revision, 3);
  writeFileSync(join(folder, 'mizu.config.json'), '{}');
  // The change is known, and the quiet after it has not passed.
  await new Promise((resolve) => setTimeout(resolve, 50));
  source.close();
  await quiet();
  assert.equal(source.current().revision, 3, 'nothing is read after the end');
});

test('a mounted ConfigMap is swapped as a folder behind a link: its file never changes, and is read again', async (t) => {
  const { folder, source, next } = followed(t, (made) => {
    mkdirSync(join(made, '..first'));
    writeFileSync(join(made, '..first', 'mizu.config.json'), '{}');
    symlinkSync('..first', join(made, '..data'));
    symlinkSync('..data/mizu.config.json', join(made, 'mizu.config.json'));
  });
  const accepted = next();
  mkdirSync(join(folder, '..second'));
  writeFileSync(join(folder, '..second', 'mizu.config.json'), '{ "drain_ms": 7 }');
  symlinkSync('..second', join(folder, '..data_tmp'));
  renameSync(join(folder, '..data_tmp'), join(folder, '..data'));
  await accepted;
  assert.equal(source.current().drainMs, 7);
});

test('behind a link of the operator’s own the file is followed where it is, also after the link leads elsewhere', async (t) => {
  const { folder, source, next } = followed(t, (made) => {
    for (const place of ['first', 'second']) {
      mkdirSync(join(made, place));
      writeFileSync(join(made, place, 'real.json'), '{}');
    }
    symlinkSync(join('first', 'real.json'), join(made, 'mizu.config.json'));
  });
  const changes: readonly (() => void)[] = [
    () => writeFileSync(join(folder, 'first', 'real.json'), '{ "drain_ms": 1 }'),
    () => {
      writeFileSync(join(folder, 'second', 'real.json'), '{ "drain_ms": 2 }');
      symlinkSync(join('second', 'real.json'), join(folder, 'new'));
      renameSync(join(folder, 'new'), join(folder, 'mizu.config.json'));
    },
    () => writeFileSync(join(folder, 'second', 'real.json'), '{ "drain_ms": 3 }'),
  ];
  for (const [index, change] of changes.entries()) {
    const accepted = next();
    change();
    await accepted;
    assert.equal(source.current().drainMs, index + 1);
  }
});

test('a folder that cannot be watched is told, and the file is still read when that is asked for', () => {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-config-'));
  const path = join(folder, 'mizu.config.json');
  writeFileSync(path, '{}');
  const heard: string[] = [];
  const options = { env: {}, readFile: () => '', parsePrice, now: () => 0 };
  const source = new FileConfig(path, options, {
    onAccepted: ({ revision }) => heard.push(`revision ${revision}`),
    onRefused: ({ message }) => heard.push(message),
    onUnwatched: (error) => heard.push(error instanceof Error && 'code' in error ? String(error.code) : String(error)),
  });
  rmSync(folder, { recursive: true });
  source.startWatching();
  assert.deepEqual(heard, ['ENOENT']);
  source.reload();
  assert.match(heard[1] ?? '', /there is no configuration file/);
  assert.equal(source.current().revision, 1);
  source.close();
});

test('a pipe, or a device, in the place of the file is refused, and stops nothing', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-config-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'mizu.config.json');
  writeFileSync(path, '{}');
  const refused: string[] = [];
  const options = { env: {}, readFile: () => '', parsePrice, now: () => 0 };
  const source = new FileConfig(path, options, {
    onAccepted: () => assert.fail('it is no configuration'),
    onRefused: ({ message }) => refused.push(message),
    onUnwatched: (error) => assert.fail(String(error)),
  });
  for (const make of [() => execFileSync('mkfifo', [path]), () => symlinkSync('/dev/zero', path)]) {
    rmSync(path);
    make();
    source.reload();
    assert.match(refused.splice(0).join(), /is no file, but a pipe or a device/);
    assert.throws(() => source.read(), /is no file/);
    assert.equal(source.current().revision, 1);
  }
});
