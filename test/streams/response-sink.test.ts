import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { systemClock } from '../../src/streams/clock.ts';
import { sinkTo } from '../support/streams/response-sink.ts';
import { createResponseWriter } from '../../src/streams/response-writer.ts';
import { unsentBytes } from '../../src/streams/stall-watch.ts';
import { StreamError } from '../../src/streams/stream-error.ts';
import { LONG_CHARS } from '../../src/streams/text-pieces.ts';
import { batchSource, settled } from '../support/batches.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { type Loopback, serve, until } from '../support/loopback.ts';

/** A request whose response the test writes, and a raw client that reads when it is told to. */
async function exchange(): Promise<{ server: Loopback; response: ServerResponse; client: Socket; received: () => string }> {
  const { promise, resolve } = Promise.withResolvers<ServerResponse>();
  const server = await serve((_request, response) => resolve(response));
  const client = connect(Number(new URL(server.url).port), '127.0.0.1');
  client.on('error', () => undefined);
  client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  const response = await promise;
  let received = '';
  client.setEncoding('latin1').on('data', (chunk: string) => {
    received += chunk;
  });
  return { server, response, client, received: () => received };
}

/** The text of a chunked answer, which was read as Latin-1. */
function bodyOf(answer: string): string {
  let body = '';
  for (let at = answer.indexOf('\r\n\r\n') + 4; at < answer.length; ) {
    const start = answer.indexOf('\r\n', at) + 2;
    const size = Number.parseInt(answer.slice(at, start), 16);
    body += answer.slice(start, start + size);
    at = start + size + 2;
  }
  return Buffer.from(body, 'latin1').toString();
}

const options = { clock: systemClock, writeStallMs: 60_000 };
/** Larger than every socket buffer together. */
const FLOOD = 'x'.repeat(16_000_000);

test('one write a batch; the close waits until everything is sent', async () => {
  const { server, response, received } = await exchange();
  await using _ = server;
  const writes: unknown[] = [];
  const write = response.write.bind(response);
  response.write = (chunk: unknown) => {
    writes.push(chunk);
    return write(chunk);
  };
  await batchSource([['a', 'b'], [], ['c']]).readable.pipeTo(sinkTo(response, { ...options, onGone: assert.fail }));
  assert.deepEqual(writes, ['ab', 'c']);
  assert.equal(response.writableFinished, true);
  await until(() => received().endsWith('0\r\n\r\n'), 'the terminal chunk');
  await until(() => response.closed, 'the end of the response');
});

test('chunks that the writer frames are what node:http would send', async () => {
  const long = '世é'.repeat(5000);
  const latin1 = (text: string): string => Buffer.from(text).toString('latin1');
  const longChunk = `${(5000 * 5).toString(16)}\r\n${latin1(long)}\r\n`;
  for (const [last, lastChunk] of [
    [[], ''],
    [['x', 'y'], '2\r\nxy\r\n'],
    [[long], longChunk],
  ] as const) {
    const { server, response, received } = await exchange();
    await using _ = server;
    response.writeHead(200);
    assert.equal(response.chunkedEncoding, true);
    response.chunkedEncoding = false;
    const wire = { chunked: true, socket: () => response.socket ?? undefined };
    const writer = createResponseWriter(response, { ...options, wire });
    for (const batch of [['a', '世'], [], [long]]) await writer.write(batch);
    await writer.end(last);
    const body = `4\r\n${latin1('a世')}\r\n${longChunk}${lastChunk}0\r\n\r\n`;
    await until(() => received().endsWith(`\r\n\r\n${body}`), 'the chunks');
    assert.match(received(), /\r\ntransfer-encoding: chunked\r\n/i);
  }
});

test('an answer that is said at once, short or long, leaves with its head and its end in one write', async () => {
  for (const words of ['x', 'x'.repeat(12_000)]) {
    const { server, response, received } = await exchange();
    await using _ = server;
    response.writeHead(200);
    response.chunkedEncoding = false;
    const socket = response.socket ?? assert.fail('no socket');
    let writes = 0;
    const writev = socket._writev?.bind(socket) ?? assert.fail('no writev');
    socket._writev = (chunks, done) => {
      writes += 1;
      writev(chunks, done);
    };
    const write = socket._write.bind(socket);
    socket._write = (chunk, encoding, done) => {
      writes += 1;
      write(chunk, encoding, done);
    };
    const writer = createResponseWriter(response, { ...options, wire: { chunked: true, socket: () => socket } });
    await writer.end([words]);
    await until(() => received().endsWith(`${words}\r\n0\r\n\r\n`), 'the end');
    assert.equal(writes, 1, `${words.length} characters`);
  }
});

/** {@link LoopTurns.do} in a turn with time left. */
const atOnce = (_party: unknown, work: () => void): void => work();

test('F16: who waits for a reader that left is told in a turn of its own, and the writer at once', async () => {
  const response = new Writable({ highWaterMark: 1, write: () => undefined });
  const later: { readonly party: unknown; readonly work: () => void }[] = [];
  const turns = { enter: () => undefined, do: (party: unknown, work: () => void) => void later.push({ party, work }) };
  const writer = createResponseWriter(response, { ...options, turns, party: 'key' });
  const behind = writer.write(['a']);
  assert.ok(behind !== undefined);
  let told: unknown;
  behind.catch((reason: unknown) => (told = reason));
  response.destroy();
  await until(() => writer.gone() !== undefined, 'the close');
  assert.deepEqual([later.map(({ party }) => party), told], [['key'], undefined]);
  later[0]?.work();
  await until(() => told !== undefined, 'the end of the wait');
  assert.equal(told, writer.gone());
});

test('a connection that is closing takes no more words, and who wrote them waits for its end', async (t) => {
  const { server, response, client } = await exchange();
  await using _ = server;
  const { socket } = response;
  assert.ok(socket !== null);
  response.writeHead(200);
  response.chunkedEncoding = false;
  const writer = createResponseWriter(response, { ...options, wire: { chunked: true, socket: () => socket } });
  assert.equal(writer.write(['first']), undefined);
  socket.destroy();
  const write = t.mock.method(socket, 'write');
  const behind = writer.write(['second']);
  assert.ok(behind !== undefined);
  await assert.rejects(behind, { reason: 'client_gone' });
  assert.equal(write.mock.callCount(), 0);
  client.destroy();
});

test('a reader that is behind on the wire is waited for, and gets everything', async () => {
  const { server, response, client, received } = await exchange();
  await using _ = server;
  response.writeHead(200);
  response.chunkedEncoding = false;
  const wire = { chunked: true, socket: () => response.socket ?? undefined };
  const writer = createResponseWriter(response, { ...options, wire });
  client.pause();
  assert.equal(writer.write(['first']), undefined);
  const block = 'x'.repeat(256 * 1024);
  let taken = true;
  let blocks = 0;
  for (; taken && blocks < 400; blocks++) {
    taken = false;
    const full = writer.write([block]);
    if (full === undefined) taken = true;
    else full.then(() => (taken = true), assert.fail);
    // A system that still has room takes it within a turn or two.
    for (let turn = 0; turn < 20 && !taken; turn++) await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal(taken, false, 'the connection is full');
  const room = writer.write([]);
  assert.notEqual(room, undefined, 'nothing said is no room');
  client.resume();
  await room;
  assert.equal(writer.write([]), undefined, 'there is room again');
  await writer.end(['last']);
  await until(() => received().endsWith('4\r\nlast\r\n0\r\n\r\n'), 'the end');
  assert.equal(received().split(`40000\r\n${block}\r\n`).length, blocks + 1);
});

test('who is gone takes nothing any more, and is told why; how its connection failed is the cause', async () => {
  const broken = new Error('broken pipe');
  const response = new Writable({ write: (_chunk, _encoding, done) => done(broken) });
  const gone: StreamError[] = [];
  const writer = createResponseWriter(response, { ...options, onGone: (reason) => gone.push(reason) });
  assert.equal(writer.gone(), undefined);
  await assert.rejects(async () => writer.write(['a']), { reason: 'client_gone', cause: broken });
  const [reason] = gone;
  assert.ok(reason);
  assert.equal(writer.gone(), reason);
  assert.throws(() => writer.write(['b']), reason);
  await assert.rejects(writer.end(['b']), reason);
  writer.destroy(new Error('too late'));
  assert.equal(writer.gone(), reason);
  assert.equal(gone.length, 1);
});

test('a client that leaves while nothing is being written errors the sink, so the pipe cancels its source', async () => {
  const { server, response, client } = await exchange();
  await using _ = server;
  let cancelled: unknown;
  const silent = new ReadableStream<readonly string[]>({
    cancel(reason) {
      cancelled = reason;
    },
  });
  const gone: string[] = [];
  const piped = silent.pipeTo(sinkTo(response, { ...options, onGone: ({ reason }) => gone.push(reason) }));
  client.destroy();
  await assert.rejects(piped, { reason: 'client_gone' });
  assert.ok(cancelled instanceof StreamError);
  assert.deepEqual(gone, ['client_gone']);
});

test('X7: a client that leaves while a write waits for drain: the write settles and the source is cancelled', async () => {
  const { server, response, client } = await exchange();
  await using _ = server;
  client.pause();
  const source = batchSource(Array.from({ length: 10 }, () => [FLOOD]));
  const piped = source.readable.pipeTo(sinkTo(response, options));
  await until(() => response.writableNeedDrain, 'a write that waits');
  await settled();
  assert.ok(source.pulled() <= 2, `${source.pulled()} batches for a client that reads nothing`);
  client.destroy();
  await assert.rejects(piped, { reason: 'client_gone' });
  assert.equal(source.cancelled().length, 1);
});

test('a client that is gone before the first byte', async () => {
  const { server, response, client } = await exchange();
  await using _ = server;
  client.destroy();
  await until(() => response.destroyed, 'the server notices');
  const source = batchSource(Array.from({ length: 10 }, () => ['a']));
  await assert.rejects(source.readable.pipeTo(sinkTo(response, options)), { reason: 'client_gone' });
  assert.equal(source.cancelled().length, 1);
});

test('a reader that takes nothing for write_stall_ms is ended', async () => {
  const { server, response, client } = await exchange();
  await using _ = server;
  client.pause();
  const clock = createFakeClock();
  const source = batchSource([[FLOOD], [FLOOD]]);
  const gone: string[] = [];
  const onGone = ({ reason }: StreamError) => void gone.push(reason);
  const piped = source.readable.pipeTo(sinkTo(response, { clock, writeStallMs: 1000, onGone }));
  const outcome = assert.rejects(piped, { reason: 'write_stall' });
  await until(() => response.writableNeedDrain, 'a write that waits');
  clock.advance(999);
  assert.equal(response.destroyed, false);
  clock.advance(1);
  await outcome;
  assert.equal(response.destroyed, true);
  assert.equal(source.cancelled().length, 1);
  assert.equal(clock.pending, 0);
  await until(() => response.closed, 'the end of the response');
  assert.deepEqual(gone, ['write_stall']);
});

test('a reader that takes a part of one large event is let be, and one that stops in it is ended', async () => {
  const { server, response, client } = await exchange();
  await using _ = server;
  const clock = createFakeClock();
  let wanted = 4_000_000;
  client.on('data', (chunk: string) => {
    wanted -= chunk.length;
    if (wanted < 0) client.pause();
  });
  const wire = { chunked: true, socket: () => response.socket ?? undefined };
  response.writeHead(200);
  response.chunkedEncoding = false;
  const writer = createResponseWriter(response, { clock, writeStallMs: 1000, wire });
  const full = writer.write([FLOOD]);
  assert.notEqual(full, undefined);
  const outcome = assert.rejects(full ?? Promise.resolve(), { reason: 'write_stall' });
  for (let part = 0; part < 2; part++) {
    await until(() => client.isPaused(), 'a part that was taken');
    // What the systems between them still took counts as taken, too.
    await new Promise((resolve) => setTimeout(resolve, 20));
    clock.advance(999);
    assert.equal(writer.gone(), undefined);
    if (part > 0) break;
    wanted = 4_000_000;
    client.resume();
  }
  clock.advance(1000);
  clock.advance(1000);
  await outcome;
});

test('of a write that is under way, what the system took no longer counts as unsent', async () => {
  const { server, response, client } = await exchange();
  await using _ = server;
  client.once('data', () => client.pause());
  response.write(FLOOD);
  const all = response.writableLength;
  await until(() => client.isPaused(), 'a part that was taken');
  assert.equal(response.writableLength, all, 'the whole write still counts');
  assert.ok((unsentBytes(response, response.socket) ?? 0) < all + FLOOD.length, 'and so does what is left of it');
});

test('a long text goes out in pieces, each in its turn, and nothing comes between them', async () => {
  const long = `é${'x'.repeat(LONG_CHARS)}😀${FLOOD}`;
  for (const frames of [[long], ['a', long, 'b']]) {
    const { server, response, client, received } = await exchange();
    await using _ = server;
    client.pause();
    const clock = createFakeClock();
    let turns = 0;
    const enter = (party: string | undefined): Promise<void> => {
      assert.equal(party, 'key');
      turns += 1;
      return new Promise((resolve) => setImmediate(resolve));
    };
    const keepAlive = { frame: ':k\n\n', intervalMs: 100 };
    const writer = createResponseWriter(response, {
      clock,
      writeStallMs: 1e9,
      keepAlive,
      turns: { enter, do: atOnce },
      party: 'key',
    });
    const written = writer.write(frames);
    assert.ok(written !== undefined);
    for (let round = 0; round < 20; round++) {
      clock.advance(100);
      await new Promise((resolve) => setImmediate(resolve));
    }
    client.resume();
    await written;
    assert.ok(turns > 60, `${turns} turns`);
    clock.advance(100);
    await writer.end([long]);
    await until(() => received().endsWith('0\r\n\r\n'), 'the end');
    const body = bodyOf(received());
    assert.ok(body === `${frames.join('')}:k\n\n${long}`, 'the keep-alive stands between the two texts');
  }
});

test('a client that leaves between two pieces of a long text ends the write', async () => {
  for (const end of [false, true]) {
    const { server, response, client } = await exchange();
    await using _ = server;
    const enter = async (): Promise<void> => {
      client.destroy();
      await until(() => response.destroyed, 'the close');
    };
    const writer = createResponseWriter(response, { ...options, turns: { enter, do: atOnce } });
    const written = end ? writer.end([FLOOD]) : writer.write([FLOOD]);
    await assert.rejects(written ?? Promise.resolve(), { reason: 'client_gone' });
  }
});

test('a client that leaves behind the last piece of a long text, before its end is said, ends the write', async () => {
  const response = new Writable({ highWaterMark: 1e9, write: (_chunk, _encoding, done) => done() });
  let pieces = 0;
  const enter = (): Promise<void> => {
    const entered = Promise.resolve();
    // Between the last look at whether anybody reads and the end there are only promises.
    if (pieces++ === LONG_CHARS / (256 * 1024) + 1)
      void entered.then(() => queueMicrotask(() => writer.destroy(new Error('left'))));
    return entered;
  };
  const writer = createResponseWriter(response, { ...options, turns: { enter, do: atOnce } });
  await assert.rejects(writer.end(['x'.repeat(LONG_CHARS + 1)]), { reason: 'cancelled' });
  assert.equal(response.writableEnded, false);
});

test('a reader that was behind and has caught up may be told nothing for longer than that', async () => {
  const { server, response, client } = await exchange();
  await using _ = server;
  client.pause();
  const clock = createFakeClock();
  const writer = createResponseWriter(response, { clock, writeStallMs: 1000 });
  const full = writer.write([FLOOD]);
  assert.notEqual(full, undefined);
  client.resume();
  await full;
  clock.advance(10_000);
  assert.equal(writer.gone(), undefined);
  await writer.end(['last']);
});

test('a reader that stalls in the last bytes is ended too', async () => {
  const { server, response, client } = await exchange();
  await using _ = server;
  client.pause();
  const clock = createFakeClock();
  const sink = sinkTo(response, { clock, writeStallMs: 1000 }).getWriter();
  const outcome = Promise.all([
    assert.rejects(sink.write([FLOOD]), { reason: 'write_stall' }),
    assert.rejects(sink.close(), { reason: 'write_stall' }),
    assert.rejects(sink.closed, { reason: 'write_stall' }),
  ]);
  await until(() => response.writableNeedDrain, 'a write that waits');
  clock.advance(1000);
  await outcome;
});

test('the last bytes alone may stall, too, and nothing is said behind them', async () => {
  for (const resumes of [true, false]) {
    const { server, response, client, received } = await exchange();
    await using _ = server;
    client.pause();
    const clock = createFakeClock();
    response.writeHead(200);
    response.chunkedEncoding = false;
    const wire = { chunked: true, socket: () => response.socket ?? undefined };
    const keepAlive = { intervalMs: 100, immediately: true };
    const writer = createResponseWriter(response, { clock, writeStallMs: 1000, wire, keepAlive });
    const ended = writer.end([FLOOD]);
    clock.advance(999);
    if (resumes) {
      client.resume();
      await ended;
      await until(() => received().endsWith('x\r\n0\r\n\r\n'), 'the end');
      assert.equal(received().split(': keep-alive\n\n').length, 2, 'before the end, and at once');
    } else {
      clock.advance(1);
      await assert.rejects(ended, { reason: 'write_stall' });
    }
    assert.equal(clock.pending, 0);
  }
});

test('keep-alive: at once when asked for, after silence, not while the reader is behind, not after the end', async () => {
  const { server, response, client, received } = await exchange();
  await using _ = server;
  const clock = createFakeClock();
  const sink = sinkTo(response, { clock, writeStallMs: 1e9, keepAlive: { frame: ':k\n\n', immediately: true } }).getWriter();
  const count = () => received().split(':k\n\n').length - 1;
  await until(() => count() === 1, 'the immediate keep-alive');
  clock.advance(14_000);
  await sink.write(['data']);
  await sink.write([]);
  clock.advance(14_000);
  await sink.write([]);
  await until(() => received().includes('data'), 'the data');
  assert.equal(count(), 1);
  clock.advance(1000);
  await until(() => count() === 2, 'a keep-alive after 15 s of silence, empty batches included');

  client.pause();
  const flood = sink.write([FLOOD]);
  await until(() => response.writableNeedDrain, 'a write that waits');
  clock.advance(100_000);
  client.resume();
  await flood;
  assert.equal(count(), 2);
  clock.advance(15_000);
  await until(() => count() === 3, 'a keep-alive after 15 s in which nothing was said to a reader that had caught up');
  await sink.close();
  clock.advance(100_000);
  await until(() => received().endsWith('0\r\n\r\n'), 'the end');
  assert.equal(count(), 3);
  assert.equal(clock.pending, 0);
});

test('keep-alive: goes on when a reader that was behind on a few words has caught up', async () => {
  const clock = createFakeClock();
  const written: string[] = [];
  let taken = (): void => undefined;
  const slow = new Writable({
    highWaterMark: 1,
    write(chunk, _encoding, done) {
      written.push(String(chunk));
      taken = done;
    },
  });
  const writer = createResponseWriter(slow, { clock, writeStallMs: 1e9, keepAlive: { frame: ':k\n\n' } });
  const waiting = writer.write(['data']);
  assert.notEqual(waiting, undefined, 'the reader is behind');
  clock.advance(100_000);
  assert.deepEqual(written, ['data']);
  taken();
  await waiting;
  clock.advance(15_000);
  assert.deepEqual(written, ['data', ':k\n\n']);
  writer.destroy(new Error('over'));
});

test('an abort cuts the connection: the client sees no good end', async () => {
  const { server, response, client, received } = await exchange();
  await using _ = server;
  const sink = sinkTo(response, options).getWriter();
  await sink.write(['half']);
  const closed = new Promise((resolve) => client.once('close', resolve));
  await sink.abort(new Error('broken'));
  await closed;
  assert.ok(!received().endsWith('0\r\n\r\n'));
});

/** A writable that notes its text. */
function noted(name: string, into: string[]): Writable {
  return new Writable({
    decodeStrings: false,
    write(text, _encoding, done) {
      into.push(`${name} ${String(text)}`);
      done();
    },
  });
}

test('the head goes out with the first words; later ones go to the connection itself, the last ones with the end', async () => {
  for (const chunked of [true, false]) {
    const framed = (text: string): string => (chunked ? `1\r\n${text}\r\n` : text);
    const said: string[] = [];
    const socket = noted('socket', said);
    const writer = createResponseWriter(noted('response', said), { ...options, wire: { chunked, socket: () => socket } });
    for (const word of ['a', 'b', 'c']) writer.write([word]);
    await writer.end(['d']);
    assert.deepEqual(said, [
      `response ${framed('a')}`,
      `socket ${framed('b')}`,
      `socket ${framed('c')}`,
      `response ${framed('d')}${chunked ? '0\r\n\r\n' : ''}`,
    ]);
  }
});

test('without a connection of its own, or while it is another answer’s, all goes to the response', async () => {
  for (const wire of [undefined, { chunked: false, socket: () => undefined }]) {
    const said: string[] = [];
    const writer = createResponseWriter(noted('response', said), { ...options, ...(wire === undefined ? {} : { wire }) });
    for (const word of ['a', 'b']) writer.write([word]);
    await writer.end(['c']);
    assert.deepEqual(said, ['response a', 'response b', 'response c']);
  }
});

test('who cuts a connection says why, and no timer is left', () => {
  const why = new StreamError('idle_timeout', 'silent');
  for (const [given, reason, cause] of [
    [why, 'idle_timeout', undefined],
    [new Error('broken'), 'cancelled', 'broken'],
    ['broken', 'cancelled', 'broken'],
  ] as const) {
    const clock = createFakeClock();
    const gone: StreamError[] = [];
    const writer = createResponseWriter(noted('response', []), {
      clock,
      writeStallMs: 1000,
      keepAlive: {},
      onGone: (error) => gone.push(error),
    });
    writer.destroy(given);
    writer.destroy(new Error('again'));
    assert.deepEqual(
      gone.map((error) => error.reason),
      [reason],
    );
    assert.equal(gone[0] === why, given === why);
    const told = gone[0]?.cause;
    assert.equal(told instanceof Error ? told.message : told, cause);
    assert.equal(clock.pending, 0);
  }
});

test('a reader from whom nothing is wanted may be given another patience, and is not watched for that', () => {
  const clock = createFakeClock();
  const writer = createResponseWriter(noted('response', []), { clock, writeStallMs: 1000 });
  writer.waitAtMost(10);
  clock.advance(10_000);
  assert.equal(writer.gone(), undefined);
  assert.equal(clock.pending, 0);
});

test('a reader that is given up, and one that is cut off for another reason, are told apart in words', async () => {
  const { server, response, client } = await exchange();
  await using _ = server;
  client.pause();
  const clock = createFakeClock();
  const writer = createResponseWriter(response, { clock, writeStallMs: 1000 });
  const full = writer.write([FLOOD]);
  const outcome = assert.rejects(full ?? Promise.resolve(), { message: 'the reader took nothing for 1000 ms' });
  await until(() => response.writableNeedDrain, 'a write that waits');
  clock.advance(1000);
  await outcome;
  const cut = createResponseWriter(noted('response', []), { clock, writeStallMs: 1000 });
  cut.destroy('broken');
  assert.equal((cut.gone() as Error).message, 'the stream was cut');
});
