import assert from 'node:assert/strict';
import { once } from 'node:events';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { connect } from 'node:net';
import { test } from 'node:test';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { beginMessage, fakeUpstream, jsonAnswer, sayMessages, wholeMessage } from '../../support/fake-upstream.ts';
import { ask, channel, eventually, KEY, MODELS, testGateway } from '../../support/test-gateway.ts';
import { connect as connectSocket } from '../websocket/socket-client.ts';

const upstream = await fakeUpstream(jsonAnswer(200, wholeMessage('fine')));
const file = { channels: [channel(upstream.url)], models: MODELS };
test.after(() => upstream.close());

/** Sends bytes as they are and returns everything that comes back until the connection closes. */
async function raw(
  url: string,
  bytes: string | Buffer,
  options: { readonly end?: boolean; readonly ms?: number } = {},
): Promise<string> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  socket.on('error', (error) => chunks.push(Buffer.from(`[${error.message}]`)));
  socket.write(bytes);
  if (options.end === true) socket.end();
  const timer = setTimeout(() => socket.destroy(), options.ms ?? 500);
  await once(socket, 'close');
  clearTimeout(timer);
  return Buffer.concat(chunks).toString();
}

const body = JSON.stringify(ask());
const request = (target: string, extra = '', payload = body) =>
  `POST ${target} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\ncontent-length: ${Buffer.byteLength(payload)}\r\nconnection: close\r\n${extra}\r\n${payload}`;

test('F19: every alias answers, and nothing else does', async () => {
  await using gateway = await testGateway(file);
  for (const path of ['/v1/messages', '/messages', '/api/v1/messages', '/api/messages', '/v1/messages?beta=true']) {
    assert.equal((await gateway.post(path, ask())).status, 200, path);
  }
  const absent = [
    '/v2/messages',
    '/v1/messages/',
    '/v1//messages',
    '//v1/messages',
    '/v1/../messages',
    '/v1/%6dessages',
    '/V1/messages',
  ];
  for (const path of [...absent, '/v1/messages/count_tokens', '/v1/files', '/v1/audio/speech', '/v1/models/x:generateContent']) {
    const answer = await raw(gateway.url, request(path));
    assert.match(answer, /^HTTP\/1\.1 404 /, path);
    assert.match(answer, /"code":"not_found"|not_found_error/, path);
  }
});

test('F19, V5: the route comes from the raw path, whatever Host and authority say', async () => {
  await using gateway = await testGateway(file);
  assert.match(await raw(gateway.url, request('http://evil.example/v1/messages'), { ms: 10_000 }), /^HTTP\/1\.1 200 /);
  assert.match(await raw(gateway.url, request('http://evil.example'), { ms: 10_000 }), /^HTTP\/1\.1 (404|405) /);
  const host = `POST /v1/nothing HTTP/1.1\r\nhost: x/v1/messages?#\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`;
  assert.match(await raw(gateway.url, host), /^HTTP\/1\.1 404 /);
});

test('a stream is chunked for HTTP/1.1 and plain for HTTP/1.0; the connection serves the next request', async () => {
  await using streams = await fakeUpstream(sayMessages('hello'));
  await using gateway = await testGateway({ channels: [channel(streams.url)], models: MODELS });
  const stream = JSON.stringify(ask({ stream: true }));
  const old = await raw(gateway.url, request('/v1/messages', '', stream).replace('HTTP/1.1', 'HTTP/1.0'));
  const [head = '', body = ''] = old.split(/\r\n\r\n(.*)/s);
  assert.doesNotMatch(head, /transfer-encoding/i);
  assert.match(body, /^event: message_start\ndata: .*event: message_stop\ndata: \{"type":"message_stop"\}\n\n$/s);
  const kept = request('/v1/messages', '', stream).replace('connection: close\r\n', '');
  const twice = await raw(gateway.url, kept + request('/v1/messages', '', stream));
  assert.equal(twice.match(/^HTTP\/1\.1 200 /gm)?.length, 2);
  assert.equal(twice.match(/\r\n0\r\n\r\n/g)?.length, 2);
});

test('F19, V5: two Hosts are no request (RFC 9112, 3.2)', async () => {
  await using gateway = await testGateway(file);
  const answer = await raw(gateway.url, 'GET /readyz HTTP/1.1\r\nhost: x\r\nhost: y\r\nconnection: close\r\n\r\n');
  assert.match(answer, /^HTTP\/1\.1 400 /);
  assert.match(answer, /"code":"invalid_request"/);
});

test('F19, F20: what never reaches an endpoint is answered in words, with a request id', async () => {
  await using gateway = await testGateway(file);
  const key = `authorization: Bearer ${KEY}\r\nconnection: close\r\n`;
  const asked: readonly [string, number][] = [
    ['GARBAGE\r\n\r\n', 400],
    [`GET /readyz HTTP/1.1\r\nhost: x\r\nx: ${'a'.repeat(100_000)}\r\n\r\n`, 431],
    ['GET /readyz HTTP/1.1\r\nconnection: close\r\n\r\n', 400],
    ['CONNECT a.example:443 HTTP/1.1\r\nhost: a.example:443\r\n\r\n', 405],
    [`POST /v1/messages HTTP/1.1\r\nhost: x\r\n${key}transfer-encoding: chunked\r\n\r\nzz\r\n`, 400],
  ];
  for (const [bytes, status] of asked) {
    const answer = await raw(gateway.url, bytes);
    assert.match(
      answer,
      new RegExp(`^HTTP/1\\.1 ${status} [^]*\\nx-request-id: req_[0-9a-f]{32}\\r\\n[^]*\\{"error":\\{"message"`),
    );
  }
  assert.match(await raw(gateway.url, request('/v1/messages', 'expect: tea\r\n')), /^HTTP\/1\.1 200 /);
  assert.match(await raw(gateway.url, 'GET /readyz HTTP/1.0\r\n\r\n'), /^HTTP\/1\.1 200 /);
});

test('a client that resets its connection at any moment of whatever it sends ends nothing but its own connection', async (t) => {
  await using gateway = await testGateway(file);
  const uncaught: unknown[] = [];
  const note = (error: unknown): void => void uncaught.push(error);
  process.on('uncaughtException', note);
  t.after(() => process.off('uncaughtException', note));
  const upgrade = 'connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: eA==\r\n';
  const asked = [
    'CONNECT a.example:443 HTTP/1.1\r\nhost: a.example:443\r\n\r\n',
    'GARBAGE\r\n\r\n',
    `GET /v1/responses HTTP/1.1\r\nhost: x\r\n${upgrade}\r\n`,
    `GET /v1/responses HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\n${upgrade}\r\n`,
    request('/v1/messages', 'expect: 100-continue\r\n'),
    request('/v1/messages').slice(0, -5),
    `GET /v1/responses HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\ncontent-length: 9\r\n${upgrade}\r\nx`,
    'GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n',
  ];
  for (const bytes of asked) {
    for (let turns = 0; turns < 40; turns++) {
      const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
      socket.on('error', () => undefined);
      await once(socket, 'connect');
      socket.write(bytes);
      for (let turn = 0; turn < turns % 4; turn++) await new Promise((resolve) => setImmediate(resolve));
      socket.resetAndDestroy();
    }
  }
  assert.match(await raw(gateway.url, 'GET /readyz HTTP/1.0\r\n\r\n'), /^HTTP\/1\.1 200 /);
  await eventually(() => gateway.running.gateway.inFlight.count === 0, 'that nothing is in flight');
  assert.deepEqual(uncaught, []);
});

test('requests that are pipelined in front of a CONNECT or an upgrade give back what they hold, and are let go of', async (t) => {
  const silent = await fakeUpstream(() => undefined);
  t.after(() => silent.close());
  await using gateway = await testGateway({ channels: [channel(silent.url)], models: MODELS });
  const { keySlots, inFlight } = gateway.running.gateway;
  const asked = request('/v1/messages').replace('connection: close\r\n', '');
  const upgrade = 'connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: eA==\r\n\r\n';
  const last = [
    'CONNECT a.example:443 HTTP/1.1\r\nhost: a.example:443\r\n\r\n',
    `GET /v1/responses HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\n${upgrade}`,
    `GET /v1/responses HTTP/1.1\r\nhost: x\r\n${upgrade}`,
    // Their bodies do not come to an end.
    `GET /v1/responses HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\ncontent-length: 5\r\n${upgrade}he`,
    `GET /v1/responses HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n${upgrade}5\r\nhe`,
  ];
  for (const bytes of last) {
    const answer = await raw(gateway.url, asked.repeat(3) + bytes, { ms: 5_000 });
    assert.equal(answer, '', 'no answer stands in the place of another');
    await eventually(() => inFlight.count === 0, 'the upstreams are let go');
    await eventually(() => keySlots.size === 0, 'nothing is held');
  }
  await eventually(() => silent.sockets.size === 0, 'no upstream goes on');
  assert.match(await raw(gateway.url, `GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n${last[0]}`), /^HTTP\/1\.1 200 .*HTTP\/1\.1 405 /s);
});

test('what a client pipelines by the ten thousand is read as it is served, in order, and holds up nobody else', async (t) => {
  await using gateway = await testGateway(file);
  const { turns } = gateway.running.gateway;
  const port = Number(new URL(gateway.url).port);
  const [crowd, other] = [connect(port, '127.0.0.1'), connect(port, '127.0.0.1')];
  t.after(() => [crowd, other].map((socket) => socket.destroy()));
  await Promise.all([once(crowd, 'connect'), once(other, 'connect')]);
  const MANY = 10_000;
  let answers = '';
  const ids = (): string[] => answers.match(/(?<=x-request-id: r)\d+/g) ?? [];
  crowd.setEncoding('latin1').on('data', (text: string) => {
    answers += text;
  });
  const asked = (id: string): string => `GET /readyz HTTP/1.1\r\nhost: x\r\nx-request-id: ${id}\r\n\r\n`;
  crowd.write(Array.from({ length: MANY }, (_, index) => asked(`r${index}`)).join(''));
  let most = 0;
  for (; turns.waiting < 500; await new Promise((resolve) => setImmediate(resolve))) most = Math.max(most, turns.waiting);
  const before = ids().length;
  other.write(asked('other'));
  const [answer] = await once(other, 'data');
  const beside = ids().length - before;
  assert.match(String(answer), /^HTTP\/1\.1 200 /);
  assert.ok(beside < 600, `${beside} of the crowd came before one request of somebody else`);
  for (; ids().length < MANY; await new Promise((resolve) => setTimeout(resolve, 5))) most = Math.max(most, turns.waiting);
  assert.deepEqual(
    ids().map(Number),
    Array.from({ length: MANY }, (_, index) => index),
  );
  assert.ok(most <= 2_500, `${most} requests waited at once`);
  crowd.write(asked(`r${MANY}`));
  await eventually(() => ids().length === MANY + 1, 'that the connection is read on');
});

test('a crowd of connections that pipeline a thousand requests each is cut where too many wait, and nobody else', async (t) => {
  await using gateway = await testGateway(file);
  const { turns, inFlight, metrics } = gateway.running.gateway;
  const port = Number(new URL(gateway.url).port);
  const asked = 'GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n';
  const CROWD = 60;
  let read = 0;
  const reading = (): void => {
    read += 1;
  };
  subscribe('http.server.request.start', reading);
  t.after(() => unsubscribe('http.server.request.start', reading));
  const crowd = Array.from({ length: CROWD }, () => connect(port, '127.0.0.1'));
  const single = Array.from({ length: CROWD }, () => connect(port, '127.0.0.1'));
  t.after(() => [...crowd, ...single].map((socket) => socket.destroy()));
  await Promise.all([...crowd, ...single].map((socket) => once(socket, 'connect')));
  const answered = single.map((socket) => once(socket, 'data'));
  for (const socket of crowd) socket.on('error', () => undefined).resume();
  for (const socket of crowd) socket.write(asked.repeat(1_500));
  for (const socket of single) socket.write(asked);
  let most = 0;
  const cut = (): number => crowd.filter((socket) => socket.destroyed).length;
  while (turns.waiting > 0 || most === 0) {
    await new Promise((resolve) => setImmediate(resolve));
    most = Math.max(most, turns.waiting);
  }
  assert.ok(most <= 4_096 + 1_500 + 130 * CROWD, `${most} requests waited at once`);
  for (const [answer] of await Promise.all(answered)) assert.match(String(answer), /^HTTP\/1\.1 200 /);
  await eventually(() => cut() > CROWD / 2, 'most of the crowd is cut');
  assert.ok(cut() < CROWD, 'those that came first are served');
  assert.match(await metrics.registry.metrics(), new RegExp(`^mizu_connections_dropped_total ${cut()}$`, 'm'));
  assert.ok(read < (CROWD * 1_500) / 2, `${read} requests were read: the rest of a read is left where its connection is cut`);
  assert.equal(inFlight.count, 0);
});

test('a client that leaves three hundred pipelined requests is noticed: their upstreams are let go of', async (t) => {
  const silent = await fakeUpstream(() => undefined);
  t.after(() => silent.close());
  await using gateway = await testGateway({ channels: [channel(silent.url)], models: MODELS });
  const { inFlight, turns } = gateway.running.gateway;
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
  socket.on('error', () => undefined);
  socket.write(request('/v1/messages').replace('connection: close\r\n', '').repeat(300));
  await eventually(() => inFlight.count === 300 && turns.waiting === 0, 'that all are under way');
  socket.resetAndDestroy();
  await eventually(() => inFlight.count === 0, 'nothing is in flight');
});

test('F19, F20: an answer that is out before its request turns out to be unreadable still arrives, once', async () => {
  await using gateway = await testGateway(file);
  const head = (line: string, encoding: string): string =>
    `${line} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: ${encoding}\r\n\r\n`;
  const shapes: ReadonlyArray<readonly [string, RegExp]> = [
    [`${head('POST /v1/files', 'xchunked')}0\r\n\r\n`, /^HTTP\/1\.1 404 /],
    [`${head('POST /v1/files', 'chunked')}zz\r\n`, /^HTTP\/1\.1 404 /],
    [`${head('POST /v1/models', 'chunked')}2\r\n{}\r\n-1\r\n`, /^HTTP\/1\.1 405 /],
    [`${head('POST /v1/messages', 'xchunked')}0\r\n\r\n`, /^HTTP\/1\.1 (400|401) /],
    ['GET /readyz HTTP/1.1\r\nhost: x\r\n\r\nGARBAGE\r\n\r\n', /^HTTP\/1\.1 200 /],
  ];
  for (const [bytes, status] of shapes) {
    const answer = await raw(gateway.url, bytes);
    assert.match(answer, status, bytes);
    assert.equal(answer.match(/HTTP\/1\.1 /g)?.length, 1, bytes);
    assert.doesNotThrow(() => JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4)), bytes);
  }
});

test('F19: methods: 405 with allow, HEAD as GET, OPTIONS with CORS, GET /v1/responses 426', async () => {
  await using gateway = await testGateway(file);
  const wrong = await fetch(`${gateway.url}/v1/messages`);
  assert.equal(wrong.status, 405);
  assert.equal(wrong.headers.get('allow'), 'POST, OPTIONS');
  const head = await fetch(`${gateway.url}/readyz`, { method: 'HEAD' });
  assert.equal(head.status, 200);
  assert.equal(await head.text(), '');
  const options = await fetch(`${gateway.url}/v1/messages`, { method: 'OPTIONS' });
  assert.equal(options.status, 204);
  assert.equal(options.headers.get('access-control-allow-origin'), '*');
  const upgrade = await fetch(`${gateway.url}/v1/responses`, { headers: { authorization: `Bearer ${KEY}` } });
  assert.equal(upgrade.status, 426);
});

test('F21, V6: keys: both headers, either, neither, two that differ; every refusal reads the same', async () => {
  await using gateway = await testGateway(file);
  const get = (headers: Record<string, string>) => fetch(`${gateway.url}/v1/models`, { headers });
  assert.equal((await get({ authorization: `bearer ${KEY}` })).status, 200);
  assert.equal((await get({ 'x-api-key': KEY })).status, 200);
  assert.equal((await get({ authorization: `Bearer ${KEY}`, 'x-api-key': KEY })).status, 200);
  assert.equal((await get({ authorization: 'Basic abc', 'x-api-key': KEY })).status, 200);
  assert.equal((await get({ authorization: `Bearer ${KEY}`, 'x-api-key': '' })).status, 200, 'ANTHROPIC_API_KEY=""');
  assert.equal((await get({ authorization: 'Bearer ', 'x-api-key': KEY })).status, 200);
  gateway.store.addKey('sk-off', { disabled: true });
  gateway.store.addKey('sk-old', { expiresAtMs: 1 });
  const texts = new Set<string>();
  for (const headers of [
    {},
    { authorization: 'Bearer ' },
    { authorization: 'Bearer ', 'x-api-key': ' ' },
    { authorization: KEY },
    { authorization: 'Bearer nobody' },
    { authorization: 'Bearer sk-off' },
    { authorization: 'Bearer sk-old' },
    { authorization: `Bearer ${'x'.repeat(10_000)}` },
    { authorization: `Bearer ${KEY}`, 'x-api-key': 'another' },
  ]) {
    const response = await get(headers);
    assert.equal(response.status, 401, JSON.stringify(headers).slice(0, 60));
    texts.add(await response.text());
  }
  assert.equal(texts.size, 1);
  assert.match([...texts][0] ?? '', /"code":"unauthorized"/);
  const twice = await raw(
    gateway.url,
    `GET /v1/models HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\nauthorization: Bearer other\r\nconnection: close\r\n\r\n`,
  );
  assert.match(twice, /^HTTP\/1\.1 401 /);
});

test('F31, V15: a broken store is a 503, never a 401', async () => {
  await using gateway = await testGateway(file);
  gateway.store.broken = true;
  const response = await gateway.post('/v1/messages', ask());
  assert.equal(response.status, 503);
  assert.match(await response.text(), /store_unavailable/);
});

test('F22: bodies that are no request: 400 with what is wrong, in the dialect', async () => {
  await using gateway = await testGateway(file);
  for (const [text, message] of [
    ['', /empty/],
    ['{', /not valid JSON/],
    ['[]', /JSON object/],
    ['"x"', /JSON object/],
    ['{"a":1} x', /not valid JSON/],
    [`${'['.repeat(100_000)}`, /nested/],
    [JSON.stringify({ ...ask(), messages: 5 }), /messages/],
  ] as const) {
    const response = await gateway.post('/v1/messages', text);
    assert.equal(response.status, 400, text.slice(0, 20));
    const answer = await response.text();
    assert.match(answer, /^\{"type":"error","error":\{"type":"invalid_request_error"/);
    assert.match(answer, message);
  }
  const head = Buffer.from(request('/v1/messages', '', '').replace('content-length: 0', 'content-length: 4'));
  const invalid = await raw(gateway.url, Buffer.concat([head, Buffer.from([0x22, 0xff, 0xff, 0x22])]));
  assert.match(invalid, /UTF-8/);
  assert.match(invalid, /^HTTP\/1\.1 400 /);
});

test('a body that has come in pieces while its key was looked up is read whole', async () => {
  await using gateway = await testGateway(file);
  const { keys } = gateway.store;
  const authenticate = keys.authenticate.bind(keys);
  // As a store does that is asked over a network.
  keys.authenticate = async (...asked) => {
    await new Promise((resolve) => setTimeout(resolve, 30));
    return await authenticate(...asked);
  };
  const parts = [body.slice(0, 10), body.slice(10, 11), body.slice(11)];
  const chunks = parts.map((part) => `${part.length.toString(16)}\r\n${part}\r\n`).join('');
  const head = `POST /v1/messages HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\nconnection: close\r\n`;
  const answer = await raw(gateway.url, `${head}transfer-encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`, { ms: 3000 });
  assert.match(answer, /^HTTP\/1\.1 200 /);
});

test('F22: compressed bodies are read, bombs and unknown encodings are not', async () => {
  await using gateway = await testGateway({ ...file, limits: { json_bytes: 10_000 } });
  const send = (encoding: string, payload: Buffer) =>
    fetch(`${gateway.url}/v1/messages`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'content-encoding': encoding },
      body: new Uint8Array(payload),
    });
  assert.equal((await send('gzip', gzipSync(body))).status, 200);
  assert.equal((await send('br', brotliCompressSync(body))).status, 200);
  assert.equal((await send('gzip', gzipSync(Buffer.alloc(5_000_000, 'a')))).status, 413);
  assert.equal((await send('gzip', Buffer.from('not gzip'))).status, 400);
  assert.equal((await send('rot13', Buffer.from(body))).status, 415);
});

test('F19, F22: a body that cannot be decompressed is read away: its connection serves the next request', async () => {
  await using gateway = await testGateway(file);
  const refused = Buffer.alloc(500_000, 'no gzip');
  const head = `POST /v1/messages HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\ncontent-encoding: gzip\r\ncontent-length: ${refused.length}\r\n\r\n`;
  const answers = await raw(gateway.url, Buffer.concat([Buffer.from(head), refused, Buffer.from(request('/v1/messages'))]), {
    ms: 3000,
  });
  assert.deepEqual(answers.match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 400', 'HTTP/1.1 200']);
});

test('F19: a body over the limit is refused while it is sent, and the client can read the answer', async () => {
  await using gateway = await testGateway({ ...file, limits: { json_bytes: 4096 } });
  for (const framing of [`content-length: ${8_000_000}`, 'transfer-encoding: chunked']) {
    const chunk = Buffer.alloc(8_000_000, 'a');
    const payload = framing.startsWith('content')
      ? chunk
      : Buffer.concat([Buffer.from('7a1200\r\n'), chunk, Buffer.from('\r\n0\r\n\r\n')]);
    const head = `POST /v1/messages HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\n${framing}\r\n\r\n`;
    const answer = await raw(gateway.url, Buffer.concat([Buffer.from(head), payload]), { ms: 3000 });
    assert.match(answer, /^HTTP\/1\.1 413 /, framing);
    assert.match(answer, /request_too_large/);
  }
  const asked = await raw(
    gateway.url,
    `POST /v1/messages HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\nexpect: 100-continue\r\ncontent-length: 99999\r\n\r\n`,
    { ms: 300 },
  );
  assert.match(asked, /^HTTP\/1\.1 413 /, 'refused before the body was sent');
});

test('what is asked in front of something unreadable is answered whole and in its order, and then the connection ends', async (t) => {
  const slow = await fakeUpstream(async (asked) => {
    await new Promise((resolve) => setTimeout(resolve, 100));
    if (asked.body.includes('"stream":true')) sayMessages('all of it')(asked);
    else await jsonAnswer(200, wholeMessage('fine'))(asked);
  });
  t.after(() => slow.close());
  await using gateway = await testGateway({ channels: [channel(slow.url)], models: MODELS });
  const kept = (payload: object, key = KEY): string =>
    request('/v1/messages', '', JSON.stringify(payload)).replace('connection: close\r\n', '').replace(KEY, key);
  const whole = kept(ask());
  const stream = kept(ask({ stream: true }));
  const lines: readonly [string, readonly RegExp[]][] = [
    [whole, [/ 200 .*fine/s]],
    [stream, [/ 200 .*message_stop/s]],
    [whole + kept(ask(), 'sk-none') + stream, [/ 200 .*fine/s, / 401 /, / 200 .*message_stop/s]],
  ];
  for (const [asked, answers] of lines) {
    for (const rest of ['GARBAGE\r\n\r\n', 'POST /v1/messages HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n']) {
      const told = (await raw(gateway.url, asked + rest, { ms: 5_000 })).split('HTTP/1.1').slice(1);
      for (const [index, answer] of answers.entries()) assert.match(told[index] ?? '', answer, rest);
      assert.ok(told.length <= answers.length + 1, rest);
    }
  }
  const { settled } = gateway.store;
  await eventually(() => settled.length === 8, 'each has its row');
  for (const { clientGone } of settled) assert.equal(clientGone, undefined);
});

test('a refusal that closes its connection is read by a client that still sends a small body', async () => {
  await using gateway = await testGateway(file);
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
  const broken: unknown[] = [];
  let answer = '';
  socket.on('error', (error) => broken.push(error));
  const closed = new Promise((resolve) => socket.once('close', resolve));
  await once(socket, 'connect');
  const bytes = request('/v1/messages', 'host: y\r\n', ' '.repeat(4_000));
  socket.write(bytes.slice(0, -4_000));
  for (let sent = 0; sent < 4_000; sent += 200) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    socket.write(bytes.slice(-200));
  }
  socket.on('data', (chunk) => {
    answer += String(chunk);
  });
  await closed;
  assert.deepEqual(broken, []);
  assert.match(answer, /^HTTP\/1\.1 400 .*more than one Host/s);
});

test('F18: a body that is slow or stops is answered, not waited for', async () => {
  await using gateway = await testGateway({ ...file, limits: { body_ms: 80 } });
  const head = `POST /v1/messages HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\ncontent-length: 100\r\n\r\n{"mod`;
  assert.match(await raw(gateway.url, head, { ms: 3000 }), /^HTTP\/1\.1 408 /);
  assert.match(await raw(gateway.url, head, { end: true }), /^HTTP\/1\.1 400 /);
  assert.match(await raw(gateway.url, 'GARBAGE\r\n\r\n'), /^HTTP\/1\.1 400 /);
  assert.match(await raw(gateway.url, `GET / HTTP/1.1\r\nhost: x\r\nx: ${'a'.repeat(100_000)}\r\n\r\n`), /^HTTP\/1\.1 431 /);
});

test('no answer is guessed at or framed: JSON, streams, errors, preflights, and what no endpoint ever saw', async () => {
  await using gateway = await testGateway(file);
  const key = `authorization: Bearer ${KEY}\r\n`;
  const upgrade =
    'connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n';
  const get = (path: string, lines = '') => `GET ${path} HTTP/1.1\r\nhost: x\r\n${lines || 'connection: close\r\n'}\r\n`;
  const asked = [
    get('/readyz'),
    get('/nothing'),
    get('/v1/models', `connection: close\r\n${key}`),
    get('/v1/models'),
    get('/v1/responses', upgrade),
    get('/v1/models').replace('GET', 'OPTIONS'),
    'GARBAGE\r\n\r\n',
    request('/v1/messages', '', JSON.stringify(ask())),
    request('/v1/messages', '', JSON.stringify(ask({ stream: true }))),
  ];
  for (const bytes of asked) {
    const answer = await raw(gateway.url, bytes);
    for (const header of ['x-content-type-options: nosniff', 'x-frame-options: DENY'])
      assert.ok(answer.includes(`\r\n${header}\r\n`), `${header} in ${answer}`);
  }
});

test('request ids: ours, or the client’s when it is usable', async () => {
  await using gateway = await testGateway(file);
  const own = await gateway.post('/v1/messages', ask());
  assert.match(own.headers.get('x-request-id') ?? '', /^req_[0-9a-f]{32}$/);
  assert.equal(own.headers.get('request-id'), own.headers.get('x-request-id'));
  const given = await gateway.post('/v1/messages', ask(), { headers: { 'x-request-id': 'mine-1' } });
  assert.equal(given.headers.get('x-request-id'), 'mine-1');
  const bad = await gateway.post('/v1/messages', ask(), { headers: { 'x-request-id': 'a b' } });
  assert.match(bad.headers.get('x-request-id') ?? '', /^req_/);
  const [first, second] = gateway.store.settled;
  assert.notEqual(first?.exchangeId, second?.exchangeId);
});

test('refusals in their order: model rights, existence, kind, price, balance, limits', async () => {
  await using gateway = await testGateway({
    channels: [
      channel(upstream.url, { models: ['m', 'free', 'vectors', 'vip'] }),
      channel(upstream.url, { id: 'v', models: ['gold'], classes: ['vip'] }),
    ],
    models: { ...MODELS, free: {}, vectors: { kind: 'embedding', price: { input: '1' } }, vip: MODELS.m, gold: MODELS.m },
  });
  const code = async (model: string) => {
    const response = await gateway.post('/v1/messages', ask({ model }));
    const parsed: unknown = await response.json();
    return [response.status, JSON.stringify(parsed).match(/"code":"(\w+)"/)?.[1]];
  };
  assert.deepEqual(await code('nothing'), [404, 'model_not_found']);
  assert.deepEqual(await code('gold'), [404, 'model_not_found']);
  assert.deepEqual(await code('free'), [403, 'model_pricing_required']);
  assert.deepEqual(await code('vectors'), [400, 'model_kind_mismatch']);
  gateway.store.limitReached = true;
  assert.deepEqual(await code('m'), [402, 'api_key_spend_limit_reached']);
  gateway.store.limitReached = false;
  gateway.store.walletNanos = 0n;
  assert.deepEqual(await code('m'), [402, 'insufficient_balance']);
  gateway.store.addKey('sk-narrow', { models: ['vip'], ips: ['10.0.0.0/8'] });
  const narrow = (body: object) => gateway.post('/v1/messages', body, { headers: { authorization: 'Bearer sk-narrow' } });
  assert.match(await (await narrow(ask())).text(), /ip_not_allowed/);
  assert.equal(gateway.store.opened.length, 0, 'nothing was sent');
});

test('a model list holds what the key may use, by name', async () => {
  await using gateway = await testGateway({
    channels: [
      channel(upstream.url, { models: ['m', 'free', 'z', 'a'] }),
      channel(upstream.url, { id: 'gold', models: ['gold'], classes: ['vip'] }),
      channel(upstream.url, { id: 'resting', models: ['resting'], weight: 0 }),
    ],
    models: { ...MODELS, free: {}, z: MODELS.m, a: MODELS.m, gold: MODELS.m, resting: MODELS.m, nowhere: MODELS.m },
  });
  gateway.store.addKey('sk-narrow', { models: ['z', 'free', 'gold', 'nowhere'] });
  gateway.store.addKey('sk-vip', { accountId: 'acct_2' }, { id: 'acct_2', class: 'vip' });
  const listed = async (key: string) => {
    const response = await fetch(`${gateway.url}/v1/models?limit=1000`, { headers: { 'x-api-key': key } });
    return JSON.parse(await response.text());
  };
  const entry = (id: string) => ({
    ...{ id, object: 'model', created: 1_700_000_000, owned_by: 'mizu' },
    ...{ type: 'model', display_name: id, created_at: '2023-11-14T22:13:20.000Z' },
  });
  assert.deepEqual(await listed(KEY), {
    ...{ object: 'list', data: ['a', 'm', 'z'].map(entry) },
    ...{ has_more: false, first_id: 'a', last_id: 'z' },
  });
  const ids = async (key: string): Promise<string[]> => (await listed(key)).data.map(({ id }: { id: string }) => id);
  assert.deepEqual(await ids('sk-narrow'), ['z']);
  assert.deepEqual(await ids('sk-vip'), ['a', 'gold', 'm', 'z']);
  gateway.store.addKey('sk-nothing', { models: ['nowhere'] });
  const empty = { object: 'list', data: [], has_more: false, first_id: null, last_id: null };
  assert.deepEqual(await listed('sk-nothing'), empty);
});

test('one model by its name, which may hold slashes and be percent-encoded once', async () => {
  const names = ['m', 'vendor/m:free', 'a b', '100%', 'free', 'resting', 'gold', 'nowhere'];
  await using gateway = await testGateway({
    channels: [
      channel(upstream.url, { models: ['m', 'vendor/m:free', 'a b', '100%', 'free'] }),
      channel(upstream.url, { id: 'gold', models: ['gold'], classes: ['vip'] }),
      channel(upstream.url, { id: 'resting', models: ['resting'], weight: 0 }),
    ],
    models: { ...Object.fromEntries(names.map((name) => [name, MODELS.m])), free: {} },
  });
  gateway.store.addKey('sk-narrow', { models: ['m'] });
  const read = async (path: string, key = KEY, method = 'GET') => {
    const response = await fetch(gateway.url + path, { method, headers: { 'x-api-key': key } });
    const text = await response.text();
    return { status: response.status, text, json: text === '' ? undefined : JSON.parse(text) };
  };
  const found = [
    ['vendor/m:free', '/v1/models/vendor/m:free'],
    ['vendor/m:free', '/v1/models/vendor%2Fm%3Afree'],
    ['a b', '/api/models/a%20b'],
    ['100%', '/v1/models/100%25'],
    ['100%', '/v1/models/100%'],
    ...['/v1', '', '/api/v1', '/api', '/v1/v1'].map((prefix) => ['m', `${prefix}/models/m?x=1`]),
  ] as const;
  for (const [id, path] of found) {
    const { status, json } = await read(path);
    assert.deepEqual([status, json.id, json.object, json.type], [200, id, 'model', 'model'], path);
  }
  for (const id of ['nothing', 'free', 'resting', 'gold', 'nowhere', 'a%2520b', 'm/']) {
    const { status, json } = await read(`/v1/models/${id}`);
    assert.deepEqual([status, json.error.code], [404, 'model_not_found'], id);
  }
  const narrow = await read('/v1/models/nothing', 'sk-narrow');
  assert.deepEqual([narrow.status, narrow.json.error.code], [403, 'model_not_allowed']);
  assert.equal((await read('/v1/models/m', 'sk-unknown')).status, 401);
  const head = await read('/v1/models/m', KEY, 'HEAD');
  assert.deepEqual([head.status, head.text], [200, '']);
  assert.equal((await read('/v1/models/m', KEY, 'OPTIONS')).status, 204);
  for (const method of ['POST', 'DELETE', 'PUT']) {
    const { status, json } = await read('/v1/models/m', KEY, method);
    assert.deepEqual([status, json.error.code], [404, 'not_found'], method);
  }
  assert.equal((await read('/v1/models/')).json.error.code, 'not_found');
});

test('/v1/v1 is read as /v1 where there are aliases, and unlisted paths are answered in the words of the endpoint above them', async () => {
  await using gateway = await testGateway(file);
  assert.equal((await gateway.post('/v1/v1/messages', ask())).status, 200);
  for (const path of ['/v1/v1/videos', '/v1/v1/files', '/v1/v1/v1/messages', '/api/v1/v1/messages', '/v1/v1/user/balance']) {
    assert.equal((await gateway.post(path, ask())).status, 404, path);
  }
  const prefixes = ['/v1', '', '/api/v1', '/api', '/v1/v1'];
  for (const path of prefixes.flatMap((prefix) =>
    ['/messages/count_tokens', '/messages/', '/messages/batches/x'].map((tail) => prefix + tail),
  )) {
    const response = await gateway.post(path, ask());
    const body: unknown = await response.json();
    assert.equal(response.status, 404, path);
    assert.match(JSON.stringify(body), /^\{"type":"error","error":\{"type":"not_found_error"/, path);
    assert.equal(response.headers.get('request-id'), response.headers.get('x-request-id'));
  }
  for (const path of ['/messagesx', '/v2/messages/x', '/v1/chat/completions/x', '/v1/responses/resp_1']) {
    assert.match(await (await gateway.post(path, ask())).text(), /^\{"error":\{"message"/, path);
  }
});

test('a model whose Channels are all out of service exists, but is served by nobody and not listed', async () => {
  const types = ['chat_completion', 'openai_image'];
  const models = {
    ...MODELS,
    image: { kind: 'image', price: { image: '1' } },
    embedding: { kind: 'embedding', price: { input: '1' } },
  };
  for (const state of [{ disabled: true }, { weight: 0 }]) {
    await using gateway = await testGateway({
      channels: types.map((type) => channel(upstream.url, { id: type, type, models: Object.keys(models), ...state })),
      models,
    });
    const bodies: Record<string, object> = {
      '/v1/chat/completions': ask({ stream: true }),
      '/v1/messages': ask(),
      '/v1/responses': { model: 'm', input: 'x' },
      '/v1/responses/compact': { model: 'm', input: 'x' },
      '/v1/completions': { model: 'm', prompt: 'x' },
      '/v1/embeddings': { model: 'embedding', input: 'x' },
      '/v1/images/generations': { model: 'image', prompt: 'x', stream: true },
    };
    for (const [path, body] of Object.entries(bodies)) {
      const response = await gateway.post(path, body);
      assert.equal(response.status, 503, `${path} ${JSON.stringify(state)}`);
      assert.match(await response.text(), /no_healthy_upstream/);
    }
    const listed = await fetch(`${gateway.url}/v1/models`, { headers: { 'x-api-key': KEY } });
    assert.doesNotMatch(await listed.text(), /"id":"(m|image|embedding)"/);
  }
});

test('private files need one scope', async () => {
  const file_id = { type: 'image', source: { type: 'file', file_id: 'file_1' } };
  const message = ask({ messages: [{ role: 'user', content: [{ type: 'text', text: 'x' }, file_id] }] });
  for (const [scopes, status] of [
    [['a', 'a'], 200],
    [['a', 'b'], 400],
    [[null, null], 400],
  ] as const) {
    await using gateway = await testGateway({
      channels: scopes.map((file_scope, index) => channel(upstream.url, { id: `c${index}`, file_scope })),
      models: MODELS,
    });
    const response = await gateway.post('/v1/messages', message);
    assert.equal(response.status, status, JSON.stringify(scopes));
    if (status === 400) assert.match(await response.text(), /private file/);
  }
});

test('F39: drain: not ready, no new connections, the open stream finishes', async () => {
  let finish = (): void => undefined;
  await using slow = await fakeUpstream(({ socket }) => {
    const stream = beginMessage(socket, 'x');
    finish = () => {
      stream.event('content_block_stop', { type: 'content_block_stop', index: 0 });
      stream.event('message_delta', { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } });
      stream.event('message_stop', { type: 'message_stop' });
      stream.end();
    };
  });
  const gateway = await testGateway({ channels: [channel(slow.url)], models: MODELS });
  const response = await gateway.post('/v1/messages', ask({ stream: true }));
  const stopped = gateway.running.stop();
  assert.deepEqual(gateway.running.gateway.unready(), ['draining']);
  await assert.rejects(fetch(`${gateway.url}/readyz`));
  finish();
  assert.match(await response.text(), /message_stop/);
  await stopped;
  assert.equal(gateway.store.settled[0]?.status, 'success');
});

test('F39: drain: what comes on a connection that was there before is answered, and says that it was the last', async () => {
  const gateway = await testGateway(file);
  const connections = await Promise.all(
    ['fresh', 'kept'].map(async () => {
      const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
      await once(socket, 'connect');
      return socket;
    }),
  );
  const [fresh, kept] = connections;
  assert.ok(fresh && kept);
  kept.write('GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n');
  const [first] = await once(kept, 'data');
  assert.match(String(first), /^HTTP\/1\.1 200 [\s\S]*connection: keep-alive/i);
  const heard = connections.map((socket) => {
    let text = '';
    socket.on('data', (chunk: Buffer) => (text += chunk.toString()));
    return once(socket, 'close').then(() => text);
  });
  const stopped = gateway.running.stop();
  await new Promise((resolve) => setTimeout(resolve, 50));
  for (const socket of connections) socket.write(request('/v1/messages').replace('connection: close\r\n', ''));
  for (const answer of await Promise.all(heard)) {
    assert.match(answer, /^HTTP\/1\.1 200 [\s\S]*connection: close[\s\S]*fine/i);
  }
  await stopped;
});

test('F39: drain: a stream that promised to keep its connection keeps it for the next request', async () => {
  let finish = (): void => undefined;
  await using slow = await fakeUpstream(({ socket, body: asked }) => {
    const stream = beginMessage(socket, 'x');
    const end = (): void => {
      stream.event('content_block_stop', { type: 'content_block_stop', index: 0 });
      stream.event('message_delta', { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } });
      stream.event('message_stop', { type: 'message_stop' });
      stream.end();
    };
    if (/first/.test(asked)) finish = end;
    else end();
  });
  const gateway = await testGateway({ channels: [channel(slow.url)], models: MODELS });
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
  let heard = '';
  socket.on('data', (chunk: Buffer) => (heard += chunk.toString()));
  const closed = once(socket, 'close');
  const stream = (content: string): string =>
    request('/v1/messages', '', JSON.stringify(ask({ stream: true, messages: [{ role: 'user', content }] }))).replace(
      'connection: close\r\n',
      '',
    );
  socket.write(stream('first'));
  await eventually(() => /text_delta/.test(heard), 'the first text');
  const stopped = gateway.running.stop();
  finish();
  await eventually(() => /\r\n0\r\n\r\n$/.test(heard), 'the end of the first stream');
  heard = '';
  await new Promise((resolve) => setTimeout(resolve, 50));
  socket.write(stream('second'));
  await closed;
  assert.match(heard, /^HTTP\/1\.1 200 [\s\S]*connection: close[\s\S]*message_stop/i);
  await stopped;
});

test('F39: drain: what was pipelined before it is answered whole, and what follows in its course; nothing is asked in vain', async (t) => {
  let asked = 0;
  const slow = await fakeUpstream(async (request) => {
    asked += 1;
    await new Promise((resolve) => setTimeout(resolve, 100 * asked));
    await jsonAnswer(200, wholeMessage('fine'))(request);
  });
  t.after(() => slow.close());
  const gateway = await testGateway({ channels: [channel(slow.url)], models: MODELS });
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
  let heard = '';
  socket.on('data', (chunk: Buffer) => (heard += chunk.toString()));
  const closed = once(socket, 'close');
  const kept = request('/v1/messages').replace('connection: close\r\n', '');
  socket.write(kept.repeat(3));
  await eventually(() => asked === 3, 'all three are asked');
  const stopped = gateway.running.stop();
  socket.write(kept);
  await eventually(() => asked === 4, 'the fourth is asked');
  await closed;
  assert.deepEqual(
    heard.match(/(?<=HTTP\/1\.1 )\d+|connection: close/gi)?.map((word) => word.toLowerCase()),
    ['200', '200', '200', '200', 'connection: close'],
  );
  await stopped;
  assert.deepEqual(
    gateway.store.settled.map(({ status, clientGone }) => [status, clientGone]),
    Array.from({ length: 4 }, () => ['success', undefined]),
  );
});

test('what is pipelined behind an answer that says that it is the last is not served: nobody would get its answer', async () => {
  await using gateway = await testGateway(file);
  const large = 'x'.repeat(2_000_000);
  const refused = request('/v1/messages', '', large).replace('connection: close\r\n', '').replace(KEY, 'sk-none');
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
  let heard = '';
  socket.on('data', (chunk: Buffer) => (heard += chunk.toString()));
  const closed = once(socket, 'close');
  socket.write(refused.slice(0, -1000));
  await eventually(() => /connection: close/i.test(heard), 'the refusal');
  socket.write(refused.slice(-1000) + request('/v1/messages').repeat(2));
  await closed;
  assert.deepEqual(heard.match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 401']);
  assert.deepEqual(gateway.store.settled, []);
});

test('F39: when the drain is over, what is still open is told so in its own words, billed, and the gateway is gone', async () => {
  await using silent = await fakeUpstream(({ socket, body: asked }) => {
    if (!/"stream":\s*true/.test(asked) || /wait/.test(asked)) return;
    beginMessage(socket, 'half');
  });
  await using gateway = await testGateway({
    channels: [channel(silent.url)],
    models: MODELS,
    drain_ms: 100,
    commit_after_ms: 20,
  });
  const user = (content: string) => [{ role: 'user', content }];
  const asked: readonly [string, object, number, RegExp][] = [
    ['/v1/messages', ask({ stream: true }), 200, /half.*event: error\ndata: .*overloaded_error/s],
    ['/v1/messages', ask({ stream: true, messages: user('wait') }), 200, /event: error\ndata: .*overloaded_error/],
    ['/v1/messages', ask(), 503, /"code":"shutting_down"/],
    ['/v1/chat/completions', { model: 'm', stream: true, messages: user('hi') }, 200, /half.*data: \{"error":\{/s],
    ['/v1/completions', { model: 'm', stream: true, prompt: 'hi' }, 200, /half.*data: \{"error":\{/s],
    ['/v1/responses', { model: 'm', stream: true, input: 'hi' }, 200, /half.*event: response\.failed\n.*shutting_down/s],
    ['/v1/responses', { model: 'm', input: 'hi' }, 503, /"code":"shutting_down"/],
  ];
  const answers = asked.map(async ([path, body]) => {
    const response = await gateway.post(path, body);
    return { status: response.status, text: await response.text() };
  });
  const ws = await connectSocket(gateway);
  ws.send({ type: 'response.create', model: 'm', input: 'hi' });
  await ws.next(({ type }) => type === 'response.output_text.delta');
  await eventually(() => silent.requests.length === asked.length + 1, 'all are asked');
  await gateway.running.stop();
  for (const [index, answer] of answers.entries()) {
    const { status, text } = await answer;
    assert.equal(status, asked[index]?.[2], text);
    assert.match(text, asked[index]?.[3] ?? /^$/);
    assert.doesNotMatch(text, /message_stop|\[DONE\]|response\.completed/);
  }
  await ws.next(({ type }) => type === 'response.failed');
  assert.equal((await ws.closed).code, 1001);
  const rows = gateway.store.settled;
  assert.deepEqual(new Set(rows.map(({ errorCode }) => errorCode)), new Set(['shutting_down']));
  assert.equal(rows.filter(({ charge }) => charge !== undefined).length, 5, 'what was said is billed');
  assert.equal(gateway.store.held.size, 0);
});

test('F39: a shutdown waits until what its clients left behind is in the books, over HTTP and over a WebSocket', async () => {
  for (const [ending, durability] of [
    ['the client leaves', 'strict'],
    ['the second signal cuts', 'strict'],
    ['the second signal cuts', 'batched'],
  ]) {
    await using silent = await fakeUpstream(({ socket }) => {
      beginMessage(socket, 'half');
    });
    await using gateway = await testGateway({
      channels: [channel(silent.url)],
      models: MODELS,
      ledger: { durability },
    });
    const client = new AbortController();
    const response = await gateway.post('/v1/messages', ask({ stream: true }), { signal: client.signal });
    const left = response.text().catch(() => 'left');
    const ws = await connectSocket(gateway);
    ws.send({ type: 'response.create', model: 'm', input: 'hi' });
    await ws.next(({ type }) => type === 'response.output_text.delta');
    const disk = Promise.withResolvers<void>();
    gateway.store.disk = disk.promise;
    let isOver = false;
    const stopped = gateway.running.stop().then(() => {
      isOver = true;
    });
    if (ending === 'the client leaves') {
      client.abort();
      ws.ws.terminate();
    } else {
      gateway.running.cut();
    }
    if (durability === 'strict') {
      await eventually(() => gateway.store.settled.length === 2, 'both are settled');
      await new Promise((resolve) => setTimeout(resolve, 30));
      assert.equal(isOver, false, 'the disk has not answered');
    }
    disk.resolve();
    await Promise.all([left, ws.closed]);
    await stopped;
    const code = ending === 'the client leaves' ? 'client_closed_request' : 'shutting_down';
    assert.equal(gateway.store.settled.length, 2);
    for (const { errorCode, charge } of gateway.store.settled) {
      assert.equal(errorCode, code);
      assert.ok(charge?.flags.includes('estimated'));
    }
  }
});

test('a reload touches no open stream and serves the next request', async () => {
  await using other = await fakeUpstream(sayMessages('new'));
  await using gateway = await testGateway(file);
  gateway.configure({ channels: [channel(other.url)], models: MODELS });
  const response = await gateway.post('/v1/messages', ask({ stream: true }));
  assert.match(await response.text(), /new/);
});

test('F42: no secret in the log', async () => {
  await using gateway = await testGateway(file);
  await gateway.post('/v1/messages', ask());
  await gateway.post('/v1/messages', ask(), { headers: { 'x-api-key': 'canary-secret-1' } });
  const lines = gateway.logLines.join('');
  assert.match(lines, /"exchange_id"/);
  assert.doesNotMatch(lines, /sk-upstream|sk-mizu-test|canary-secret/);
});
