import assert from 'node:assert/strict';
import test from 'node:test';
import { checkStream, STREAM } from '../../../src/codecs/gemini/lifecycle.ts';

test('a good stream has a finish reason before its bytes end, or ends with a refusal', () => {
  assert.ok(checkStream(['chunk', 'finish', 'chunk', 'finish', 'close']));
  assert.ok(checkStream(['blocked']));
  assert.ok(checkStream(['chunk', 'finish', 'error']));
  assert.ok(!checkStream([]));
  assert.ok(!checkStream(['chunk', 'close']));
  assert.ok(!checkStream(['finish']));
  assert.ok(!checkStream(['finish', 'close', 'chunk']));
});

test('the table is total and nothing leaves its end', () => {
  for (const row of Object.values(STREAM)) assert.deepEqual(Object.keys(row), ['chunk', 'finish', 'blocked', 'error', 'close']);
  assert.ok(Object.values(STREAM.ended).every((next) => next === null));
});
