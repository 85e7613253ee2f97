/** The options by which limits by time are set, and how limits are printed. */
import {
  MOST_OF_LIMITS,
  RATE_LIMIT_NAMES,
  type RateLimitChanges,
  type RateLimitName,
  type RateLimits,
} from '../store/rate-limits.ts';
import { textOption, UsageError, type VerbContext } from './verb.ts';

const OPTION_OF: Readonly<Record<RateLimitName, string>> = {
  requestsPerMinute: 'requests-per-minute',
  tokensPerMinute: 'tokens-per-minute',
  maxConcurrency: 'max-concurrency',
};

export const RATE_LIMIT_OPTIONS = RATE_LIMIT_NAMES.map((name) => OPTION_OF[name]);
export const RATE_LIMIT_USAGE = '[--requests-per-minute N] [--tokens-per-minute N] [--max-concurrency N]';

/** What takes a restriction away. */
export const NONE = 'none';

/** What the options ask for; undefined where none is given. Throws UsageError. */
export function requestedRateLimits(context: VerbContext): RateLimitChanges | undefined {
  const changes: { -readonly [Name in RateLimitName]?: number | null } = {};
  for (const name of RATE_LIMIT_NAMES) {
    const text = textOption(context, OPTION_OF[name]);
    if (text !== undefined) changes[name] = text === NONE ? null : countOf(text, name);
  }
  return Object.keys(changes).length === 0 ? undefined : changes;
}

/** For something new, where `none` is what it has anyway. */
export function newRateLimits(context: VerbContext): RateLimits | undefined {
  const limits = Object.entries(requestedRateLimits(context) ?? {}).filter(([, limit]) => limit !== null);
  return limits.length === 0 ? undefined : Object.fromEntries(limits);
}

function countOf(text: string, name: RateLimitName): number {
  const most = MOST_OF_LIMITS[name];
  const count = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (!(count >= 1 && count <= most))
    throw new UsageError(`--${OPTION_OF[name]} must be a whole number from 1 to ${most}, or none`);
  return count;
}

/** `60 requests/min`, `1000 tokens/min`, `3 at once`: those that there are. */
export function rateLimitWords({ requestsPerMinute, tokensPerMinute, maxConcurrency }: RateLimits = {}): string[] {
  const words: string[] = [];
  if (requestsPerMinute !== undefined) words.push(`${requestsPerMinute} requests/min`);
  if (tokensPerMinute !== undefined) words.push(`${tokensPerMinute} tokens/min`);
  if (maxConcurrency !== undefined) words.push(`${maxConcurrency} at once`);
  return words;
}
