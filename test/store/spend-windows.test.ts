/** The arithmetic of spend windows alone; what a store does with it is in contract.test.ts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  addSpend,
  dayName,
  dayNumber,
  isLimited,
  NOTHING_SPENT,
  reachedWindow,
  roomLeft,
  spendAt,
} from '../../src/store/spend-windows.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const NOON = Date.UTC(2026, 2, 1, 12);

test('an hour and a day end at their fixed UTC boundary, the total never', () => {
  const row = addSpend(addSpend(NOTHING_SPENT, 5n, NOON), 7n, NOON + HOUR_MS - 1);
  const at = (ms: number) => {
    const { total, hourly, daily } = spendAt(row, ms);
    return [total, hourly, daily];
  };
  assert.deepEqual(at(NOON + HOUR_MS - 1), [12n, 12n, 12n]);
  assert.deepEqual(at(NOON + HOUR_MS), [12n, 0n, 12n]);
  assert.deepEqual(at(NOON + DAY_MS / 2 - 1), [12n, 0n, 12n]);
  assert.deepEqual(at(NOON + DAY_MS / 2), [12n, 0n, 0n]);
});

test('a clock that was put back a little finds the window that it left still counted, and spends into it', () => {
  const midnight = NOON + DAY_MS / 2;
  const row = addSpend(NOTHING_SPENT, 5n, midnight);
  for (const earlier of [midnight - 1, midnight - 60_000, midnight - 5 * 60_000]) {
    assert.deepEqual(spendAt(row, earlier), { total: 5n, hourly: 5n, daily: 5n, held: 0n });
    assert.deepEqual(spendAt(addSpend(row, 7n, earlier), midnight), { total: 12n, hourly: 12n, daily: 12n, held: 0n });
  }
});

test('F34: a clock that jumps a month and back locks no key: what was spent out there counts in total alone', () => {
  for (const jump of [HOUR_MS, DAY_MS, 31 * DAY_MS]) {
    const there = addSpend(addSpend(NOTHING_SPENT, 5n, NOON), 1_000n, NOON + jump);
    assert.deepEqual(spendAt(there, NOON + 1), { total: 1_005n, hourly: 0n, daily: jump < DAY_MS / 2 ? 1_005n : 0n, held: 0n });
    const back = addSpend(there, 7n, NOON + 1);
    assert.equal(spendAt(back, NOON + 2).hourly, 7n);
    assert.equal(spendAt(back, NOON + HOUR_MS).hourly, 0n);
    assert.equal(spendAt(back, NOON + DAY_MS).daily, 0n);
  }
});

test('the room of a key is that of its tightest window, less what is held and in flight', () => {
  const spend = { total: 50n, hourly: 10n, daily: 30n, held: 3n };
  assert.equal(roomLeft({}, spend, 1n), undefined);
  assert.equal(roomLeft({ total: 100n, hourly: 20n }, spend, 2n), 5n);
  assert.equal(roomLeft({ total: 60n, hourly: 20n }, spend, 2n), 5n);
  assert.equal(roomLeft({ total: 55n, hourly: 20n }, spend, 2n), 0n);
  assert.equal(roomLeft({ daily: 1n }, spend, 0n), 0n);
});

test('a window is reached at its limit, with what is held and what is in flight; the widest is named first', () => {
  const spend = { total: 50n, hourly: 10n, daily: 30n, held: 3n };
  for (const window of ['total', 'hourly', 'daily'] as const) {
    const used = spend[window] + spend.held;
    assert.equal(reachedWindow({ [window]: used + 2n }, spend, 1n), undefined);
    assert.equal(reachedWindow({ [window]: used + 1n }, spend, 1n), window);
    assert.equal(reachedWindow({ [window]: used }, spend, 0n), window);
  }
  assert.equal(reachedWindow({ total: 1n, hourly: 1n, daily: 1n }, spend, 0n), 'total');
  assert.equal(reachedWindow({}, spend, 1n), undefined);
});

test('days have names and numbers, and what is no day has none', () => {
  assert.equal(dayName(dayNumber('2026-03-01') ?? 0), '2026-03-01');
  assert.equal(dayNumber('1970-01-02'), 1);
  for (const name of ['2026-3-1', '2026-03', '2026-13-01', '2026-02-30', '2026-03-01T00:00:00Z', '', 'today'])
    assert.equal(dayNumber(name), undefined, name);
});

test('any one window makes a key a limited one, also a limit of nothing', () => {
  assert.equal(isLimited({}), false);
  for (const window of ['total', 'hourly', 'daily']) assert.equal(isLimited({ [window]: 0n }), true, window);
});
