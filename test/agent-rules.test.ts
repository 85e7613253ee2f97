/** Every rule by which agents never break has its tests, for each way that it is asked in. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BAD_INPUT, FAULTS, missingOf, RULES, unheld } from './support/agent-rules.ts';

test('every clause of every rule has tests that are there: what is sent, what comes back whole and as a stream, over a WebSocket', () => {
  assert.equal(Object.keys(RULES).length, 31);
  assert.deepEqual(unheld(RULES), []);
});

test('every fault that clients met, and every kind of bad input, has a test that is there', () => {
  for (const [about, tests] of Object.entries({ ...FAULTS, ...BAD_INPUT })) {
    assert.ok(tests.length > 0, about);
    assert.deepEqual(missingOf(tests), [], about);
  }
});

test('what is not there is told', () => {
  const held = { whole: ['e2e/day: no such title'], socket: ['no: why'] };
  assert.deepEqual(unheld({ rule: [{ says: 'it', held }] }), [
    'rule: it: in neither direction',
    'rule: it: there is no e2e/day: no such title',
    'rule: it: there is no no: why',
  ]);
});
