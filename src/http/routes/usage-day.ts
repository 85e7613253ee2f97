/** One UTC day of a key's usage, or one group of it, as clients and operators read it. */
import { formatUsd } from '../../store/money.ts';
import type { UsageGroup } from '../../store/rollups.ts';
import type { DayUsage } from '../../store/spend-windows.ts';

interface Counts {
  readonly requests: number;
  readonly input_tokens: number;
  readonly cached_input_tokens: number;
  readonly cache_write_tokens: number;
  readonly output_tokens: number;
  readonly reasoning_tokens: number;
  readonly images: number;
  readonly videos: number;
  /** Decimal US dollars, exact. */
  readonly charged: string;
}

export interface UsageDay extends Counts {
  readonly day: string;
}

export function usageDay(day: DayUsage): UsageDay {
  return { day: day.day, ...countsOf(day) };
}

/** What it was grouped by, and its sums. `hour` is its beginning, `2026-03-01T12:00:00Z`. */
export function usageGroup(group: UsageGroup): object {
  const { hour, day, model, errors } = group;
  const { requests, ...rest } = countsOf(group);
  return {
    ...(hour === undefined ? {} : { hour: new Date(hour).toISOString().replace('.000', '') }),
    ...(day === undefined ? {} : { day }),
    ...(model === undefined ? {} : { model }),
    requests,
    errors,
    ...rest,
  };
}

function countsOf(day: Omit<DayUsage, 'day'>): Counts {
  return {
    requests: day.requests,
    input_tokens: day.inputTokens,
    cached_input_tokens: day.cachedInputTokens,
    cache_write_tokens: day.cacheWriteTokens,
    output_tokens: day.outputTokens,
    reasoning_tokens: day.reasoningTokens,
    images: day.images,
    videos: day.videos,
    charged: formatUsd(day.chargedNanos),
  };
}
