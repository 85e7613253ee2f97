/** What a key has spent: in all, in this UTC hour, in this UTC day. Pure arithmetic; the row changes in the transaction of the charge. */
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

export type { SpendLimits };
