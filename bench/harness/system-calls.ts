/** System calls of a process and its threads, counted by `strace`, where that is installed. */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** Until `strace` has found all threads. */
const ATTACH_MS = 1_500;

/** How often each was called while `work` ran; undefined where there is no `strace`, or it may not attach. */
export async function callsDuring(pid: number, work: () => Promise<unknown>): Promise<ReadonlyMap<string, number> | undefined> {
  if (spawnSync('strace', ['-V'], { stdio: 'ignore' }).status !== 0) return undefined;
  const folder = mkdtempSync(join(tmpdir(), 'mizu-bench-strace-'));
  const file = join(folder, 'calls');
  try {
    const tracer = spawn('strace', ['-f', '-c', '-U', 'name,calls', '-p', String(pid), '-o', file], { stdio: 'ignore' });
    const ended = new Promise((resolve) => tracer.once('exit', resolve));
    await sleep(ATTACH_MS);
    if (tracer.exitCode !== null) return undefined;
    await work();
    tracer.kill('SIGINT');
    await ended;
    return callsOf(readFileSync(file, 'utf8'));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Of the table that `strace -c` prints. */
export function callsOf(table: string): Map<string, number> {
  const calls = new Map<string, number>();
  for (const line of table.split('\n')) {
    const found = /^\s*(\w+)\s+(\d+)\s*$/.exec(line);
    if (found?.[1] !== undefined && found[1] !== 'total') calls.set(found[1], Number(found[2]));
  }
  return calls;
}
