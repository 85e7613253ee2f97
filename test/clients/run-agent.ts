/** Runs an installed agent as its own process, in the task's home and folder, and collects what it prints. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { AGENTS, commandOf, isInstalled } from './agents.ts';
import type { Setup, Task } from './setups.ts';

const ROOT = process.env['MIZU_CLIENTS'] ?? join(tmpdir(), 'mizu-clients');
/** An agent starts in seconds, and in minutes on a machine that others use. */
const TIMEOUT_MS = 300_000;

/** Why the setup cannot be run here; false when it can. */
export function missing({ agent: name }: Setup): string | false {
  const agent = AGENTS.get(name);
  if (agent !== undefined && isInstalled(ROOT, agent)) return false;
  return `${name} is not installed in ${ROOT} (node test/clients/install.ts)`;
}

export interface Ran {
  readonly code: number | null;
  readonly text: string;
}

export async function run(setup: Setup, task: Task): Promise<Ran> {
  const agent = AGENTS.get(setup.agent);
  assert.ok(agent !== undefined);
  const { args, env } = setup.prepare(task);
  const [command, ...first] = commandOf(ROOT, agent);
  const child = spawn(command, [...first, ...args], {
    cwd: task.work,
    env: {
      PATH: `${dirname(process.execPath)}${delimiter}${process.env['PATH'] ?? ''}`,
      HOME: task.home,
      NO_COLOR: '1',
      TERM: 'dumb',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const timer = setTimeout(() => child.kill('SIGKILL'), TIMEOUT_MS);
  const chunks: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  clearTimeout(timer);
  return { code, text: Buffer.concat(chunks).toString() };
}
