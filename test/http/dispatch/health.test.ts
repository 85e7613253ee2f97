import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Health } from '../../../src/http/dispatch/health.ts';
import type { Clock } from '../../../src/streams/clock.ts';

const settings = { failures: 3, windowMs: 1000, cooldownMs: 500, rateLimitCooldownMs: 200, refusedCooldownMs: 800 };

function setUp(): { health: Health; at(ms: number): void } {
  let now = 0;
  const clock: Clock = {
    now: () => now,
    monotonic: () => now,
    setTimeout: () => ({ cancel: () => undefined }),
  };
  return {
    health: new Health(clock, () => settings),
    at: (ms) => {
      now = ms;
    },
  };
}
const fail = (health: Health, times: number): void => {
  for (let count = 0; count < times; count++) health.enter('a', 'm')?.failed();
};

test('F15: failures in the window open the circuit of that model only; half-open lets one trial through', () => {
  const { health, at } = setUp();
  fail(health, 2);
  assert.ok(health.isFit('a', 'm'));
  fail(health, 1);
  assert.ok(!health.isFit('a', 'm'));
  assert.ok(health.isFit('a', 'other'));
  assert.equal(health.enter('a', 'm'), undefined);
  at(500);
  const trial = health.enter('a', 'm');
  assert.ok(trial);
  assert.equal(health.enter('a', 'm'), undefined, 'one trial at a time');
  trial.failed();
  assert.equal(health.enter('a', 'm'), undefined, 'a failed trial opens it again');
  at(1000);
  health.enter('a', 'm')?.succeeded();
  assert.ok(health.isFit('a', 'm'));
  fail(health, 2);
  assert.ok(health.isFit('a', 'm'), 'a good trial forgets the old failures');
});

test('F15: a trial that taught nothing gives the trial back', () => {
  const { health, at } = setUp();
  fail(health, 3);
  at(600);
  health.enter('a', 'm')?.nothing();
  assert.ok(health.enter('a', 'm'));
});

test('failures that are old, or few among many, open nothing', () => {
  const { health, at } = setUp();
  fail(health, 2);
  at(1500);
  fail(health, 2);
  assert.ok(health.isFit('a', 'm'));
  for (let count = 0; count < 10; count++) health.enter('a', 'm')?.succeeded();
  fail(health, 3);
  assert.ok(health.isFit('a', 'm'));
});

test('429 with Retry-After opens at once and for that long', () => {
  const { health, at } = setUp();
  health.enter('a', 'm')?.rateLimited(300);
  assert.ok(!health.isFit('a', 'm'));
  at(300);
  assert.ok(health.isFit('a', 'm'));
});

test('a refused credential cools the whole channel, an unknown model only itself', () => {
  const { health, at } = setUp();
  health.enter('a', 'm')?.unknownModel();
  assert.ok(!health.isFit('a', 'm'));
  assert.ok(health.isFit('a', 'other'));
  health.enter('a', 'other')?.refused();
  assert.ok(!health.isFit('a', 'third'));
  at(800);
  assert.ok(health.isFit('a', 'third'));
});

test('a permit is used once', () => {
  const { health } = setUp();
  const permit = health.enter('a', 'm');
  permit?.succeeded();
  permit?.refused();
  assert.ok(health.isFit('a', 'm'));
});
