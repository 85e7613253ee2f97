/**
 * Limits by time and at once: how many requests and tokens a minute, how many requests at the same time. Pure; shared by every
 * engine.
 */
import { defined } from './defined.ts';
import { done, type Invalid, invalid, type Result } from './result.ts';

/** Whole numbers, each at least 1. Absent: no limit. */
export interface RateLimits {
  readonly requestsPerMinute?: number;
  /** Input and output together. */
  readonly tokensPerMinute?: number;
  /** Requests that are being answered. */
  readonly maxConcurrency?: number;
}

export type RateLimitName = keyof RateLimits;

/** `null` removes a limit. */
export type RateLimitChanges = { readonly [Name in RateLimitName]?: number | null };

/** The largest number of each: what the arithmetic of buckets holds exactly. */
export const MOST_OF_LIMITS: Readonly<Record<RateLimitName, number>> = {
  requestsPerMinute: 1_000_000_000,
  tokensPerMinute: 1_000_000_000,
  maxConcurrency: 1_000_000,
};

export const RATE_LIMIT_NAMES = ['requestsPerMinute', 'tokensPerMinute', 'maxConcurrency'] as const satisfies RateLimitName[];

/** The limits after the changes; undefined where none is left. */
export function changedRateLimits(
  before: RateLimits | undefined,
  changes: RateLimitChanges = {},
): Result<RateLimits | undefined, Invalid> {
  const after: Partial<Record<RateLimitName, number>> = {};
  for (const name of RATE_LIMIT_NAMES) {
    const asked = changes[name];
    const limit = asked === undefined ? before?.[name] : (asked ?? undefined);
    if (limit === undefined) continue;
    if (!Number.isSafeInteger(limit) || limit < 1 || limit > MOST_OF_LIMITS[name])
      return invalid(`rateLimits.${name}`, `must be a whole number from 1 to ${MOST_OF_LIMITS[name]}`);
    after[name] = limit;
  }
  return done(Object.keys(after).length === 0 ? undefined : after);
}

/** Whether two sets of limits are the same. */
export function sameRateLimits(a: RateLimits = {}, b: RateLimits = {}): boolean {
  return RATE_LIMIT_NAMES.every((name) => a[name] === b[name]);
}

/** A record with its limits, which are absent where it has none. */
export function withRateLimits<T extends { readonly rateLimits?: RateLimits }>(record: T, rateLimits: RateLimits | undefined): T {
  const { rateLimits: _before, ...rest } = record;
  return { ...rest, ...defined({ rateLimits }) } as T;
}
