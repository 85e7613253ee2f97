/**
 * The binary framing of AWS: what its own codec writes is read, however it is cut, and whatever is damaged or cut off is a
 * failure.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { crc32 } from 'node:zlib';
import { EventStreamCodec } from '@smithy/eventstream-codec';
import fc from 'fast-check';
import { type EventStreamMessage, eventStreamDecode } from '../../src/streams/event-stream-decode.ts';
import { StreamError } from '../../src/streams/stream-error.ts';

const codec = new EventStreamCodec(
  (bytes) => Buffer.from(bytes).toString('utf8'),
  (text) => Buffer.from(text),
);

const text = fc.string({ unit: 'grapheme', maxLength: 20 }).map((value) => ({ type: 'string' as const, value }));
const header = fc.oneof(
  { weight: 3, arbitrary: text },
  fc.boolean().map((value) => ({ type: 'boolean' as const, value })),
  fc.integer({ min: -128, max: 127 }).map((value) => ({ type: 'byte' as const, value })),
  fc.integer({ min: -32_768, max: 32_767 }).map((value) => ({ type: 'short' as const, value })),
  fc.integer().map((value) => ({ type: 'integer' as const, value })),
  fc.uint8Array({ maxLength: 20 }).map((value) => ({ type: 'binary' as const, value })),
  fc.constant({ type: 'timestamp' as const, value: new Date(0) }),
  fc.constant({ type: 'uuid' as const, value: '01234567-89ab-4cde-8f01-23456789abcd' }),
);
const message = fc.record({
  headers: fc.dictionary(fc.stringMatching(/^[:a-z][a-z-]{0,15}$/), header, { maxKeys: 5 }),
  body: fc.uint8Array({ maxLength: 200 }),
});
const messages = fc.array(message, { minLength: 1, maxLength: 4 });
type Sent = typeof messages extends fc.Arbitrary<infer Value> ? Value : never;

const bytesOf = (sent: Sent): Buffer => Buffer.concat(sent.map((one) => codec.encode(one)));

function decode(chunks: Iterable<Uint8Array>, maxEventBytes = 1 << 20): { read: EventStreamMessage[]; failure?: StreamError } {
  const stage = eventStreamDecode({ maxEventBytes });
  const read: EventStreamMessage[] = [];
  try {
    for (const chunk of chunks) stage.push(chunk, read);
    stage.end(read);
    return { read };
  } catch (error) {
    assert.ok(error instanceof StreamError, String(error));
    return { read, failure: error };
  }
}

const plain = (read: readonly EventStreamMessage[]): unknown =>
  read.map(({ headers, payload }) => [[...headers].sort(), Buffer.from(payload).toString('hex')]);

test('what the codec of AWS writes is read, at any cut', () => {
  fc.assert(
    fc.property(messages, fc.array(fc.nat(), { maxLength: 12 }), (sent, cuts) => {
      const bytes = bytesOf(sent);
      const expected = sent.map(({ headers, body }) => [
        Object.entries(headers)
          .flatMap(([name, { type, value }]) => (type === 'string' ? [[name, value]] : []))
          .sort(),
        Buffer.from(body).toString('hex'),
      ]);
      const at = [0, ...cuts.map((cut) => cut % bytes.length).sort((a, b) => a - b), bytes.length];
      const pieces = at.slice(1).map((end, index) => bytes.subarray(at[index] ?? 0, end));
      for (const chunks of [[bytes], pieces, [...bytes].map((byte) => Uint8Array.of(byte))]) {
        const { read, failure } = decode(chunks);
        assert.equal(failure, undefined);
        assert.deepEqual(plain(read), expected);
      }
    }),
    { numRuns: 100 },
  );
});

test('no proper beginning of a stream ends well, but at the end of a message', () => {
  fc.assert(
    fc.property(messages, fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }), (sent, share) => {
      const bytes = bytesOf(sent);
      const length = Math.floor(share * bytes.length);
      const ends = new Set(sent.map((_, index) => bytesOf(sent.slice(0, index)).length));
      const { failure } = decode([bytes.subarray(0, length)]);
      assert.equal(failure?.reason, ends.has(length) ? undefined : 'truncated_event');
    }),
  );
});

test('any byte that is wrong is found, and what came before it stays', () => {
  fc.assert(
    fc.property(messages, fc.nat(), fc.integer({ min: 1, max: 255 }), (sent, place, flip) => {
      const bytes = Uint8Array.from(bytesOf(sent));
      const at = place % bytes.length;
      bytes[at] = (bytes[at] ?? 0) ^ flip;
      const { read, failure } = decode([bytes]);
      assert.ok(failure !== undefined);
      const whole = sent.filter((_, index) => bytesOf(sent.slice(0, index + 1)).length <= at).length;
      assert.equal(read.length, whole);
      assert.deepEqual(plain(read), plain(decode([bytesOf(sent.slice(0, whole))]).read));
    }),
  );
});

test('a message in pieces of a byte each is kept in pieces of many bytes', (t) => {
  const body = randomBytes(300_000);
  const bytes = Buffer.concat([codec.encode({ headers: {}, body }), codec.encode({ headers: {}, body: body.subarray(0, 9) })]);
  const joined = t.mock.method(Buffer, 'concat').mock;
  const { read, failure } = decode(Array.from(bytes, (_byte, at) => bytes.subarray(at, at + 1)));
  assert.equal(failure, undefined);
  assert.deepEqual(
    read.map(({ payload }) => payload.length),
    [body.length, 9],
  );
  assert.ok(read[0] !== undefined && body.equals(read[0].payload));
  const most = Math.max(...joined.calls.map(({ arguments: [pieces] }) => pieces.length));
  assert.ok(most > 1 && most < 200, `${most} pieces`);
});

test('a message over the bound is refused by its prelude, before it has arrived', () => {
  const bytes = Buffer.from(codec.encode({ headers: {}, body: new Uint8Array(5000) }));
  assert.equal(decode([bytes.subarray(0, 12)], 1000).failure?.reason, 'event_too_large');
  assert.equal(decode([bytes], bytes.length).failure, undefined);
});

test('garbage is named as such and never waited for', () => {
  for (const garbage of ['data: {"type":"ping"}\n\n', '<html><body>502</body></html>', '{"message":"failed"}'])
    assert.equal(decode([Buffer.from(garbage)]).failure?.reason, 'damaged_event');
});

test('a message with more headers than AWS sends is refused by its prelude', () => {
  const header = { type: 'binary' as const, value: new Uint8Array(30_000) };
  const headers = Object.fromEntries(['a', 'b', 'c', 'd', 'e'].map((name) => [name, header]));
  const bytes = Buffer.from(codec.encode({ headers, body: new Uint8Array() }));
  assert.match(decode([bytes.subarray(0, 12)]).failure?.message ?? '', /more than 131072 bytes of headers/);
  const { e: _less, ...fewer } = headers;
  assert.equal(decode([codec.encode({ headers: fewer, body: new Uint8Array() })]).failure, undefined);
});

test('headers that reach into the checksum are found, though every checksum is right', () => {
  const bytes = Buffer.from(codec.encode({ headers: {}, body: new Uint8Array(8) }));
  for (const headers of [9, 12, 8 + 16]) {
    bytes.writeUInt32BE(headers, 4);
    bytes.writeUInt32BE(crc32(bytes.subarray(0, 8)), 8);
    bytes.writeUInt32BE(crc32(bytes.subarray(0, bytes.length - 4)), bytes.length - 4);
    const { failure } = decode([bytes]);
    assert.deepEqual([failure?.reason, failure?.message], ['damaged_event', 'the lengths of a message are wrong']);
  }
});

test('a header of a type that AWS does not know is named', () => {
  const bytes = Buffer.from(codec.encode({ headers: { a: { type: 'byte', value: 1 } }, body: new Uint8Array() }));
  bytes.writeUInt8(10, 12 + 2);
  bytes.writeUInt32BE(crc32(bytes.subarray(0, bytes.length - 4)), bytes.length - 4);
  assert.equal(decode([bytes]).failure?.message, 'a header of the unknown type 10');
});
