/** A pause is over when its time is, or when nobody wants to wait any more; either way nothing of it is left behind. */
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { pause, systemClock } from '../../src/streams/clock.ts';
import { createFakeClock } from '../support/fake-clock.ts';

test('a pause ends by its time, by its signal, and at once where that is aborted already', async () => {
  const clock = createFakeClock();
  const { signal } = new AbortController();
  let over = false;
  const slept = pause(clock, 100, signal).then(() => {
    over = true;
  });
  clock.advance(99);
  await Promise.resolve();
  assert.equal(over, false);
  clock.advance(1);
  await slept;
  assert.equal(getEventListeners(signal, 'abort').length, 0, 'a signal that lasts keeps nothing of a pause');

  const gone = new AbortController();
  const cut = pause(clock, 100, gone.signal);
  gone.abort();
  await cut;
  await pause(clock, 100, gone.signal);
  assert.equal(clock.pending, 0, 'no timer is left');
});

test('a longer time than a timer holds is cut to the longest, and never fires at once', async () => {
  const warnings: string[] = [];
  const warned = (warning: Error): void => void warnings.push(warning.name);
  process.on('warning', warned);
  let fired = false;
  const timer = systemClock.setTimeout(() => {
    fired = true;
  }, 2 ** 40);
  await new Promise((resolve) => setTimeout(resolve, 20));
  timer.cancel();
  process.off('warning', warned);
  assert.deepEqual([fired, warnings], [false, []]);
});
