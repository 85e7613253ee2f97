/**
 * `data:` with nothing behind it, with which some proxies keep a connection: it says nothing, in every dialect and anywhere in
 * the stream.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UPSTREAMS } from '../../src/codecs/registry.ts';
import { bytesOf, decodeBytes } from '../support/wire.ts';

const STREAMS: Readonly<Record<string, readonly string[]>> = {
  chat: [
    'data: {"id":"c","choices":[{"index":0,"delta":{"content":"Hi"}}]}',
    'data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
    'data: [DONE]',
  ],
  responses: [
    'data: {"type":"response.created","response":{"id":"r","status":"in_progress","output":[]}}',
    'data: {"type":"response.completed","response":{"id":"r","status":"completed","output":[{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"Hi"}]}]}}',
  ],
  messages: [
    'event: message_start\ndata: {"type":"message_start","message":{"id":"m","content":[]}}',
    'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hi"}}',
    'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}',
    'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}',
    'event: message_stop\ndata: {"type":"message_stop"}',
  ],
  gemini: [
    'data: {"candidates":[{"content":{"parts":[{"text":"Hi"}]}}]}',
    'data: {"candidates":[{"content":{"parts":[]},"finishReason":"STOP"}]}',
  ],
};

for (const upstream of UPSTREAMS) {
  const stream = STREAMS[upstream.dialect] ?? [];
  const decoded = (events: readonly string[]) => decodeBytes(upstream, [bytesOf(`${events.join('\n\n')}\n\n`)]);

  test(`${upstream.dialect}: an event without data says nothing`, () => {
    const plain = decoded(stream);
    assert.equal(plain.failure, undefined);
    for (const empty of ['data:', 'data: ', 'event: ping\ndata:']) {
      const { events, failure } = decoded(stream.flatMap((event) => [empty, event]));
      assert.deepEqual([failure, events], [undefined, plain.events], empty);
    }
  });
}

test('messages: a known event without data is malformed all the same', () => {
  const messages = UPSTREAMS.find(({ dialect }) => dialect === 'messages');
  assert.ok(messages !== undefined);
  const stream = STREAMS['messages']?.slice(0, -1) ?? [];
  const { failure } = decodeBytes(messages, [bytesOf(`${[...stream, 'event: message_stop\ndata:'].join('\n\n')}\n\n`)]);
  assert.equal(failure?.code, 'upstream_error');
});
