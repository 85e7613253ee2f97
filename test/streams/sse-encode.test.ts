import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSseFramer, SSE_DONE } from '../../src/streams/sse-encode.ts';
import { encodeText, textEncode } from '../../src/streams/text-encode.ts';
import { batchSource, collect } from '../support/batches.ts';

test('frames are whole events', () => {
  const frame = createSseFramer();
  assert.equal(frame({ event: undefined, data: '{"a":1}' }), 'data: {"a":1}\n\n');
  assert.equal(frame({ event: 'ping', data: '{}' }), 'event: ping\ndata: {}\n\n');
  assert.equal(frame({ event: 'ping', data: '{"b":2}', oneLine: true }), 'event: ping\ndata: {"b":2}\n\n');
  assert.equal(frame({ event: undefined, data: '[DONE]', oneLine: true }), SSE_DONE);
  assert.equal(frame({ event: undefined, data: 'a\nb\r\nc\rd' }), 'data: a\ndata: b\ndata: c\ndata: d\n\n');
  assert.equal(frame({ event: 'e', data: 'a\nb' }), 'event: e\ndata: a\ndata: b\n\n');
  assert.equal(frame({ event: undefined, data: '' }), 'data: \n\n');
});

test('an event name that would change the framing is left out', () => {
  const frame = createSseFramer();
  for (const event of ['', 'a\nb', 'a\rb']) assert.equal(frame({ event, data: '{}' }), 'data: {}\n\n');
});

test('a batch of frames is one chunk of bytes; an empty batch is none', async () => {
  assert.deepEqual(encodeText(['é', '世']), new Uint8Array(Buffer.from('é世')));
  const got = await collect(batchSource([['a', 'b'], [], ['c']]).readable.pipeThrough(textEncode()));
  assert.deepEqual(
    got.values.map((bytes) => Buffer.from(bytes).toString()),
    ['ab', 'c'],
  );
});
