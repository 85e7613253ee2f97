/** The way to an upstream: proxies, authorities of one's own, certificates that are over, addresses where nobody is. */
import assert from 'node:assert/strict';
import { createServer as createHttpServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { CA, EXPIRED_CERT, EXPIRED_KEY, GOOD_CERT, GOOD_KEY } from '../../support/certificates.ts';
import { fakeUpstream, jsonAnswer, wholeMessage } from '../../support/fake-upstream.ts';
import { ask, channel, eventually, MODELS, testGateway } from '../../support/test-gateway.ts';

async function tlsUpstream(t: { after(fn: () => void): void }, cert: string, key: string): Promise<string> {
  const server = createTlsServer({ cert, key }, (request, response) => {
    request.resume();
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(wholeMessage('over TLS')));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  return `https://127.0.0.1:${port}`;
}

test('F14: an authority of one’s own is trusted for its Channel only', async (t) => {
  const url = await tlsUpstream(t, GOOD_CERT, GOOD_KEY);
  await using gateway = await testGateway({ channels: [channel(url, { options: { ca: CA } })], models: MODELS });
  assert.match(await (await gateway.post('/v1/messages', ask())).text(), /over TLS/);
  gateway.configure({ channels: [channel(url)], models: MODELS });
  const untrusted = await gateway.post('/v1/messages', ask());
  assert.equal(untrusted.status, 502);
  assert.match(gateway.store.settled.at(-1)?.errorText ?? '', /UNABLE_TO_VERIFY_LEAF_SIGNATURE|self.signed/i);
});

test('F14: an expired certificate: 502 for the client, its reason for the operator, and the next Channel where there is one', async (t) => {
  const url = await tlsUpstream(t, EXPIRED_CERT, EXPIRED_KEY);
  const expired = channel(url, { id: 'expired', options: { ca: CA } });
  await using gateway = await testGateway({ channels: [expired], models: MODELS });
  const refused = await gateway.post('/v1/messages', ask());
  assert.equal(refused.status, 502);
  const text = await refused.text();
  assert.match(text, /"type":"error"/);
  assert.doesNotMatch(text, /127\.0\.0\.1|CERT/);
  assert.match(gateway.store.settled[0]?.errorText ?? '', /CERT_HAS_EXPIRED/);
  const good = await tlsUpstream(t, GOOD_CERT, GOOD_KEY);
  gateway.configure({ channels: [expired, channel(good, { priority: 1, options: { ca: CA } })], models: MODELS });
  assert.match(await (await gateway.post('/v1/messages', ask())).text(), /over TLS/);
});

test('F14: an address where nobody is, and a name that does not exist', async () => {
  for (const url of ['http://127.0.0.1:1', 'http://no-such-host.invalid']) {
    await using gateway = await testGateway({ channels: [channel(url)], models: MODELS });
    const response = await gateway.post('/v1/messages', ask({ stream: true }));
    assert.equal(response.status, 502);
    assert.doesNotMatch(await response.text(), /127\.0\.0\.1|no-such-host/);
    assert.match(gateway.store.settled[0]?.errorText ?? '', /ECONNREFUSED|ENOTFOUND|EAI_AGAIN/);
  }
});

test('a status that HTTP does not have, or that nobody asked for, is the upstream’s fault: 502, until its circuit opens', async () => {
  for (const status of [0, 99, 100, 101, 102, 199, 600, 999, 1000]) {
    await using upstream = await fakeUpstream(jsonAnswer(status, { error: { message: 'odd' } }));
    await using gateway = await testGateway({ channels: [channel(upstream.url)], models: MODELS });
    for (const stream of [false, true]) {
      const response = await gateway.post('/v1/messages', ask({ stream }));
      assert.equal(response.status, 502, `${status}`);
      assert.match(await response.text(), /"type":"error"/);
      const row = gateway.store.settled.at(-1);
      assert.equal(row?.errorCode, 'upstream_error', `${status}`);
      assert.match(row?.attempts.at(-1)?.errorCode ?? '', /^(undecodable|network|http_status)$/, `${status}`);
    }
    // So it is not the status that makes a 503, but the failures before it.
    let last = 502;
    for (let asked = 0; asked < 30 && last === 502; asked += 1) last = (await gateway.post('/v1/messages', ask())).status;
    assert.equal(last, 503, `${status}`);
  }
});

test('F13: an upstream that had begun to answer, if only with 1xx, is asked once', async () => {
  const good = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}';
  for (const [said, isCut] of [
    ['HTTP/1.1 102 Processing\r\n\r\n', true],
    ['HTTP/1.1 200 OK\r\ncontent-ty', true],
    ['H', true],
    ['HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n', true],
    [`HTTP/1.1 100 Continue\r\n\r\n${good}`, false],
    ['HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n', false],
  ] as const) {
    await using upstream = await fakeUpstream(({ socket }) => {
      socket.write(said, () => (isCut ? setTimeout(() => socket.destroy(), 20) : undefined));
    });
    await using gateway = await testGateway({ channels: [channel(upstream.url)], models: MODELS });
    assert.equal((await gateway.post('/v1/messages', ask())).status, 502, said);
    assert.equal(upstream.requests.length, 1, said);
    assert.equal(gateway.store.settled[0]?.attempts.length, 1, said);
  }
});

test('a proxy carries what goes to its Channel: TLS in a tunnel, plain HTTP by its whole address', async (t) => {
  const secure = await tlsUpstream(t, GOOD_CERT, GOOD_KEY);
  const asked: string[] = [];
  const proxy = createHttpServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    request.resume();
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(wholeMessage('by the proxy')));
  });
  proxy.on('connect', (request, client) => {
    asked.push(`CONNECT ${request.url}`);
    const [host = '', port = ''] = (request.url ?? '').split(':');
    const server = connect(Number(port), host, () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      server.pipe(client);
      client.pipe(server);
    });
    server.on('error', () => client.destroy());
    client.on('error', () => server.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    proxy.close();
    proxy.closeAllConnections();
  });
  const { port } = proxy.address() as AddressInfo;
  const options = { proxy: `http://127.0.0.1:${port}`, ca: CA };
  await using gateway = await testGateway({ channels: [channel(secure, { options })], models: MODELS });
  assert.match(await (await gateway.post('/v1/messages', ask())).text(), /over TLS/);
  gateway.configure({ channels: [channel('http://upstream.invalid', { options })], models: MODELS });
  assert.match(await (await gateway.post('/v1/messages', ask())).text(), /by the proxy/);
  assert.deepEqual(asked, [`CONNECT ${new URL(secure).host}`, 'POST http://upstream.invalid/v1/messages']);
});

test('F14: a proxy that opens no tunnel is given up after connect_ms, and keeps no connection', async (t) => {
  const secure = await tlsUpstream(t, GOOD_CERT, GOOD_KEY);
  const asked: Socket[] = [];
  const proxy = createServer((client) => {
    asked.push(client.on('error', () => undefined));
    client.resume();
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    proxy.close();
    for (const client of asked) client.destroy();
  });
  const { port } = proxy.address() as AddressInfo;
  const timeouts = { connect_ms: 300, first_data_ms: 60_000 };
  const hung = channel(secure, { timeouts, options: { proxy: `http://127.0.0.1:${port}`, ca: CA } });
  await using gateway = await testGateway({ channels: [hung], models: MODELS });
  const refused = await gateway.post('/v1/messages', ask(), { signal: AbortSignal.timeout(20_000) });
  assert.deepEqual([refused.status, /could not be reached in time/.test(await refused.text())], [502, true]);
  assert.ok(asked.length > 0);
  await eventually(() => asked.every((client) => client.closed), 'connections that are closed');
});

test('trace context: a good one goes on unchanged, a bad one and every other header stays here', async (t) => {
  const upstream = await fakeUpstream(jsonAnswer(200, wholeMessage('fine')));
  t.after(() => upstream.close());
  await using gateway = await testGateway({ channels: [channel(upstream.url)], models: MODELS });
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  await gateway.post('/v1/messages', ask(), {
    headers: { traceparent, tracestate: 'a=1,b=2', baggage: 'user=me', cookie: 'c=1' },
  });
  await gateway.post('/v1/messages', ask(), { headers: { traceparent: 'nonsense', tracestate: 'a=1' } });
  const [good, bad] = upstream.requests;
  assert.equal(good?.headers.get('traceparent'), traceparent);
  assert.equal(good?.headers.get('tracestate'), 'a=1,b=2');
  assert.equal(good?.headers.get('baggage'), undefined);
  assert.equal(good?.headers.get('cookie'), undefined);
  assert.equal(bad?.headers.get('traceparent'), undefined);
  assert.equal(bad?.headers.get('tracestate'), undefined);
});

test('a whole answer that broke off in the middle is not said not to have begun', async (t) => {
  let body: string | undefined;
  const server = createHttpServer((request, response) => {
    request.resume();
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    if (body !== undefined) response.write(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  await using gateway = await testGateway({
    channels: [channel(`http://127.0.0.1:${port}`, { timeouts: { first_data_ms: 100 } })],
    models: MODELS,
  });
  const said = async (stream: boolean): Promise<string> => (await gateway.post('/v1/messages', ask({ stream }))).text();
  for (const stream of [true, false]) {
    body = undefined;
    assert.match(await said(stream), /did not begin to answer in time/);
    body = '{"id":"msg_1",';
    assert.match(await said(stream), /did not finish its answer in time/);
  }
});
