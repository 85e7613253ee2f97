import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { type SseDecodeOptions, type SseEvent, sseDecode } from '../../src/streams/sse-decode.ts';
import { StreamError, type StreamErrorReason } from '../../src/streams/stream-error.ts';

const encoder = new TextEncoder();

function decode(
  input: string | Uint8Array,
  options: Partial<SseDecodeOptions> = {},
): { events: SseEvent[]; error: StreamError | undefined } {
  const stage = sseDecode({ maxEventBytes: 1024, ...options });
  const events: SseEvent[] = [];
  try {
    stage.push(typeof input === 'string' ? encoder.encode(input) : input, events);
    stage.end(events);
  } catch (error) {
    assert.ok(error instanceof StreamError, String(error));
    return { events, error };
  }
  return { events, error: undefined };
}

function assertRefused(input: string | Uint8Array, reason: StreamErrorReason, kept: readonly string[] = []): StreamError {
  const { events, error } = decode(input);
  assert.equal(error?.reason, reason);
  assert.deepEqual(
    events.map(({ data }) => data),
    kept,
  );
  assert.ok(error);
  return error;
}

const data = (text: string): SseEvent => ({ event: undefined, data: text });

test('names, several data lines, no space, one space of two, empty data', () => {
  const { events } = decode('event: a\ndata: 1\ndata:2\ndata:  3\n\ndata\n\ndata:[DONE]\n\n');
  assert.deepEqual(events, [{ event: 'a', data: '1\n2\n 3' }, data(''), data('[DONE]')]);
});

test('X3: a field name ends at the first colon, so database is not data', () => {
  assert.deepEqual(decode('database: x\ndata: y\n\n').events, [data('y')]);
});

test('an event without data is none, and its name does not leak into the next', () => {
  assert.deepEqual(decode('event: a\n\ndata: 1\n\n').events, [data('1')]);
});

test('id, retry and comments are no data', () => {
  assert.deepEqual(decode(': OPENROUTER PROCESSING\n\nid: 7\nretry: x\n:\ndata: 1\n\n').events, [data('1')]);
});

test('exactly one byte order mark is stripped', () => {
  assert.deepEqual(decode('\uFEFFdata: 1\n\n').events, [data('1')]);
  assert.deepEqual(decode('\uFEFF\uFEFFdata: 1\n\ndata: 2\n\n').events, [data('2')]);
});

test('CR ends a line at once: an event is not held back for a line feed that may never come', () => {
  const stage = sseDecode({ maxEventBytes: 100 });
  const out: SseEvent[] = [];
  stage.push(encoder.encode('data: 1\r\r'), out);
  assert.deepEqual(out, [data('1')]);
});

test('unknown fields in a stream that has events are ignored', () => {
  const { events, error } = decode('foo: bar\nnonsense\ndata: 1\n\nDATA: x\n data: y\n\n');
  assert.equal(error, undefined);
  assert.deepEqual(events, [data('1')]);
  assert.deepEqual(decode(`data: 1\n\n${'foo: bar\n'.repeat(10_000)}`), { events: [data('1')], error: undefined });
});

test('a partial event at the end is thrown, wherever it was cut', () => {
  for (const rest of ['data: 2\n', 'data: 2', 'data:', 'dat', 'd', 'event: x\n', 'event: x\ndata: 2\n: ping\n', 'id', 'data\n']) {
    assertRefused(`data: 1\n\n${rest}`, 'truncated_event', ['1']);
  }
  assertRefused(Uint8Array.of(...encoder.encode('data: '), 0xe4, 0xb8), 'truncated_event');
});

test('a comment at the end, whole or cut, is no event', () => {
  for (const rest of ['', ': ping\n\n', ': ping\n', ': pi', '\n', '\n\n']) {
    assert.deepEqual(decode(`data: 1\n\n${rest}`), { events: [data('1')], error: undefined });
  }
});

test('a body of a comment alone, whole or cut, is no failure of this step', () => {
  for (const body of [': ping\n\n', ': ping', ':']) assert.deepEqual(decode(body), { events: [], error: undefined });
});

test('an empty body has no events and is no failure of this step', () => {
  assert.deepEqual(decode(''), { events: [], error: undefined });
});

test('a body of a byte order mark alone, or of a retry that is no number, is as empty', () => {
  for (const body of ['\uFEFF', '\uFEFF\n', 'retry: soon\n\n']) assert.deepEqual(decode(body), { events: [], error: undefined });
});

test('an error object written raw into the stream is thrown with its text', () => {
  const raw = '{\n  "error": {\n    "code": 499,\n    "details": [\n      {\n        "a": 1\n      }\n    ]\n  }\n}\n';
  assert.equal(assertRefused(`data: 1\n\n${raw}`, 'not_event_stream', ['1']).text, raw.trim());
  assert.equal(assertRefused(`[${raw}]`, 'not_event_stream').text, `[${raw}]`);
  assert.equal(assertRefused('{"error":{}}', 'not_event_stream').text, '{"error":{}}');
});

test('an error object in a field of its own (llama.cpp) is thrown with its text, before any event, after one, and without a line end', () => {
  const json = '{"code":400,"message":"too long","type":"invalid_request_error"}';
  for (const before of ['', 'data: 1\n\n'])
    for (const rest of [`error: ${json}\n\ndata: [DONE]\n\n`, `error:${json}\n\n`, `error: ${json}`]) {
      assert.equal(assertRefused(before + rest, 'not_event_stream', before === '' ? [] : ['1']).text, json);
    }
  assert.deepEqual(decode('error: none\ndata: 1\n\n').events, [data('1')]);
});

test('a whole error object is thrown at once, without waiting for the end', () => {
  const stage = sseDecode({ maxEventBytes: 1024 });
  const out: SseEvent[] = [];
  assert.throws(() => stage.push(encoder.encode('data: 1\n\n{\n  "error": {}\n}\n'), out), StreamError);
  assert.deepEqual(out, [data('1')]);
});

test('a body that is no event stream is thrown: HTML, JSON, plain text', () => {
  assert.match(assertRefused('<!DOCTYPE html>\n<html>\n\n<p>Bad gateway\n', 'not_event_stream').text ?? '', /Bad gateway$/);
  assert.equal(assertRefused('upstream connect error', 'not_event_stream').text, 'upstream connect error');
  assert.equal(assertRefused('Internal\r\nServer Error\r\n', 'not_event_stream').text, 'Internal\nServer Error');
  assertRefused('"error"', 'not_event_stream');
});

test('foreign text is bounded', () => {
  const { error } = decode(`<html>${'x'.repeat(200_000)}`, { maxEventBytes: 1_000_000 });
  assert.equal(error?.reason, 'not_event_stream');
  assert.equal(error?.text?.length, 64 * 1024);
});

test('a whole line of foreign text that is longer than an event is said as what it is', () => {
  for (const before of ['', 'data: 1\n\n']) {
    const text = `{"error": "${'x'.repeat(2000)}"}`;
    assert.equal(assertRefused(`${before}${text}\n`, 'not_event_stream', before === '' ? [] : ['1']).text, text);
  }
});

test('a whole error object of many lines, and one behind spaces, is thrown at once', () => {
  const lines = Array.from({ length: 20 }, (_, at) => `  "m${at}": {\n  },\n`).join('');
  const list = `[\n${'  1,\n'.repeat(20)}  2\n]`;
  for (const text of [`{\n${lines}  "last": 1\n}`, list, '  {"error": {}}']) {
    const stage = sseDecode({ maxEventBytes: 1024 });
    assert.throws(() => stage.push(encoder.encode(`${text}\n`), []), { reason: 'not_event_stream', text: text.trim() });
  }
});

test('an error field is unwrapped where the text begins with it, and nowhere else', () => {
  const text = '<html>\nerror: {"a": 1}';
  assert.equal(assertRefused(`${text}\n`, 'not_event_stream').text, text);
});

test('lines of white space alone are nothing', () => {
  assert.deepEqual(decode('  \n\t\n \n'), { events: [], error: undefined });
});

test('foreign text that closes again and again is tried a few times only, and read at the end', () => {
  const stage = sseDecode({ maxEventBytes: 1024 });
  const text = `{\n"a": [${'{\n}\n,'.repeat(8)}0]\n}`;
  stage.push(encoder.encode(`${text}\n`), []);
  assert.throws(() => stage.end([]), { reason: 'not_event_stream', text });
});

test('foreign text may be longer than an event, and is refused while it arrives once it is over its own bound', () => {
  const piece = encoder.encode('x'.repeat(1000));
  for (const before of ['', '{\n']) {
    const stage = sseDecode({ maxEventBytes: 1024 });
    stage.push(encoder.encode(`${before}{"error": "`), []);
    for (let i = 0; i < 50; i++) stage.push(piece, []);
    const text = `${before}{"error": "${'x'.repeat(50_000)}`;
    assert.throws(() => stage.end([]), { reason: 'not_event_stream', text });
  }
  for (const before of ['', '{\n', `data: ${'y'.repeat(70_000)}\n\n`]) {
    const stage = sseDecode({ maxEventBytes: 1_000_000 });
    for (let at = 0; at < before.length; at += 1000) stage.push(encoder.encode(before.slice(at, at + 1000)), []);
    stage.push(encoder.encode('{"error": "'), []);
    assert.throws(
      () => {
        for (let i = 0; i < 66; i++) stage.push(piece, []);
      },
      ({ reason, text }: StreamError) => reason === 'not_event_stream' && text?.length === 64 * 1024,
    );
  }
});

test('a body that is half a character is no event stream', () => {
  assertRefused(Uint8Array.of(0xe4, 0xb8), 'not_event_stream');
  assertRefused(Uint8Array.of(0xef, 0xbb), 'not_event_stream');
  assertRefused('{', 'not_event_stream');
});

test('X6: a compressed body is named as such', () => {
  const plain = Buffer.from('data: 1\n\n');
  for (const body of [gzipSync(plain), zstdCompressSync(plain)]) {
    assertRefused(body, 'encoded_body');
    const stage = sseDecode({ maxEventBytes: 1024 });
    assert.throws(
      () => {
        for (const byte of body) stage.push(Uint8Array.of(byte), []);
      },
      { reason: 'encoded_body' },
    );
  }
});

test('the limit counts the UTF-8 bytes of the data, and the longest allowed event passes', () => {
  const fits = `data: ${'é'.repeat(8)}\n\n`;
  assert.deepEqual(decode(fits, { maxEventBytes: 16 }).events, [data('é'.repeat(8))]);
  const { events, error } = decode(`data: 1\n\n${fits}`, { maxEventBytes: 15 });
  assert.deepEqual(events, [data('1')]);
  assert.equal(error?.reason, 'event_too_large');
});

test('the limit holds for data of several lines, whenever they arrive', () => {
  const lines = ['data: 1234567\n', 'data: 12345678\n', '\n'];
  const stage = sseDecode({ maxEventBytes: 16 });
  const out: SseEvent[] = [];
  for (const line of lines) stage.push(encoder.encode(line), out);
  assert.deepEqual(out, [data('1234567\n12345678')]);
  const narrow = sseDecode({ maxEventBytes: 15 });
  assert.throws(
    () => {
      for (const line of lines) narrow.push(encoder.encode(line), []);
    },
    { reason: 'event_too_large' },
  );
});

test('the longest line passes when a read ends just before its line end, and one byte more does not', () => {
  const name = 'x'.repeat(100_000);
  const stage = sseDecode({ maxEventBytes: name.length });
  const events: SseEvent[] = [];
  stage.push(encoder.encode(`event: ${name}`), events);
  stage.push(encoder.encode('\ndata: 1\n\n'), events);
  assert.deepEqual(events, [{ event: name, data: '1' }]);
  stage.push(encoder.encode(`event: ${name}\ndata: 2\n\n`), events);
  assert.deepEqual(events.at(-1), { event: name, data: '2' });
  assert.throws(() => stage.push(encoder.encode(`event: ${name}x`), events), { reason: 'event_too_large' });
});

test('X5: a line of megabytes in small pieces passes, an endless one is refused while it arrives', () => {
  const stage = sseDecode({ maxEventBytes: 4_000_000 });
  const out: SseEvent[] = [];
  stage.push(encoder.encode('data: '), out);
  const piece = encoder.encode('x'.repeat(1000));
  for (let i = 0; i < 4000; i++) stage.push(piece, out);
  stage.push(encoder.encode('\n\n'), out);
  assert.equal(out[0]?.data.length, 4_000_000);
  assert.throws(
    () => {
      stage.push(encoder.encode('data: '), out);
      for (let i = 0; i < 5000; i++) stage.push(piece, out);
    },
    { reason: 'event_too_large' },
  );
});

test('a character that is cut behind a blank line is read whole, whatever its bytes came with', () => {
  for (const [first, rest] of [
    ['\n\ndata: \u00e4', 'x\n\n'],
    ['data: 1\n\ndata: \u00e4', 'x\n\n'],
    ['\r\n\r\ndata: \u00e4', 'x\r\n\r\n'],
    ['data: 1\r\n\r\ndata: \u00e4', 'x\r\n\r\n'],
  ] as const) {
    const stage = sseDecode({ maxEventBytes: 1024 });
    const events: SseEvent[] = [];
    for (const text of [first, rest, 'data: y\n\n']) stage.push(encoder.encode(text), events);
    assert.deepEqual(events.slice(-2), [data('\u00e4x'), data('y')], JSON.stringify(first));
  }
});

test('what was cut off is told where a line was cut, and nothing where it was the blank line', () => {
  assert.equal(assertRefused('data: 1', 'truncated_event').text, 'data: 1');
  assert.equal(assertRefused('data: 1\n', 'truncated_event').text, undefined);
});

test('a compressed body is named by what it is compressed with', () => {
  const plain = Buffer.from('data: 1\n\n');
  assert.equal(assertRefused(gzipSync(plain), 'encoded_body').message, 'the body is gzip although identity was asked for');
  assert.equal(
    assertRefused(zstdCompressSync(plain), 'encoded_body').message,
    'the body is zstd although identity was asked for',
  );
});

test('a whole JSON list of many lines is thrown at once, without waiting for the end', () => {
  const stage = sseDecode({ maxEventBytes: 1024 });
  assert.throws(() => stage.push(encoder.encode('[\n  {"error": 1}\n]\n'), []), { reason: 'not_event_stream' });
});
