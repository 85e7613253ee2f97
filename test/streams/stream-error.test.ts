/** What the one error of the streams says of itself. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ENDED, StreamError } from '../../src/streams/stream-error.ts';

test('an error without a cause has none, so that a log shows none', () => {
  assert.equal(Object.hasOwn(new StreamError('cancelled', 'left'), 'cause'), false);
  const cause = new Error('reset');
  const error = new StreamError('source_closed', 'closed', { cause, text: 'data' });
  assert.deepEqual([error.cause, error.text, error.reason, error.message], [cause, 'data', 'source_closed', 'closed']);
});

test('the reason of a good end says so', () => {
  assert.deepEqual([ENDED.reason, ENDED.message], ['ended', 'everything was written']);
});
