/**
 * Runs test files with Node's own runner, and runs what failed once more by itself: a test that fails again is a failure, one
 * that passes alone met a busy machine or another test, which is printed and not a failure. `MIZU_AGAIN=0` runs nothing twice.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Report } from './ledger.ts';

/** As the runner prints them, in its order. */
const COUNTS = ['tests', 'suites', 'pass', 'fail', 'cancelled', 'skipped', 'todo'] as const;
/** A change that breaks more files than these is no noise: nothing is run again. */
const MOST_AGAIN = 5;

/** Leaders of the groups that run: they do not hear what ends this process. */
const groups = new Set<number>();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1));
process.once('exit', () => {
  for (const leader of groups) process.kill(-leader, 'SIGKILL');
});

export interface Running {
  /** No test takes as long, on however busy a machine: one that waits for ever fails by name. Milliseconds. */
  readonly patience: number;
  /**
   * No process takes as long for its files: one that does not end is killed with all that it started. Node's runner bounds tests
   * alone, and waits for ever for a loop that never yields and for a handle that nobody closed. Milliseconds.
   */
  readonly limit: number;
  readonly env?: Readonly<Record<string, string>>;
}

export interface Result {
  readonly code: number;
  readonly reports: readonly Report[];
  readonly counts: ReadonlyMap<string, number>;
  /** Files with a failed test, or all of them where the process died before it named one. */
  readonly failedFiles: readonly string[];
  /** What was printed of its failures. */
  readonly printed: readonly string[];
}

/** What several runs came to. */
export class Tally {
  readonly reports: Report[] = [];
  readonly #counts = new Map<string, number>(COUNTS.map((name) => [name, 0]));
  readonly #failed = new Set<string>();
  readonly #printed = new Set<string>();
  #code = 0;

  add({ code, reports, counts, failedFiles, printed }: Result): void {
    this.reports.push(...reports);
    for (const [name, count] of counts) this.#counts.set(name, (this.#counts.get(name) ?? 0) + count);
    for (const file of failedFiles) this.#failed.add(file);
    for (const line of printed) this.#printed.add(line);
    this.#code = Math.max(this.#code, code);
  }

  /** Runs failed files again, prints the summary and gives the exit code. */
  async finish(running: Running): Promise<number> {
    const again = await this.#again(running);
    const skipped = new Map<string, number>();
    for (const { skipped: reason } of this.reports) if (reason !== undefined) skipped.set(reason, (skipped.get(reason) ?? 0) + 1);
    for (const [reason, count] of skipped) console.log(`skipped ${count}: ${reason}`);
    for (const [name, count] of this.#counts) console.log(`ℹ ${name} ${count}`);
    if (again.length > 0) console.log(`ℹ failed once, then passed alone: ${again.join(' ')}`);
    console.log(`ℹ duration_ms ${Math.round(performance.now())}`);
    return this.#code;
  }

  async #again(running: Running): Promise<readonly string[]> {
    const files = [...this.#failed];
    if (files.length === 0 || files.length > MOST_AGAIN || process.env['MIZU_AGAIN'] === '0') return [];
    console.log(`again, each alone: ${files.join(' ')}`);
    const results: Result[] = [];
    // What was said of a failure is not said twice: its name will do.
    const isNew = (line: string): boolean => line.startsWith('✖') || !this.#printed.has(line);
    for (const file of files) results.push(await runFiles([file], running, isNew));
    // A test that names a known failure counts as shown where it passed in the end.
    for (const { reports } of results) this.reports.push(...reports.filter(({ passed }) => passed));
    this.#code = Math.max(...results.map(({ code }) => code));
    return this.#code === 0 ? files : [];
  }
}

/** Runs each share of the files in a process of its own, so many at a time, and prints what it came to. Gives the exit code. */
export async function runShares(shares: Iterable<readonly string[]>, hands: number, running: Running): Promise<[number, Tally]> {
  const tally = new Tally();
  // One iterator for all hands: each takes the next share when it is done with one.
  const waiting = [...shares].values();
  await Promise.all(
    Array.from({ length: hands }, async () => {
      for (const share of waiting) tally.add(await runFiles(share, running));
    }),
  );
  return [await tally.finish(running), tally];
}

/** Files that share a process share what was loaded. Prints failures as they come, of their lines those that are `isNew`. */
export async function runFiles(
  files: readonly string[],
  { patience, limit, env }: Running,
  isNew: (line: string) => boolean = () => true,
): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-test-'));
  const report = join(folder, 'report.tap');
  const underWay = join(folder, 'under-way');
  const options = [
    '--test-isolation=none',
    '--import=./test/support/seeded.ts',
    ...(env?.['MIZU_COSTS'] === undefined ? [] : ['--import=./test/support/costs.ts']),
    `--test-timeout=${patience}`,
    ...['--test-reporter=./test/support/failures.ts', '--test-reporter-destination=stdout'],
    ...['--test-reporter=tap', `--test-reporter-destination=${report}`],
  ];
  const child = spawn(process.execPath, ['--test', ...options, ...files], {
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group of its own, so that what it started ends with it.
    detached: true,
    // What was compiled is kept from one process to the next, as `npm start` keeps it.
    env: {
      ...process.env,
      MIZU_UNDER_WAY: underWay,
      NODE_COMPILE_CACHE: fileURLToPath(new URL('../../node_modules/.cache/mizu', import.meta.url)),
      ...env,
    },
  });
  const ended = once(child, 'exit');
  if (child.pid !== undefined) groups.add(child.pid);
  const lines = createInterface({ input: child.stdout });
  let isTooLong = false;
  const bound = setTimeout(() => {
    isTooLong = true;
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    // What left the group may hold the pipes open.
    lines.close();
    for (const pipe of [child.stdout, child.stderr]) pipe.destroy();
  }, limit);
  // Libraries write warnings of what the tests do to them on purpose: they are worth reading only beside a failure.
  const warnings: Buffer[] = [];
  child.stderr.on('data', (piece: Buffer) => warnings.push(piece));
  const printed: string[] = [];
  for await (const line of lines) {
    if (!isNew(line)) continue;
    console.log(line);
    printed.push(line);
  }
  const [exit] = await ended;
  clearTimeout(bound);
  if (child.pid !== undefined) groups.delete(child.pid);
  // A process that died early has written none.
  const tap = existsSync(report) ? readFileSync(report, 'utf8') : '';
  const last = existsSync(underWay) ? readFileSync(underWay, 'utf8') : 'none of them';
  rmSync(folder, { recursive: true });
  // The counts come last: without them the process ended before its tests did, whatever its code says.
  const isWhole = /^# tests \d+$/m.test(tap);
  const code = typeof exit === 'number' && isWhole ? exit : 1;
  if (code !== 0) process.stderr.write(Buffer.concat(warnings));
  if (!isWhole) {
    const what = isTooLong ? `the process was killed after ${limit / 1_000} s` : 'the process ended before its tests did';
    console.error(`${what}, in or behind: ${last} (${files.join(' ')})`);
  }
  const failedFiles = code === 0 ? [] : isWhole ? failedIn(tap, files) : files;
  return { code, reports: readReports(tap), counts: readCounts(tap), failedFiles, printed };
}

function readReports(tap: string): Report[] {
  return [...tap.matchAll(/^\s*(not )?ok \d+ - (.*?)(?: # (SKIP|TODO) ?(.*))?$/gm)].map(
    ([, not, title = '', directive, reason = '']) => ({
      title,
      passed: not === undefined && directive === undefined,
      ...(directive === 'SKIP' && { skipped: reason }),
    }),
  );
}

function readCounts(tap: string): Map<string, number> {
  const found = [...tap.matchAll(/^# (\w+) ([\d.]+)$/gm)].map(([, name = '', count]) => [name, Number(count)] as const);
  return new Map(found.filter(([name]) => COUNTS.some((one) => one === name)));
}

/** All of them where a failure has no place in one: then nobody knows which. */
function failedIn(tap: string, files: readonly string[]): readonly string[] {
  const failed = new Set<string>();
  // A suite comes behind what is in it, indented less; its own place may be a helper's that makes suites.
  let inside: string[] = [];
  for (const block of tap.split(/^(?= *(?:not )?ok )/m)) {
    const [head, indent, not] = /^( *)(not )?ok /.exec(block) ?? [];
    if (head === undefined) continue;
    if (not !== undefined) inside.push(relative(process.cwd(), /^ +location: '(.*?):\d+:\d+'$/m.exec(block)?.[1] ?? ''));
    if (indent !== '') continue;
    const places = inside.filter((place) => files.includes(place));
    if (not !== undefined && places.length === 0) return files;
    for (const place of places) failed.add(place);
    inside = [];
  }
  return failed.size > 0 ? [...failed] : files;
}
