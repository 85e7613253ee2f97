/** The scripts of package.json: what each takes is said by `--help`, and what it does not take ends it with one line. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { test } from 'node:test';
import { SUITES, suitesFor } from './support/suites.ts';

const { scripts }: { scripts: Record<string, string> } = JSON.parse(readFileSync('package.json', 'utf8'));
const own = Object.values(scripts).flatMap((command) => /^node ((?:bench|test)\/\S+\.ts)/.exec(command)?.[1] ?? []);

test('every script of package.json stands in CONTRIBUTING.md, or is for operators', () => {
  const text = readFileSync('CONTRIBUTING.md', 'utf8');
  const own = ['start', 'mizu', 'prepack'];
  const untold = Object.keys(scripts).filter((name) => !own.includes(name) && !new RegExp(`[ \`]${name}[ \`]`).test(text));
  assert.deepEqual(untold, []);
});

test('every script reads its options strictly', () => {
  assert.ok(own.length >= 8);
  for (const file of own) assert.match(readFileSync(file, 'utf8'), /scriptOptions\(/, file);
});

test('a script says how it is used, and refuses what it does not take in a line and its usage', () => {
  const run = (...args: string[]) => spawnSync(process.execPath, ['test/support/run.ts', ...args], { encoding: 'utf8' });
  const usage = 'usage: npm test -- [PART …] [--slowest] [--suite fast|browser|examples|linear|steps|postgres|processes]\n';
  const help = run('--help');
  assert.deepEqual([help.status, help.stdout, help.stderr], [0, usage, '']);
  const unknown = run('--nonsense');
  assert.deepEqual([unknown.status, unknown.stdout], [2, '']);
  assert.match(unknown.stderr, /^Unknown option '--nonsense'.*\nusage: npm test /);
  const nothing = run('no-such-part');
  assert.deepEqual([nothing.status, nothing.stderr], [2, `no test file of the suite fast matches no-such-part\n${usage}`]);
});

test('what `npm test` samples is run whole by a command of the gate', () => {
  const files = globSync('test/**/*.ts').map((file) => [file, readFileSync(file, 'utf8')] as const);
  const importing = (module: string): readonly string[] =>
    files.filter(([, text]) => new RegExp(`/${basename(module)}';$`, 'm').test(text)).map(([file]) => file);
  const direct = importing('test/support/sampled.ts');
  const sampled = [...direct, ...direct.filter((file) => file.includes('/support/')).flatMap(importing)];
  const whole = Object.values(scripts).flatMap((command) =>
    [...command.matchAll(/MIZU_(?:CASES|FORMS)=\S+ node \S+ ([^&|;]+)/g)].flatMap(([, parts = '']) => parts.trim().split(' ')),
  );
  const tests = sampled.filter((file) => file.endsWith('.test.ts') && !file.includes('/slow/'));
  assert.ok(tests.length > 15);
  for (const file of tests)
    assert.ok(
      whole.some((part) => file.includes(part)),
      `${file}: in test:cases or test:clouds`,
    );
});

test('what a change needs knows every suite of the gate, and only paths that exist', () => {
  const gate = readFileSync('.ci/run', 'utf8');
  const suites = [...gate.matchAll(/\bnpm (?:run [\w:]+(?: -- guard)?|test)/g)].map(([command]) => command);
  const known = Object.keys(SUITES).map((command) => command.replace(/ -- --kills.*/, ''));
  assert.ok(suites.length > 10);
  for (const suite of suites) assert.ok(known.includes(suite), suite);
  for (const path of Object.values(SUITES).flat()) assert.ok(globSync(`${path}*`).length > 0 || path === '', path);
});

test('a change of the stores is run on PostgreSQL and killed, one of a document is read', () => {
  assert.deepEqual(suitesFor(['docs/money.md']), ['npm run check', 'npm test', 'npm run test:examples']);
  const store = suitesFor(['src/store/lmdb/work.ts']);
  assert.ok(store.includes('npm run test:postgres') && store.some((command) => command.startsWith('npm run test:crash')));
  assert.ok(!store.includes('npm run test:browser'));
});
