/** The built-in demonstration as a real process: its own store, simulated upstreams, a key with credit. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { TestContext } from 'node:test';

export const MAIN = resolve('src/main.ts');
const KEY = 'sk-mizu-demo';

export interface Started {
  readonly child: ChildProcess;
  readonly url: string;
  readonly errors: () => string;
}

export function folderFor(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-faults-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export interface StartOptions {
  /** How many files the process may have open. */
  readonly files?: number;
  /** The file of its log. Default: a pipe to us. */
  readonly log?: string;
}

/** The demonstration as a process in `folder`; killed when the test is over. */
export async function start(t: TestContext, folder: string, { files, log }: StartOptions = {}): Promise<Started> {
  const script = `${files === undefined ? '' : `ulimit -n ${files}; `}exec "$0" "$1" serve${log === undefined ? '' : ` 2>'${log}'`}`;
  const child = spawn('/bin/sh', ['-c', script, process.execPath, MAIN], {
    cwd: folder,
    env: { PATH: process.env['PATH'] ?? '', PORT: '0' },
    stdio: 'pipe',
  });
  t.after(() => child.kill('SIGKILL'));
  let errors = '';
  child.stderr?.on('data', (data: Buffer) => {
    errors += data.toString();
  });
  child.stderr?.on('error', () => undefined);
  let text = '';
  for await (const data of child.stdout?.iterator({ destroyOnReturn: false }) ?? []) {
    text += String(data);
    const url = /Mizu listens on (http:\/\/[\d.]+:\d+)/.exec(text)?.[1];
    if (url !== undefined) return { child, url, errors: () => errors };
  }
  throw new Error(`it never listened: ${errors}`);
}

export const ask = (url: string, stream: boolean, model = 'demo-messages'): Promise<Response> =>
  fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}` },
    body: JSON.stringify({ model, stream, max_tokens: 30, messages: [{ role: 'user', content: 'What is a gateway?' }] }),
  });

export function verify(folder: string): { code: number | null; out: string } {
  writeFileSync(join(folder, 'verify.json'), JSON.stringify({ store: { path: '.mizu-demo' }, channels: [], models: {} }));
  const done = spawnSync(process.execPath, [MAIN, 'ledger', 'verify', '--config', 'verify.json'], {
    cwd: folder,
    encoding: 'utf8',
    timeout: 30_000,
  });
  return { code: done.status, out: done.stdout + done.stderr };
}
