/** The command line as a process: the demonstration, an operator's day, and how it ends. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';

const MAIN = resolve('src/main.ts');
const folder = mkdtempSync(join(tmpdir(), 'mizu-main-'));
test.after(() => rmSync(folder, { recursive: true, force: true }));

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
  assert.match(taken.err, /^mizu: listen EADDRINUSE: .*127\.0\.0\.1:\d+$/m);
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
    assert.deepEqual([model, choices?.[0]?.finish_reason, usage?.completion_tokens], [model, 'length', 5]);
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

test('an operator’s day: check, account, key, list, disable, balance, verify', () => {
  const path = join(folder, 'gateway.json');
  writeFileSync(
    path,
    JSON.stringify({
      store: { path: './data' },
      channels: [{ id: 'a', type: 'messages', base_url: 'http://127.0.0.1:1', api_key: `\${UP}`, models: ['m'] }],
      models: { m: { price: { input: '1', output: '2' } } },
    }),
  );
  const mizu = (...args: string[]) => run([...args, '--config', path], { UP: 'sk-canary' });
  const checked = mizu('check');
  assert.equal(checked.code, 0, checked.err);
  assert.doesNotMatch(checked.out, /canary/);
  assert.equal(run(['check', '--config', path]).code, 1, 'the variable is missing');
  const wrong = run(['check', '--json', '--config', path]);
  assert.equal(wrong.code, 1);
  const { valid, problems }: { valid: boolean; problems: { path: string }[] } = JSON.parse(wrong.out);
  assert.equal(valid, false);
  assert.deepEqual(
    problems.map(({ path: where }) => where),
    ['channels[0].api_key'],
  );
  assert.equal(mizu('accounts', 'create', 'ada', '--credit', '13.50').code, 0);
  assert.match(mizu('accounts', 'credit', 'ada', '-1', '--note', 'one too much').out, /balance \$12\.50/);
  const refused = mizu('accounts', 'create', 'eve', '--credit', '-1');
  assert.deepEqual([refused.code, refused.err], [2, 'mizu: --credit must not be negative\n']);
  const made = mizu('keys', 'create', '--account', 'ada', '--name', 'laptop', '--limit-daily', '1');
  assert.match(made.out, /^sk-mizu-[A-Za-z0-9_-]{43}\n$/);
  const listed: { id: string; digest?: string; disabled: boolean }[] = JSON.parse(mizu('keys', 'list', '--json').out);
  const [key] = listed;
  assert.ok(key);
  assert.equal(key.digest, undefined);
  assert.equal(mizu('keys', 'disable', key.id).code, 0);
  assert.match(mizu('balance').out, /ada +12\.50/);
  assert.match(mizu('ledger', 'verify').out, /no difference/);
  assert.equal(mizu('keys', 'create', '--account', 'nobody').code, 1);
  assert.equal(mizu('accounts', 'create', 'ada').code, 1);
  assert.equal(mizu('nonsense').code, 2);
  assert.equal(mizu('channels', 'test').code, 1);
  assert.match(mizu('logs').out, /^$/);
  const unknown = mizu('logs', '--request', 'req_nobody');
  assert.deepEqual([unknown.code, unknown.err], [1, 'mizu: there is no request req_nobody\n']);
  for (const [words, reason] of [
    [['serve', '--limit', '5'], 'serve has no option --limit'],
    [['logs', 'req_1'], 'logs: one word too many: "req_1"'],
    [['videos', '--limit-total', '5'], 'videos list has no option --limit-total'],
  ] as const) {
    const { code, err } = mizu(...words);
    assert.deepEqual([code, err], [2, `mizu: ${reason}\n`]);
  }
});
