/** How the bytes of a request arrive: in one packet with their head or in many, too many, too late, compressed, or not at all. */
import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connect, type Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { test } from 'node:test';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import { receiveBody, receiveWhole } from '../../../src/http/request/body.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { eventually } from '../../support/test-gateway.ts';

const MAX_BYTES = 40;
const TIMEOUT_MS = 1000;

/** What became of one body: its text, or the code that it was refused with. */
interface Outcome {
  readonly said: string;
  /** False where all of it was here with its head. */
  readonly waited: boolean;
}

interface ReceiverOptions {
  /** Told each piece. */
  readonly take?: (chunk: Buffer) => void;
  /**
   * What the handler does before it reads, as a gateway looks up its key; by default the packet that brought the head is parsed
   * by then.
   */
  readonly before?: (request: IncomingMessage) => Promise<void>;
  readonly maxBytes?: number;
}

/** A server that receives bodies, on a clock that stands still. */
async function receiver({ take, before = () => setImmediate(), maxBytes = MAX_BYTES }: ReceiverOptions = {}) {
  const clock = createFakeClock();
  const outcomes: Outcome[] = [];
  const sockets = new Set<Socket>();
  let begun = 0;
  const receive = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    await before(request);
    begun += 1;
    const limits = { maxBytes, timeoutMs: TIMEOUT_MS };
    let waited = false;
    try {
      const chunks: Buffer[] = [];
      const pending = receiveBody(request, response, limits, clock, take ?? ((chunk) => void chunks.push(chunk)));
      waited = pending !== undefined;
      await pending;
      outcomes.push({ said: Buffer.concat(chunks).toString(), waited });
    } catch (thrown) {
      outcomes.push({ said: thrown instanceof GatewayError ? thrown.code : String(thrown), waited });
    }
    response.end('done');
  };
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => void receive(request, response);
  const server = createServer(onRequest).on('checkContinue', onRequest);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    clock,
    outcomes,
    /** Whether the body of the n-th request is being received. */
    begun: (count: number) => eventually(() => begun === count, `request ${count}`),
    over: (count: number) => eventually(() => outcomes.length === count, `the end of body ${count}`),
    open(): { readonly socket: Socket; readonly heard: () => string } {
      const socket = connect(port, '127.0.0.1');
      let heard = '';
      sockets.add(socket);
      socket
        .on('error', () => undefined)
        .on('data', (bytes: Buffer) => {
          heard += bytes.toString();
        });
      return { socket, heard: () => heard };
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const head = (...fields: readonly string[]): string => `POST / HTTP/1.1\r\nhost: x\r\n${fields.join('\r\n')}\r\n\r\n`;
const sized = (body: string | Uint8Array, ...fields: readonly string[]): Buffer =>
  Buffer.concat([Buffer.from(head(`content-length: ${body.length}`, ...fields)), Buffer.from(body)]);
const chunked = (...chunks: readonly string[]): string =>
  chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('');
const CHUNKED = head('transfer-encoding: chunked');

test('a body that came with its head is taken at once, and the connection serves the next request', async () => {
  await using place = await receiver();
  const { socket, heard } = place.open();
  const bodies = ['{"a":1}', '', 'x'.repeat(MAX_BYTES)];
  for (const [index, body] of bodies.entries()) {
    socket.write(sized(body));
    await place.over(index + 1);
  }
  socket.write(CHUNKED + chunked('in ', 'chunks', ''));
  await place.over(4);
  assert.deepEqual(
    place.outcomes,
    [...bodies, 'in chunks'].map((said) => ({ said, waited: false })),
  );
  await eventually(() => heard().split('done').length > 4, 'the last answer');
  assert.deepEqual(new Set(heard().match(/HTTP\/1\.1 \d+/g)), new Set(['HTTP/1.1 200']), 'nobody asked whether to go on');
  assert.equal(place.clock.pending, 0);
});

test('a body in many packets is whole and in order, however it is framed', async () => {
  await using place = await receiver();
  for (const [index, [first, ...rest]] of [
    [`${head('content-length: 11')}one`, ' two', ' end'],
    [CHUNKED + chunked('one'), chunked(' two'), chunked(' end', '')],
    [head('content-length: 11'), 'one two', ' end'],
  ].entries()) {
    const { socket } = place.open();
    socket.write(first ?? '');
    await place.begun(index + 1);
    for (const packet of rest) {
      socket.write(packet);
      await setImmediate();
    }
    await place.over(index + 1);
  }
  const whole = { said: 'one two end', waited: true };
  assert.deepEqual(place.outcomes, [whole, whole, whole]);
  assert.equal(place.clock.pending, 0);
});

test('a body of known length is taken as soon as its last byte is here, before its end is', async () => {
  const unended: boolean[] = [];
  const before = async (request: IncomingMessage): Promise<void> => {
    for (let turns = 0; turns < 1000 && request.readableLength < 5; turns++) await Promise.resolve();
    unended.push(request.complete);
  };
  await using place = await receiver({ before });
  place.open().socket.write(sized('whole'));
  await place.over(1);
  assert.deepEqual([place.outcomes, unended], [[{ said: 'whole', waited: false }], [false]]);
});

test('a body whose packets all came before anybody read is whole', async () => {
  await using place = await receiver({ before: (request) => eventually(() => request.complete, 'the last packet') });
  for (const [index, packets] of [
    [`${head('content-length: 11')}one`, ' two', ' end'],
    [CHUNKED + chunked('one'), chunked(' two'), chunked(' end', '')],
  ].entries()) {
    const { socket } = place.open();
    for (const packet of packets) {
      socket.write(packet);
      await setImmediate();
    }
    await place.over(index + 1);
  }
  const whole = { said: 'one two end', waited: false };
  assert.deepEqual(place.outcomes, [whole, whole]);
});

test('a body over the limit is refused: by its length before it is read, by its bytes as soon as they are too many', async () => {
  await using place = await receiver();
  const long = 'x'.repeat(MAX_BYTES + 1);
  place.open().socket.write(head(`content-length: ${long.length}`));
  await place.over(1);
  place.open().socket.write(CHUNKED + chunked(long, ''));
  await place.over(2);
  const { socket } = place.open();
  socket.write(CHUNKED + chunked('x'.repeat(MAX_BYTES)));
  await place.begun(3);
  assert.equal(place.outcomes.length, 2, 'as many as are allowed');
  socket.write(chunked('x'));
  await place.over(3);
  assert.deepEqual(
    place.outcomes.map(({ said, waited }) => [said, waited]),
    [
      ['request_too_large', false],
      ['request_too_large', false],
      ['request_too_large', true],
    ],
  );
  assert.equal(place.clock.pending, 0);
});

test('a client that asks first is told to go on, unless its body is refused', async () => {
  await using place = await receiver();
  for (const [index, [length, first]] of [
    [5, /^HTTP\/1\.1 100 Continue\r\n\r\n$/],
    [MAX_BYTES + 1, /^HTTP\/1\.1 200 /],
  ].entries() as ArrayIterator<[number, [number, RegExp]]>) {
    const { socket, heard } = place.open();
    socket.write(head(`content-length: ${length}`, 'expect: 100-CONTINUE'));
    await eventually(() => heard() !== '', 'a word');
    assert.match(heard(), first);
    if (index === 0) socket.write('hello');
    await place.over(index + 1);
  }
  assert.deepEqual(
    place.outcomes.map(({ said }) => said),
    ['hello', 'request_too_large'],
  );
  // HTTP/1.0 has no words but the answer.
  const { socket, heard } = place.open();
  socket.write(`${head('content-length: 5', 'expect: 100-continue').replace('HTTP/1.1', 'HTTP/1.0')}hello`);
  await eventually(() => heard().endsWith('done'), 'the answer');
  assert.match(heard(), /^HTTP\/1\.1 200 /);
});

test('every encoding is read under each of its names; one that does not fit its body is refused', async () => {
  await using place = await receiver();
  const cases: readonly [string, Uint8Array][] = [
    ['gzip', gzipSync('hi')],
    ['X-GZIP', gzipSync('hi')],
    [' Deflate ', deflateSync('hi')],
    ['br', brotliCompressSync('hi')],
    ['zstd', zstdCompressSync('hi')],
    ['identity', Buffer.from('hi')],
    ['', Buffer.from('hi')],
    ['rot13', Buffer.from('hi')],
    ['gzip', gzipSync('hi').subarray(0, 12)],
    ['gzip', gzipSync('x'.repeat(MAX_BYTES + 1))],
  ];
  const { socket } = place.open();
  for (const [index, [encoding, body]] of cases.entries()) {
    socket.write(sized(body, `content-encoding:${encoding}`));
    await place.over(index + 1);
  }
  assert.deepEqual(
    place.outcomes.map(({ said }) => said),
    ['hi', 'hi', 'hi', 'hi', 'hi', 'hi', 'hi', 'unsupported_media_type', 'invalid_request', 'request_too_large'],
  );
  assert.equal(place.clock.pending, 0);
});

test('a zstd body has a window of 8 MiB at most, as on all of HTTP (RFC 9659): it is taken with the head of a frame', async () => {
  await using place = await receiver();
  const { socket } = place.open();
  const windows = [10, 23, 24, 27];
  for (const [index, log] of windows.entries()) {
    // A frame without a length: its window, and one last block of two bytes as they are.
    const frame = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, (log - 10) << 3, 0x11, 0, 0, ...Buffer.from('hi')]);
    socket.write(sized(frame, 'content-encoding: zstd'));
    await place.over(index + 1);
  }
  assert.deepEqual(
    place.outcomes.map(({ said }) => said),
    ['hi', 'hi', 'invalid_request', 'invalid_request'],
  );
});

test('a body that does not come in time, or whose client leaves, is given up', async () => {
  await using place = await receiver();
  place.open().socket.write(`${head('content-length: 9')}half`);
  await place.begun(1);
  place.clock.advance(TIMEOUT_MS - 1);
  assert.equal(place.outcomes.length, 0);
  place.clock.advance(1);
  await place.over(1);
  const { socket } = place.open();
  socket.write(`${head('content-length: 9')}half`);
  await place.begun(2);
  socket.destroy();
  await place.over(2);
  assert.deepEqual(place.outcomes, [
    { said: 'request_timeout', waited: true },
    { said: 'client_closed_request', waited: true },
  ]);
  assert.equal(place.clock.pending, 0);
});

test('whoever takes the bytes may refuse them, at once or later', async () => {
  const refusals: unknown[] = [new GatewayError('invalid_request', 'no'), new GatewayError('invalid_request', 'no'), 'no error'];
  const take = (): never => {
    throw refusals.shift();
  };
  await using place = await receiver({ take });
  place.open().socket.write(sized('here'));
  await place.over(1);
  for (const count of [2, 3]) {
    const { socket } = place.open();
    socket.write(head('content-length: 5'));
    await place.begun(count);
    socket.write('later');
    await place.over(count);
  }
  assert.deepEqual(
    place.outcomes.map(({ said }) => said),
    ['invalid_request', 'invalid_request', 'internal_error'],
  );
  assert.equal(place.clock.pending, 0);
});

test('the whole of a body is one buffer, of however many pieces', async () => {
  const clock = createFakeClock();
  const whole: string[] = [];
  const server = createServer(async (request, response) => {
    const bytes = await receiveWhole(request, response, { maxBytes: MAX_BYTES, timeoutMs: TIMEOUT_MS }, clock);
    whole.push(bytes.toString());
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  try {
    for (const pieces of [[], ['one'], ['one', ' two', ' end']]) {
      const before = whole.length;
      socket.write(CHUNKED + chunked(...pieces, ''));
      await eventually(() => whole.length > before, 'the body');
    }
    assert.deepEqual(whole, ['', 'one', 'one two end']);
  } finally {
    socket.destroy();
    server.close();
  }
});

test('a body whose every byte is a chunk of its own is handed over in few pieces, whole and in order', async () => {
  let pieces = 0;
  const bytes: Buffer[] = [];
  const take = (chunk: Buffer): void => {
    pieces += 1;
    bytes.push(chunk);
  };
  await using server = await receiver({ take, maxBytes: 1_000_000 });
  const { socket } = server.open();
  const text = Array.from({ length: 60_000 }, (_, index) => String(index % 10)).join('');
  const large = 'x'.repeat(5_000);
  const chunked = (some: string): string => [...some].map((byte) => `1\r\n${byte}\r\n`).join('');
  socket.write('POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n');
  await server.begun(1);
  socket.write(`${chunked(text)}${large.length.toString(16)}\r\n${large}\r\n${chunked(text)}0\r\n\r\n`);
  await server.over(1);
  assert.ok(Buffer.concat(bytes).toString() === text + large + text);
  assert.ok(pieces < 80, `${pieces} pieces`);
});
