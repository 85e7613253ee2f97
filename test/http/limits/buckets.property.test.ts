/**
 * Limits over time, against an oracle that is made another way: each limit of the oracle is the moment at which it will be empty
 * again, as an exact fraction (the virtual scheduling form of GCRA). And against what a limit promises: in no span of time more
 * than it allows.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Claim, type Demand, LimitBuckets } from '../../../src/http/limits/buckets.ts';
import type { RateLimits } from '../../../src/store/rate-limits.ts';

const MINUTE = 60_000n;

/** The theoretical arrival time of one limit, times the limit, so that it is whole. */
class Arrival {
  readonly perMinute: bigint;
  #scaled = 0n;

  constructor(perMinute: number) {
    this.perMinute = BigInt(perMinute);
  }

  #from(nowMs: number): bigint {
    const now = BigInt(nowMs) * this.perMinute;
    return this.#scaled > now ? this.#scaled : now;
  }

  admits(count: number, nowMs: number): boolean {
    const asked = BigInt(count) < this.perMinute ? BigInt(count) : this.perMinute;
    return this.#from(nowMs) + asked * MINUTE <= BigInt(nowMs) * this.perMinute + MINUTE * this.perMinute;
  }

  take(count: number, nowMs: number): void {
    this.#scaled = this.#from(nowMs) + BigInt(count) * MINUTE;
  }

  remaining(nowMs: number): number {
    const left = MINUTE * this.perMinute - (this.#from(nowMs) - BigInt(nowMs) * this.perMinute);
    return left <= 0n ? 0 : Number(left / MINUTE);
  }
}

class Oracle {
  readonly requests: Arrival | undefined;
  readonly tokens: Arrival | undefined;
  readonly most: number;
  inFlight = 0;

  constructor({ requestsPerMinute, tokensPerMinute, maxConcurrency = Number.POSITIVE_INFINITY }: RateLimits) {
    this.requests = requestsPerMinute === undefined ? undefined : new Arrival(requestsPerMinute);
    this.tokens = tokensPerMinute === undefined ? undefined : new Arrival(tokensPerMinute);
    this.most = maxConcurrency;
  }

  admits({ requests, tokens }: Demand, nowMs: number): boolean {
    if (this.inFlight >= this.most) return false;
    return (this.requests?.admits(requests, nowMs) ?? true) && (this.tokens?.admits(tokens, nowMs) ?? true);
  }

  take({ requests, tokens }: Demand, nowMs: number): void {
    this.requests?.take(requests, nowMs);
    this.tokens?.take(tokens, nowMs);
  }
}

const perMinute = fc.oneof(fc.integer({ min: 1, max: 9 }), fc.constantFrom(7, 60, 1_000, 999_983, 1_000_000_000));
const limits: fc.Arbitrary<RateLimits> = fc.record(
  { requestsPerMinute: perMinute, tokensPerMinute: perMinute, maxConcurrency: fc.integer({ min: 1, max: 3 }) },
  { requiredKeys: [] },
);
const event = fc.oneof(
  fc.record({
    do: fc.constant('take' as const),
    who: fc.nat(2),
    requests: fc.integer({ min: 1, max: 3 }),
    tokens: fc.nat(2_000),
  }),
  fc.record({ do: fc.constant('use' as const), who: fc.nat(), tokens: fc.nat(5_000) }),
  fc.record({ do: fc.constant('wait' as const), ms: fc.oneof(fc.nat(300), fc.nat(90_000)) }),
  fc.record({ do: fc.constant('waitFor' as const) }),
);

test('what is admitted, what is left and how long to wait are what an exact oracle says, whatever happens in what order', () => {
  fc.assert(
    fc.property(fc.array(limits, { minLength: 4, maxLength: 4 }), fc.array(event, { maxLength: 120 }), (all, events) => {
      const buckets = new LimitBuckets();
      const oracles = all.map((each) => new Oracle(each));
      // The last one is everybody's.
      const claimsOf = (who: number): number[] => [who % 3, 3];
      const claims = (who: number): Claim[] =>
        claimsOf(who).map((at) => ({ scope: 'key', bucket: `key:${at}`, limits: all[at] ?? {} }));
      const open: { who: number; demand: Demand }[] = [];
      let nowMs = 1;
      let refused: { who: number; demand: Demand; waitMs: number; sinceMs: number } | undefined;
      const take = (who: number, demand: Demand): void => {
        const mine = claimsOf(who)
          .map((at) => oracles[at])
          .filter((oracle) => oracle !== undefined);
        const taking = buckets.take(claims(who), demand, nowMs);
        assert.equal(
          taking.refusal === undefined,
          mine.every((oracle) => oracle.admits(demand, nowMs)),
        );
        if (taking.refusal === undefined) {
          for (const oracle of mine) {
            oracle.take(demand, nowMs);
            oracle.inFlight += 1;
          }
          open.push({ who, demand });
          refused = undefined;
        } else refused = { who, demand, waitMs: taking.refusal.waitMs, sinceMs: nowMs };
        const left = mine.flatMap(({ requests }) => (requests === undefined ? [] : [requests.remaining(nowMs)]));
        assert.equal(taking.standings.requests?.remaining, left.length === 0 ? undefined : Math.min(...left));
      };
      for (const step of events) {
        if (step.do === 'wait') nowMs += step.ms;
        if (step.do === 'take') take(step.who, step);
        if (step.do === 'use' && open.length > 0) {
          const [ended] = open.splice(step.who % open.length, 1);
          if (ended === undefined) continue;
          refused = undefined;
          const more = Math.max(0, step.tokens - ended.demand.tokens);
          buckets.adjust(claims(ended.who), { requests: 0, tokens: more }, nowMs);
          buckets.leave(claims(ended.who));
          for (const at of claimsOf(ended.who)) {
            oracles[at]?.tokens?.take(more, nowMs);
            if (oracles[at] !== undefined) oracles[at].inFlight -= 1;
          }
        }
        // Once the wait is over there is room, and not a millisecond before; who waits for a place may wait longer.
        if (step.do === 'waitFor' && refused !== undefined) {
          const { who, demand, waitMs, sinceMs } = refused;
          const mine = claimsOf(who).flatMap((at) => oracles[at] ?? []);
          if (mine.every(({ inFlight, most }) => inFlight < most)) {
            assert.ok(!mine.every((oracle) => oracle.admits(demand, sinceMs + waitMs - 1)));
            assert.ok(mine.every((oracle) => oracle.admits(demand, sinceMs + waitMs)));
          }
          nowMs = Math.max(nowMs, sinceMs + waitMs);
          take(who, demand);
          refused = undefined;
        }
      }
    }),
    { numRuns: 500 },
  );
});

test('in no span of time are more requests admitted than the limit and what it gives in that time', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 120 }), fc.array(fc.nat(2_000), { maxLength: 300 }), (limit, pauses) => {
      const buckets = new LimitBuckets();
      const claims: Claim[] = [{ scope: 'key', bucket: 'key:a', limits: { requestsPerMinute: limit } }];
      const admitted: number[] = [];
      let nowMs = 0;
      for (const pause of pauses) {
        nowMs += pause;
        if (buckets.take(claims, { requests: 1, tokens: 0 }, nowMs).refusal === undefined) admitted.push(nowMs);
        buckets.leave(claims);
      }
      for (const [first, from] of admitted.entries()) {
        for (const [last, to] of admitted.entries()) {
          if (last < first) continue;
          assert.ok(last - first + 1 <= limit + (limit * (to - from)) / 60_000, `${last - first + 1} in ${to - from} ms`);
        }
      }
    }),
    { numRuns: 200 },
  );
});

test('a request that is given back leaves every bucket as it was', () => {
  fc.assert(
    fc.property(limits, fc.array(fc.nat(50), { maxLength: 20 }), fc.nat(500), (each, before, tokens) => {
      const claims: Claim[] = [{ scope: 'key', bucket: 'key:a', limits: each }];
      const play = (withRefusal: boolean): unknown => {
        const buckets = new LimitBuckets();
        for (const taken of before) buckets.take(claims, { requests: 1, tokens: taken }, 5);
        if (withRefusal && buckets.take(claims, { requests: 1, tokens }, 6).refusal === undefined) {
          buckets.adjust(claims, { requests: -1, tokens: -tokens }, 6);
          buckets.leave(claims);
        }
        return buckets.take(claims, { requests: 1, tokens: 1 }, 6);
      };
      assert.deepEqual(play(true), play(false));
    }),
    { numRuns: 200 },
  );
});

test('buckets that are empty again are forgotten', () => {
  const buckets = new LimitBuckets();
  const take = (id: number, nowMs: number): void => {
    const claims: Claim[] = [{ scope: 'key', bucket: `key:${id}`, limits: { requestsPerMinute: 60 } }];
    buckets.take(claims, { requests: 1, tokens: 0 }, nowMs);
    buckets.leave(claims);
  };
  for (let id = 0; id < 20_000; id++) take(id, id * 10);
  assert.ok(buckets.size <= 2_048, `${buckets.size} buckets`);
});

test('a limit that is lowered shuts nobody out for more than two minutes longer than the old one would have', () => {
  const demand = { requests: 1, tokens: 10 };
  const after = fc.record({ ms: fc.nat(90_000), used: fc.nat(500_000), isElsewhere: fc.boolean() });
  fc.assert(
    fc.property(
      fc.tuple(perMinute, perMinute),
      fc.tuple(perMinute, perMinute),
      fc.array(fc.nat(400_000), { maxLength: 30 }),
      fc.array(after, { maxLength: 5 }),
      fc.nat(7_200_000),
      (requests, tokens, before, afterwards, restMs) => {
        const claims = (at: 'max' | 'min'): [Claim] => {
          const limits = { requestsPerMinute: Math[at](...requests), tokensPerMinute: Math[at](...tokens) };
          return [{ scope: 'key', bucket: 'key:a', limits }];
        };
        const wait = (isLowered: boolean): number => {
          const buckets = new LimitBuckets();
          let nowMs = 1;
          for (const used of before) {
            if (buckets.take(claims('max'), demand, nowMs).refusal !== undefined) continue;
            buckets.adjust(claims('max'), { requests: 0, tokens: used - demand.tokens }, nowMs);
            buckets.leave(claims('max'));
          }
          const asked = claims(isLowered ? 'min' : 'max');
          buckets.take(asked, { requests: 0, tokens: 0 }, nowMs);
          for (const { ms, used, isElsewhere } of afterwards) {
            nowMs += ms;
            if (isElsewhere) buckets.takenElsewhere('key:a', claims('max')[0].limits, { requests: 1, tokens: used }, nowMs);
            else buckets.adjust(claims('max'), { requests: 0, tokens: used }, nowMs);
          }
          return buckets.take(asked, demand, nowMs + restMs).refusal?.waitMs ?? 0;
        };
        assert.ok(wait(true) <= wait(false) + 120_000, `${wait(true)} ms, where it were ${wait(false)}`);
      },
    ),
    { numRuns: 500 },
  );
});
