/** Credentials that expire: renewed ahead, once for everybody, and delaying nobody who has a good one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Renewed } from '../../../src/http/platforms/renewed.ts';
import { createFakeClock } from '../../support/fake-clock.ts';

const LIFE_MS = 3_600_000;

function rig() {
  const clock = createFakeClock();
  const waiting: PromiseWithResolvers<void>[] = [];
  let asked = 0;
  const renewed = new Renewed<string>(clock, async () => {
    asked += 1;
    const name = `value ${asked}`;
    const turn = Promise.withResolvers<void>();
    waiting.push(turn);
    await turn.promise;
    return { value: name, expiresAtMs: clock.now() + LIFE_MS };
  });
  const settle = async (error?: Error): Promise<void> => {
    const turn = waiting.shift();
    if (error === undefined) turn?.resolve();
    else turn?.reject(error);
    await new Promise(setImmediate);
  };
  return { clock, renewed, settle, asked: () => asked };
}

test('a thousand requests in the second of an expiry cause one renewal', async () => {
  const { clock, renewed, settle, asked } = rig();
  const first = renewed.get();
  await settle();
  assert.equal(await first, 'value 1');
  clock.advance(LIFE_MS);
  const values = Array.from({ length: 1000 }, () => renewed.get());
  assert.equal(asked(), 2);
  await settle();
  assert.deepEqual(new Set(await Promise.all(values)), new Set(['value 2']));
  assert.equal(asked(), 2);
});

test('whoever finds a valid one is not delayed by its renewal, whether that hangs, fails or succeeds', async () => {
  const { clock, renewed, settle, asked } = rig();
  const first = renewed.get();
  await settle();
  await first;
  clock.advance(LIFE_MS - 300_000 - 1);
  assert.equal(renewed.get(), 'value 1');
  assert.equal(asked(), 1);
  clock.advance(1);
  for (let index = 0; index < 1000; index += 1) assert.equal(renewed.get(), 'value 1');
  assert.equal(asked(), 2);
  await settle(new Error('away'));
  assert.equal(renewed.get(), 'value 1');
  assert.equal(asked(), 2, 'the source has a rest');
  clock.advance(1000);
  assert.equal(renewed.get(), 'value 1');
  assert.equal(asked(), 3);
  await settle();
  assert.equal(renewed.get(), 'value 3');
});

test('a source that fails is not asked by every request, and is asked again after a second', async () => {
  const { clock, renewed, settle, asked } = rig();
  const first = assert.rejects(Promise.resolve(renewed.get()), /away/);
  await settle(new Error('away'));
  await first;
  for (let index = 0; index < 100; index += 1) await assert.rejects(Promise.resolve(renewed.get()), /away/);
  assert.equal(asked(), 1);
  clock.advance(1000);
  const again = renewed.get();
  assert.equal(asked(), 2);
  await settle();
  assert.equal(await again, 'value 2');
});

test('a value that the upstream refuses is given up, but not one that is newer than the request or was just fetched', async () => {
  const { clock, renewed, settle, asked } = rig();
  const first = renewed.get();
  await settle();
  await first;
  const sentAt = clock.monotonic();
  assert.equal(renewed.refused({ signedAt: sentAt }), false, 'a new one would be refused, too');
  clock.advance(60_000);
  const late = clock.monotonic();
  assert.equal(renewed.refused({ signedAt: late }), true);
  const second = renewed.get();
  await settle();
  assert.equal(await second, 'value 2');
  assert.equal(renewed.refused({ signedAt: late - 1 }), true, 'another value came meanwhile');
  assert.equal(renewed.get(), 'value 2');
  assert.equal(asked(), 2);
});
