/**
 * Limits by time and at once, counted in memory: a bucket each for every key, account, model and class that has limits. Knows no
 * request.
 *
 * A limit of N a minute is a generic cell rate algorithm (GCRA) in its leaky-bucket form: a bucket that N fill, that drains N a
 * minute, and that may overflow, since what an answer takes is known only at its end. While it is overflowing, in debt, nothing
 * is admitted. So of N a minute at most N + N × t / 60 s are admitted in any time t, and beyond that only what was admitted last.
 */
import { defined } from '../../codecs/defined.ts';
import type { RateLimits } from '../../store/rate-limits.ts';

export type LimitScope = 'key' | 'account' | 'model' | 'class';
export type LimitKind = 'requests' | 'tokens' | 'concurrency';

/** One bucket that a request must be admitted by. */
export interface Claim {
  readonly scope: LimitScope;
  /** `key:ID`, `account:ID`, `model:NAME`, `class:NAME` */
  readonly bucket: string;
  readonly limits: RateLimits;
}

/** What a request takes of each of its buckets, beside its place among those that are being answered. */
export interface Demand {
  readonly requests: number;
  readonly tokens: number;
}

/** How full a bucket is. */
export interface Standing {
  /** A minute. */
  readonly limit: number;
  /** Whole ones; 0 in debt. */
  readonly remaining: number;
  /** Until nothing is taken any more. */
  readonly resetMs: number;
}

/** Of all that apply, the one with the least left. */
export interface Standings {
  readonly requests?: Standing;
  readonly tokens?: Standing;
}

export interface LimitRefusal {
  readonly scope: LimitScope;
  readonly kind: LimitKind;
  readonly limit: number;
  /** After this long the same request finds room, if no other takes it. */
  readonly waitMs: number;
}

export interface Taking {
  /** Absent: admitted. */
  readonly refusal?: LimitRefusal;
  readonly standings: Standings;
}

const MINUTE_MS = 60_000;
/** When a place is free again nobody can know. */
const PLACE_WAIT_MS = 1_000;
const FEW_BUCKETS = 1_024;

/** A minute's limit. Counts are kept times a minute, so that what drains in a millisecond is a whole number, too. */
class Level {
  #full = 0;
  #atMs = 0;

  drain(perMinute: number | undefined, nowMs: number): void {
    const elapsedMs = Math.max(0, nowMs - this.#atMs);
    this.#full = perMinute === undefined ? 0 : Math.max(0, this.#full - elapsedMs * perMinute);
    this.#atMs = nowMs;
  }

  get isEmpty(): boolean {
    return this.#full === 0;
  }

  /** After {@link drain}. A larger request than the whole bucket needs an empty one; it is in debt then. */
  waitMs(count: number, perMinute: number): number {
    const missing = this.#full + (Math.min(count, perMinute) - perMinute) * MINUTE_MS;
    return missing <= 0 ? 0 : Math.ceil(missing / perMinute);
  }

  /**
   * After {@link drain}: `count` was taken under a limit of `under`, and the limit is `perMinute` now. Gives what of it counts.
   */
  add(count: number, under: number | undefined, perMinute: number | undefined): number {
    const full = carried(this.#full, count * MINUTE_MS, under, perMinute);
    const counted = Math.ceil((full - this.#full) / MINUTE_MS);
    this.#full = Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, full));
    return counted;
  }

  /** After {@link drain} at the limit that was. */
  change(under: number | undefined, perMinute: number | undefined): void {
    this.#full = carried(0, this.#full, under, perMinute);
  }

  standing(perMinute: number): Standing {
    const remaining = Math.max(0, Math.floor((perMinute * MINUTE_MS - this.#full) / MINUTE_MS));
    return { limit: perMinute, remaining, resetMs: Math.ceil(this.#full / perMinute) };
  }
}

/**
 * How full a bucket is when `more` of it was taken under another limit. Where that was higher, as much stays taken as this bucket
 * holds, and what is beyond is paid in the time that it would have been: who took a million under a limit of a million would
 * else be refused for half a day under one of a thousand.
 */
function carried(full: number, more: number, under: number | undefined, perMinute: number | undefined): number {
  if (perMinute === undefined || (under !== undefined && under <= perMinute)) return full + more;
  const inTime = full + (under === undefined ? 0 : Math.trunc(more * (perMinute / under)));
  return more < 0 ? inTime : Math.max(inTime, Math.min(full + more, perMinute * MINUTE_MS));
}

/** Of each kind the higher limit; none is higher than any. */
export function higherOf(one: RateLimits, other: RateLimits): RateLimits {
  const higher = (name: 'requestsPerMinute' | 'tokensPerMinute'): number | undefined => {
    const [a, b] = [one[name], other[name]];
    return a === undefined || b === undefined ? undefined : Math.max(a, b);
  };
  return defined({ requestsPerMinute: higher('requestsPerMinute'), tokensPerMinute: higher('tokensPerMinute') });
}

export class Bucket {
  limits: RateLimits;
  /** What others have not been told yet was taken under these limits, or under lower ones. */
  under: RateLimits;
  readonly requests = new Level();
  readonly tokens = new Level();
  /** Being answered here. */
  inFlight = 0;
  /** Being answered by others, as they last reported. */
  elsewhere = 0;
  /** All that was taken here. */
  takenRequests = 0;
  takenTokens = 0;

  constructor(limits: RateLimits) {
    this.limits = limits;
    this.under = limits;
  }

  drain(nowMs: number): void {
    this.requests.drain(this.limits.requestsPerMinute, nowMs);
    this.tokens.drain(this.limits.tokensPerMinute, nowMs);
  }

  get isIdle(): boolean {
    return this.inFlight === 0 && this.elsewhere === 0 && this.requests.isEmpty && this.tokens.isEmpty;
  }

  /** After {@link drain}: the limit that lets the request wait longest. */
  refusal(scope: LimitScope, { requests, tokens }: Demand): LimitRefusal | undefined {
    const { requestsPerMinute, tokensPerMinute, maxConcurrency } = this.limits;
    const waits: LimitRefusal[] = [];
    const check = (kind: LimitKind, limit: number, waitMs: number): void => {
      if (waitMs > 0) waits.push({ scope, kind, limit, waitMs });
    };
    if (maxConcurrency !== undefined)
      check('concurrency', maxConcurrency, this.inFlight + this.elsewhere < maxConcurrency ? 0 : PLACE_WAIT_MS);
    if (requestsPerMinute !== undefined) check('requests', requestsPerMinute, this.requests.waitMs(requests, requestsPerMinute));
    if (tokensPerMinute !== undefined) check('tokens', tokensPerMinute, this.tokens.waitMs(tokens, tokensPerMinute));
    return longest(waits);
  }

  add(demand: Demand, under: RateLimits): void {
    const { requests, tokens } = this.addElsewhere(demand, under);
    this.takenRequests += requests;
    this.takenTokens += tokens;
  }

  addElsewhere({ requests, tokens }: Demand, under: RateLimits): Demand {
    return {
      requests: this.requests.add(requests, under.requestsPerMinute, this.limits.requestsPerMinute),
      tokens: this.tokens.add(tokens, under.tokensPerMinute, this.limits.tokensPerMinute),
    };
  }

  /** After {@link drain}. */
  change(limits: RateLimits): void {
    this.requests.change(this.limits.requestsPerMinute, limits.requestsPerMinute);
    this.tokens.change(this.limits.tokensPerMinute, limits.tokensPerMinute);
    if (limits !== this.limits) this.under = higherOf(this.under, limits);
    this.limits = limits;
  }
}

/** Times are whole milliseconds of a clock that never goes back. */
export class LimitBuckets {
  readonly #buckets = new Map<string, Bucket>();
  #sweepAt = FEW_BUCKETS;

  get size(): number {
    return this.#buckets.size;
  }

  /** All of them admit the request, and each gives what it asks for, or none gives anything. */
  take(claims: readonly Claim[], demand: Demand, nowMs: number): Taking {
    const held = claims.map((claim) => ({ scope: claim.scope, bucket: this.#current(claim, nowMs) }));
    const refusal = longest(held.flatMap(({ scope, bucket }) => bucket.refusal(scope, demand) ?? []));
    if (refusal !== undefined) return { refusal, standings: standingsOf(held) };
    for (const { bucket } of held) {
      bucket.add(demand, bucket.limits);
      bucket.inFlight += 1;
    }
    return { standings: standingsOf(held) };
  }

  /** What an admitted request took more than was thought, or (negative) less. */
  adjust(claims: readonly Claim[], demand: Demand, nowMs: number): void {
    for (const { bucket: name, limits } of claims) {
      // Its limits may have been changed since it was taken of.
      const bucket = this.#buckets.get(name) ?? this.#make(name, limits, nowMs);
      bucket.drain(nowMs);
      bucket.add(demand, limits);
    }
  }

  /** An admitted request is not being answered any more. */
  leave(claims: readonly Claim[]): void {
    for (const { bucket: name } of claims) {
      const bucket = this.#buckets.get(name);
      if (bucket !== undefined && bucket.inFlight > 0) bucket.inFlight -= 1;
    }
  }

  /** What others took of a bucket, whose limits count where it is not known here. */
  takenElsewhere(name: string, limits: RateLimits, demand: Demand, nowMs: number): void {
    const bucket = this.#buckets.get(name) ?? this.#make(name, limits, nowMs);
    bucket.drain(nowMs);
    bucket.addElsewhere(demand, limits);
  }

  /** How many requests others are answering: of every bucket that is not named, none. */
  setElsewhere(counts: ReadonlyMap<string, number>): void {
    for (const [name, bucket] of this.#buckets) bucket.elsewhere = counts.get(name) ?? 0;
  }

  entries(): IterableIterator<[string, Bucket]> {
    return this.#buckets.entries();
  }

  #current({ bucket: name, limits }: Claim, nowMs: number): Bucket {
    const bucket = this.#buckets.get(name) ?? this.#make(name, limits, nowMs);
    bucket.drain(nowMs);
    bucket.change(limits);
    return bucket;
  }

  #make(name: string, limits: RateLimits, nowMs: number): Bucket {
    if (this.#buckets.size >= this.#sweepAt) this.#sweep(nowMs);
    const bucket = new Bucket(limits);
    bucket.drain(nowMs);
    this.#buckets.set(name, bucket);
    return bucket;
  }

  /** A bucket that nothing is taken of is the same as none. */
  #sweep(nowMs: number): void {
    for (const [name, bucket] of this.#buckets) {
      bucket.drain(nowMs);
      if (bucket.isIdle) this.#buckets.delete(name);
    }
    this.#sweepAt = Math.max(FEW_BUCKETS, 2 * this.#buckets.size);
  }
}

function longest(refusals: readonly LimitRefusal[]): LimitRefusal | undefined {
  return refusals.reduce<LimitRefusal | undefined>(
    (most, each) => (most === undefined || each.waitMs > most.waitMs ? each : most),
    undefined,
  );
}

function standingsOf(held: readonly { readonly bucket: Bucket }[]): Standings {
  const requests = tightest(held.map(({ bucket }) => standingOf(bucket.requests, bucket.limits.requestsPerMinute)));
  const tokens = tightest(held.map(({ bucket }) => standingOf(bucket.tokens, bucket.limits.tokensPerMinute)));
  return { ...(requests === undefined ? {} : { requests }), ...(tokens === undefined ? {} : { tokens }) };
}

function standingOf(level: Level, perMinute: number | undefined): Standing | undefined {
  return perMinute === undefined ? undefined : level.standing(perMinute);
}

/** The least left; of those the one that takes longest. */
function tightest(standings: readonly (Standing | undefined)[]): Standing | undefined {
  return standings.reduce((least, each) => {
    if (least === undefined || each === undefined) return least ?? each;
    const isTighter = each.remaining === least.remaining ? each.resetMs > least.resetMs : each.remaining < least.remaining;
    return isTighter ? each : least;
  }, undefined);
}
