/** E4 30, 31, 34, 38, 39, 41: the process itself under failure. Real processes, the built-in demonstration as upstream. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test, type TestContext } from 'node:test';
import { eventually } from '../../support/test-gateway.ts';
import { CLIENTS, chunk, exchange, GOOD, rig, STREAM_HEAD } from './support/rig.ts';

const MAIN = resolve('src/main.ts');
const KEY = 'sk-mizu-demo';

interface Started {
  readonly child: ChildProcess;
  readonly url: string;
  readonly errors: () => string;
}

function folderFor(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-faults-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** The demonstration as a process in `folder`; killed when the test is over. */
async function start(t: TestContext, folder: string, limit?: number): Promise<Started> {
  const script = `${limit === undefined ? '' : `ulimit -n ${limit}; `}exec "$0" "$1" serve`;
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

const ask = (url: string, stream: boolean, model = 'demo-messages'): Promise<Response> =>
  fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}` },
    body: JSON.stringify({ model, stream, max_tokens: 30, messages: [{ role: 'user', content: 'What is a gateway?' }] }),
  });

function verify(folder: string): { code: number | null; out: string } {
  writeFileSync(join(folder, 'verify.json'), JSON.stringify({ store: { path: '.mizu-demo' }, channels: [], models: {} }));
  const done = spawnSync(process.execPath, [MAIN, 'ledger', 'verify', '--config', 'verify.json'], {
    cwd: folder,
    encoding: 'utf8',
    timeout: 30_000,
  });
  return { code: done.status, out: done.stdout + done.stderr };
}

test('F30: SIGKILL under load, three times: it starts again, answers, and the ledger adds up', async (t) => {
  const folder = folderFor(t);
  for (let round = 0; round < 3; round++) {
    const { child, url } = await start(t, folder);
    const load = Promise.allSettled(Array.from({ length: 30 }, async (_, n) => await (await ask(url, n % 2 === 0)).text()));
    await new Promise((done) => setTimeout(done, 60 + 120 * round));
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
    await load;
    const { code, out } = verify(folder);
    assert.equal(code, 0, out);
  }
  const { url } = await start(t, folder);
  assert.equal((await ask(url, false)).status, 200);
});

test('F31, F38: no file descriptor left: it stays alive, refuses by waiting, and serves again', async (t) => {
  const { child, url } = await start(t, folderFor(t), 96);
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

test('F41: a log that nobody reads any more ends nothing', async (t) => {
  const { child, url } = await start(t, folderFor(t));
  child.stderr?.destroy();
  child.stdout?.destroy();
  for (let n = 0; n < 20; n++) {
    const response = await ask(url, true, n % 2 === 0 ? 'demo-chat' : 'no-such-model');
    assert.equal(response.status, n % 2 === 0 ? 200 : 404);
    await response.text();
  }
  assert.equal(child.exitCode, null);
});

test('F31: a corrupt store is refused at start with a sentence, and nothing is served from it', async (t) => {
  const folder = folderFor(t);
  const { child } = await start(t, folder);
  const gone = once(child, 'exit');
  child.kill('SIGTERM');
  assert.deepEqual(await gone, [0, null]);
  const file = join(folder, '.mizu-demo', 'data.mdb');
  const whole = readFileSync(file);
  const serve = () =>
    spawnSync(process.execPath, [MAIN, 'serve'], {
      cwd: folder,
      env: { PATH: process.env['PATH'] ?? '', PORT: '0' },
      encoding: 'utf8',
      timeout: 20_000,
    });
  for (const broken of [
    Buffer.alloc(65_536, 'garbage'),
    whole.subarray(0, 4096),
    whole.subarray(0, whole.length - 4096),
    Buffer.from('x'),
    Buffer.concat([Buffer.alloc(4096), whole.subarray(4096)]),
  ]) {
    writeFileSync(file, broken);
    const done = serve();
    assert.equal(done.signal, null, `${broken.length} bytes: it ended by itself: ${done.stderr}`);
    assert.equal(done.status, 1);
    assert.match(done.stderr, /^mizu: .*data\.mdb/m);
  }
  writeFileSync(file, whole);
  const again = await start(t, folder);
  assert.equal((await ask(again.url, false)).status, 200);
});

test('F31: a store on a disk that is read-only is refused at start with a sentence', async (t) => {
  const folder = folderFor(t);
  const disk = join(folder, 'disk');
  spawnSync('mkdir', [disk]);
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'ro,size=1m', 'mizu-faults', disk]).status !== 0) {
    t.skip('this machine lets nobody mount');
    return;
  }
  writeFileSync(join(folder, 'mizu.config.json'), JSON.stringify({ store: { path: './disk/data' }, channels: [], models: {} }));
  const done = spawnSync(process.execPath, [MAIN, 'serve'], {
    cwd: folder,
    env: { PATH: process.env['PATH'] ?? '', PORT: '0' },
    encoding: 'utf8',
    timeout: 20_000,
  });
  spawnSync('umount', [disk]);
  assert.equal(done.signal, null);
  assert.notEqual(done.status, 0);
  assert.match(done.stderr, /^mizu: /m);
});

test('F39: SIGTERM under load: every request that was accepted gets its whole answer, and the exit is clean', async (t) => {
  const folder = folderFor(t);
  const { child, url } = await start(t, folder);
  const responses = Array.from({ length: 40 }, (_, n) => ask(url, n >= 20));
  const answers = responses.map(async (response, n) => {
    assert.equal((await response).status, 200);
    return { text: await (await response).text(), stream: n >= 20 };
  });
  // Connections are accepted in their order: once the last stream has begun, every request is in hand.
  await Promise.all(responses.slice(20));
  const gone = once(child, 'exit');
  child.kill('SIGTERM');
  const done = await Promise.allSettled(answers);
  for (const result of done) {
    assert.ok(result.status === 'fulfilled', result.status === 'rejected' ? String(result.reason) : '');
    assert.match(result.value.text, result.value.stream ? /\[DONE\]/ : /"finish_reason"/);
  }
  assert.deepEqual(await gone, [0, null]);
  assert.equal(verify(folder).code, 0);
});

test('F34: a wall clock that jumps an hour either way ends no stream and holds none', async () => {
  await using r = await rig({ timeouts: { first_data_ms: 5000, idle_ms: 5000 } });
  let asked = 0;
  for (const jump of [3_600_000, -7_200_000, 86_400_000]) {
    r.answer = ({ socket }) => {
      const frames = GOOD.messages.map((frame) => chunk(frame));
      socket.write(STREAM_HEAD);
      for (const frame of frames.slice(0, 4)) socket.write(frame);
      setTimeout(() => {
        r.clock.jumpMs += jump;
        setTimeout(() => socket.write(Buffer.concat([...frames.slice(4), Buffer.from('0\r\n\r\n')])), 50);
      }, 50);
    };
    for (const client of CLIENTS) {
      asked++;
      const { status, broken } = await exchange(r, client, 'messages', true);
      assert.deepEqual([status, broken], [200, false]);
    }
    await r.quiet(asked);
  }
  for (const row of r.gateway.store.settled) {
    assert.equal(row.status, 'success');
    assert.ok(row.durationMs >= 0 && row.durationMs < 5000, `${row.durationMs} ms`);
  }
});

test('F38: many connections at once: each is served while the others stay open, and all are given back', async (t) => {
  const wanted = 4000;
  await using r = await rig();
  r.answer = ({ socket }) =>
    void socket.write(`${STREAM_HEAD}${GOOD.messages.map((frame) => chunk(frame).toString()).join('')}0\r\n\r\n`);
  const port = Number(new URL(r.gateway.url).port);
  const sockets: Socket[] = [];
  let failed = 0;
  for (let n = 0; n < wanted; n += 200) {
    await Promise.all(
      Array.from({ length: 200 }, async () => {
        const socket = connect(port, '127.0.0.1');
        socket.on('error', () => {
          failed++;
        });
        sockets.push(socket);
        await once(socket, 'connect');
        socket.write('GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n');
        await once(socket, 'data');
      }),
    );
  }
  assert.equal(failed, 0);
  const open = process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
  t.diagnostic(`${wanted} connections, ${Math.round(process.memoryUsage().rss / 1e6)} MB with both their ends`);
  assert.ok(open >= wanted * 2);
  const { text } = await exchange(r, 'messages', 'messages', true);
  assert.match(text, /message_stop/);
  for (const socket of sockets) socket.destroy();
  await eventually(
    () => process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length < 50,
    'all are given back',
  );
  await r.quiet(1);
});
