/** E4 38: no descriptor left, and ten thousand connections. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test, type TestContext } from 'node:test';
import { figure } from '../../support/figures.ts';
import { waitFor } from '../../support/processes.ts';
import { ask, folderFor, start } from './support/demonstration.ts';
import { chunk, exchange, GOOD, rig, STREAM_HEAD } from './support/rig.ts';

test('F31, F38: no file descriptor left: it stays alive, refuses by waiting, and serves again', async (t) => {
  const { child, url } = await start(t, folderFor(t), { files: 96 });
  assert.equal((await ask(url, false)).status, 200);
  const sockets: Socket[] = Array.from({ length: 300 }, () => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    socket.on('error', () => undefined);
    socket.write('POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n');
    return socket;
  });
  await new Promise((done) => setTimeout(done, 800));
  assert.equal(child.exitCode, null, 'it is alive');
  for (const socket of sockets) socket.destroy();
  let status = 0;
  for (let tries = 0; tries < 50 && status !== 200; tries++) {
    await new Promise((done) => setTimeout(done, 100));
    status = await ask(url, false).then(
      (response) => response.status,
      () => 0,
    );
  }
  assert.equal(status, 200);
});

const WANTED = 10_000;
const CLIENTS = ['127.0.0.2', '127.0.0.3', '127.0.0.4'];
/** Beside the connections themselves. */
const SPARE_DESCRIPTORS = 500;

/** How many files this process may have open; Node has raised the soft limit to the hard one. */
function descriptorLimit(): number {
  const { stdout } = spawnSync('/bin/sh', ['-c', 'ulimit -Hn'], { encoding: 'utf8' });
  return stdout.trim() === 'unlimited' ? Number.POSITIVE_INFINITY : Number(stdout);
}

/** A client process, and a way to read its next line. */
function clientProcess(t: TestContext, port: number, count: number, address: string) {
  const script = join(import.meta.dirname, 'support/many-clients.ts');
  const child = spawn(process.execPath, [script, String(port), String(count), address], { stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return { child, line: async (): Promise<string> => String((await lines.next()).value) };
}

test(`F38: ${WANTED} connections at once from other processes: all are served, kept, served again and given back`, async (t) => {
  const limit = descriptorLimit();
  if (limit < WANTED + SPARE_DESCRIPTORS) {
    t.skip(`a process may have ${limit} files open here, and ${WANTED + SPARE_DESCRIPTORS} are needed`);
    return;
  }
  await using r = await rig({ limits: { connections: WANTED + SPARE_DESCRIPTORS } });
  r.answer = ({ socket }) =>
    void socket.write(`${STREAM_HEAD}${GOOD.messages.map((frame) => chunk(frame).toString()).join('')}0\r\n\r\n`);
  const port = Number(new URL(r.gateway.url).port);
  const before = process.memoryUsage().rss;
  const each = Math.ceil(WANTED / CLIENTS.length);
  const clients = CLIENTS.map((address) => clientProcess(t, port, each, address));
  for (const { line } of clients) assert.equal(await line(), `open ${each} broken 0`);
  const open = (): number => process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
  assert.ok(open() >= WANTED, `${open()} are open`);
  const cost = (process.memoryUsage().rss - before) / (each * CLIENTS.length);
  const started = performance.now();
  const { text } = await exchange(r, 'messages', 'messages', true);
  assert.match(text, /message_stop/);
  figure(t, 'connections at once, each served, kept and served again', String(each * CLIENTS.length));
  figure(t, 'memory of an idle connection', `${Math.round(cost / 1024)} KB`);
  figure(t, `a stream beside ${WANTED} idle connections`, `${Math.round(performance.now() - started)} ms`);
  for (const { child } of clients) child.stdin.write('again\n');
  for (const { line } of clients) assert.equal(await line(), `served ${each} broken 0`);
  for (const { child } of clients) child.stdin.end();
  await waitFor(
    () => (open() < 50 ? true : undefined),
    () => `${open()} are still open`,
  );
  await r.quiet(1);
});
