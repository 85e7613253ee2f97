/** A pause is over when its time is, or when nobody wants to wait any more; either way nothing of it is left behind. */
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { pause } from '../../src/streams/clock.ts';
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
