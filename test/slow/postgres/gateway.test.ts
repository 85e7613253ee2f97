/**
 * The whole gateway on PostgreSQL, as processes: an operator's day on the database, two gateways, the database away, moving there
 * and back.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type Server, startServer } from '../../support/postgres.ts';
import { onPostgres } from '../../store/support/stores.ts';

const MAIN = resolve('src/main.ts');

interface Done {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

function run(folder: string, ...args: readonly string[]): Promise<Done> {
  const { promise, resolve: done } = Promise.withResolvers<Done>();
  execFile(process.execPath, [MAIN, ...args], { cwd: folder, timeout: 60_000 }, (error, out, err) => {
    done({ code: typeof error?.code === 'number' ? error.code : error === null ? 0 : -1, out, err });
  });
  return promise;
}

async function serve(t: TestContext, folder: string): Promise<string> {
  const child: ChildProcess = spawn(process.execPath, [MAIN, 'serve', '--config', 'gateway.json'], {
    cwd: folder,
    env: { PATH: process.env['PATH'], PORT: '0' },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  t.after(() => child.kill('SIGKILL'));
  let text = '';
  for await (const chunk of child.stdout ?? []) {
    text += String(chunk);
    const url = /Mizu listens on (http:\/\/[\d.]+:\d+)/.exec(text)?.[1];
    if (url !== undefined) return url;
  }
  throw new Error(`it never listened: ${text}`);
}

/** An upstream that answers every chat with one word. */
async function upstream(t: TestContext): Promise<string> {
  const answer = {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: 'yes' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 1_000_000, completion_tokens: 0, total_tokens: 1_000_000 },
  };
  const http = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer)));
  });
  await new Promise<void>((listening) => http.listen(0, '127.0.0.1', listening));
  t.after(() => http.close());
  const { port } = http.address() as AddressInfo;
  return `http://127.0.0.1:${port}/v1`;
}

/** How many were answered, each of which costs one dollar. */
let answered = 0;

async function ask(url: string, key: string): Promise<Response> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Is it?' }] }),
  });
  if (response.status === 200) answered += 1;
  return response;
}

async function until(reached: () => Promise<boolean>): Promise<void> {
  while (!(await reached())) await new Promise((next) => setTimeout(next, 25));
}

async function prepared(t: TestContext): Promise<{ folder: string; own: Server; url: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-gateway-'));
  const own = await startServer();
  t.after(async () => {
    await own.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  const url = await own.createDatabase();
  const config = {
    operations: null,
    store: { url, path: './local' },
    channels: [{ id: 'a', type: 'chat_completion', base_url: await upstream(t), api_key: 'sk-up', models: ['m'] }],
    models: { m: { price: { input: '1', output: '0' } } },
  };
  writeFileSync(join(folder, 'gateway.json'), JSON.stringify(config));
  return { folder, own, url };
}

async function namesWhatIsWrong(folder: string, own: Server, url: string): Promise<void> {
  const named = async (bad: string): Promise<string> => {
    const { code, err } = await run(folder, 'store', 'migrate', '--config', configOf(folder, bad));
    assert.equal(code, 1, err);
    assert.doesNotMatch(err, /secret/);
    return /^mizu: (\w+): /.exec(err)?.[1] ?? err;
  };
  const socket = encodeURIComponent(own.socket);
  assert.equal(await named('postgres://u:secret@h:port/db'), 'bad_url');
  assert.equal(await named(`postgres://mizu:secret@${socket}/nowhere`), 'bad_url');
  assert.equal(await named(`${url}?sslmode=prefer`), 'bad_url');
  assert.equal(await named(`postgres://nobody:secret@${socket}/postgres`), 'access_denied');
  assert.equal(await named('postgres://u:secret@127.0.0.1:1/db'), 'unavailable');
  const readOnly = await own.createDatabase();
  await own.admin(`ALTER DATABASE ${readOnly.split('/').at(-1)} SET default_transaction_read_only = on`);
  assert.equal(await named(readOnly), 'read_only');
  const future = await own.createDatabase();
  assert.equal((await run(folder, 'store', 'migrate', '--config', configOf(folder, future))).code, 0);
  await own.admin(`INSERT INTO schema_migrations (version, name) VALUES (99, 'x')`, future.split('/').at(-1));
  assert.equal(await named(future), 'schema_newer');
}

function configOf(folder: string, url: string): string {
  writeFileSync(join(folder, 'other.json'), JSON.stringify({ operations: null, store: { url, path: './other' } }));
  return 'other.json';
}

onPostgres(() => {
  test('two gateways and the verbs on one database; away it is 503, never 401; there and back again', {
    timeout: 240_000,
  }, async (t) => {
    const { folder, own, url } = await prepared(t);
    const mizu = (...args: string[]) => run(folder, ...args, '--config', 'gateway.json');
    const migrated = await mizu('store', 'migrate');
    assert.match(migrated.out, /from schema 0 to \d+/, migrated.err);
    assert.match((await mizu('store', 'migrate')).out, /already/);
    assert.equal((await mizu('accounts', 'create', 'ada', '--credit', '100')).code, 0);
    const made = await mizu('keys', 'create', '--account', 'ada', '--json');
    const key = /sk-mizu-[A-Za-z0-9_-]{43}/.exec(made.out)?.[0] ?? '';
    assert.notEqual(key, '', made.err);

    const gateways = await Promise.all([serve(t, folder), serve(t, folder)]);
    for (const gateway of gateways) assert.equal((await ask(gateway, key)).status, 200);
    const paid = () => until(async () => (await mizu('balance')).out.includes(`${100 - answered}.00`));
    await paid();

    await own.stop();
    await until(async () =>
      (await Promise.all(gateways.map((gateway) => ask(gateway, key)))).every(({ status }) => status === 503),
    );
    const [one] = gateways;
    assert.ok(one !== undefined);
    const away = await ask(one, key);
    assert.deepEqual([away.status, (await away.text()).includes('store_unavailable')], [503, true]);
    assert.equal((await ask(one, 'sk-mizu-never-seen')).status, 503);
    assert.match((await mizu('balance')).err, /^mizu: unavailable: the database cannot be opened/);
    await own.start();
    await until(async () => (await ask(one, key)).status === 200);
    // Every answer is paid for once, also those that were given when the database had just gone.
    await paid();
    const id = /key_[0-9a-f]+/.exec((await mizu('keys', 'list')).out)?.[0] ?? '';
    assert.equal((await mizu('keys', 'disable', id)).code, 0);
    await until(async () =>
      (await Promise.all(gateways.map((gateway) => ask(gateway, key)))).every(({ status }) => status === 401),
    );

    assert.equal((await mizu('ledger', 'verify')).code, 0);
    assert.match((await run(folder, 'store', 'copy', '--from', './nowhere', '--to', './copy')).err, /no store to copy/);
    const copied = await run(folder, 'store', 'copy', '--from', url, '--to', './copy');
    assert.match(copied.out, /rows copied and compared/, copied.err);
    const back = await own.createDatabase();
    const returned = await run(folder, 'store', 'copy', '--from', './copy', '--to', back);
    assert.equal(returned.code, 0, returned.err);
    assert.equal((await run(folder, 'store', 'copy', '--from', './copy', '--to', back)).code, 1);
  });

  test('each bad start ends with code 1 and says what it is, without a password', { timeout: 240_000 }, async (t) => {
    const { folder, own, url } = await prepared(t);
    await namesWhatIsWrong(folder, own, url);
  });
});
