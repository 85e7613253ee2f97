import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RetryBudget } from '../../../src/http/dispatch/retry-budget.ts';

/** How many repeats are granted at once. */
function granted(budget: RetryBudget, channelId: string): number {
  let count = 0;
  while (count < 100 && budget.spend(channelId)) count += 1;
  return count;
}

test('a quiet Channel may be asked again three times, then once for five exchanges', () => {
  const budget = new RetryBudget();
  assert.equal(granted(budget, 'a'), 3);
  for (let exchange = 0; exchange < 4; exchange++) budget.asked('a');
  assert.equal(granted(budget, 'a'), 0);
  budget.asked('a');
  budget.asked('a');
  assert.equal(granted(budget, 'a'), 1);
  assert.equal(granted(budget, 'b'), 3, 'each Channel for itself');
});

test('a busy Channel saves up ten repeats and no more', () => {
  const budget = new RetryBudget();
  for (let exchange = 0; exchange < 1000; exchange++) budget.asked('a');
  assert.equal(granted(budget, 'a'), 10);
});

test('a Channel that is gone from the configuration begins anew', () => {
  const budget = new RetryBudget();
  granted(budget, 'a');
  granted(budget, 'b');
  budget.keepOnly(new Set(['b']));
  assert.deepEqual([granted(budget, 'a'), granted(budget, 'b')], [3, 0]);
});
