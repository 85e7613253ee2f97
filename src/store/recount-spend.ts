/** Recounts what keys have spent and used, window by window and day by day: the part of the recount that follows time. */
import { countsOf, type DayCounts } from './day-usage.ts';
import type { Difference, JournalRow } from './ledger.ts';
import type { RequestLogRow } from './request-log.ts';
import { addSpend, dayName, dayOf, NOTHING_SPENT, type SpendRow } from './spend-windows.ts';

export type Expect = (what: Difference['what'], subject: string, expected: unknown, found: unknown) => void;

/** What a day's charges and videos are by the journal, which is never pruned. */
interface DaySum {
  chargedNanos: bigint;
  videos: number;
}

const HOUR_MS = 3_600_000;
const WINDOWS = ['total', 'hour', 'hourly', 'day', 'daily'] as const;

const USES = ['requests', 'inputTokens', 'cachedInputTokens', 'cacheWriteTokens', 'outputTokens', 'images'] as const;
type Uses = Record<(typeof USES)[number], number>;
const NO_USES: Uses = {
  requests: 0,
  inputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
  images: 0,
};

export class SpendRecount {
  readonly #spend = new Map<string, SpendRow>();
  /** As version 0.1 counted: a clock that went back stayed in the window that it had left. */
  readonly #spendBefore = new Map<string, SpendRow>();
  readonly #days = new Map<string, DaySum>();
  /** By key, over all rows of the log that are left. */
  readonly #logged = new Map<string, Uses>();
  readonly #storedSpend = new Map<string, SpendRow>();
  readonly #storedDays = new Map<string, DayCounts>();
  readonly #storedUses = new Map<string, Uses>();

  journal({ kind, keyId, nanos, atMs }: JournalRow): void {
    if (keyId === undefined) return;
    let row = this.#spend.get(keyId) ?? NOTHING_SPENT;
    if (kind === 'hold') row = { ...row, held: row.held + nanos };
    if (kind === 'settle' || kind === 'refund') row = { ...row, held: row.held - nanos };
    if (kind === 'charge' || kind === 'settle') {
      row = addSpend(row, nanos, atMs);
      const before = this.#spendBefore.get(keyId) ?? NOTHING_SPENT;
      const hourStartMs = before.hour * HOUR_MS;
      this.#spendBefore.set(keyId, addSpend(before, nanos, Math.max(atMs, hourStartMs)));
      const day = this.#day(keyId, dayOf(atMs));
      day.chargedNanos += nanos;
      if (kind === 'settle') day.videos += 1;
    }
    this.#spend.set(keyId, row);
  }

  /** A stored row of the log. */
  logged({ keyId, usage }: RequestLogRow): void {
    const counts = countsOf(usage);
    addUses(this.#logged, keyId, { ...counts, requests: 1 });
  }

  spend(keyId: string, row: SpendRow): void {
    this.#storedSpend.set(keyId, row);
  }

  day(keyId: string, day: number, counts: DayCounts): void {
    this.#storedDays.set(`${keyId} ${day}`, counts);
    addUses(this.#storedUses, keyId, counts);
  }

  *finish(expect: Expect): Generator<void> {
    for (const [keyId, row] of this.#spend) {
      const stored = this.#storedSpend.get(keyId) ?? NOTHING_SPENT;
      const before = this.#spendBefore.get(keyId) ?? NOTHING_SPENT;
      const isOlder = WINDOWS.every((name) => before[name] === stored[name]);
      for (const name of ['total', 'hour', 'hourly', 'day', 'daily', 'held'] as const) {
        const expected = isOlder && name !== 'held' ? before[name] : row[name];
        expect('spend', `${name} of ${keyId}`, expected, stored[name]);
      }
      yield;
    }
    for (const keyId of this.#storedSpend.keys()) {
      if (!this.#spend.has(keyId)) expect('spend', keyId, 'nothing', 'a row');
      yield;
    }
    for (const [name, counted] of this.#days) {
      compareDay(name, counted, this.#storedDays.get(name), expect);
      yield;
    }
    for (const [name, stored] of this.#storedDays) {
      if (!this.#days.has(name)) compareDay(name, { chargedNanos: 0n, videos: 0 }, stored, expect);
      yield;
    }
    // The log is pruned with age, days are not: they hold at least as much.
    for (const [keyId, uses] of this.#logged) {
      const stored = this.#storedUses.get(keyId) ?? NO_USES;
      for (const name of USES)
        if (stored[name] < uses[name]) expect('day', `${name} of ${keyId} in all days`, `at least ${uses[name]}`, stored[name]);
      yield;
    }
  }

  #day(keyId: string, day: number): DaySum {
    const name = `${keyId} ${day}`;
    const sum = this.#days.get(name) ?? { chargedNanos: 0n, videos: 0 };
    this.#days.set(name, sum);
    return sum;
  }
}

function compareDay(name: string, { chargedNanos, videos }: DaySum, stored: DayCounts | undefined, expect: Expect): void {
  const [keyId = '', day] = name.split(' ');
  const subject = `${dayName(Number(day))} of ${keyId}`;
  expect('day', `charges of ${subject}`, chargedNanos, stored?.chargedNanos ?? 0n);
  expect('day', `videos of ${subject}`, videos, stored?.videos ?? 0);
}

function addUses(sums: Map<string, Uses>, keyId: string, more: Partial<Uses>): void {
  const sum = sums.get(keyId) ?? { ...NO_USES };
  for (const name of USES) sum[name] += more[name] ?? 0;
  sums.set(keyId, sum);
}
