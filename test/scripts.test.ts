/** The scripts of package.json: what each takes is said by `--help`, and what it does not take ends it with one line. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

const { scripts }: { scripts: Record<string, string> } = JSON.parse(readFileSync('package.json', 'utf8'));
const own = Object.values(scripts).flatMap((command) => /^node ((?:bench|test)\/\S+\.ts)/.exec(command)?.[1] ?? []);

test('every script reads its options strictly', () => {
  assert.ok(own.length >= 8);
  for (const file of own) assert.match(readFileSync(file, 'utf8'), /scriptOptions\(/, file);
});

test('a script says how it is used, and refuses what it does not take in a line and its usage', () => {
  const run = (...args: string[]) => spawnSync(process.execPath, ['test/support/run.ts', ...args], { encoding: 'utf8' });
  const usage = 'usage: npm test -- [PART …] [--suite fast|browser|examples|linear|postgres|processes]\n';
  const help = run('--help');
  assert.deepEqual([help.status, help.stdout, help.stderr], [0, usage, '']);
  const unknown = run('--nonsense');
  assert.deepEqual([unknown.status, unknown.stdout], [2, '']);
  assert.match(unknown.stderr, /^Unknown option '--nonsense'.*\nusage: npm test /);
  const nothing = run('no-such-part');
  assert.deepEqual([nothing.status, nothing.stderr], [2, `no test file of the suite fast matches no-such-part\n${usage}`]);
});
