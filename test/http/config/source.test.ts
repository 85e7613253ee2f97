/** A configuration file that is followed while the gateway runs. Signals and real edits: `test/slow/processes/workers.test.ts`. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { FileConfig } from '../../../src/http/config/source.ts';
import { parsePrice } from '../../../src/store/prices.ts';

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
