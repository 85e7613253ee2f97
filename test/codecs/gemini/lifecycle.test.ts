import assert from 'node:assert/strict';
import test from 'node:test';
import { STREAM, type StreamState, type StreamVerb } from '../../../src/codecs/gemini/lifecycle.ts';
import { advance, LifecycleError } from '../../../src/streams/lifecycle.ts';

test('a good stream has a finish reason before its bytes end, or ends with a refusal', () => {
  assert.ok(isWhole(['chunk', 'finish', 'chunk', 'finish', 'close']));
  assert.ok(isWhole(['blocked']));
  assert.ok(isWhole(['chunk', 'finish', 'error']));
  assert.ok(!isWhole([]));
  assert.ok(!isWhole(['chunk', 'close']));
  assert.ok(!isWhole(['finish']));
  assert.ok(!isWhole(['finish', 'close', 'chunk']));
});

test('the table is total and nothing leaves its end', () => {
  for (const row of Object.values(STREAM)) assert.deepEqual(Object.keys(row), ['chunk', 'finish', 'blocked', 'error', 'close']);
  assert.ok(Object.values(STREAM.ended).every((next) => next === null));
});

/** True when the verbs are those of a complete stream in order. */
function isWhole(verbs: Iterable<StreamVerb>): boolean {
  let state: StreamState = 'idle';
  try {
    for (const verb of verbs) state = advance('stream', STREAM, state, verb);
  } catch (error) {
    if (error instanceof LifecycleError) return false;
    throw error;
  }
  return state === 'ended';
}
