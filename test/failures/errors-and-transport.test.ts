/** Ledger sections 10 and 11, as far as codecs and streams decide them. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { GatewayError } from '../../src/codecs/canonical/error.ts';
import { sseDecode } from '../../src/streams/sse-decode.ts';
import { decodeBytes } from '../support/wire.ts';
import { callDelta, clientOf, delta, DONE, finish, type Json, messageStart, sse, through, upstreamOf } from './through.ts';

const CLIENTS = ['chat', 'responses', 'messages'] as const;
const last = (events: readonly Json[]): Json => events.at(-1);

describe('errors in the middle of a stream', () => {
  test('E1 E3: an error inside a 200 stream is an error for every client, [DONE] or not', () => {
    for (const client of CLIENTS) {
      for (const end of [[DONE], []]) {
        const heard = through('chat', client, [
          delta({ content: 'x' }),
          { error: { message: 'boom', type: 'server_error', code: 500 } },
          ...end,
        ]);
        assert.ok(['error', 'response.failed', undefined].includes(heard.names.at(-1)));
        assert.doesNotMatch(heard.text, /\[DONE\]|message_stop|response\.completed/);
      }
      const finished = through('chat', client, [delta({ content: 'x' }), finish('error'), DONE]);
      assert.equal(finished.body, undefined);
      assert.doesNotMatch(finished.text, /\[DONE\]|message_stop|response\.completed/);
    }
  });

  test('E2: an error event of messages is terminal, overloaded included', () => {
    for (const client of CLIENTS) {
      const heard = through('messages', client, [
        messageStart(),
        { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
      ]);
      assert.equal(heard.body, undefined);
      assert.doesNotMatch(heard.text, /\[DONE\]|message_stop|response\.completed/);
    }
  });

  test('E4: a messages client reads an error under its event name', () => {
    const { text } = through('chat', 'messages', [delta({ content: 'x' })]);
    assert.match(text, /event: error\ndata: \{"type":"error"/);
  });

  test('E6: truncated event JSON is an error, never forwarded', () => {
    for (const client of CLIENTS) {
      const { text, failure } = through('chat', client, [
        delta({ content: 'x' }),
        'data: {"choices":[{"del\n\n',
        finish('stop'),
        DONE,
      ]);
      assert.equal(failure?.details.reason, 'malformed_event');
      assert.doesNotMatch(text, /\{"choices":\[\{"del$/m);
    }
  });

  test('E9: what was said with its terminal stays, whatever fails behind it', () => {
    const bytes = Buffer.concat([
      Buffer.from(sse('chat', [delta({ content: 'x' }), finish('stop'), DONE])),
      Buffer.from([0xff, 0xfe, 0x0a]),
    ]);
    assert.equal(through('chat', 'responses', bytes).names.at(-1), 'response.completed');
  });

  test('E12: a model name with quotes and line ends is escaped in every error body', () => {
    const error = new GatewayError('model_not_found', 'no model "a\n\u2028"');
    for (const client of CLIENTS) {
      assert.equal(JSON.parse(clientOf(client).encodeError(error, 'req_"1')).error.message, 'no model "a\n\u2028"');
    }
  });
});

describe('bytes and lines', () => {
  const decode = (bytes: Uint8Array, cut: number): string[] => {
    const stage = sseDecode({ maxEventBytes: 1 << 20 });
    const out: { data: string }[] = [];
    stage.push(bytes.subarray(0, cut), out as never);
    stage.push(bytes.subarray(cut), out as never);
    stage.end(out as never);
    return out.map(({ data }) => data);
  };

  test('X1: characters that are cut anywhere arrive whole', () => {
    const bytes = new TextEncoder().encode('data: 日本語 👩‍👩‍👧 é\n\n');
    for (let cut = 0; cut <= bytes.length; cut += 1) assert.deepEqual(decode(bytes, cut), ['日本語 👩‍👩‍👧 é']);
  });

  test('X2: LF, CRLF, lone CR, and CR LF cut in the middle are the same lines', () => {
    for (const end of ['\n', '\r\n', '\r']) {
      const bytes = new TextEncoder().encode(`data: a${end}${end}data: b${end}${end}`);
      for (let cut = 0; cut <= bytes.length; cut += 1) assert.deepEqual(decode(bytes, cut), ['a', 'b'], JSON.stringify(end));
    }
  });

  test('X4: several data lines of one event are joined', () => {
    assert.deepEqual(decode(new TextEncoder().encode('data: {"a":\ndata: 1}\n\n'), 9), ['{"a":\n1}']);
  });

  test('X10: no surrogate pair is split on its way through a client', () => {
    const emoji = '👩‍👩‍👧'.repeat(300);
    for (const client of CLIENTS) {
      const { events } = through('chat', client, [callDelta(0, 'a', 'f', JSON.stringify({ emoji })), finish('tool_calls'), DONE]);
      const pieces = JSON.stringify(events.map(({ delta: piece, choices }) => [piece, choices]));
      assert.ok(pieces.isWellFormed());
      assert.ok(JSON.stringify(last(events)).isWellFormed());
    }
  });

  test('a decoder that is fed behind its end stays silent', () => {
    const { failure, events } = decodeBytes(upstreamOf('chat'), [
      Buffer.from(sse('chat', [delta({ content: 'x' }), finish('stop'), DONE, DONE])),
    ]);
    assert.equal(failure, undefined);
    assert.equal(events.filter(({ type }) => type === 'response.end').length, 1);
  });
});
