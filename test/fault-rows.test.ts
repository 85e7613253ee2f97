/** Every fault, abuse and incident has a test that names it; docs/reliability.md says which. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { covers, uncovered } from './support/fault-rows.ts';
import { RELIABILITY, withReliability } from './support/print-docs.ts';

test('every row has a test, and every id in a title is a row', () => {
  assert.deepEqual(uncovered(covers()), []);
});

test('a row without a test and an id without a row are told', () => {
  const found = covers().filter(({ ids }) => !ids.includes('F13'));
  assert.deepEqual(uncovered([...found, { file: 'x', title: 't', ids: ['F99'] }]), [
    'F13 has no test: a kept connection that the upstream closed',
    'F99 is no row',
  ]);
});

test('docs/reliability.md is what the suites and titles say (npm run docs)', () => {
  const text = readFileSync(RELIABILITY, 'utf8');
  assert.equal(text, withReliability(text));
});
