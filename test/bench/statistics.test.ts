import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addedRow, exponent, held, median, percentile, ratioRow, seriesRows, spread } from '../../bench/harness/statistics.ts';

const head = { suite: 's', name: 'n', unit: 'u' };

test('median, spread and percentile', () => {
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([4, 1, 3, 2]), 2.5);
  assert.equal(spread([1, 2, 9]), 1);
  const ascending = Array.from({ length: 300 }, (_, at) => at);
  assert.equal(percentile(ascending, 0.5), 150);
  assert.equal(percentile(ascending, 0.99), 297);
});

test('a ratio is the median of the ratios of rounds, not the ratio of medians', () => {
  const row = ratioRow(head, [1, 2, 10], [2, 8, 20]);
  assert.equal(row.ratio, 2);
  assert.equal(row.subject, 8);
  assert.equal(row.spread, 0);
});

test('a goal bounds the added time, else the ratio, else what it says, from the side that it says', () => {
  assert.equal(held(ratioRow(head, [1], [2])), undefined);
  assert.equal(held(ratioRow({ ...head, goal: 1.9 }, [1], [2])), false);
  assert.equal(held(ratioRow({ ...head, goal: 2 }, [1], [2])), true);
  assert.equal(held(ratioRow({ ...head, goal: 5, atLeast: true }, [1], [6])), true);
  assert.equal(held(ratioRow({ ...head, goal: 5, atLeast: true }, [1], [4])), false);
  assert.equal(held(addedRow({ ...head, goal: 0.1 }, [1], [1.05])), true);
  assert.equal(held({ ...head, subject: 1.7, goal: 1.8, goalIs: 'subject', atLeast: true }), false);
});

test('the exponent of a power law is its power, and a series ends in it', () => {
  const points = [10, 100, 1000].map((at) => ({ at, cost: 3 * at ** 2 }));
  assert.ok(Math.abs(exponent(points) - 2) < 1e-9);
  const rows = seriesRows(head, points);
  assert.deepEqual(
    rows.map(({ at }) => at),
    [10, 100, 1000, undefined],
  );
  const last = rows.at(-1);
  assert.ok(last !== undefined && held(last) === false);
});
