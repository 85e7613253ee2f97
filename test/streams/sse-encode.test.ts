import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SSE_DONE, sseEvent, sseForeignEvent, sseFrame } from '../../src/streams/sse-encode.ts';
import { encodeText, textEncode } from '../../src/streams/text-encode.ts';
import { batchSource, collect } from '../support/batches.ts';

test('frames are whole events', () => {
  assert.equal(sseFrame('{"a":1}'), 'data: {"a":1}\n\n');
  assert.equal(sseEvent('ping', '{}'), 'event: ping\ndata: {}\n\n');
  assert.equal(sseFrame('[DONE]'), SSE_DONE);
  assert.equal(sseFrame('a\nb\r\nc\rd'), 'data: a\ndata: b\ndata: c\ndata: d\n\n');
  assert.equal(sseFrame(''), 'data: \n\n');
});

test('an event name that would change the framing is refused', () => {
  for (const name of ['', 'a\nb', 'a\rb']) assert.throws(() => sseEvent(name, '{}'), TypeError);
});

test('a name that somebody else chose is left out where it would change the framing', () => {
  assert.equal(sseForeignEvent('ping', '{}'), sseEvent('ping', '{}'));
  for (const name of [undefined, '', 'a\nb', 'a\rdata: x']) assert.equal(sseForeignEvent(name, '{}'), sseFrame('{}'));
});

test('a batch of frames is one chunk of bytes; an empty batch is none', async () => {
  assert.deepEqual(encodeText(['é', '世']), new Uint8Array(Buffer.from('é世')));
  const got = await collect(batchSource([['a', 'b'], [], ['c']]).readable.pipeThrough(textEncode()));
  assert.deepEqual(
    got.values.map((bytes) => Buffer.from(bytes).toString()),
    ['ab', 'c'],
  );
});
