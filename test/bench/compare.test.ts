import assert from 'node:assert/strict';
import { test } from 'node:test';
import { movements } from '../../bench/compare.ts';
import type { Row } from '../../bench/harness/statistics.ts';

const rows = (...ratios: number[]): Row[][] =>
  ratios.map((ratio) => [{ suite: 's', name: 'work', unit: 'µs', floor: 1, subject: ratio, ratio }]);

test('a figure has moved when the runs of both commits do not overlap', () => {
  const [apart] = movements(rows(2, 2.2, 1.9), rows(1.5, 1.4, 1.8));
  assert.deepEqual(apart, {
    work: 'work',
    measure: 'ratio',
    before: '2.00 (1.90 to 2.20)',
    after: '1.50 (1.40 to 1.80)',
    change: '-25 %',
    moved: true,
  });
  assert.equal(movements(rows(2, 2.2, 1.5), rows(1.5, 1.4, 1.8))[0]?.moved, false);
});

test('what only one commit measures is left out; without a ratio the added time or the bare figure is compared', () => {
  const one = (row: Partial<Row>): Row[][] => [[{ suite: 's', name: 'n', unit: 'ms', subject: 4, ...row }]];
  assert.deepEqual(movements(one({}), one({ name: 'other' })), []);
  const [bare] = movements(one({}), one({ subject: 5 }));
  assert.equal(bare?.change, '+25 %');
  const [added] = movements(one({ added: 1 }), one({ added: 2, subject: 5 }));
  assert.deepEqual([added?.measure, added?.change], ['ms, added', '+100 %']);
});
