/**
 * One call of an upstream: what arrived before a failure is not lost, back-pressure, aborts in every phase, a connection that is
 * used again.
 */
import assert from 'node:assert/strict';
import { AssertionError } from 'node:assert';
import { getEventListeners } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { type Dispatcher, Pool } from 'undici';
import type { ReceivedBody } from '../../../src/http/dispatch/received-body.ts';
import { headerOf, UpstreamCall } from '../../../src/http/dispatch/upstream-call.ts';
import type { BodyReader } from '../../../src/streams/body-source.ts';
import { readErrorText, readWhole } from '../../../src/http/dispatch/upstream-body.ts';
import { systemClock } from '../../../src/streams/clock.ts';
import { StreamError } from '../../../src/streams/stream-error.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { until } from '../../support/loopback.ts';

interface Upstream extends AsyncDisposable {
  ask(signal?: AbortSignal): UpstreamCall;
  /** Connections that were opened. */
  readonly connections: () => number;
  /** No answer is being received. */
  readonly idle: () => boolean;
}

async function upstream(listener: (request: IncomingMessage, response: ServerResponse) => void): Promise<Upstream> {
  let connections = 0;
  const server = createServer(listener);
  server.on('connection', () => connections++);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const pool = new Pool(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  return {
    connections: () => connections,
    idle: () => pool.stats.running === 0,
    ask(signal = new AbortController().signal) {
      const call = new UpstreamCall(systemClock, signal);
      pool.dispatch({ path: '/', method: 'GET' }, call);
      return call;
    },
    async [Symbol.asyncDispose]() {
      await pool.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Everything up to the end, or to the failure. */
async function rest(body: ReceivedBody): Promise<{ readonly text: string; readonly failure: unknown }> {
  let text = '';
  try {
    for (;;) {
      const batch = body.take();
      if (batch === null) return { text, failure: undefined };
      if (batch === undefined) await body.wait();
      else text += Buffer.concat(batch).toString();
    }
  } catch (failure) {
    return { text, failure };
  }
}

test('a whole answer: status, headers and text', async () => {
  await using server = await upstream((_request, response) => response.writeHead(201, { 'x-a': 'b' }).end('whole'));
  const { status, headers, body } = await server.ask().head;
  assert.deepEqual([status, headers['x-a'], await readWhole({ headers, body }, 100)], [201, 'b', 'whole']);
});

test('the mark that some servers put before JSON is no part of the text, of an answer and of an error', async () => {
  await using server = await upstream((_request, response) => response.end('\ufeff{"a":"\ufeff"}'));
  assert.equal(await readWhole(await server.ask().head, 100), '{"a":"\ufeff"}');
  assert.equal(await readErrorText(await server.ask().head, systemClock), '{"a":"\ufeff"}');
});

test('an informational answer is passed over', async () => {
  await using server = await upstream((_request, response) => {
    response.writeEarlyHints({ link: '</a>; rel=preload' });
    response.end('after it');
  });
  const { status, headers, body } = await server.ask().head;
  assert.deepEqual([status, await readWhole({ headers, body }, 100)], [200, 'after it']);
});

test('an upstream that dies while the reader is slow: everything that had arrived is delivered, then the failure', async () => {
  let dead = false;
  await using server = await upstream((_request, response) => {
    for (let i = 0; i < 6; i++) setTimeout(() => response.write(`event ${i};`), i * 5);
    setTimeout(() => response.socket?.destroy(), 40);
    response.on('close', () => {
      dead = true;
    });
  });
  const { body } = await server.ask().head;
  await until(() => dead, 'the upstream dies');
  await new Promise((resolve) => setTimeout(resolve, 20));
  const { text, failure } = await rest(body);
  assert.equal(text, 'event 0;event 1;event 2;event 3;event 4;event 5;');
  assert.ok(failure instanceof Error);
});

test('back-pressure: a reader that does not take holds the upstream back, and loses nothing', async () => {
  const TOTAL = 64_000_000;
  let sent = 0;
  await using server = await upstream((_request, response) => {
    const more = (): void => {
      while (sent < TOTAL) {
        sent += 64_000;
        if (!response.write(Buffer.alloc(64_000))) {
          response.once('drain', more);
          return;
        }
      }
      response.end();
    };
    more();
  });
  const { body } = await server.ask().head;
  let before = -1;
  // The kernel takes some megabytes; then it stands still.
  while (before !== sent) {
    before = sent;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.ok(sent < TOTAL / 2, `${sent} bytes for a reader that took nothing`);
  assert.equal((await readWhole({ headers: {}, body }, TOTAL)).length, TOTAL);
});

test('an abort before the head, while waiting for the body, and before it began is the failure that is told', async () => {
  let closed = 0;
  await using server = await upstream((request, response) => {
    response.on('close', () => closed++);
    if (request.headers['connection'] !== undefined) response.flushHeaders();
  });
  const gone = new Error('gone');
  const early = server.ask(AbortSignal.abort(gone));
  await assert.rejects(early.head, gone);
  assert.equal(early.abortedFor, gone);

  const abort = new AbortController();
  const { body } = await server.ask(abort.signal).head;
  const read = assert.rejects(readWhole({ headers: {}, body }, 100), gone);
  abort.abort(gone);
  await read;
  await until(() => closed === 1, 'the upstream sees the connection closed');

  await using silent = await upstream(() => undefined);
  const call = silent.ask();
  call.abort(gone);
  await assert.rejects(call.head, gone);
});

test('a cancelled body closes its connection; one that was said to its end lets a short rest come in and keeps it', async () => {
  let left: ServerResponse | undefined;
  let closed = false;
  await using server = await upstream((_request, response) => {
    left = response;
    response.write('a');
    response.on('close', () => {
      closed = true;
    });
  });
  const said = (await server.ask().head).body;
  await said.wait();
  said.cancel(new StreamError('ended', 'all was said'));
  assert.equal(said.take(), null);
  left?.end('rest');
  await until(server.idle, 'the answer is over');
  const again = (await server.ask().head).body;
  assert.equal(server.connections(), 1);
  closed = false; // that of the first answer
  again.cancel(new Error('left'));
  assert.equal(again.take(), null);
  await until(() => closed, 'the upstream sees the connection closed');
});

test('finish: what has arrived is all there is', async () => {
  await using server = await upstream((_request, response) => response.write('said'));
  const { body } = await server.ask().head;
  await body.wait();
  body.finish();
  assert.deepEqual(await rest(body), { text: 'said', failure: undefined });
});

test('a body over its limit is an error, or cut where it is one; both close the connection', async () => {
  let closed = 0;
  await using server = await upstream((_request, response) => {
    response.on('close', () => closed++);
    response.write('x'.repeat(300_000));
  });
  await assert.rejects(readWhole(await server.ask().head, 1000), { reason: 'too_many_bytes' });
  assert.equal((await readErrorText(await server.ask().head, systemClock)).length, 256 * 1024);
  await until(() => closed === 2, 'both connections are closed');
});

test('a whole answer: decompressed as it says, within its bound; JSON is what it is; anything else is named', async () => {
  const answers: Readonly<Record<string, readonly [string, Buffer]>> = {
    plain: ['identity', Buffer.from('{"a":1}')],
    gzip: ['gzip', gzipSync('{"a":1}')],
    brotli: ['BR', brotliCompressSync('{"a":1}')],
    'a lie': ['gzip', Buffer.from(' {"a":1}')],
    'no gzip': ['gzip', Buffer.from('words')],
    'a coding that nobody knows': ['rot13', Buffer.from('jbeqf')],
    'a bomb': ['gzip', gzipSync(Buffer.alloc(1_000_000))],
  };
  const said: string[] = [];
  for (const [encoding, bytes] of Object.values(answers)) {
    await using server = await upstream((_request, response) =>
      response.writeHead(200, { 'content-encoding': encoding }).end(bytes),
    );
    const text = readWhole(await server.ask().head, 2_000);
    said.push((await text.catch((thrown: unknown) => (thrown instanceof StreamError ? thrown.reason : String(thrown)))).trim());
  }
  const known = ['{"a":1}', '{"a":1}', '{"a":1}', '{"a":1}'];
  assert.deepEqual(said, [...known, 'encoded_body', 'encoded_body', 'too_many_bytes']);
});

test('words of an error: decompressed as they say, nothing of what is not what it says, and not waited for', async () => {
  const answers: Readonly<Record<string, readonly [Record<string, string>, Buffer]>> = {
    plain: [{}, Buffer.from('too many tokens')],
    gzip: [{ 'content-encoding': 'GZIP' }, gzipSync('too many tokens')],
    brotli: [{ 'content-encoding': 'br' }, brotliCompressSync('too many tokens')],
    'a lie': [{ 'content-encoding': 'zstd' }, gzipSync('too many tokens')],
    'a coding that nobody knows': [{ 'content-encoding': 'rot13' }, Buffer.from('gbb znal gbxraf')],
    'a bomb': [{ 'content-encoding': 'gzip' }, gzipSync(Buffer.alloc(1_000_000))],
  };
  const said: string[] = [];
  for (const [headers, bytes] of Object.values(answers)) {
    await using server = await upstream((_request, response) => response.writeHead(400, headers).end(bytes));
    said.push(await readErrorText(await server.ask().head, systemClock));
  }
  assert.deepEqual(said, ['too many tokens', 'too many tokens', 'too many tokens', '', '', '']);

  let closed = false;
  await using server = await upstream((_request, response) => {
    response.on('close', () => {
      closed = true;
    });
    response.writeHead(500, { 'content-length': 100 }).write('the first half');
  });
  const clock = createFakeClock();
  const head = await server.ask().head;
  const text = readErrorText(head, clock);
  await new Promise((resolve) => setTimeout(resolve, 20));
  clock.advance(10_000);
  assert.equal(await text, 'the first half');
  await until(() => closed, 'the connection is let go');
});

/** A connection that was told what its call wants of it. */
function connection() {
  const aborts: unknown[] = [];
  const controller: Dispatcher.DispatchController = {
    aborted: false,
    paused: false,
    reason: null,
    rawHeaders: ['packet'],
    rawTrailers: null,
    pause: () => undefined,
    resume: () => undefined,
    abort: (reason) => void aborts.push(reason),
  };
  return { aborts, controller };
}

test('a call that was given up before it had a connection lets the connection go when it comes', async () => {
  const client = new AbortController();
  const call = new UpstreamCall(systemClock, client.signal);
  const left = new Error('left');
  const rejected = assert.rejects(call.head, left);
  client.abort(left);
  await rejected;
  const { aborts, controller } = connection();
  call.onRequestStart(controller);
  assert.deepEqual(aborts, [left]);
  call.onResponseError(controller, new Error('UND_ERR_ABORTED'));
  assert.equal(call.abortedFor, left);
});

test('the first failure is told, and a reason that is no error is one', async () => {
  const call = new UpstreamCall(systemClock, new AbortController().signal);
  const { aborts, controller } = connection();
  call.onRequestStart(controller);
  call.onResponseStart(controller, 200, {});
  const { body } = await call.head;
  call.abort('enough');
  call.onResponseError(controller, new Error('later'));
  assert.deepEqual(
    aborts.map((reason) => reason instanceof Error && [reason.message, reason.cause]),
    [['the call was cancelled', 'enough']],
  );
  assert.throws(() => body.take(), { message: 'the call was cancelled' });
});

test('a client that leaves after the end of an answer cuts no connection, and the head keeps no packet', async () => {
  const client = new AbortController();
  const call = new UpstreamCall(systemClock, client.signal);
  const { aborts, controller } = connection();
  call.onRequestStart(controller);
  call.onResponseStart(controller, 200, {});
  assert.equal(controller.rawHeaders, null);
  call.onResponseEnd();
  client.abort();
  assert.deepEqual(aborts, []);
  assert.equal(call.abortedFor, undefined);
  assert.equal((await call.head).body.take(), null);
});

test('a call that failed is not aborted by its client any more, and does not wait for it', async () => {
  const client = new AbortController();
  const call = new UpstreamCall(systemClock, client.signal);
  const { aborts, controller } = connection();
  call.onRequestStart(controller);
  const rejected = assert.rejects(call.head, { message: 'reset' });
  call.onResponseError(controller, new Error('reset'));
  await rejected;
  assert.equal(getEventListeners(client.signal, 'abort').length, 0);
  client.abort(new Error('left'));
  assert.deepEqual([call.abortedFor, aborts], [undefined, []]);
});

test('an answer that nobody asked for is a fault of the upstream, in words', async () => {
  const call = new UpstreamCall(systemClock, new AbortController().signal);
  const { controller } = connection();
  call.onRequestStart(controller);
  const rejected = assert.rejects(call.head, {
    name: 'HTTPParserError',
    message: 'the upstream answered with what nobody asked for',
  });
  call.onResponseError(controller, new AssertionError({ message: 'assert(!this.upgrade)' }));
  await rejected;
});

test('of a header that was sent twice the first value counts; one that was not sent is empty', () => {
  assert.equal(headerOf({ 'x-a': ['1', '2'] }, 'x-a'), '1');
  assert.equal(headerOf({ 'x-a': '3' }, 'x-a'), '3');
  assert.equal(headerOf({ 'x-a': [] }, 'x-a'), '');
  assert.equal(headerOf({}, 'x-a'), '');
});

test('a whole answer whose every byte came in a chunk of its own takes the memory of its bytes', async () => {
  let left = 2_000_000;
  const heapBytes = (): number => process.memoryUsage().heapUsed;
  const before = heapBytes();
  let taken = 0;
  const reader: BodyReader = {
    take() {
      taken = heapBytes() - before;
      const size = Math.min(left, 10_000);
      left -= size;
      return size === 0 ? null : Array.from({ length: size }, () => new Uint8Array([0x20]));
    },
    wait: async () => undefined,
    ready: (wake) => wake(),
    cancel: () => undefined,
    finish: () => undefined,
  };
  const body = reader as ReceivedBody;
  assert.equal((await readWhole({ headers: {}, body }, 2_000_000)).length, 2_000_000);
  assert.ok(taken < 150_000_000, `${taken} bytes`);
});
