/**
 * A key without money: a large body is refused before it is read, at every endpoint, and small ones are told their other mistakes
 * first.
 */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { startSimulator } from '../../../src/simulator/simulator.ts';
import { ask, channel, eventually, KEY, MODELS, type TestGateway, testGateway } from '../../support/test-gateway.ts';

const simulator = await startSimulator();
test.after(() => simulator.close());
test.beforeEach(() => simulator.reset());

const KIB = 1024;
const ENDPOINTS =
  'chat/completions responses responses/compact messages completions embeddings images/generations images/edits videos';

async function penniless(file: object = {}): Promise<TestGateway> {
  const gateway = await testGateway({ channels: [channel(simulator.url)], models: MODELS, ...file });
  gateway.store.walletNanos = 0n;
  return gateway;
}

interface Exchange {
  /** What the gateway answered until it closed the connection. */
  readonly answer: string;
  /** Bytes of the body that could be written. */
  readonly taken: number;
}

/** Sends a head and then as much of an endless body as the gateway lets it. */
function pour(gateway: TestGateway, path: string, headers: string, piece: Buffer, maxBytes = Infinity): Promise<Exchange> {
  return new Promise((resolve) => {
    const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
    let answer = '';
    let taken = 0;
    socket.setEncoding('latin1');
    socket.on('data', (text: string) => {
      answer += text;
    });
    socket.on('error', () => undefined);
    socket.on('close', () => resolve({ answer, taken }));
    socket.write(`POST /v1/${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\n${headers}\r\n\r\n`);
    const more = (): void => {
      if (taken >= maxBytes) return;
      socket.write(piece, (error) => {
        // Node tells of a failed write before it destroys the stream, and calls back at once for what is written meanwhile:
        // whoever wrote again here would never return, and keep every piece.
        if (error != null) return;
        taken += piece.length;
        more();
      });
    };
    more();
  });
}

test('a declared length over 64 KiB is 402 at every endpoint before a byte of it is read, whatever its form', async () => {
  await using gateway = await penniless();
  for (const path of ENDPOINTS.split(' ')) {
    const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1').setEncoding('latin1');
    const type = path === 'images/edits' ? 'multipart/form-data; boundary=b' : 'application/json';
    socket.write(
      `POST /v1/${path} HTTP/1.1\r\nhost: x\r\nx-api-key: ${KEY}\r\nidempotency-key: k\r\ncontent-type: ${type}\r\ncontent-length: ${64 * KIB + 1}\r\n\r\n`,
    );
    const [answer] = (await new Promise((resolve) => socket.once('data', (text) => resolve([String(text)])))) as [string];
    assert.match(answer, /^HTTP\/1\.1 402 /, path);
    assert.match(answer, /insufficient_balance/, path);
    socket.destroy();
  }
  assert.equal(gateway.running.gateway.keySlots.bytes, 0);
});

test('received bytes and inflated bytes count, too; the answer is read although more of the body is on its way', async () => {
  await using gateway = await penniless();
  const chunk = Buffer.concat([Buffer.from('4000\r\n'), Buffer.alloc(16 * KIB, ' '), Buffer.from('\r\n')]);
  const chunked = await pour(gateway, 'messages', 'transfer-encoding: chunked', chunk);
  assert.match(chunked.answer, /^HTTP\/1\.1 402 /);
  assert.ok(chunked.taken < 32 * 1024 * KIB, `${chunked.taken} bytes were taken`);
  const long = await pour(gateway, 'messages', `content-length: ${2 ** 25}`, Buffer.alloc(64 * KIB, ' '), 2 ** 25);
  assert.match(long.answer, /^HTTP\/1\.1 402 /);
  assert.ok(long.taken < 2 ** 25, 'the rest is not read');
  const bomb = gzipSync(`{"model":"m","x":[${'{},'.repeat(2 ** 20)}{}]}`);
  assert.ok(bomb.length < 16 * KIB);
  const gzip = { headers: { authorization: `Bearer ${KEY}`, 'content-encoding': 'gzip' } };
  const response = await fetch(`${gateway.url}/v1/messages`, { method: 'POST', body: bomb, ...gzip });
  assert.equal(response.status, 402);
  await response.text();
  // Compressed blocks of nothing: it never inflates to a byte.
  const empty = gzipSync('');
  const blocks = Buffer.concat(Array.from({ length: 400 }, () => empty));
  const piece = Buffer.concat([Buffer.from(`${blocks.length.toString(16)}\r\n`), blocks, Buffer.from('\r\n')]);
  const nothing = await pour(gateway, 'messages', 'transfer-encoding: chunked\r\ncontent-encoding: gzip', piece);
  assert.match(nothing.answer, /^HTTP\/1\.1 402 /);
  await eventually(() => gateway.running.gateway.keySlots.size === 0);
});

test('a small body keeps the order of refusals, wrong keys and addresses come first, and a credit counts at once', async () => {
  await using gateway = await penniless();
  assert.equal((await gateway.post('/v1/messages', '{')).status, 400, 'what is no JSON');
  assert.equal((await gateway.post('/v1/messages', ask({ model: 'unknown' }))).status, 404);
  assert.equal((await gateway.post('/v1/messages', ask())).status, 402);
  const large = ask({ messages: [{ role: 'user', content: 'x'.repeat(70 * KIB) }] });
  const unknown = await gateway.post('/v1/messages', large, { headers: { authorization: 'Bearer sk-mizu-wrong' } });
  assert.equal(unknown.status, 401);
  await unknown.text();
  gateway.store.addKey('sk-mizu-elsewhere', { ips: ['10.0.0.1'] });
  const elsewhere = await gateway.post('/v1/messages', large, { headers: { authorization: 'Bearer sk-mizu-elsewhere' } });
  assert.equal(elsewhere.status, 403);
  await elsewhere.text();
  assert.equal((await gateway.post('/v1/messages', large)).status, 402);
  gateway.store.walletNanos = 1n;
  assert.equal((await gateway.post('/v1/messages', large)).status, 200);
});

test('an account without a limit is never asked for money; a sub-account without any is refused whatever its account has', async () => {
  await using gateway = await penniless();
  const large = ask({ messages: [{ role: 'user', content: 'x'.repeat(70 * KIB) }] });
  const balance = { source: 'wallet', nanos: 0n, unlimited: true };
  Object.assign(gateway.store.keys, { balance: async () => balance });
  gateway.store.walletNanos = 1n;
  assert.equal((await gateway.post('/v1/messages', large)).status, 200);
  gateway.store.addKey('sk-mizu-sub', { subAccount: true });
  Object.assign(gateway.store.keys, { balance: async () => ({ source: 'sub_account', nanos: 0n, unlimited: false }) });
  const sub = await gateway.post('/v1/messages', large, { headers: { authorization: 'Bearer sk-mizu-sub' } });
  assert.equal(sub.status, 402);
});
