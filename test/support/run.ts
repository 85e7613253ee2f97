/**
 * The test command: runs every `*.test.ts` of the fast suite, or of the slow one that `--suite` names; only those whose path
 * holds an argument, where there are any. After a whole run of the fast suite the ledger of known failures is checked against
 * what ran and passed. `--slowest` tells at the end what took most of the processor. Usage: npm test [-- streams codecs/chat]
 */
import { globSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { complaints, readLedger } from './ledger.ts';
import { type Running, runShares } from './runner.ts';
import { isWhole } from './sampled.ts';
import { misused, scriptOptions } from './script-options.ts';
import { dearest } from './slowest.ts';

/** Shares of the fast suite. A process keeps much of what its tests have made, so it gets a share that it can hold. */
const SHARES = 8;

interface Suite extends Running {
  readonly files: readonly string[];
  /** Processes at a time. */
  readonly hands: number;
}

const slow = (files: readonly string[], hands: number, env: Readonly<Record<string, string>> = {}): Suite => ({
  files,
  hands,
  patience: 600_000,
  limit: 900_000,
  env,
});
/**
 * Files of the fast suite share processes: to load the product anew for each of two hundred files took half of the suite's time.
 * A slow test has processes of its own to watch, and gets one for itself.
 */
const SUITES: Readonly<Record<string, Suite>> = {
  // Two hands more than the cores of a small machine, since tests of silence wait.
  fast: { files: ['test/**/*.test.ts'], hands: 4, patience: 300_000, limit: isWhole ? 1_100_000 : 600_000 },
  browser: slow(['test/slow/browser/*.test.ts'], 2),
  examples: slow(['test/slow/{examples,documents}.test.ts'], 1),
  linear: { ...slow(['test/slow/linear/*.test.ts'], 2), limit: 1_400_000 },
  steps: slow(['test/slow/steps.test.ts'], 1),
  // Its tests share one database server.
  postgres: slow(
    [
      'test/store/**/*.test.ts',
      'test/{admin/month,http/{rotated-secret,operations/retention}}.test.ts',
      'test/slow/{postgres/*,processes/upgrade}.test.ts',
    ],
    1,
    { MIZU_STORES: 'postgres' },
  ),
  processes: slow(['test/slow/processes/*.test.ts'], 2),
};

const USAGE = `npm test -- [PART …] [--slowest] [--suite ${Object.keys(SUITES).join('|')}]`;
const { values, positionals: wanted } = scriptOptions(USAGE, {
  options: { suite: { type: 'string', default: 'fast' }, slowest: { type: 'boolean', default: false } },
  allowPositionals: true,
});
const suite = SUITES[values.suite] ?? misused(USAGE, `no suite is called ${values.suite}`);
const isFast = values.suite === 'fast';
const files = suite.files
  .flatMap((pattern) => globSync(pattern))
  .filter((file) => !isFast || !file.includes('test/slow/'))
  .filter((file) => wanted.length === 0 || wanted.some((part) => file.includes(part)))
  .sort();
if (files.length === 0) misused(USAGE, `no test file of the suite ${values.suite} matches ${wanted.join(' ')}`);

const shares = isFast ? dealt(files, SHARES).filter((share) => share.length > 0) : files.map((file) => [file]);
const folder = mkdtempSync(join(tmpdir(), 'mizu-costs-'));
const costs = join(folder, 'costs');
const env = { ...suite.env, ...(values.slowest && { MIZU_COSTS: costs }) };
const [code, { reports }] = await runShares(shares, suite.hands, { ...suite, env });
if (values.slowest) for (const line of dearest(costs)) console.log(line);
rmSync(folder, { recursive: true });
const found = isFast && wanted.length === 0 ? complaints(readLedger(), reports) : [];
for (const complaint of found) console.error(`known failures: ${complaint}`);
process.exitCode = Math.max(code, found.length > 0 ? 1 : 0);

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
