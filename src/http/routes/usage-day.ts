/** One UTC day of a key's usage as clients and operators read it. */
import { formatUsd } from '../../store/money.ts';
import type { DayUsage } from '../../store/spend-windows.ts';

export interface UsageDay {
  readonly day: string;
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

export function usageDay(day: DayUsage): UsageDay {
  return {
    day: day.day,
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
