/**
 * What a call that has no answer says of itself: whether the upstream can have seen it, since a task that was sent is never sent
 * again.
 */
import assert from 'node:assert/strict';
import { createServer as createHttpServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { Upstreams } from '../../../src/http/dispatch/upstream.ts';
import { attemptSubmission, routeOf } from '../../../src/http/videos/video-channel.ts';
import { decodeVideoRequest } from '../../../src/codecs/videos/request.ts';
import { verdictOf } from '../../../src/http/dispatch/verdict.ts';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import { upstreamFailure } from '../../../src/http/errors.ts';
import { systemClock } from '../../../src/streams/clock.ts';
import { CA, EXPIRED_CERT, EXPIRED_KEY, GOOD_CERT, GOOD_KEY } from '../../support/certificates.ts';
import { freePort } from '../../support/processes.ts';
import { testConfig } from '../../support/test-gateway.ts';

async function listening(t: TestContext, server: Server): Promise<number> {
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  t.after(() => void server.close());
  return (server.address() as AddressInfo).port;
}

interface Asked {
  readonly options?: object;
  readonly type?: string;
  readonly signal?: AbortSignal;
  readonly firstDataMs?: number;
}

/** The upstream's id of the task, or what the attempt loop makes of the failure. */
async function submit(t: TestContext, url: string, asked: Asked = {}): Promise<string | GatewayError> {
  const { options = {}, type = 'ark_video', signal = new AbortController().signal, firstDataMs = 5_000 } = asked;
  const timeouts = { connect_ms: 500, first_data_ms: firstDataMs };
  const config = testConfig({
    channels: [{ id: 'v', type, base_url: url, api_key: 'sk-secret-of-ours', models: ['v'], timeouts, options }],
    models: { v: { kind: 'video', price: { video: '1' } } },
  });
  const [route] = config.channels.map((channel) => routeOf(channel, 'v'));
  assert.ok(route);
  const upstreams = new Upstreams(systemClock);
  t.after(() => upstreams.close());
  const target = { channel: route.channel, upstreamModel: 'v', without: new Set<never>(), signal, note: {} };
  const request = decodeVideoRequest({ model: 'v', prompt: 'p', duration: 5 });
  return await attemptSubmission(target, route.codec, request, { upstreams, clock: systemClock }).catch(upstreamFailure);
}

const verdict = (ended: string | GatewayError): string => (ended instanceof GatewayError ? verdictOf(ended) : 'accepted');

test('a call to which no connection was made was not sent, whatever the connection failed by', async (t) => {
  let asked = 0;
  const tls = (cert: string, key: string) => {
    const server = createTlsServer({ cert, key }, (_request, response) => {
      asked += 1;
      response.end('{}');
    });
    return listening(
      t,
      server.on('tlsClientError', () => undefined),
    );
  };
  const raw = (greet: (socket: Socket) => void) =>
    listening(
      t,
      createServer((socket) => {
        socket.on('error', () => undefined);
        t.after(() => void socket.destroy());
        greet(socket);
      }),
    );
  const proxy = (answer: (socket: Duplex) => void) =>
    listening(
      t,
      createHttpServer().on('connect', (_request, socket: Duplex) => answer(socket)),
    );
  const through = async (port: number) => ({ options: { proxy: `http://127.0.0.1:${port}` } });
  const elsewhere = 'https://127.0.0.1:443';
  const unreached: Readonly<Record<string, readonly [url: string, asked?: Asked]>> = {
    'nobody listens': [`http://127.0.0.1:${await freePort()}`],
    'the authority is not trusted': [`https://127.0.0.1:${await tls(GOOD_CERT, GOOD_KEY)}`],
    'the certificate has expired': [`https://127.0.0.1:${await tls(EXPIRED_CERT, EXPIRED_KEY)}`, { options: { ca: CA } }],
    'it speaks no TLS': [`https://127.0.0.1:${await raw((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))}`],
    'it closes before TLS stands': [`https://127.0.0.1:${await raw((socket) => socket.destroy())}`],
    'it says nothing': [`https://127.0.0.1:${await raw(() => undefined)}`],
    'no proxy listens': [elsewhere, await through(await freePort())],
    'the proxy refuses': [elsewhere, await through(await proxy((socket) => socket.end('HTTP/1.1 407 No\r\n\r\n')))],
    'the proxy closes': [elsewhere, await through(await proxy((socket) => socket.destroy()))],
  };
  for (const [why, [url, how]] of Object.entries(unreached)) assert.equal(verdict(await submit(t, url, how)), 'next', why);
  assert.equal(asked, 0);
});

test('a call on a connection may have been seen, and so may one that was cut short from outside', async (t) => {
  const closing = `http://127.0.0.1:${await listening(
    t,
    createHttpServer((request) => request.socket.destroy()),
  )}`;
  assert.equal(verdict(await submit(t, closing)), 'lost');
  const { promise: open, resolve } = Promise.withResolvers<void>();
  const hanging = `http://127.0.0.1:${await listening(
    t,
    createHttpServer((request) => {
      t.after(() => request.socket.destroy());
      resolve();
    }),
  )}`;
  const cut = new AbortController();
  const result = submit(t, hanging, { signal: cut.signal });
  await open;
  cut.abort(new Error('cut'));
  assert.equal(verdict(await result), 'lost');
  assert.equal(verdict(await submit(t, hanging, { firstDataMs: 50 })), 'lost');
  assert.equal(verdict(await submit(t, hanging, { signal: AbortSignal.abort(new Error('cut')) })), 'lost');
});

test('what an upstream answers decides: accepted, refused for good, not taken now, or unclear', async (t) => {
  let answer: { readonly status: number; readonly body: object; readonly headers?: Record<string, string> } = {
    status: 200,
    body: {},
  };
  const url = `http://127.0.0.1:${await listening(
    t,
    createHttpServer((request, response) => {
      request.resume();
      response.writeHead(answer.status, { 'content-type': 'application/json', connection: 'close', ...answer.headers });
      response.end(JSON.stringify(answer.body));
    }),
  )}`;
  const says = async (status: number, body: object, asked: Asked = {}, headers = {}) => {
    answer = { status, body, headers };
    return await submit(t, url, asked);
  };
  const refusedWith = (ended: string | GatewayError): GatewayError =>
    ended instanceof GatewayError ? ended : assert.fail(ended);
  assert.equal(await says(200, { id: 'up-1' }), 'up-1');
  const bad = refusedWith(await says(400, { error: { code: 'Bad', message: 'bad duration, sk-secret-of-ours' } }));
  assert.deepEqual([verdictOf(bad), bad.shownCode, bad.message.includes('bad duration')], ['stop', 'Bad', true]);
  assert.match(bad.details.upstream?.text ?? '', /^\{"error".+bad duration, \[redacted\]/);
  const busy = refusedWith(await says(429, {}, {}, { 'retry-after': '2' }));
  assert.deepEqual([verdictOf(busy), busy.details.upstream?.retryAfterMs], ['next', 2_000]);
  assert.equal(verdict(await says(401, {})), 'next');
  assert.equal(verdict(await says(500, {})), 'lost');
  assert.equal(verdict(await says(200, { no: 'id' })), 'lost');
  // MiniMax says it inside a 200.
  const base = (code: number) => ({ base_resp: { status_code: code, status_msg: 'words' } });
  const minimax = { type: 'minimax_video' };
  for (const [code, status] of [
    [1002, 429],
    [1004, 401],
    [1008, 402],
    [1033, 503],
  ] as const) {
    const error = refusedWith(await says(200, base(code), minimax));
    assert.deepEqual([verdictOf(error), error.details.upstream?.status], ['next', status]);
  }
  assert.equal(verdict(await says(200, base(1026), minimax)), 'stop');
  assert.equal(verdict(await says(200, base(1000), minimax)), 'lost');
});
