/** A call that has no answer: whether the upstream can have seen it decides about money. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { createServer as createTlsServer } from 'node:tls';
import { Upstreams } from '../../../src/http/dispatch/upstream.ts';
import { type CallResult, callVideoUpstream, routeOf } from '../../../src/http/videos/video-channel.ts';
import { systemClock } from '../../../src/streams/clock.ts';
import { EXPIRED_CERT, EXPIRED_KEY, GOOD_CERT, GOOD_KEY } from '../../support/certificates.ts';
import { testConfig } from '../../support/test-gateway.ts';

const ALIVE = new AbortController().signal;

/** What becomes of a submission to a server that treats each connection so. */
async function outcomeAt(
  scheme: 'http' | 'https',
  onConnection: (socket: Socket) => void,
  options: { readonly timeoutMs?: number; readonly signal?: AbortSignal; readonly tls?: { cert: string; key: string } } = {},
): Promise<CallResult> {
  const sockets = new Set<Socket>();
  const accept = (socket: Socket): void => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    onConnection(socket);
  };
  const server = options.tls === undefined ? createServer(accept) : createTlsServer(options.tls, accept);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const upstreams = new Upstreams(systemClock);
  const { port } = server.address() as AddressInfo;
  const { channels } = testConfig({
    channels: [{ id: 'ark', type: 'ark_video', base_url: `${scheme}://127.0.0.1:${port}`, api_key: 'k', models: ['v'] }],
    models: { v: { kind: 'video' } },
  });
  const route = channels[0] === undefined ? undefined : routeOf(channels[0], 'v');
  assert.ok(route !== undefined);
  try {
    return await callVideoUpstream(
      route,
      { method: 'POST', path: '/tasks', body: '{}' },
      { upstreams, clock: systemClock, timeoutMs: options.timeoutMs ?? 10_000, signal: options.signal ?? ALIVE },
    );
  } finally {
    await upstreams.close();
    for (const socket of sockets) socket.destroy();
    server.close();
  }
}

const sentOf = (result: CallResult): boolean | 'answered' => (result.answered ? 'answered' : result.sent);

test('F30: what fails before there is a connection was never sent, whatever failed', async () => {
  const nothing = (): void => undefined;
  const ways = {
    'an authority that nobody knows': () => outcomeAt('https', nothing, { tls: { cert: GOOD_CERT, key: GOOD_KEY } }),
    'a certificate that is over': () => outcomeAt('https', nothing, { tls: { cert: EXPIRED_CERT, key: EXPIRED_KEY } }),
    'a server that speaks no TLS': () => outcomeAt('https', (socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')),
    'a handshake that is cut': () => outcomeAt('https', (socket) => socket.once('data', () => socket.resetAndDestroy())),
  };
  for (const [way, outcome] of Object.entries(ways)) assert.equal(sentOf(await outcome()), false, way);
});

test('F30: what had a connection, or was given up, may have been sent', async () => {
  const silent = (socket: Socket): void => void socket.resume();
  const huge = (socket: Socket): void => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2000000\r\n\r\n');
    socket.write(Buffer.alloc(2_000_000, 32));
  };
  const ways = {
    'a connection that is cut': () => outcomeAt('http', (socket) => socket.once('data', () => socket.resetAndDestroy())),
    'no HTTP': () => outcomeAt('http', (socket) => socket.once('data', () => socket.end('hello'))),
    'an answer that is too large': () => outcomeAt('http', huge),
    'no answer in time': () => outcomeAt('http', silent, { timeoutMs: 50 }),
    'a worker that was told to end': () => outcomeAt('http', silent, { signal: AbortSignal.abort(new Error('cut')) }),
  };
  for (const [way, outcome] of Object.entries(ways)) assert.equal(sentOf(await outcome()), true, way);
});
