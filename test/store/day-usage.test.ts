/** What a request adds to the day of its key. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countsOf } from '../../src/store/day-usage.ts';

test('F12: what is no count, or too large to be billed, is not added up', () => {
  for (const bad of [-1, 0.5, Number.NaN, 2 ** 53, 1_000_000_001])
    assert.equal(countsOf({ input: bad, output: 4 }).inputTokens, 0, String(bad));
  assert.equal(countsOf({ input: 1_000_000_000 }).inputTokens, 1_000_000_000);
});
