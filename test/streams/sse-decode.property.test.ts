/** Laws of the decoder: cuts do not matter, nothing but documented errors, and what the encoder writes is read back. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type SseEvent, sseDecode } from '../../src/streams/sse-decode.ts';
import { createSseFramer } from '../../src/streams/sse-encode.ts';
import { StreamError } from '../../src/streams/stream-error.ts';

const MAX_EVENT_BYTES = 40;

interface Result {
  readonly events: readonly SseEvent[];
  readonly end: string;
  readonly text: string | undefined;
}

function decode(pieces: readonly Uint8Array[], maxEventBytes = MAX_EVENT_BYTES): Result {
  const events: SseEvent[] = [];
  const stage = sseDecode({ maxEventBytes });
  try {
    for (const piece of pieces) stage.push(piece, events);
    stage.end(events);
  } catch (error) {
    assert.ok(error instanceof StreamError, String(error));
    return { events, end: error.reason, text: error.text };
  }
  return { events, end: 'well', text: undefined };
}

function cut(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const at = [0, ...places.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return at.slice(1).map((end, i) => bytes.subarray(at[i], end));
}

const lineEnd = fc.constantFrom('\n', '\r\n', '\r');
const piece = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.constantFrom(
      'data: a',
      'data:世界',
      'data',
      'data: 😀é',
      'event: x',
      'event:',
      ': ping',
      'id: 1',
      'retry: 3',
      '',
    ),
  },
  { weight: 3, arbitrary: fc.constantFrom('', 'data: {"a":1}') },
  fc.constantFrom(
    'foo: bar',
    'text without sense',
    ' data: x',
    '{"error":1}',
    'error: {"a":1}',
    'error:{',
    'error: x',
    '{',
    '  "error": {',
    '}',
    '[',
    ']',
    '<html>',
    '\uFEFF',
    'ï»¿data: x',
  ),
  fc.constantFrom(
    `data: ${'x'.repeat(MAX_EVENT_BYTES)}`,
    `data: ${'x'.repeat(MAX_EVENT_BYTES + 1)}`,
    `data: ${'é'.repeat(21)}`,
    `: ${'c'.repeat(60)}`,
  ),
);
const stream = fc
  .array(fc.tuple(piece, lineEnd), { maxLength: 14 })
  .chain((lines) => fc.constantFrom('', 'dat', 'data: a', ': c', 'junk', '{').map((rest) => lines.flat().join('') + rest))
  .map((text) => new TextEncoder().encode(text));

test('cuts do not matter: whole = any cuts = every single byte', () => {
  fc.assert(
    fc.property(stream, fc.array(fc.nat({ max: 2000 }), { maxLength: 6 }), (bytes, places) => {
      const whole = decode([bytes]);
      assert.deepEqual(decode(cut(bytes, places)), whole);
      assert.deepEqual(decode(Array.from(bytes, (byte) => Uint8Array.of(byte))), whole);
    }),
    { numRuns: 1000 },
  );
});

test('one stream cut in two at every byte, CR|LF and UTF-8 sequences included', () => {
  const bytes = new TextEncoder().encode('\uFEFFevent: né\r\ndata: 世界\r\ndata: 😀\r\n\r\n: ping\r\rdata: b\n\n');
  const whole = decode([bytes]);
  assert.deepEqual(whole.events, [
    { event: 'né', data: '世界\n😀' },
    { event: undefined, data: 'b' },
  ]);
  for (let at = 0; at <= bytes.length; at++) assert.deepEqual(decode(cut(bytes, [at])), whole);
});

test('arbitrary bytes give events or a documented error, the same at every cut', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), fc.nat(), (bytes, place) => {
      assert.deepEqual(decode(cut(bytes, [place])), decode([bytes]));
    }),
    { numRuns: 500 },
  );
});

test('the text of an event is that of its UTF-8 bytes, broken ones included, whatever came before it', () => {
  // Lead bytes without their rest, rests alone, overlong forms, surrogates, what is over U+10FFFF, byte order marks, whole
  // characters.
  const bytes = fc.constantFrom(
    [0x61],
    [0xc3],
    [0xa9],
    [0xc3, 0xa9],
    [0xe2, 0x82],
    [0xe2, 0x82, 0xac],
    [0xf0, 0x9f, 0x98],
    [0xf0, 0x9f, 0x98, 0x80],
    [0xc0, 0x80],
    [0xed, 0xa0, 0x80],
    [0xf4, 0x90, 0x80, 0x80],
    [0xef, 0xbb, 0xbf],
    [0xff],
    [0x00],
  );
  const data = fc.array(bytes, { maxLength: 8 }).map((parts) => parts.flat());
  const end = fc.constantFrom([0x0a], [0x0d, 0x0a], [0x0d]);
  fc.assert(
    fc.property(fc.array(data, { minLength: 1, maxLength: 3 }), end, fc.nat(), (texts, lineEnd, place) => {
      const wire = texts.flatMap((text) => [...Buffer.from('data: '), ...text, ...lineEnd, ...lineEnd]);
      const expected = texts.map((text) => new TextDecoder('utf-8', { ignoreBOM: true }).decode(Uint8Array.from(text)));
      const { events } = decode(cut(Uint8Array.from(wire), [place]), 1000);
      assert.deepEqual(
        events.map((event) => event.data),
        expected,
      );
    }),
    { numRuns: 1000 },
  );
});

test('no prefix of a stream gives an event that the whole stream does not, and none ends well inside an event', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'grapheme', maxLength: 8 }), { minLength: 1, maxLength: 4 }), (texts) => {
      const frames = texts.map((text) => new TextEncoder().encode(createSseFramer()({ event: 'e', data: text })));
      const bytes = Buffer.concat(frames);
      const whole = decode([bytes], 1000).events;
      let boundary = 0;
      const boundaries = new Set([0, ...frames.map((frame) => (boundary += frame.length))]);
      for (let end = 0; end <= bytes.length; end++) {
        const got = decode([bytes.subarray(0, end)], 1000);
        assert.deepEqual(got.events, whole.slice(0, got.events.length));
        assert.equal(got.end, boundaries.has(end) ? 'well' : 'truncated_event');
      }
    }),
    { numRuns: 30 },
  );
});

test('what the encoder writes is read back, line ends as LF', () => {
  const name = fc.string({ minLength: 1, maxLength: 8 }).filter((text) => !/[\r\n]/.test(text));
  const text = fc.string({ unit: fc.constantFrom('a', ' ', ':', '\n', '\r', '世', '😀', '\u2028', '\0'), maxLength: 12 });
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.option(name, { nil: undefined }), text), { maxLength: 5 }), (events) => {
      const frame = createSseFramer();
      const wire = events.map(([event, data]) => frame({ event, data })).join('');
      assert.deepEqual(
        decode([new TextEncoder().encode(wire)], 1000).events,
        events.map(([event, data]) => ({ event, data: data.replaceAll(/\r\n|\r/g, '\n') })),
      );
    }),
  );
});
