/** Child processes of a bench: started, waited for, measured by the operating system, ended. */
import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { LoadResult } from './load.ts';
import type { SocketJob } from './socket-load.ts';

export interface Started {
  readonly process: ChildProcessWithoutNullStreams;
  readonly pid: number;
  /** The number that the process printed after `ready`. */
  readonly port: number;
  /** Lines that it prints after that. */
  line(): Promise<string>;
  stop(): Promise<void>;
}

const HARNESS = import.meta.dirname;

export async function startHarness(file: string, args: readonly string[] = []): Promise<Started> {
  return started(spawn(process.execPath, [join(HARNESS, file), ...args]));
}

export async function started(child: ChildProcessWithoutNullStreams): Promise<Started> {
  const waiting: ((line: string) => void)[] = [];
  const lines: string[] = [];
  let stderr = '';
  child.stderr.on('data', (chunk) => {
    stderr += String(chunk);
  });
  createInterface({ input: child.stdout }).on('line', (line) => {
    const waiter = waiting.shift();
    if (waiter === undefined) lines.push(line);
    else waiter(line);
  });
  const line = (): Promise<string> => {
    const ready = lines.shift();
    return ready === undefined ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve(ready);
  };
  const exit = new Promise<never>((_, reject) => {
    child.once('exit', (code) => reject(new Error(`a bench process ended early (${code}): ${stderr.slice(-2000)}`)));
  });
  exit.catch(() => undefined); // raised where somebody waits for a line
  const first = await Promise.race([line(), exit]);
  const port = Number(/^ready (\d+)/.exec(first)?.[1] ?? Number.NaN);
  return { process: child, pid: child.pid ?? 0, port, line: () => Promise.race([line(), exit]), stop: () => stop(child) };
}

export async function stop(child: ChildProcess, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill(signal);
  await gone;
}

/** A process and those that it started, and they. Linux only. */
export function family(pid: number): number[] {
  const children = readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
  );
  return [pid, ...children.flatMap(family)];
}

/** Processor time of a process and its threads in microseconds, as the kernel counts it. Linux only. */
export function processorMicros(pid: number): number {
  let total = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const [onCpu = '0'] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ');
    total += Number(onCpu) / 1000;
  }
  return total;
}

/** Resident memory in bytes. */
export function residentBytes(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '0';
  return Number(kib) * 1024;
}

/** How many files (and so connections) a process here may have open. Node takes the hard limit when it starts. Linux only. */
export function mostOpenFiles(): number {
  const limit = /^Max open files +\S+ +(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? '1024';
  return limit === 'unlimited' ? Number.POSITIVE_INFINITY : Number(limit);
}

export class Load {
  readonly #started: Started;
  private constructor(startedLoad: Started) {
    this.#started = startedLoad;
  }
  static async start(client: 'load.ts' | 'socket-load.ts' = 'load.ts'): Promise<Load> {
    return new Load(await startHarness(client));
  }
  /** With what failed counted. */
  async try(job: SocketJob): Promise<LoadResult> {
    this.#started.process.stdin.write(`${JSON.stringify(job)}\n`);
    return JSON.parse(await this.#started.line());
  }
  /** Throws when a request failed: a bench of failures measures nothing. */
  async run(job: SocketJob): Promise<LoadResult> {
    const result = await this.try(job);
    if (result.failed > 0) throw new Error(`${result.failed} of ${job.count} requests failed: ${result.firstFailure}`);
    return result;
  }
  stop(): Promise<void> {
    return this.#started.stop();
  }
}
