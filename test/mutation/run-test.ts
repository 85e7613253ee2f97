/** Runs one test file in a process of its own, which ends with the first failure. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

export interface Ran {
  readonly passed: boolean;
  /** Of the processor, where it passed: how busy the machine is makes no difference. */
  readonly ms: number;
  readonly isTimeout: boolean;
  /** The title of the test that failed, or the end of what the process wrote to stderr. */
  readonly failure?: string;
}

const HERE = fileURLToPath(new URL('.', import.meta.url));
const ROOT = fileURLToPath(new URL('../../', import.meta.url));

const running = new Set<number | undefined>();
// They are no part of the group that Ctrl+C reaches.
process.on('exit', () => {
  for (const pid of running) end(pid);
});

/**
 * `usual`: the milliseconds that it takes. Twice the time on the processor, which is what a loop takes, or much more by the
 * clock, which is what somebody takes who waits for ever, ends the process and what it started, and counts as a failure.
 */
export async function runTest(test: string, usual: number, env: Readonly<Record<string, string>> = {}): Promise<Ran> {
  const began = performance.now();
  const patience = 60_000 + 10 * usual;
  const child = spawn(
    '/bin/sh',
    [
      ...['-c', 'ulimit -t "$0" && exec "$@"', String(10 + Math.ceil((2 * usual) / 1000)), process.execPath],
      ...['--test', '--test-isolation=none', '--import=./test/support/seeded.ts', `--test-timeout=${patience}`],
      ...[`--test-reporter=${join(HERE, 'first-failure.ts')}`, '--test-reporter-destination=stdout', test],
    ],
    {
      cwd: ROOT,
      stdio: ['ignore', 'pipe', 'pipe'],
      // A group of its own: what a killed test has started goes with it.
      detached: true,
      env: { ...process.env, NODE_COMPILE_CACHE: join(ROOT, 'node_modules/.cache/mizu'), ...env },
    },
  );
  const output = { out: '', error: '' };
  child.stdout.on('data', (piece: Buffer) => {
    output.out += piece.toString();
  });
  child.stderr.on('data', (piece: Buffer) => {
    output.error = `${output.error}${piece.toString()}`.slice(-400);
  });
  const ended = once(child, 'exit');
  running.add(child.pid);
  child.once('exit', () => running.delete(child.pid));
  const watch = (): void => {
    // What it waited for a processor is no time of its own; and it may have ended while this process waited for one.
    const left = patience + waitedOf(child.pid) - (performance.now() - began);
    if (left > 0) timer = setTimeout(watch, left);
    else setImmediate(() => running.has(child.pid) && end(child.pid));
  };
  let timer = setTimeout(watch, patience);
  const [code, signal] = await ended;
  clearTimeout(timer);
  end(child.pid);
  const isTimeout = signal === 'SIGXCPU' || signal === 'SIGKILL';
  const passed = code === 0;
  // Tests may have printed before it.
  const ms = passed ? Number(/(\d+)\s*$/.exec(output.out)?.[1] ?? usual) : Math.round(performance.now() - began);
  return passed ? { passed, ms, isTimeout } : { passed, ms, isTimeout, failure: (output.out || output.error).trim().slice(-200) };
}

let written = 0;

/** The same with another text in the place of a source file, for the process and for what it starts. */
export async function runMutant(file: string, source: string, test: string, usual: number): Promise<Ran> {
  const mutant = join(tmpdir(), `mizu-mutant-${process.pid}-${written++}.json`);
  writeFileSync(mutant, JSON.stringify({ url: pathToFileURL(join(ROOT, file)), source }));
  const ran = await runTest(test, usual, {
    MIZU_MUTANT: mutant,
    NODE_OPTIONS: `--import=${new URL('./load.ts', import.meta.url)}`,
  });
  rmSync(mutant);
  return ran;
}

/** Milliseconds for which a process was ready to run and another ran, as far as the system says. */
function waitedOf(pid: number | undefined): number {
  const file = `/proc/${pid}/schedstat`;
  return existsSync(file) ? Number(readFileSync(file, 'utf8').split(' ')[1]) / 1e6 : 0;
}

/** The process and all that it started and left behind. */
function end(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // Nobody is left of it.
  }
}
