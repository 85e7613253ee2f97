/** What a call that has no answer says of itself: whether the upstream can have seen it, since a task that was sent is never sent again. */
import assert from 'node:assert/strict';
import { createServer as createHttpServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { Upstreams } from '../../../src/http/dispatch/upstream.ts';
import { type CallResult, callVideoUpstream, routeOf } from '../../../src/http/videos/video-channel.ts';
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
  readonly signal?: AbortSignal;
}

async function submit(t: TestContext, url: string, { options = {}, signal = new AbortController().signal }: Asked = {}) {
  const config = testConfig({
    channels: [{ id: 'v', type: 'ark_video', base_url: url, models: ['v'], timeouts: { connect_ms: 500 }, options }],
    models: { v: { kind: 'video', price: { video: '1' } } },
  });
  const [route] = config.channels.map((channel) => routeOf(channel, 'v'));
  assert.ok(route);
  const upstreams = new Upstreams(systemClock);
  t.after(() => upstreams.close());
  const call = { method: 'POST', path: '/contents', body: '{}' } as const;
  return await callVideoUpstream(route, call, { upstreams, clock: systemClock, timeoutMs: 5_000, signal });
}

const sentOf = (result: CallResult): boolean | 'answered' => (result.answered ? 'answered' : result.sent);

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
  for (const [why, [url, how]] of Object.entries(unreached)) assert.equal(sentOf(await submit(t, url, how)), false, why);
  assert.equal(asked, 0);
});

test('a call on a connection may have been seen, and so may one that was cut short from outside', async (t) => {
  const closing = `http://127.0.0.1:${await listening(
    t,
    createHttpServer((request) => request.socket.destroy()),
  )}`;
  assert.equal(sentOf(await submit(t, closing)), true);
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
  assert.equal(sentOf(await result), true);
  assert.equal(sentOf(await submit(t, hanging, { signal: AbortSignal.abort(new Error('cut')) })), true);
});
