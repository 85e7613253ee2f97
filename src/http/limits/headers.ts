/** How much of its limits a request has left, as headers: in OpenAI's spelling, and for messages clients in Anthropic's, too. */
import type { Standing, Standings } from './buckets.ts';

const NAMES = ['requests', 'tokens'] as const;

/** What browsers may read. */
export const LIMIT_HEADERS: readonly string[] = NAMES.flatMap((name) =>
  ['limit', 'remaining', 'reset'].flatMap((what) => [`x-ratelimit-${what}-${name}`, `anthropic-ratelimit-${name}-${what}`]),
);

export function limitHeaders(standings: Standings, isMessages: boolean, nowMs: number): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const name of NAMES) {
    const standing = standings[name];
    if (standing === undefined) continue;
    addOpenAi(headers, name, standing);
    if (isMessages) addAnthropic(headers, name, standing, nowMs);
  }
  return headers;
}

function addOpenAi(headers: Record<string, string>, name: string, { limit, remaining, resetMs }: Standing): void {
  headers[`x-ratelimit-limit-${name}`] = String(limit);
  headers[`x-ratelimit-remaining-${name}`] = String(remaining);
  headers[`x-ratelimit-reset-${name}`] = durationText(resetMs);
}

/** The time of the reset in whole seconds of RFC 3339, rounded up. */
function addAnthropic(
  headers: Record<string, string>,
  name: string,
  { limit, remaining, resetMs }: Standing,
  nowMs: number,
): void {
  headers[`anthropic-ratelimit-${name}-limit`] = String(limit);
  headers[`anthropic-ratelimit-${name}-remaining`] = String(remaining);
  headers[`anthropic-ratelimit-${name}-reset`] = secondText(nowMs + resetMs);
}

/** The last moment that a `Date` can hold. */
const LAST_MS = 8.64e15;

function secondText(atMs: number): string {
  const second = Math.min(LAST_MS, Math.ceil(atMs / 1000) * 1000);
  return new Date(second).toISOString().replace('.000Z', 'Z');
}

/** A duration as OpenAI writes it, and as Go reads it: `0s`, `12ms`, `1.5s`, `6m0s`, `2h0m0s`. */
export function durationText(ms: number): string {
  if (ms === 0) return '0s';
  if (ms < 1000) return `${ms}ms`;
  const hours = Math.floor(ms / 3_600_000);
  const minutes = Math.floor((ms % 3_600_000) / 60_000);
  const seconds = `${(ms % 60_000) / 1000}s`;
  if (hours > 0) return `${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${minutes}m${seconds}` : seconds;
}
