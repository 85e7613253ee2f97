/** A worker asks its primary, over a channel that is quick, slow or gone: who is counted where, and what is given back. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Claim, LimitBuckets } from '../../../src/http/limits/buckets.ts';
import { type Limits, LimitTicket, localLimits } from '../../../src/http/limits/limits.ts';
import { primaryLimits, workersLimits } from '../../../src/http/limits/workers-limits.ts';
import type { ForeignCount, LimitCount } from '../../../src/store/limit-counts.ts';
import { createFakeClock } from '../../support/fake-clock.ts';

const CLAIMS: Claim[] = [{ scope: 'key', bucket: 'key:a', limits: { requestsPerMinute: 3, maxConcurrency: 2 } }];
const ONE = { requests: 1, tokens: 0 };
const turns = async (): Promise<void> => {
  for (let n = 0; n < 5; n++) await new Promise((resolve) => setImmediate(resolve));
};

/** A primary with two workers. What is sent waits while `isSlow`. */
function workers() {
  const clock = createFakeClock();
  const buckets = new LimitBuckets();
  /** Where both workers count while the primary does not answer. */
  const alone = new LimitBuckets();
  const listeners = new Map<number, (message: unknown) => void>();
  const state = { isSlow: false, waiting: [] as (() => void)[], gone: new Set<number>(), stored: [] as readonly ForeignCount[] };
  const pass = (deliver: () => void): void => {
    if (state.isSlow) state.waiting.push(deliver);
    else queueMicrotask(deliver);
  };
  const primary = primaryLimits(buckets, clock, (worker, message) => {
    if (state.gone.has(worker)) return false;
    const copy: unknown = JSON.parse(JSON.stringify(message));
    pass(() => listeners.get(worker)?.(copy));
    return true;
  });
  const worker = (id: number) => {
    const link = {
      send(message: object): void {
        const copy: unknown = JSON.parse(JSON.stringify(message));
        pass(() => primary.hear(copy, id));
      },
      onMessage: (listener: (message: unknown) => void) => void listeners.set(id, listener),
    };
    const counts = {
      async exchange(member: string, own: readonly LimitCount[]): Promise<readonly ForeignCount[]> {
        if (member === 'fails') throw new Error('away');
        return own.map((count) => ({ ...count, member: 'other', ageMs: 0 }));
      },
    };
    return workersLimits(link, clock, localLimits(clock, alone), counts);
  };
  return { clock, buckets, alone, primary, state, one: worker(1), two: worker(2) };
}

const isAdmitted = async (taking: ReturnType<ReturnType<typeof workers>['one']['take']>): Promise<boolean> =>
  (await taking).refusal === undefined;

test('two workers share one bucket, and a place that one gives back in the same turn is free for the other', async () => {
  const { one, two } = workers();
  assert.ok(await isAdmitted(one.take(CLAIMS, ONE)));
  assert.ok(await isAdmitted(two.take(CLAIMS, ONE)));
  assert.equal((await one.take(CLAIMS, ONE)).refusal?.kind, 'concurrency');
  // The question is on its way before the place is given back.
  const asked = one.take(CLAIMS, ONE);
  two.leave(CLAIMS);
  assert.ok(await isAdmitted(asked));
  one.leave(CLAIMS);
  assert.equal((await two.take(CLAIMS, ONE)).refusal?.kind, 'requests');
  one.adjust(CLAIMS, { requests: -1, tokens: 0 });
  await turns();
  assert.ok(await isAdmitted(two.take(CLAIMS, ONE)));
});

test('what a worker was answering is over when it is gone', async () => {
  const { one, two, primary } = workers();
  assert.ok(await isAdmitted(one.take(CLAIMS, ONE)));
  assert.ok(await isAdmitted(one.take(CLAIMS, ONE)));
  assert.equal((await two.take(CLAIMS, ONE)).refusal?.kind, 'concurrency');
  primary.workerGone(1);
  assert.ok(await isAdmitted(two.take(CLAIMS, ONE)));
});

test('a worker that is gone before it was answered has taken no place', async () => {
  const { one, two, state } = workers();
  state.gone.add(1);
  const never = [one.take(CLAIMS, ONE), one.take(CLAIMS, ONE)];
  await turns();
  assert.ok(await isAdmitted(two.take(CLAIMS, ONE)));
  assert.equal(never.length, 2);
});

test('where the primary does not answer a worker counts alone, and what came too late is given back', async () => {
  const { clock, one, two, state } = workers();
  state.isSlow = true;
  const alone = [one.take(CLAIMS, ONE), one.take(CLAIMS, ONE), one.take(CLAIMS, ONE)];
  await turns();
  clock.advance(1_000);
  const admitted = await Promise.all(alone.map(isAdmitted));
  assert.deepEqual(admitted, [true, true, false]);
  state.isSlow = false;
  // The questions arrive, their answers come too late, and what they took goes back.
  for (const deliver of state.waiting.splice(0)) deliver();
  await turns();
  assert.ok(await isAdmitted(two.take(CLAIMS, ONE)));
  assert.ok(await isAdmitted(two.take(CLAIMS, ONE)));
  assert.equal((await two.take(CLAIMS, ONE)).refusal?.kind, 'concurrency');
});

/** What a request takes, and gives back; undefined where it is refused. */
async function ticketOf(limits: Limits): Promise<LimitTicket | undefined> {
  const { refusal, by = limits } = await limits.take(CLAIMS, ONE);
  return refusal === undefined ? new LimitTicket(by, CLAIMS, ONE) : undefined;
}

test('a place that a worker took alone is given back where it was taken, however long the primary is silent', async () => {
  const { clock, one, two, state, buckets } = workers();
  const held = await ticketOf(two);
  assert.ok(held);
  state.isSlow = true;
  for (let times = 0; times < 10; times += 1) {
    const asked = ticketOf(one);
    clock.advance(1_000);
    const ticket = await asked;
    assert.ok(ticket, `request ${times} of a client that sends one at a time`);
    ticket.release();
    clock.advance(30_000);
  }
  state.isSlow = false;
  for (const deliver of state.waiting.splice(0)) deliver();
  await turns();
  const [, bucket] = [...buckets.entries()][0] ?? [];
  assert.equal(bucket?.inFlight, 1, 'the place of the other worker is its own');
});

test('a law: whenever the primary is slow, quick or slow again, every place that was taken is free in the end', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.constantFrom('take', 'end', 'slow', 'quick', 'wait'), { maxLength: 40 }), async (steps) => {
      const { clock, one, two, state, buckets, alone } = workers();
      const asked: Promise<LimitTicket | undefined>[] = [];
      const end = async (ticket: Promise<LimitTicket | undefined> | undefined): Promise<void> => (await ticket)?.release();
      const deliver = (): void => {
        for (const each of state.waiting.splice(0)) each();
      };
      for (const [at, step] of steps.entries()) {
        if (step === 'take') asked.push(ticketOf(at % 2 === 0 ? one : two));
        else if (step === 'end') void end(asked.shift());
        else if (step === 'wait') clock.advance(1_000);
        else state.isSlow = step === 'slow';
        if (step === 'quick') deliver();
        await turns();
      }
      state.isSlow = false;
      deliver();
      await turns();
      clock.advance(1_000);
      await Promise.all(asked.map(end));
      await turns();
      for (const counted of [buckets, alone])
        for (const [name, { inFlight }] of counted.entries()) assert.equal(inFlight, 0, name);
    }),
    { numRuns: 100 },
  );
});

test('counts of other gateways come through a worker; without one, or without its store, the round fails', async () => {
  const { clock, primary, state } = workers();
  const count = { bucket: 'key:a', since: 1, requests: 2, tokens: 3, inFlight: 0 };
  const exchanged = primary.exchangeBy(2, 'm', [count]);
  assert.deepEqual(await exchanged, [{ ...count, member: 'other', ageMs: 0 }]);
  await assert.rejects(primary.exchangeBy(2, 'fails', [count]));
  await assert.rejects(primary.exchangeBy(undefined, 'm', []));
  state.gone.add(2);
  await assert.rejects(primary.exchangeBy(2, 'm', []));
  state.gone.clear();
  state.isSlow = true;
  const slow = primary.exchangeBy(2, 'm', [count]);
  clock.advance(1_000);
  await assert.rejects(slow, /no worker could exchange/);
});
