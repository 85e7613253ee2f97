/** The exchanges of a Channel at once, and the queue before them, on a clock that stands still. */
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { Concurrency } from '../../../src/http/dispatch/concurrency.ts';
import { createFakeClock } from '../../support/fake-clock.ts';

const QUEUE = { maxQueue: 10, queueMs: 5_000 };

function setUp() {
  const clock = createFakeClock();
  const concurrency = new Concurrency(clock);
  const take = (max: number, signal = new AbortController().signal, queue = QUEUE) =>
    concurrency.take('one', { max, ...queue }, signal);
  return { clock, concurrency, take };
}

/** What is granted by now, of those that were asked. */
async function settled<T>(promises: readonly Promise<T>[]): Promise<number> {
  let count = 0;
  for (const promise of promises) void promise.then(() => count++);
  for (let turn = 0; turn < 5; turn++) await Promise.resolve();
  return count;
}

test('a client that has left already takes no place in the queue', async () => {
  const { clock, concurrency, take } = setUp();
  const release = await take(1);
  await assert.rejects(take(1, AbortSignal.abort()), { code: 'client_closed_request' });
  assert.equal(clock.pending, 0, 'nobody waits');
  release?.();
  assert.equal(concurrency.running('one'), 0);
});

test('a limit that was lowered counts for those that wait already, one that was raised for all of them', async () => {
  const { concurrency, take } = setUp();
  const running = await Promise.all([take(3), take(3), take(3)]);
  const client = new AbortController();
  const waiting = [take(3, client.signal), take(3), take(3), take(1)];
  running[0]?.();
  running[1]?.();
  assert.equal(await settled(waiting), 0, 'one runs, and one may');
  running[2]?.();
  assert.equal(await settled(waiting), 1);
  assert.equal(concurrency.running('one'), 1);
  waiting.push(take(4));
  assert.equal(await settled(waiting), 4, 'in the order in which they came');
  assert.equal(getEventListeners(client.signal, 'abort').length, 0, 'nothing listens any more');
  assert.equal(concurrency.running('one'), 4);
});

test('a place is given back once, whoever says so how often', async () => {
  const { concurrency, take } = setUp();
  const [first, second] = await Promise.all([take(2), take(2)]);
  first?.();
  first?.();
  assert.equal(concurrency.running('one'), 1);
  second?.();
  assert.equal(concurrency.running('one'), 0);
});

test('a full queue is not waited in', async () => {
  const { clock, take } = setUp();
  const short = { ...QUEUE, maxQueue: 1 };
  await take(1);
  const waiting = take(1, undefined, short);
  assert.equal(await take(1, undefined, short), undefined);
  assert.equal(clock.pending, 1, 'one waits');
  assert.equal(await settled([waiting]), 0);
});

test('who has waited too long gets no place, and none is kept for them', async () => {
  const { clock, concurrency, take } = setUp();
  const running = await take(1);
  const waiting = take(1);
  clock.advance(QUEUE.queueMs);
  assert.equal(await waiting, undefined);
  running?.();
  assert.equal(concurrency.running('one'), 0);
});

test('a client that leaves while it waits is told so, and its place in the queue is free', async () => {
  const { clock, concurrency, take } = setUp();
  const running = await take(1);
  const client = new AbortController();
  const waiting = take(1, client.signal);
  const next = take(1);
  client.abort();
  await assert.rejects(waiting, { code: 'client_closed_request' });
  assert.equal(clock.pending, 1);
  running?.();
  assert.equal(typeof (await next), 'function');
  assert.equal(clock.pending, 0, 'nobody waits');
  assert.equal(concurrency.running('one'), 1);
});
