/** The log of a process on a file that takes no more, and takes some again. */
import assert from 'node:assert/strict';
import { closeSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { standardError } from '../../../src/http/operations/standard-error.ts';
import { smallDisk } from '../../support/small-disk.ts';
import { eventually } from '../../support/test-gateway.ts';

test('F41: lines wait while there is no room, in their order, none twice; beyond 8 MB they are counted, and that is told', async (t) => {
  const disk = smallDisk(t, '32m');
  if (disk === undefined) return;
  const [path, filler] = [join(disk, 'log'), join(disk, 'filler')];
  const file = openSync(path, 'a');
  const listeners = process.listeners('exit');
  const log = standardError(file);
  t.after(() => {
    for (const one of process.listeners('exit')) if (!listeners.includes(one)) process.off('exit', one);
    closeSync(file);
  });
  const read = (): { n?: number; lines?: number }[] =>
    readFileSync(path, 'utf8')
      .split('\n')
      .slice(0, -1)
      .map((line): { n?: number } => JSON.parse(line));
  const say = (n: number, more = ''): void => log.write(`${JSON.stringify({ n, more })}\n`);
  say(0);
  await eventually(() => read().length === 1, 'the first line');
  assert.throws(() => writeFileSync(filler, Buffer.alloc(64 * 1024 * 1024)), /ENOSPC/);
  const COUNT = 2_000;
  for (let n = 1; n <= COUNT; n += 1) {
    say(n, 'x'.repeat(8_192));
    if (n % 100 === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  }
  rmSync(filler);
  // A refused write is tried again a second later; the line behind it tells what is missing.
  await eventually(() => read().length > 100, 'the lines that waited');
  say(COUNT + 1);
  await eventually(() => read().at(-1)?.n === COUNT + 1, 'the line behind them');
  const all = read();
  const numbers = all.flatMap(({ n }) => n ?? []);
  assert.deepEqual(
    numbers,
    [...new Set(numbers)].sort((a, b) => a - b),
  );
  const missing = all.reduce((sum, { lines = 0 }) => sum + lines, 0);
  assert.ok(missing > 500, `${missing} are missing`);
  assert.equal(numbers.length + missing, COUNT + 2);
});
