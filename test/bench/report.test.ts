import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Row, seriesRows } from '../../bench/harness/statistics.ts';
import { reportHtml } from '../../bench/report.ts';

const of = (rows: readonly Row[]): string =>
  reportHtml({
    node: 'v1',
    cpu: undefined,
    cores: 2,
    commit: 'abc',
    at: '2026-01-02T03:04:05.678Z',
    command: 'npm run bench',
    rows,
  });
const row = (more: Partial<Row>): Row => ({ suite: 's', name: 'work', unit: 'µs', subject: 2, ...more });

test('the report needs nothing beside it', () => {
  const html = of([row({ floor: 1, ratio: 2, spread: 0.1, goal: 3 }), ...seriesRows(row({}), [{ at: 1, cost: 1 }])]);
  assert.doesNotMatch(html, /\b(src|href)="(?!#)|url\(|@import|<script/);
});

test('goals are judged from their side', () => {
  const html = of([
    row({ name: 'kept', floor: 1, ratio: 2, goal: 3 }),
    row({ name: 'missed', floor: 1, ratio: 2, goal: 1.5 }),
    row({ name: 'more', floor: 1, ratio: 6, goal: 5, atLeast: true }),
  ]);
  assert.match(html, /<td class="met">● ≤ 3\.00/);
  assert.match(html, /<td class="missed">▲ ≤ 1\.50/);
  assert.match(html, /<td class="met">● ≥ 5\.00/);
});

test('names are text, and figures that are none break no plot', () => {
  const html = of([
    row({ name: '<b>"&', floor: 0, ratio: Number.POSITIVE_INFINITY, goal: 1 }),
    row({ suite: 't', name: 'added', added: -0.1, goal: 0.1 }),
    row({ suite: 't', name: 'nothing', subject: 0, ratio: Number.NaN, spread: Number.NaN, goal: 1 }),
  ]);
  assert.ok(html.includes('&lt;b&gt;&quot;&amp;'));
  assert.doesNotMatch(html, /<b>|NaN|Infinity/);
});

test('a series is a plot, and its exponent a row', () => {
  const points = [
    { at: 10, cost: 5 },
    { at: 1000, cost: 500 },
  ];
  const html = of(seriesRows({ suite: 's', name: 'size', unit: 'µs' }, points));
  assert.match(html, /aria-label="size"/);
  assert.match(html, /size: exponent/);
  assert.doesNotMatch(html, /size: 10</);
});
