/**
 * Limits of several gateways on one store. Each second a gateway writes what it has taken of its buckets, and takes from them
 * what the others wrote. In between it does not see them: what that costs stands in docs/scaling.md.
 */
import type { Logger } from 'pino';
import type { ForeignCount, LimitCount, LimitCounts } from '../../store/limit-counts.ts';
import type { RateLimits } from '../../store/rate-limits.ts';
import { defined } from '../../codecs/defined.ts';
import type { Clock } from '../../streams/clock.ts';
import { type Bucket, higherOf, type LimitBuckets } from './buckets.ts';

const EXCHANGE_MS = 1_000;
/** Counts that were not written for this long begin anew: others may have forgotten where they stood. */
const RENEW_MS = 20_000;
/** Where a count stood is remembered for this long. */
const REMEMBER_MS = 600_000;
/** Places of a gateway that has not written for this long are free. */
const PLACES_MS = 5_000;
/** The rest is written a second later. */
const MOST_COUNTS = 5_000;

/** A bucket as it was written. */
interface Written {
  readonly bucket: Bucket;
  readonly since: number;
  /** What was taken before it was counted. */
  readonly baseRequests: number;
  readonly baseTokens: number;
  readonly requests: number;
  readonly tokens: number;
  readonly inFlight: number;
  readonly atMs: number;
  readonly limits: RateLimits;
  readonly under: RateLimits;
}

interface Seen {
  readonly since: number;
  readonly requests: number;
  readonly tokens: number;
  readonly atMs: number;
}

export class LimitExchange {
  readonly #buckets: LimitBuckets;
  readonly #member: string;
  readonly #exchange: LimitCounts['exchange'];
  readonly #clock: Clock;
  readonly #written = new Map<string, Written>();
  readonly #seen = new Map<string, Seen>();
  #counted = 0;
  #isFirst = true;

  /** `member` is another one for every process that ever counted. */
  constructor(buckets: LimitBuckets, member: string, exchange: LimitCounts['exchange'], clock: Clock) {
    this.#buckets = buckets;
    this.#member = member;
    this.#exchange = exchange;
    this.#clock = clock;
  }

  /** Rejects as the store does; then nothing has changed, and the next round makes up for it. */
  async round(): Promise<void> {
    const nowMs = this.#now();
    const written = this.#unwritten(nowMs);
    const others = await this.#exchange(
      this.#member,
      [...written].map(([name, count]) => countOf(name, count)),
    );
    for (const [name, count] of written) {
      this.#written.set(name, count);
      // They may have been changed while they were written.
      count.bucket.under = higherOf(count.limits, count.bucket.limits);
    }
    for (const [name, { bucket, atMs }] of this.#written)
      if (nowMs - atMs > REMEMBER_MS && bucket.inFlight === 0) this.#written.delete(name);
    this.#take(others, this.#now());
  }

  #now(): number {
    return Math.floor(this.#clock.monotonic());
  }

  /** What differs from what was written, and all that has requests under way, since others would think them over. */
  #unwritten(nowMs: number): ReadonlyMap<string, Written> {
    const found = new Map<string, Written>();
    for (const [name, bucket] of this.#buckets.entries()) {
      if (found.size >= MOST_COUNTS) break;
      const count = this.#count(bucket, this.#written.get(name), nowMs);
      if (count !== undefined) found.set(name, count);
    }
    return found;
  }

  #count(bucket: Bucket, before: Written | undefined, nowMs: number): Written | undefined {
    const isKnown = before?.bucket === bucket;
    const isSame =
      isKnown &&
      bucket.takenRequests === before.baseRequests + before.requests &&
      bucket.takenTokens === before.baseTokens + before.tokens;
    if (isSame && bucket.inFlight === 0 && before.inFlight === 0) return undefined;
    const goesOn = isKnown && nowMs - before.atMs <= RENEW_MS;
    const since = goesOn ? before.since : ++this.#counted;
    // A new count of a bucket that was written before begins where that one ended.
    const [writtenRequests, writtenTokens] = isKnown
      ? [before.baseRequests + before.requests, before.baseTokens + before.tokens]
      : [0, 0];
    const baseRequests = goesOn ? before.baseRequests : writtenRequests;
    const baseTokens = goesOn ? before.baseTokens : writtenTokens;
    return {
      bucket,
      since,
      baseRequests,
      baseTokens,
      requests: bucket.takenRequests - baseRequests,
      tokens: bucket.takenTokens - baseTokens,
      inFlight: bucket.inFlight,
      atMs: nowMs,
      limits: bucket.limits,
      under: bucket.under,
    };
  }

  #take(others: readonly ForeignCount[], nowMs: number): void {
    const places = new Map<string, number>();
    for (const count of others) {
      const { member, bucket, since, requests, tokens, inFlight, ageMs } = count;
      if (ageMs <= PLACES_MS) places.set(bucket, (places.get(bucket) ?? 0) + inFlight);
      const name = `${member} ${bucket}`;
      const before = this.#seen.get(name);
      this.#seen.set(name, { since, requests, tokens, atMs: nowMs });
      // What was taken before this gateway began may be long ago.
      if (this.#isFirst) continue;
      const known = before?.since === since ? before : { requests: 0, tokens: 0 };
      const more = { requests: requests - known.requests, tokens: tokens - known.tokens };
      if (more.requests !== 0 || more.tokens !== 0) this.#buckets.takenElsewhere(bucket, limitsOf(count), more, nowMs);
    }
    this.#isFirst = false;
    this.#buckets.setElsewhere(places);
    for (const [name, { atMs }] of this.#seen) if (nowMs - atMs > REMEMBER_MS) this.#seen.delete(name);
  }
}

function countOf(name: string, { since, requests, tokens, inFlight, under }: Written): LimitCount {
  return { bucket: name, since, requests, tokens, inFlight, ...limitsOf(under) };
}

function limitsOf({ requestsPerMinute, tokensPerMinute }: Pick<LimitCount, 'requestsPerMinute' | 'tokensPerMinute'>) {
  return defined({ requestsPerMinute, tokensPerMinute });
}

/**
 * A round now, which tells what was taken before, and one each second until it is stopped. A store that is away is told once;
 * each gateway then counts alone.
 */
export function startLimitExchange(exchange: LimitExchange, clock: Clock, log: Logger): { stop(): void } {
  let isFailing = false;
  let isStopped = false;
  let timer = clock.setTimeout(() => void tick(), 0);
  async function tick(): Promise<void> {
    try {
      await exchange.round();
      isFailing = false;
    } catch (error) {
      if (!isFailing) log.warn({ err: error }, 'counts of limits could not be exchanged');
      isFailing = true;
    }
    if (!isStopped) timer = clock.setTimeout(() => void tick(), EXCHANGE_MS);
  }
  return {
    stop() {
      isStopped = true;
      timer.cancel();
    },
  };
}
