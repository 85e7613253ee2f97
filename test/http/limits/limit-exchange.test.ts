/**
 * Gateways that share their counts each second: how far they can pass a limit before they see each other (the formula of
 * docs/scaling.md), that it is paid back, and that what one forgot, missed or left behind is counted once.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Claim, LimitBuckets } from '../../../src/http/limits/buckets.ts';
import { LimitExchange, startLimitExchange } from '../../../src/http/limits/limit-exchange.ts';
import { createLogger } from '../../../src/http/operations/logger.ts';
import { type ForeignCount, HEARD_MS, type LimitCount, type LimitCounts } from '../../../src/store/limit-counts.ts';
import type { RateLimits } from '../../../src/store/rate-limits.ts';
import { createFakeClock, type FakeClock } from '../../support/fake-clock.ts';

/** A store that holds counts as the engines do. */
function countsOf(clock: FakeClock): LimitCounts & { isAway: boolean; rows: number } {
  const rows = new Map<string, LimitCount & { readonly member: string; readonly atMs: number }>();
  const store = {
    isAway: false,
    get rows() {
      return rows.size;
    },
    async exchange(member: string, counts: readonly LimitCount[]): Promise<readonly ForeignCount[]> {
      if (store.isAway) throw new Error('away');
      for (const count of counts) rows.set(`${member} ${count.bucket}`, { ...count, member, atMs: clock.now() });
      return [...rows.values()].flatMap(({ atMs, ...row }) => {
        const ageMs = clock.now() - atMs;
        return row.member === member || ageMs > HEARD_MS ? [] : [{ ...row, ageMs }];
      });
    },
  };
  return store;
}

class Machine {
  readonly buckets = new LimitBuckets();
  readonly exchange: LimitExchange;
  readonly #clock: FakeClock;

  constructor(name: string, counts: LimitCounts, clock: FakeClock) {
    this.#clock = clock;
    this.exchange = new LimitExchange(this.buckets, name, (member, own) => counts.exchange(member, own), clock);
  }

  take(limits: RateLimits, tokens = 0): boolean {
    return this.buckets.take(this.#claims(limits), { requests: 1, tokens }, this.#clock.monotonic()).refusal === undefined;
  }

  used(limits: RateLimits, tokens: number): void {
    this.buckets.adjust(this.#claims(limits), { requests: 0, tokens }, this.#clock.monotonic());
  }

  leave(limits: RateLimits): void {
    this.buckets.leave(this.#claims(limits));
  }

  #claims(limits: RateLimits): Claim[] {
    return [{ scope: 'key', bucket: 'key:a', limits }];
  }
}

function group(size: number) {
  const clock = createFakeClock();
  const counts = countsOf(clock);
  const machines = Array.from({ length: size }, (_, n) => new Machine(`m${n}`, counts, clock));
  const round = async (): Promise<void> => {
    for (const { exchange } of machines) await exchange.round();
  };
  return { clock, counts, machines, round };
}

/** Written at the end of a period, read at the end of the next. */
const UNSEEN_MS = 2_000;

test('machines pass a limit by no more than what the others admitted in the last two seconds', async () => {
  const step = fc.record({
    machine: fc.nat(2),
    waitMs: fc.oneof(fc.nat(20), fc.nat(900)),
    burst: fc.integer({ min: 1, max: 8 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 30 }), fc.array(step, { maxLength: 120 }), async (limit, steps) => {
      const { clock, machines, round } = group(3);
      await round();
      const limits = { requestsPerMinute: limit };
      const admitted: { readonly by: number; readonly atMs: number }[] = [];
      // Each exchanges once a second, at a moment of its own.
      const next = [150, 450, 950];
      const advance = async (ms: number): Promise<void> => {
        const until = clock.monotonic() + ms;
        for (;;) {
          const first = Math.min(...next);
          if (first > until) break;
          clock.advance(first - clock.monotonic());
          const who = next.indexOf(first);
          await machines[who]?.exchange.round();
          next[who] = first + 1_000;
        }
        clock.advance(until - clock.monotonic());
      };
      for (const { machine, waitMs, burst } of steps) {
        await advance(waitMs);
        for (let n = 0; n < burst; n++)
          if (machines[machine]?.take(limits) === true) admitted.push({ by: machine, atMs: clock.monotonic() });
      }
      for (const [first, { atMs: from }] of admitted.entries()) {
        for (const [last, { by, atMs: to }] of admitted.entries()) {
          if (last < first) continue;
          const unseen = admitted.slice(first, last + 1).filter((each) => each.by !== by && each.atMs > to - UNSEEN_MS).length;
          assert.ok(
            last - first + 1 <= limit + (limit * (to - from)) / 60_000 + unseen,
            `${last - first + 1} in ${to - from} ms`,
          );
        }
      }
    }),
    { numRuns: 100 },
  );
});

test('in the worst case each machine admits all of a limit at once, and all of it is paid back before anybody admits again', async () => {
  const { clock, machines, round } = group(3);
  const limits = { requestsPerMinute: 60 };
  await round();
  let admitted = 0;
  for (const machine of machines) while (machine.take(limits)) admitted += 1;
  assert.equal(admitted, 3 * 60);
  // The first one has read before the others have written.
  await round();
  await round();
  // Two limits are owed: two minutes pass before the first request of the third is admitted.
  let firstMs: number | undefined;
  for (let second = 1; second <= 200 && firstMs === undefined; second++) {
    clock.advance(1_000);
    await round();
    if (machines.some((machine) => machine.take(limits))) firstMs = second * 1_000;
  }
  assert.ok(firstMs !== undefined && firstMs >= 120_000 && firstMs <= 124_000, `${firstMs} ms`);
});

test('tokens of an answer that ended on one machine are owed on the other', async () => {
  const { machines, round } = group(2);
  const [one, two] = machines;
  assert.ok(one !== undefined && two !== undefined);
  const limits = { tokensPerMinute: 100 };
  await round();
  assert.ok(one.take(limits, 10));
  await round();
  assert.ok(two.take(limits, 10));
  one.used(limits, 500);
  await round();
  assert.equal(two.take(limits, 1), false);
  // And given back where less was used than was thought.
  one.used(limits, -500);
  await round();
  assert.ok(two.take(limits, 1));
});

test('places are counted over all machines, and those of a machine that is gone are free a few seconds later', async () => {
  const { clock, machines, round } = group(2);
  const [one, two] = machines;
  assert.ok(one !== undefined && two !== undefined);
  const limits = { maxConcurrency: 2 };
  await round();
  assert.ok(one.take(limits) && one.take(limits));
  await round();
  assert.equal(two.take(limits), false);
  one.leave(limits);
  await round();
  assert.ok(two.take(limits));
  two.leave(limits);
  // It keeps its place while it writes, and the other sees it for as long.
  for (let second = 0; second < 60; second++) {
    clock.advance(1_000);
    await round();
  }
  assert.ok(two.take(limits));
  assert.equal(two.take(limits), false);
  two.leave(limits);
  for (let second = 0; second < 6; second++) {
    clock.advance(1_000);
    await two.exchange.round();
  }
  assert.ok(two.take(limits) && two.take(limits));
});

test('a limit that is lowered shuts nobody out on any machine for more than two minutes, whenever what was taken before is told', async () => {
  const high = { requestsPerMinute: 1_000_000, tokensPerMinute: 1_000_000 };
  const low = { requestsPerMinute: 1_000, tokensPerMinute: 1_000 };
  const amounts = fc.array(fc.integer({ min: 1, max: 100_000 }), { maxLength: 3 });
  const property = fc.asyncProperty(amounts, amounts, amounts, fc.boolean(), async (told, untold, late, isMet) => {
    const { clock, machines, round } = group(2);
    const [one, two] = machines;
    assert.ok(one !== undefined && two !== undefined);
    await round();
    const take = (tokens: number): void => {
      assert.ok(one.take(high, tokens));
      one.leave(high);
    };
    for (const tokens of told) take(tokens);
    if (isMet && two.take(high)) two.leave(high);
    await round();
    for (const tokens of untold) take(tokens);
    for (const machine of machines) if (machine.take(low)) machine.leave(low);
    for (const tokens of late) one.used(high, tokens);
    for (let second = 0; second < 125; second++) {
      await round();
      clock.advance(1_000);
    }
    for (const [index, machine] of machines.entries()) assert.ok(machine.take(low, 1), `machine ${index}`);
  });
  await fc.assert(property, { numRuns: 60 });
});

test('whatever a machine misses, forgets or begins anew, every request is counted by the others once', async () => {
  const step = fc.oneof(
    fc.record({ do: fc.constant('take' as const), count: fc.integer({ min: 1, max: 5 }) }),
    fc.record({ do: fc.constant('wait' as const), seconds: fc.integer({ min: 1, max: 70 }), rounds: fc.boolean() }),
    fc.record({ do: fc.constant('away' as const), seconds: fc.integer({ min: 1, max: 90 }) }),
  );
  // So slow that nothing drains: the level of the other machine is the sum of all that was taken.
  const limits = { requestsPerMinute: 1_000_000, tokensPerMinute: 1 };
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const { clock, counts, machines, round } = group(2);
      const [one, two] = machines;
      assert.ok(one !== undefined && two !== undefined);
      await round();
      let tokens = 0;
      let drained = 0;
      const wait = (seconds: number): void => {
        clock.advance(seconds * 1_000);
        drained += seconds / 60;
      };
      for (const each of steps) {
        if (each.do === 'take') {
          one.used(limits, each.count * 1_000);
          tokens += each.count * 1_000;
          await round();
        } else if (each.do === 'wait') {
          for (let second = 0; second < each.seconds; second++) {
            wait(1);
            if (each.rounds) await round();
          }
          await round();
        } else {
          counts.isAway = true;
          one.used(limits, 7_000);
          tokens += 7_000;
          for (let second = 0; second < each.seconds; second++) {
            wait(1);
            await assert.rejects(one.exchange.round());
            await assert.rejects(two.exchange.round());
          }
          counts.isAway = false;
          // The other one may be the first to look again.
          await two.exchange.round();
          await round();
        }
      }
      const { standings } = two.buckets.take(
        [{ scope: 'key', bucket: 'key:a', limits }],
        { requests: 0, tokens: 0 },
        clock.monotonic(),
      );
      const level = (standings.tokens?.resetMs ?? 0) / 60_000;
      assert.ok(level <= tokens && level >= tokens - drained - 0.001, `${level} of ${tokens}, ${drained} drained`);
    }),
    { numRuns: 60 },
  );
});

test('what was taken before a gateway began is not owed by it', async () => {
  const { clock, counts, machines, round } = group(1);
  const [one] = machines;
  assert.ok(one !== undefined);
  const limits = { requestsPerMinute: 10 };
  for (let n = 0; n < 10; n++) one.take(limits);
  await round();
  const late = new Machine('late', counts, clock);
  await late.exchange.round();
  for (let n = 0; n < 5; n++) assert.ok(late.take(limits));
});

test('it runs each second until it is stopped; a store that is away is told once', async () => {
  const clock = createFakeClock();
  const counts = countsOf(clock);
  const buckets = new LimitBuckets();
  let rounds = 0;
  const exchange = new LimitExchange(
    buckets,
    'm',
    (member, own) => {
      rounds += 1;
      return counts.exchange(member, own);
    },
    clock,
  );
  const lines: string[] = [];
  const running = startLimitExchange(exchange, clock, createLogger('info', { write: (line: string) => void lines.push(line) }));
  const second = async (ms = 1_000): Promise<void> => {
    clock.advance(ms);
    await new Promise((resolve) => setImmediate(resolve));
  };
  await second(0);
  assert.equal(rounds, 1);
  counts.isAway = true;
  for (let n = 0; n < 3; n++) await second();
  counts.isAway = false;
  await second();
  counts.isAway = true;
  await second();
  assert.deepEqual([rounds, lines.length], [6, 2]);
  running.stop();
  await second();
  assert.equal(rounds, 6);
  assert.equal(clock.pending, 0);
});
