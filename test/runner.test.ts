/** The runner of the suites: what fails twice is a failure, what fails beside others alone is said and is none. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { test } from 'node:test';

const RUNNER = pathToFileURL('test/support/runner.ts').href;
const HEAD =
  "import assert from 'node:assert/strict'; import { existsSync, writeFileSync } from 'node:fs'; import { test } from 'node:test';";

/** Runs test files of these texts in one process each round, as the suites do. */
function runTexts(
  texts: Readonly<Record<string, string>>,
  env: Readonly<Record<string, string>> = {},
  helpers: Readonly<Record<string, string>> = {},
  limit = 60_000,
) {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-runner-'));
  const files = Object.entries(texts).map(([name, text]) => {
    const file = relative(process.cwd(), join(folder, `${name}.test.ts`));
    writeFileSync(file, HEAD + text.replaceAll('FOLDER', JSON.stringify(folder)));
    return file;
  });
  for (const [name, text] of Object.entries(helpers)) writeFileSync(join(folder, `${name}.ts`), text);
  const script = `import { runFiles, Tally } from ${JSON.stringify(RUNNER)};
    const running = { patience: 30_000, limit: ${limit} };
    const tally = new Tally();
    tally.add(await runFiles(${JSON.stringify(files)}, running));
    process.exitCode = await tally.finish(running);`;
  // Else the inner runner takes itself for a file of the outer one.
  const { NODE_TEST_CONTEXT: _, ...outer } = process.env;
  const ended = spawnSync(process.execPath, ['--input-type=module-typescript', '-e', script], {
    encoding: 'utf8',
    env: { ...outer, ...env },
  });
  rmSync(folder, { recursive: true });
  return { code: ended.status, output: ended.stdout, errors: ended.stderr };
}

const GOOD = "test('is good', () => {});";
const BAD = "test('is bad', () => assert.equal(1, 2));";
/** Fails the first time that it runs. */
const ONCE =
  "const mark = FOLDER + '/ran'; test('fails once', () => { const ran = existsSync(mark); writeFileSync(mark, ''); assert.ok(ran); });";
/** Ends its process the first time, before any test has failed. */
const DIES =
  "const mark = FOLDER + '/ran'; test('dies', () => { if (existsSync(mark)) return; writeFileSync(mark, ''); process.exit(3); });";

test('what passes runs once', () => {
  const { code, output, errors } = runTexts({ good: GOOD });
  assert.equal(code, 0, errors);
  assert.match(output, /ℹ tests 1\n/);
  assert.doesNotMatch(output, /again|failed once/);
});

test('what fails again alone fails, beside what does not', () => {
  const { code, output } = runTexts({ bad: BAD, once: ONCE, good: GOOD });
  assert.equal(code, 1);
  assert.match(output, /again, each alone: \S*bad\.test\.ts \S*once\.test\.ts\n/);
  assert.doesNotMatch(output, /failed once, then passed/);
  const counted = (word: RegExp): number => output.match(word)?.length ?? 0;
  assert.deepEqual([counted(/✖ is bad/g), counted(/1 !== 2/g)], [2, 1], 'named again, and told once');
});

test('what passes alone is named, and the run is good', () => {
  const { code, output } = runTexts({ once: ONCE, good: GOOD });
  assert.match(output, /✖ fails once/);
  assert.match(output, /ℹ failed once, then passed alone: \S*once\.test\.ts\n/);
  assert.equal(code, 0);
  assert.equal(runTexts({ once: ONCE }, { MIZU_AGAIN: '0' }).code, 1);
});

test('a test in a suite that a helper makes is run again with its file', () => {
  const suites = "import { suite as made } from 'node:test'; export const suite = (body) => made('a suite', body);";
  const inSuite = `import { suite } from './helper.ts'; suite(() => { ${ONCE} }); ${GOOD}`;
  const { code, output } = runTexts({ inSuite, good: GOOD }, {}, { helper: suites });
  assert.match(output, /again, each alone: \S*inSuite\.test\.ts\n/);
  assert.equal(code, 0);
});

test('a process that ended early, even as if all were well, has all its files run again, also those that it did not reach', () => {
  const quits = DIES.replace('process.exit(3)', 'process.exit(0)');
  const first = runTexts({ aQuits: quits, good: GOOD });
  assert.match(first.output, /again, each alone: \S*aQuits\.test\.ts \S*good\.test\.ts\n/);
  assert.equal(first.code, 0);
  assert.equal(runTexts({ aQuits: quits, good: GOOD }, { MIZU_AGAIN: '0' }).code, 1);
  const unreached = runTexts({ aOnce: ONCE, bDies: DIES.replaceAll('/ran', '/died'), cBad: BAD });
  assert.match(unreached.output, /again, each alone: \S*aOnce\.test\.ts \S*bDies\.test\.ts \S*cBad\.test\.ts\n/);
  assert.equal(unreached.code, 1);
});

test('a process that died has all its files run again', () => {
  const { code, output } = runTexts({ dies: DIES, good: GOOD });
  assert.match(output, /again, each alone: \S*dies\.test\.ts \S*good\.test\.ts\n/);
  assert.equal(code, 0);
});

test('a change that breaks many files is not run again', () => {
  const texts = Object.fromEntries(Array.from({ length: 6 }, (_, index) => [`bad${index}`, BAD]));
  const { code, output } = runTexts(texts);
  assert.equal(code, 1);
  assert.doesNotMatch(output, /again/);
});

test('a file that never ends is killed with what it started, named, and run again alone', () => {
  const started = "import { spawn } from 'node:child_process'; spawn('sleep', ['600'], { stdio: 'inherit' });";
  const hangs = `const mark = FOLDER + '/ran'; const ran = existsSync(mark); writeFileSync(mark, ''); ${GOOD}`;
  const left = runTexts({ left: `${hangs} if (!ran) setInterval(() => {}, 1000);${started}` }, {}, {}, 1_500);
  assert.match(left.errors, /the process was killed after 1.5 s, in or behind: is good \(\S*left\.test\.ts\)/);
  assert.equal(left.code, 1, 'what it started holds it the second time, too');
  const busy = runTexts(
    { busy: `${hangs} test('is busy', async () => { await new Promise(setImmediate); while (!ran); });` },
    {},
    {},
    1_500,
  );
  assert.match(busy.output, /ℹ failed once, then passed alone: \S*busy\.test\.ts\n/);
  assert.equal(busy.code, 0);
  assert.match(busy.errors, /, in or behind: is busy \(/);
});
