/** How limits by time are typed and printed. */
import { defined } from '../codecs/defined.ts';
import type { RateLimitChanges, RateLimits } from '../store/rate-limits.ts';

export const RATE_LIMIT_USAGE = '[--requests-per-minute N] [--tokens-per-minute N] [--max-concurrency N]';

/** Of something new, where `null` is what it has anyway; undefined where none is left. */
export function newRateLimits(changes: RateLimitChanges = {}): RateLimits | undefined {
  const { requestsPerMinute, tokensPerMinute, maxConcurrency } = changes;
  const limits: RateLimits = defined({
    requestsPerMinute: requestsPerMinute ?? undefined,
    tokensPerMinute: tokensPerMinute ?? undefined,
    maxConcurrency: maxConcurrency ?? undefined,
  });
  return Object.keys(limits).length === 0 ? undefined : limits;
}

/** `60 requests/min`, `1000 tokens/min`, `3 at once`: those that there are. */
export function rateLimitWords({ requestsPerMinute, tokensPerMinute, maxConcurrency }: RateLimits = {}): string[] {
  const words: string[] = [];
  if (requestsPerMinute !== undefined) words.push(`${requestsPerMinute} requests/min`);
  if (tokensPerMinute !== undefined) words.push(`${tokensPerMinute} tokens/min`);
  if (maxConcurrency !== undefined) words.push(`${maxConcurrency} at once`);
  return words;
}
