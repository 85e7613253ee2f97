/**
 * What a key has spent: in all, in this UTC hour, in this UTC day. Pure arithmetic; the row changes in the transaction of the
 * charge.
 */
import type { SpendLimits } from './keys.ts';

export type SpendWindow = 'total' | 'hourly' | 'daily';

/** The stored row of a key. `hour` and `day` are counted from the epoch; a row of an older hour counts as empty. */
export interface SpendRow {
  readonly total: bigint;
  readonly hour: number;
  readonly hourly: bigint;
  readonly day: number;
  readonly daily: bigint;
  /** Open video holds of the key: not spent yet, but counted against every limit. */
  readonly held: bigint;
}

/** What counts at `nowMs`. */
export interface Spend {
  readonly total: bigint;
  readonly hourly: bigint;
  readonly daily: bigint;
  readonly held: bigint;
}

/** What a key used in one UTC day. */
export interface DayUsage {
  /** `2026-03-01`. */
  readonly day: string;
  readonly requests: number;
  readonly inputTokens: number;
  readonly cachedInputTokens: number;
  readonly cacheWriteTokens: number;
  readonly outputTokens: number;
  /** Inside `outputTokens`. */
  readonly reasoningTokens: number;
  readonly images: number;
  readonly videos: number;
  readonly chargedNanos: bigint;
}

export interface SpendWindows {
  spend(keyId: string, nowMs: number): Promise<Spend>;
  /** Newest last; days without usage are absent. Both ends inclusive, `YYYY-MM-DD`. */
  usageByDay(keyId: string, range?: { readonly from?: string; readonly to?: string }): Promise<DayUsage[]>;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

const hourOf = (nowMs: number): number => Math.floor(nowMs / HOUR_MS);
export const dayOf = (nowMs: number): number => Math.floor(nowMs / DAY_MS);

/** `2026-03-01`, from days since the epoch. */
export function dayName(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}

/** Days since the epoch, or undefined when `name` is no day of the calendar as {@link dayName} writes it. */
export function dayNumber(name: string): number | undefined {
  const day = Date.parse(`${name}T00:00:00Z`) / DAY_MS;
  // `Date` reads more than days, and makes the 2nd of March of a 30th of February.
  return Number.isNaN(day) || dayName(day) !== name ? undefined : day;
}

export const NOTHING_SPENT: SpendRow = { total: 0n, hour: 0, hourly: 0n, day: 0, daily: 0n, held: 0n };

/** How far a window may begin after now and still count: clocks of machines differ, and are put right, by less. */
export const CLOCK_SLACK_MS = 5 * 60_000;

/**
 * What of a row counts at `nowMs`. A clock that was put back a little finds the window that it left still counted. One that had
 * jumped finds nothing of the window it came from, which may be a month away: its key would be locked for as long.
 */
export function spendAt(row: SpendRow, nowMs: number): Spend {
  return {
    total: row.total,
    hourly: isCurrent(row.hour, hourOf, nowMs) ? row.hourly : 0n,
    daily: isCurrent(row.day, dayOf, nowMs) ? row.daily : 0n,
    held: row.held,
  };
}

function isCurrent(window: number, windowOf: (ms: number) => number, nowMs: number): boolean {
  return window >= windowOf(nowMs) && window <= windowOf(nowMs + CLOCK_SLACK_MS);
}

/** The row after spending `nanos` at `nowMs`. */
export function addSpend(row: SpendRow, nanos: bigint, nowMs: number): SpendRow {
  const spend = spendAt(row, nowMs);
  return {
    total: row.total + nanos,
    hour: isCurrent(row.hour, hourOf, nowMs) ? row.hour : hourOf(nowMs),
    hourly: spend.hourly + nanos,
    day: isCurrent(row.day, dayOf, nowMs) ? row.day : dayOf(nowMs),
    daily: spend.daily + nanos,
    held: row.held,
  };
}

/** Whether a key has any limit at all: without one nobody need know what it has spent. */
export function isLimited({ total, hourly, daily }: SpendLimits): boolean {
  return total !== undefined || hourly !== undefined || daily !== undefined;
}

/** The first window with no room: where `spent + held + extra` has reached the limit. */
export function reachedWindow(limits: SpendLimits, spend: Spend, extra: bigint): SpendWindow | undefined {
  const pending = spend.held + extra;
  if (limits.total !== undefined && spend.total + pending >= limits.total) return 'total';
  if (limits.hourly !== undefined && spend.hourly + pending >= limits.hourly) return 'hourly';
  if (limits.daily !== undefined && spend.daily + pending >= limits.daily) return 'daily';
  return undefined;
}

/**
 * What a key may still spend in the tightest of its windows, with `extra` in flight; undefined for a key without limits. Never
 * negative.
 */
export function roomLeft(limits: SpendLimits, spend: Spend, extra: bigint): bigint | undefined {
  let room: bigint | undefined;
  for (const window of ['total', 'hourly', 'daily'] as const) {
    const limit = limits[window];
    if (limit === undefined) continue;
    const left = limit - spend[window] - spend.held - extra;
    if (room === undefined || left < room) room = left;
  }
  return room === undefined || room > 0n ? room : 0n;
}
