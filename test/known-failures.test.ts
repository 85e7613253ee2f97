/**
 * The checker of the ledger of known failures. The ledger itself is checked by `npm test` after a whole run
 * (test/support/run.ts).
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { complaints, IDS, idsIn, type Ledger, readLedger } from './support/ledger.ts';

const all = IDS.map((id) => ({ title: `${id}: x`, passed: true }));
const nothing: Ledger = { open: {}, cannotOccur: {} };

test('ids are found in titles, and nothing that only looks like one', () => {
  assert.deepEqual(idsIn('M1 R18 P9: x (G2), U8.'), ['M1', 'R18', 'P9', 'G2', 'U8']);
  assert.deepEqual(idsIn('SHA256 of M100, XM1, M1a, E13 and X0'), []);
});

test('an id without a test, with a failed one or with a skipped one is a complaint', () => {
  assert.deepEqual(complaints(nothing, all), []);
  const without = all.filter(({ title }) => !title.startsWith('M7:'));
  assert.deepEqual(complaints(nothing, without), ['M7: no test names it']);
  for (const bad of [
    { title: 'M7: x', passed: false },
    { title: 'M7: x', passed: false, skipped: 'no machine' },
  ]) {
    assert.deepEqual(complaints(nothing, [...without, bad]), ['M7: a test names it, but none ran and passed']);
  }
  assert.deepEqual(complaints({ ...nothing, open: { later: ['M7'] } }, without), []);
});

test('excuses are few, and say something', () => {
  const reason = 'there is no such member on the wire at all';
  assert.deepEqual(complaints({ ...nothing, cannotOccur: { M7: reason } }, all), []);
  assert.equal(complaints({ ...nothing, cannotOccur: { M7: 'no' } }, all).length, 1);
  const many = Object.fromEntries(IDS.slice(0, 16).map((id) => [id, reason]));
  assert.equal(complaints({ ...nothing, cannotOccur: many }, all).length, 1);
  assert.equal(complaints({ ...nothing, open: { later: ['Z9'] } }, all).length, 1);
});

test('the committed ledger names known ids only, each in one place', () => {
  const { open, cannotOccur } = readLedger();
  const named = [...Object.values(open).flat(), ...Object.keys(cannotOccur)];
  assert.equal(new Set(named).size, named.length);
  for (const id of named) assert.ok(IDS.includes(id), id);
});
