import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSseFramer } from '../../src/streams/sse-encode.ts';

test('frames are whole events', () => {
  const frame = createSseFramer();
  assert.equal(frame({ event: undefined, data: '{"a":1}' }), 'data: {"a":1}\n\n');
  assert.equal(frame({ event: 'ping', data: '{}' }), 'event: ping\ndata: {}\n\n');
  assert.equal(frame({ event: 'ping', data: '{"b":2}', oneLine: true }), 'event: ping\ndata: {"b":2}\n\n');
  assert.equal(frame({ event: undefined, data: '[DONE]', oneLine: true }), 'data: [DONE]\n\n');
  assert.equal(frame({ event: undefined, data: 'a\nb\r\nc\rd' }), 'data: a\ndata: b\ndata: c\ndata: d\n\n');
  assert.equal(frame({ event: 'e', data: 'a\nb' }), 'event: e\ndata: a\ndata: b\n\n');
  assert.equal(frame({ event: undefined, data: '' }), 'data: \n\n');
});

test('an event name that would change the framing is left out', () => {
  const frame = createSseFramer();
  for (const event of ['', 'a\nb', 'a\rb']) assert.equal(frame({ event, data: '{}' }), 'data: {}\n\n');
});
