/** What a failure of an upstream becomes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { upstreamFailure } from '../../src/http/errors.ts';
import { verdictOf } from '../../src/http/dispatch/verdict.ts';
import { StreamError } from '../../src/streams/stream-error.ts';

test('an error object that stands raw in a stream is that error, alone or in a list; other text is no event stream', () => {
  const read = (text: string) => upstreamFailure(new StreamError('not_event_stream', 'foreign text', { text })).details;
  const raw = JSON.stringify({ error: { code: 499, message: 'The operation was cancelled.', status: 'CANCELLED' } }, null, 2);
  for (const text of [raw, `[${raw}]`]) {
    assert.equal(read(text).reason, 'error_event');
    assert.equal(read(text).upstream?.status, 499);
  }
  const ours = JSON.stringify({ error: { code: 400, message: 'API key not valid. Please pass a valid API key.' } }, null, 2);
  assert.equal(read(ours).upstream?.status, 401);
  for (const text of ['', '{"error":', '{}', '[]', '[1]', 'hello', '{"error":null}']) {
    assert.equal(read(text).reason, 'undecodable', text);
    assert.equal(read(text).upstream?.text, text);
  }
});

test('a table of descriptors that is full is the gateway’s own: no fault of the upstream, and no other is asked', () => {
  for (const code of ['EMFILE', 'ENFILE']) {
    const error = upstreamFailure(new TypeError('fetch failed', { cause: Object.assign(new Error(code), { code }) }));
    assert.equal(error.code, 'overloaded');
    assert.equal(error.details.retryAfterMs, 1000);
    assert.equal(verdictOf(error), 'stop');
  }
});
