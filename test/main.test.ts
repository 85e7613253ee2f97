/**
 * The command line as a process: the demonstration, how it ends, and what it prints where. An operator's day:
 * command-line.test.ts.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { Script } from 'node:vm';
import { freePort } from './support/processes.ts';

const MAIN = resolve('src/main.ts');
const folder = mkdtempSync(join(tmpdir(), 'mizu-main-'));
test.after(() => rmSync(folder, { recursive: true, force: true }));

test('a Node that runs no TypeScript is told what to do', () => {
  const pretend = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.19.0' } });`;
  const early = `data:text/javascript,${encodeURIComponent(pretend)}`;
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--import', early, MAIN, 'serve'], { encoding: 'utf8' });
  assert.deepEqual([status, stdout], [1, '']);
  assert.match(stderr, /^mizu: this is Node 20\.19\.0, and Mizu needs Node 24 or newer\. .*npm start.*\n$/);
  // Such a Node reads the entry as a script, and only where no file names it a module.
  assert.doesNotThrow(() => new Script(readFileSync(MAIN, 'utf8')));
  assert.equal('type' in JSON.parse(readFileSync(resolve('src/package.json'), 'utf8')), false);
});

const environment = (more: Record<string, string> = {}) => ({ PATH: process.env['PATH'] ?? '', ...more });

function run(args: readonly string[], env: Record<string, string> = {}): { code: number | null; out: string; err: string } {
  const done = spawnSync(process.execPath, [MAIN, ...args], {
    cwd: folder,
    env: environment(env),
    encoding: 'utf8',
    timeout: 20_000,
  });
  return { code: done.status, out: done.stdout, err: done.stderr };
}

/** Resolves with what the process printed once it listens. */
async function listening(child: ChildProcess): Promise<{ url: string; text: string }> {
  let text = '';
  let errors = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    errors += chunk.toString();
  });
  for await (const chunk of child.stdout ?? []) {
    text += String(chunk);
    const url = /Mizu listens on (http:\/\/[\d.]+:\d+)/.exec(text)?.[1];
    if (url !== undefined) return { url, text };
  }
  throw new Error(`it never listened: ${errors}`);
}

test('a port that is taken, and an address that is not here, are named without a stack', async (t) => {
  const holder = createServer().listen(0, '127.0.0.1');
  t.after(() => holder.close());
  await once(holder, 'listening');
  const address = holder.address();
  assert.ok(typeof address === 'object' && address !== null);
  const taken = run(['serve'], { PORT: String(address.port) });
  assert.deepEqual([taken.code, taken.err.trimEnd().split('\n').length], [1, 1], taken.err);
  assert.match(
    taken.err,
    /^mizu: listen EADDRINUSE: .*has port \d+ of 127\.0\.0\.1, which is for clients\. Stop it, or set listen\.port .*PORT/m,
  );
  const elsewhere = run(['serve', '--demo'], { HOST: '192.0.2.1', PORT: '0' });
  assert.match(elsewhere.err, /^mizu: listen EADDRNOTAVAIL: .*192\.0\.2\.1$/m);
});

test('F39: the demonstration starts without a file, answers, and ends cleanly with a stream open', async (t) => {
  const child = spawn(process.execPath, [MAIN, 'serve'], { cwd: folder, env: environment({ PORT: '0' }), stdio: 'pipe' });
  t.after(() => child.kill('SIGKILL'));
  const { url, text } = await listening(child);
  assert.match(text, /curl -N /);
  for (const model of ['demo-chat', 'demo-responses', 'demo-messages', 'demo-gemini']) {
    const short = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: 'Bearer sk-mizu-demo' },
      body: JSON.stringify({ model, max_tokens: 5, messages: [{ role: 'user', content: 'What is a gateway?' }] }),
    });
    const { choices, usage } = JSON.parse(await short.text());
    assert.deepEqual(
      [model, choices?.[0]?.finish_reason, usage?.completion_tokens],
      [model, 'length', model === 'demo-responses' ? 16 : 5],
    );
  }
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: 'Bearer sk-mizu-demo' },
    body: JSON.stringify({ model: 'demo-messages', stream: true, messages: [{ role: 'user', content: 'What is a gateway?' }] }),
  });
  assert.equal(response.status, 200);
  const closed = once(child, 'exit');
  child.kill('SIGTERM');
  assert.match(await response.text(), /data: \[DONE\]\n\n$/);
  assert.deepEqual(await closed, [0, null]);
});

test('without a file it opens no gateway to a network', () => {
  const { code, err } = run(['serve'], { HOST: '0.0.0.0', PORT: '0' });
  assert.equal(code, 2);
  assert.match(err, /--demo/);
});

test('a verb prints to standard output, what went wrong to standard error, and exits with its code', () => {
  const missing = run(['check', '--config', 'nowhere.json']);
  assert.deepEqual([missing.code, missing.out], [1, ''], missing.err);
  assert.match(missing.err, /nowhere\.json/);
  const help = run(['--help']);
  assert.deepEqual([help.code, help.err], [0, '']);
  assert.match(help.out, /^usage: mizu VERB/);
});

test('a reader that has read enough is told nothing, and who prints to a full disk is', async (t) => {
  // What it prints is more than a pipe holds, so that the end of its reader is noticed while it writes.
  const book = Object.fromEntries(
    Array.from({ length: 2_000 }, (_, n) => [
      `model-${n}`,
      { litellm_provider: 'openai', mode: 'chat', input_cost_per_token: 1e-6, output_cost_per_token: 2e-6 },
    ]),
  );
  const path = join(folder, 'book.json');
  writeFileSync(path, JSON.stringify(book));
  t.after(() => rmSync(path));
  const importing = [MAIN, 'prices', 'import', '--from', 'litellm', path];
  const head = spawn(process.execPath, importing, { env: environment(), stdio: ['ignore', 'pipe', 'pipe'] });
  head.stdout.once('data', () => head.stdout.destroy());
  const [said, [code]] = await Promise.all([text(head.stderr), once(head, 'exit')]);
  assert.deepEqual([code, said], [1, '']);
  if (!existsSync('/dev/full')) return t.skip('this machine has no /dev/full');
  const full = openSync('/dev/full', 'w');
  t.after(() => closeSync(full));
  const done = spawnSync(process.execPath, importing, { env: environment(), stdio: ['ignore', full, 'pipe'], encoding: 'utf8' });
  assert.equal(done.status, 1);
  assert.match(done.stderr, /^mizu: ENOSPC[^\n]*\n$/);
});

test('a gateway needs nobody who reads its greeting', async (t) => {
  const port = await freePort();
  const env = environment({ PORT: String(port) });
  const child = spawn(process.execPath, [MAIN, 'serve'], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
  t.after(() => child.kill('SIGKILL'));
  child.stdout.destroy();
  const ended = Promise.all([text(child.stderr), once(child, 'exit')]);
  const ready = async (): Promise<boolean> =>
    (await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined))?.status === 200;
  while (child.exitCode === null && !(await ready())) await new Promise((resolve) => setTimeout(resolve, 50));
  child.kill('SIGTERM');
  const [errors, how] = await ended;
  assert.deepEqual(how, [0, null], errors);
});

test('Ctrl-C ends a verb that waits for others', async (t) => {
  const server = createServer((socket) => void socket.on('error', () => undefined)).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const address = server.address();
  assert.ok(typeof address === 'object' && address !== null);
  const path = join(folder, 'silent.json');
  const channels = [{ id: 'silent', type: 'messages', base_url: `http://127.0.0.1:${address.port}`, models: ['m'] }];
  writeFileSync(path, JSON.stringify({ channels, models: { m: {} } }));
  t.after(() => rmSync(path));
  const child = spawn(process.execPath, [MAIN, 'channels', 'test', '--config', path], { env: environment(), stdio: 'pipe' });
  t.after(() => child.kill('SIGKILL'));
  const closed = once(child, 'exit');
  await once(server, 'connection');
  child.kill('SIGINT');
  assert.deepEqual(await closed, [null, 'SIGINT']);
});
