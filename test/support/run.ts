/**
 * The test command: runs every `*.test.ts` of the fast suite, or of the slow one that `--suite` names (a folder of `test/slow/`), with Node's
 * own runner; only those whose path holds an argument, where there are any. After a whole run of the fast suite the ledger of known failures is
 * checked against what ran and passed.
 * Usage: npm test [-- streams codecs/chat]
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { misused, scriptOptions } from './script-options.ts';
import { complaints, type Report, readLedger } from './ledger.ts';

/** Processes of the fast suite at a time: one more than the cores of a small machine, since tests of silence wait. */
const HANDS = 3;
/** Shares of the fast suite. A process keeps much of what its tests have made, so it gets a share that it can hold. */
const SHARES = 9;
/** No test of its suite takes as long, on however busy a machine: one that waits for ever fails by name. Milliseconds. */
const PATIENCE = { fast: 300_000, slow: 1_800_000 };
/** As the runner prints them, in its order. */
const COUNTS = ['tests', 'suites', 'pass', 'fail', 'cancelled', 'skipped', 'todo'];

const USAGE = 'npm test -- [PART …] [--suite FOLDER]';
const { values, positionals: wanted } = scriptOptions(USAGE, { options: { suite: { type: 'string' } }, allowPositionals: true });
const isFast = values.suite === undefined;
const files = globSync(isFast ? 'test/**/*.test.ts' : `test/slow/${values.suite}/**/*.test.ts`)
  .filter((file) => !isFast || !file.includes('test/slow/'))
  .filter((file) => wanted.length === 0 || wanted.some((part) => file.includes(part)))
  .sort();

if (files.length === 0) misused(USAGE, `no test file matches ${[values.suite, ...wanted].join(' ').trim()}`);

const folder = mkdtempSync(join(tmpdir(), 'mizu-test-'));
const totals = new Map(COUNTS.map((name) => [name, 0]));
const reports: Report[] = [];
/** Why tests were skipped, and how many. */
const skipped = new Map<string, number>();
const shares = (isFast ? dealt(files, SHARES) : [files]).filter((share) => share.length > 0);
const waiting = shares.entries();
const codes: number[] = [];
// One iterator for all hands: each takes the next share when it is done with one.
await Promise.all(
  Array.from({ length: HANDS }, async () => {
    for (const [index, share] of waiting) codes.push(await runShare(share, index));
  }),
);
rmSync(folder, { recursive: true });

for (const [reason, count] of skipped) console.log(`skipped ${count}: ${reason}`);
for (const [name, count] of totals) console.log(`ℹ ${name} ${count}`);
console.log(`ℹ duration_ms ${Math.round(performance.now())}`);
const found = isFast && wanted.length === 0 ? complaints(readLedger(), reports) : [];
for (const complaint of found) console.error(`known failures: ${complaint}`);
process.exitCode = Math.max(...codes, found.length > 0 ? 1 : 0);

/** The largest file first, each to the hand that holds the fewest bytes: long tests are mostly long files. */
function dealt(files: readonly string[], hands: number): string[][] {
  const dealt = Array.from({ length: hands }, () => ({ files: [] as string[], bytes: 0 }));
  const sized = files.map((file) => ({ file, bytes: statSync(file).size })).sort((a, b) => b.bytes - a.bytes);
  for (const { file, bytes } of sized) {
    const lightest = dealt.reduce((least, hand) => (hand.bytes < least.bytes ? hand : least));
    lightest.files.push(file);
    lightest.bytes += bytes;
  }
  return dealt.map((hand) => hand.files.sort());
}

/**
 * Prints failures as they come, and adds the runner's counts to the totals. Files of the fast suite share a process: to load the product anew for each
 * of two hundred files took half of the suite's time. A slow test has processes of its own to watch, and gets one for itself.
 */
async function runShare(share: readonly string[], index: number): Promise<number> {
  const report = join(folder, `${index}.tap`);
  const options = [
    ...(isFast ? ['--test-isolation=none'] : ['--test-concurrency=2']),
    '--import=./test/support/seeded.ts',
    `--test-timeout=${isFast ? PATIENCE.fast : PATIENCE.slow}`,
    ...['--test-reporter=./test/support/failures.ts', '--test-reporter-destination=stdout'],
    ...['--test-reporter=tap', `--test-reporter-destination=${report}`],
  ];
  const child: ChildProcess = spawn(process.execPath, ['--test', ...options, ...share], {
    stdio: ['ignore', 'pipe', 'pipe'],
    // What was compiled is kept from one process to the next, as `npm start` keeps it.
    env: { ...process.env, NODE_COMPILE_CACHE: fileURLToPath(new URL('../../node_modules/.cache/mizu', import.meta.url)) },
  });
  const ended = once(child, 'close');
  if (child.stdout === null || child.stderr === null) throw new Error('the runner has no output');
  // Libraries write warnings of what the tests do to them on purpose: they are worth reading only beside a failure.
  const warnings: Buffer[] = [];
  child.stderr.on('data', (piece: Buffer) => warnings.push(piece));
  for await (const line of createInterface({ input: child.stdout })) console.log(line);
  const [code] = await ended;
  if (code !== 0) process.stderr.write(Buffer.concat(warnings));
  const tap = readFileSync(report, 'utf8');
  reports.push(...readReports(tap));
  for (const [, name = '', count] of tap.matchAll(/^# (\w+) ([\d.]+)$/gm)) {
    const total = totals.get(name);
    if (total !== undefined) totals.set(name, total + Number(count));
  }
  return typeof code === 'number' ? code : 1;
}

function readReports(tap: string): Report[] {
  return tap.split('\n').flatMap((line) => {
    const [, not, title, directive, reason = ''] = /^\s*(not )?ok \d+ - (.*?)(?: # (SKIP|TODO) ?(.*))?$/.exec(line) ?? [];
    if (directive === 'SKIP') skipped.set(reason, (skipped.get(reason) ?? 0) + 1);
    return title === undefined ? [] : [{ title, passed: not === undefined, skipped: directive !== undefined }];
  });
}
