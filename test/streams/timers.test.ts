import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { type Clock, systemClock } from '../../src/streams/clock.ts';
import { createDeadline } from '../../src/streams/deadline.ts';
import { createIdleTimers } from '../../src/streams/idle-timers.ts';
import { createKeepAlive } from '../../src/streams/keep-alive.ts';
import { StallWatch, unsentBytes } from '../../src/streams/stall-watch.ts';
import { createFakeClock } from '../support/fake-clock.ts';

test('the system clock fires, cancels, and never goes back', async () => {
  const before = systemClock.monotonic();
  let cancelled = true;
  systemClock.setTimeout(() => (cancelled = false), 1).cancel();
  await new Promise<void>((resolve) => void systemClock.setTimeout(resolve, 5));
  assert.ok(cancelled);
  assert.ok(systemClock.monotonic() > before);
  assert.ok(Math.abs(systemClock.now() - Date.now()) < 1000);
});

test('a deadline moved a thousand times costs one timer, and expires when it was last set to', () => {
  const clock = createFakeClock();
  let expired = 0;
  let armed = 0;
  const setTimeout: Clock['setTimeout'] = (fire, ms) => {
    armed++;
    return clock.setTimeout(fire, ms);
  };
  const counting = { ...clock, setTimeout };
  const deadline = createDeadline(counting, () => expired++);
  for (let i = 0; i < 1000; i++) deadline.in(100);
  assert.equal(armed, 1);
  clock.advance(60);
  deadline.in(100);
  clock.advance(99);
  assert.equal(expired, 0);
  clock.advance(1);
  assert.equal(expired, 1);
  assert.equal(armed, 2);
  deadline.in(100);
  deadline.in(10);
  clock.advance(10);
  assert.equal(expired, 2);
  deadline.in(10);
  deadline.clear();
  clock.advance(50);
  assert.equal(clock.pending, 0, 'a deadline that was cleared wakes nobody');
  deadline.in(100);
  deadline.in(10);
  deadline.stop();
  assert.equal(clock.pending, 0, 'one that was brought forward leaves no timer');
  clock.advance(500);
  assert.equal(expired, 2);
  deadline.in(10);
  clock.advance(10);
  assert.equal(expired, 3, 'one that was stopped may be set again');
});

function idle() {
  const clock = createFakeClock();
  const expired: string[] = [];
  const timers = createIdleTimers(clock, { firstDataMs: 1000, idleMs: 100 }, (error) => expired.push(error.reason));
  return { clock, expired, timers };
}

test('E8: comments do not extend the first-data limit', () => {
  const { clock, expired, timers } = idle();
  for (let i = 0; i < 9; i++) {
    clock.advance(100);
    timers.touch();
  }
  assert.deepEqual(expired, []);
  clock.advance(100);
  assert.deepEqual(expired, ['first_data_timeout']);
});

test('after the first data any bytes extend the idle limit, and silence ends it once', () => {
  const { clock, expired, timers } = idle();
  clock.advance(900);
  timers.data();
  for (let i = 0; i < 9; i++) {
    clock.advance(99);
    timers.touch();
  }
  timers.data();
  clock.advance(99);
  assert.deepEqual(expired, []);
  clock.advance(1);
  assert.deepEqual(expired, ['idle_timeout']);
  timers.data();
  clock.advance(10_000);
  assert.deepEqual(expired, ['idle_timeout']);
});

test('comments alone keep a stream no longer than the first-data limit', () => {
  const { clock, expired, timers } = idle();
  timers.data();
  for (let i = 0; i < 20; i++) {
    clock.advance(99);
    timers.touch();
  }
  assert.deepEqual(expired, ['idle_timeout']);
});

test('the silence of an upstream that nobody reads does not count', () => {
  const { clock, expired, timers } = idle();
  timers.data();
  timers.pause();
  timers.data();
  clock.advance(5000);
  assert.deepEqual(expired, []);
  timers.resume();
  clock.advance(100);
  assert.deepEqual(expired, ['idle_timeout']);
});

test('a pause does not stop the first-data limit, and its end does not begin the idle limit', () => {
  const { clock, expired, timers } = idle();
  timers.pause();
  timers.resume();
  clock.advance(999);
  assert.deepEqual(expired, [], 'no data yet: the idle limit does not count');
  timers.pause();
  clock.advance(1);
  assert.deepEqual(expired, ['first_data_timeout']);
});

test('an upstream that is read already has no new limit from being read again', () => {
  const { clock, expired, timers } = idle();
  timers.data();
  clock.advance(60);
  timers.resume();
  clock.advance(40);
  assert.deepEqual(expired, ['idle_timeout']);
});

test('stopped timers let go, whatever is said after that', () => {
  for (const began of [false, true]) {
    const { clock, expired, timers } = idle();
    if (began) timers.data();
    timers.stop();
    timers.touch();
    timers.pause();
    timers.resume();
    timers.data();
    assert.equal(clock.pending, 0);
    clock.advance(5000);
    assert.deepEqual(expired, []);
  }
});

test('keep-alive: after each interval of silence, not while paused, not after stop', () => {
  const clock = createFakeClock();
  const said: number[] = [];
  const keepAlive = createKeepAlive(clock, () => said.push(clock.monotonic()));
  clock.advance(30_000);
  assert.deepEqual(said, [15_000, 30_000]);
  clock.advance(10_000);
  keepAlive.touch();
  clock.advance(14_999);
  assert.equal(said.length, 2);
  clock.advance(1);
  assert.equal(said.length, 3);
  keepAlive.pause();
  clock.advance(100_000);
  assert.equal(said.length, 3);
  keepAlive.touch();
  clock.advance(15_000);
  assert.equal(said.length, 4);
  keepAlive.stop();
  keepAlive.touch();
  clock.advance(100_000);
  assert.equal(said.length, 4);
  assert.equal(clock.pending, 0);
});

test('a stalled reader: nothing taken for the whole time; any byte, or a wait that is not its own, begins it anew', () => {
  const clock = createFakeClock();
  let unsent: number | undefined = 100;
  let stalled = 0;
  const watch = new StallWatch(
    clock,
    1000,
    () => unsent,
    () => stalled++,
  );
  watch.start();
  clock.advance(999);
  unsent = 99;
  clock.advance(1);
  clock.advance(999);
  assert.equal(stalled, 0, 'one byte');
  unsent = undefined;
  clock.advance(1);
  clock.advance(999);
  unsent = 99;
  clock.advance(1);
  clock.advance(999);
  assert.equal(stalled, 0, 'it was not up to the reader');
  clock.advance(1);
  assert.equal(stalled, 1);
  clock.advance(5000);
  assert.equal(stalled, 1, 'once for each start');
  watch.start();
  clock.advance(500);
  watch.clear();
  clock.advance(5000);
  assert.equal(stalled, 1, 'everything was taken');
  watch.start();
  watch.stop();
  assert.equal(clock.pending, 0);
});

test('what has not left: all that waits above the connection and beneath it; unknown while the connection is not ours', () => {
  const response = new Writable({ write: () => undefined, highWaterMark: 100 });
  response.write('12345');
  response.write('678');
  assert.equal(unsentBytes(response, undefined), undefined);
  assert.equal(unsentBytes(response, null), undefined);
  const beneath = (handle: unknown): Writable => Object.assign(new Writable(), { _handle: handle });
  assert.equal(unsentBytes(response, beneath({ writeQueueSize: 30 })), 38);
  for (const handle of [null, undefined, {}, { writeQueueSize: 'x' }]) assert.equal(unsentBytes(response, beneath(handle)), 8);
  assert.equal(unsentBytes(response, new Writable()), 8, 'no connection of the operating system');
});
