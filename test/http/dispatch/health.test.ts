import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Health } from '../../../src/http/dispatch/health.ts';
import type { Clock } from '../../../src/streams/clock.ts';

const settings = { failures: 3, windowMs: 1000, cooldownMs: 500, rateLimitCooldownMs: 200, refusedCooldownMs: 800 };

function setUp(): { health: Health; moves: string[]; at(ms: number): void } {
  let now = 0;
  const moves: string[] = [];
  const clock: Clock = {
    now: () => now,
    monotonic: () => now,
    setTimeout: () => ({ cancel: () => undefined }),
  };
  return {
    health: new Health(
      clock,
      () => settings,
      (channelId, model, state) => moves.push(`${channelId} ${model ?? 'all'} ${state}`),
    ),
    moves,
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

test('what went well before the first failure counts, too', () => {
  const { health, at } = setUp();
  const succeed = (times: number): void => {
    for (let count = 0; count < times; count++) health.enter('a', 'm')?.succeeded();
  };
  succeed(10);
  fail(health, 9);
  assert.ok(health.isFit('a', 'm'), 'nine of nineteen');
  fail(health, 1);
  assert.ok(!health.isFit('a', 'm'), 'ten of twenty');
  at(500);
  succeed(1);
  assert.ok(health.isFit('a', 'm'), 'a good trial');
  succeed(10);
  at(1600);
  fail(health, 3);
  assert.ok(!health.isFit('a', 'm'), 'what is older than the window counts no more');
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

test('a 403 or 404 in words that nobody knows closes what has not answered for a while, and is one failure of what has', () => {
  const quiet = setUp().health;
  quiet.enter('a', 'm')?.missing();
  assert.deepEqual([quiet.isFit('a', 'm'), quiet.isFit('a', 'other')], [false, true]);
  quiet.enter('a', 'other')?.forbidden();
  assert.equal(quiet.isFit('a', 'third'), false);

  const { health, at } = setUp();
  health.enter('a', 'm')?.succeeded();
  health.enter('a', 'other')?.forbidden();
  assert.ok(health.isFit('a', 'other'), 'the credential was good for another model');
  health.enter('a', 'm')?.missing();
  assert.ok(health.isFit('a', 'm'));
  for (let count = 0; count < 2; count++) health.enter('a', 'm')?.forbidden();
  assert.deepEqual([health.isFit('a', 'm'), health.isFit('a', 'other')], [false, true], 'many are many failures of the model');
  health.enter('a', 'other')?.missing();
  assert.equal(health.isFit('a', 'other'), false, 'that model has never answered');

  at(1000);
  health.enter('a', 'third')?.forbidden();
  assert.equal(health.isFit('a', 'fourth'), false, 'the good answer is too long ago');
});

test('a permit is used once', () => {
  const { health } = setUp();
  const permit = health.enter('a', 'm');
  permit?.succeeded();
  permit?.refused();
  assert.ok(health.isFit('a', 'm'));
});

test('what began before the circuit opened neither closes it nor takes the trial away', () => {
  const { health, at } = setUp();
  const early = Array.from({ length: 4 }, () => health.enter('a', 'm'));
  fail(health, 3);
  early[0]?.succeeded();
  assert.ok(!health.isFit('a', 'm'), 'an old stream that ends well says nothing of new ones');
  at(600);
  const trial = health.enter('a', 'm');
  assert.ok(trial);
  early[1]?.failed();
  early[2]?.nothing();
  assert.equal(health.enter('a', 'm'), undefined, 'the trial is still under way');
  trial.succeeded();
  assert.ok(health.isFit('a', 'm'));
  early[3]?.failed();
  assert.ok(health.isFit('a', 'm'), 'one failure opens nothing');
});

test('a success elsewhere does not end the cooldown of a refused credential', () => {
  const { health, at } = setUp();
  const early = health.enter('a', 'm');
  health.enter('a', 'other')?.refused();
  early?.succeeded();
  assert.ok(!health.isFit('a', 'm'));
  at(800);
  health.enter('a', 'm')?.succeeded();
  assert.ok(health.isFit('a', 'third'));
});

test('a second Retry-After makes the wait longer, never shorter', () => {
  const { health, at } = setUp();
  const [first, second, third] = [health.enter('a', 'm'), health.enter('a', 'm'), health.enter('a', 'm')];
  first?.rateLimited(400);
  second?.rateLimited(100);
  at(200);
  assert.ok(!health.isFit('a', 'm'));
  third?.rateLimited(500);
  at(600);
  assert.ok(!health.isFit('a', 'm'));
  at(700);
  assert.ok(health.isFit('a', 'm'));
});

test('a Channel whose configuration changed begins anew, and attempts under the old one teach nothing', () => {
  const { health } = setUp();
  const early = health.enter('a', 'm');
  health.enter('a', 'm')?.refused();
  health.enter('b', 'm')?.refused();
  health.keepOnly(new Set(['b']));
  assert.ok(health.isFit('a', 'm'), 'the new credential is tried at once');
  assert.ok(!health.isFit('b', 'm'));
  early?.refused();
  assert.ok(health.isFit('a', 'm'));
});

test('of a Channel whose configuration stays, attempts that were under way still count, and probes that failed', () => {
  const { health } = setUp();
  const early = Array.from({ length: 3 }, () => health.enter('a', 'm'));
  health.enter('b', 'm')?.refused();
  health.keepOnly(new Set(['b']));
  health.keepOnly(new Set(['a', 'b']));
  const later = Array.from({ length: 3 }, () => health.enter('a', 'm'));
  health.keepOnly(new Set(['a', 'b']));
  for (const permit of early) permit?.failed();
  assert.ok(health.isFit('a', 'm'), 'they began before it was another one');
  for (const permit of later) permit?.failed();
  assert.ok(!health.isFit('a', 'm'));
  health.probed('c', false);
  health.keepOnly(new Set(['c']));
  health.probed('c', false);
  assert.ok(!health.isFit('c', 'm'), 'two in a row');
});

test('a trial that takes longer than the cooldown, as a long answer does that is no stream, lets the next one try', () => {
  const { health, at } = setUp();
  fail(health, 3);
  at(500);
  const long = health.enter('a', 'm');
  at(999);
  assert.equal(health.isFit('a', 'm'), false);
  at(1000);
  const next = health.enter('a', 'm');
  assert.ok(next);
  assert.equal(health.enter('a', 'm'), undefined, 'one for each cooldown');
  next.failed();
  at(1499);
  assert.equal(health.isFit('a', 'm'), false, 'a failed trial opens it again');
  long?.succeeded();
  assert.equal(health.isFit('a', 'm'), false, 'what began before that says nothing of now');
  at(1500);
  const third = health.enter('a', 'm');
  at(2000);
  const fourth = health.enter('a', 'm');
  third?.succeeded();
  assert.ok(health.enter('a', 'm'), 'a good one lets everybody in');
  fourth?.nothing();
  assert.ok(health.isFit('a', 'm'));
});

test('a trial that has begun to answer lets the next one try, and each end counts', () => {
  const { health, at } = setUp();
  fail(health, 3);
  at(500);
  const long = health.enter('a', 'm');
  assert.equal(health.enter('a', 'm'), undefined);
  long?.answering();
  const second = health.enter('a', 'm');
  assert.ok(second, 'a stream of ten minutes keeps nobody out for ten minutes');
  assert.equal(health.enter('a', 'm'), undefined, 'one at a time waits for its first word');
  second.answering();
  second.failed();
  assert.ok(!health.isFit('a', 'm'), 'it broke in mid-stream: open again');
  long?.succeeded();
  assert.ok(!health.isFit('a', 'm'), 'the newer failure counts');
  at(1000);
  const third = health.enter('a', 'm');
  third?.answering();
  third?.succeeded();
  assert.ok(health.enter('a', 'm'));
  assert.ok(health.enter('a', 'm'), 'closed');
});

test('429 without a time counts as a failure, with a cooldown of its own; no time is longer than ten minutes', () => {
  const { health, at } = setUp();
  for (let count = 0; count < 2; count++) health.enter('a', 'm')?.rateLimited(undefined);
  assert.ok(health.isFit('a', 'm'));
  health.enter('a', 'm')?.rateLimited(undefined);
  assert.equal(health.closedForMs('a', 'm'), settings.rateLimitCooldownMs);
  health.enter('a', 'other')?.rateLimited(3_600_000);
  assert.equal(health.closedForMs('a', 'other'), 600_000);
  at(600_000);
  assert.equal(health.closedForMs('a', 'other'), 0);
});

test('a 429 keeps nobody away for longer than it says: what is not refused within a second was let in, and others will be', () => {
  const { health, at } = setUp();
  for (const named of [100, undefined]) {
    if (named === undefined) for (let count = 0; count < 2; count++) health.enter('a', 'm')?.rateLimited(named);
    health.enter('a', 'm')?.rateLimited(named);
    const open = health.closedForMs('a', 'm');
    assert.equal(open, named ?? settings.rateLimitCooldownMs);
    at(open);
    const long = health.enter('a', 'm');
    at(open + 499);
    assert.equal(health.isFit('a', 'm'), false, 'whether it is let in is not known yet, for a cooldown or a second');
    at(open + 500);
    const others = [1, 2, 3].map(() => health.enter('a', 'm'));
    assert.ok(
      others.every((permit) => permit !== undefined),
      'not one for each cooldown',
    );
    others[0]?.rateLimited(300);
    assert.equal(health.closedForMs('a', 'm'), 300, 'it has too many again');
    long?.nothing();
    at(open + 800);
    health.enter('a', 'm')?.succeeded();
    at(0);
  }
  const long = { ...settings, cooldownMs: 30_000 };
  let now = 0;
  const slow = new Health({ now: () => now, monotonic: () => now, setTimeout: () => ({ cancel: () => undefined }) }, () => long);
  slow.enter('a', 'm')?.rateLimited(1000);
  now = 1000;
  slow.enter('a', 'm');
  now = 2000;
  assert.ok(slow.isFit('a', 'm'), 'a second, though the cooldown is thirty');
});

test('the first words of a trial behind a 429 let everybody in, and one that teaches nothing shuts nobody out again', () => {
  const { health, at } = setUp();
  health.enter('a', 'm')?.rateLimited(100);
  at(100);
  const trial = health.enter('a', 'm');
  assert.equal(health.enter('a', 'm'), undefined);
  trial?.answering();
  const others = [1, 2, 3].map(() => health.enter('a', 'm'));
  assert.ok(
    others.every((permit) => permit !== undefined),
    'a stream of minutes keeps nobody out',
  );
  others[0]?.nothing();
  assert.ok(health.enter('a', 'm') !== undefined && health.enter('a', 'm') !== undefined);
  others[1]?.failed();
  assert.equal(health.closedForMs('a', 'm'), settings.cooldownMs, 'it may fail all the same');
  trial?.succeeded();
  at(600);
  assert.ok(health.enter('a', 'm'));
  assert.equal(health.enter('a', 'm'), undefined, 'which is no matter of the rate');
});

test('a 429 that names no time to wait counts as one that names none', () => {
  const { health } = setUp();
  for (let count = 0; count < 2; count++) health.enter('a', 'm')?.rateLimited(0);
  assert.equal(health.report()[0]?.state, 'closed', 'one client at a time would be let in');
  health.enter('a', 'm')?.rateLimited(0);
  assert.equal(health.closedForMs('a', 'm'), settings.rateLimitCooldownMs);
});

test('a circuit that failures opened stays half open with one trial a cooldown, whatever late attempts say of the rate', () => {
  const { health, at } = setUp();
  const late = health.enter('a', 'm');
  fail(health, 3);
  late?.rateLimited(10);
  at(500);
  assert.ok(health.enter('a', 'm'));
  at(1000);
  assert.ok(health.enter('a', 'm'));
  assert.equal(health.enter('a', 'm'), undefined);
});

test('operators are told of each circuit: its state, for how long, and how many failures are recent', () => {
  const { health, at } = setUp();
  health.enter('a', 'm')?.failed();
  at(100);
  const late = health.enter('a', 'm');
  health.enter('b', 'm')?.refused();
  late?.failed();
  assert.deepEqual(health.report(), [
    { channelId: 'a', model: 'm', state: 'closed', openForMs: 0, recentFailures: 2 },
    { channelId: 'b', state: 'open', openForMs: 800, recentFailures: 0 },
  ]);
  at(1000);
  assert.deepEqual(health.report(), [
    { channelId: 'a', model: 'm', state: 'closed', openForMs: 0, recentFailures: 1 },
    { channelId: 'b', state: 'open', openForMs: 0, recentFailures: 0 },
  ]);
  health.enter('b', 'm');
  assert.equal(health.report()[1]?.state, 'trying');
  assert.equal(health.closedForMs('b', 'm'), 0, 'that is up to the trial');
  health.enter('c', 'm')?.succeeded();
  assert.deepEqual(health.report()[2], { channelId: 'c', model: 'm', state: 'closed', openForMs: 0, recentFailures: 0 });
});

test('a trial that is under way decides for itself, whatever older attempts find', () => {
  const { health, at } = setUp();
  const old = health.enter('a', 'm');
  fail(health, 3);
  at(500);
  const trial = health.enter('a', 'm');
  old?.rateLimited(9000);
  trial?.succeeded();
  assert.ok(health.isFit('a', 'm'));
});

test('who watches hears each change of a circuit once', () => {
  const { health, moves, at } = setUp();
  fail(health, 3);
  at(500);
  health.enter('a', 'm')?.failed();
  health.enter('a', 'other')?.refused();
  health.enter('a', 'other')?.refused();
  at(1300);
  health.enter('a', 'm')?.succeeded();
  health.enter('a', 'm')?.succeeded();
  assert.deepEqual(moves, [
    ...['a m open', 'a m trying', 'a m open', 'a all open'],
    ...['a all trying', 'a m trying', 'a all closed', 'a m closed'],
  ]);
});

test('what older attempts find of a circuit that is open makes it no longer so', () => {
  const { health, at } = setUp();
  const early = Array.from({ length: 3 }, () => health.enter('a', 'm'));
  fail(health, 3);
  at(400);
  for (const permit of early) permit?.failed();
  assert.equal(health.closedForMs('a', 'm'), 100);
});

test('the first words of a trial that failed already take nothing from the next one', () => {
  const { health, at } = setUp();
  fail(health, 3);
  at(500);
  const first = health.enter('a', 'm');
  first?.failed();
  at(1000);
  assert.ok(health.enter('a', 'm'));
  first?.answering();
  assert.equal(health.enter('a', 'm'), undefined, 'that trial is still under way');
});

test('two probes that fail in a row take a Channel out, and a good one brings it back', () => {
  const { health, at } = setUp();
  health.probed('a', false);
  health.probed('a', true);
  health.probed('a', false);
  assert.ok(health.isFit('a', 'm'), 'never two in a row');
  health.probed('a', false);
  assert.equal(health.closedForMs('a', 'm'), settings.cooldownMs);
  assert.ok(health.isFit('b', 'm'));
  at(400);
  health.probed('a', false);
  assert.equal(health.closedForMs('a', 'm'), settings.cooldownMs, 'a third makes it longer');
  health.probed('a', true);
  assert.ok(health.isFit('a', 'm'));
  health.probed('a', false);
  assert.ok(health.isFit('a', 'm'), 'counted anew');
});

test('probes neither heal nor prolong what a request found out, and forget with the Channel', () => {
  const { health, moves } = setUp();
  health.enter('a', 'm')?.refused();
  health.probed('a', true);
  for (let count = 0; count < 3; count++) health.probed('a', false);
  assert.equal(health.closedForMs('a', 'm'), settings.refusedCooldownMs);
  health.probed('a', true);
  assert.ok(!health.isFit('a', 'm'), 'the credential is still the one that was refused');
  for (let count = 0; count < 2; count++) health.probed('b', false);
  health.probed('c', false);
  health.keepOnly(new Set(['a']));
  health.probed('c', false);
  assert.ok(health.isFit('c', 'm'), 'the failure before was another Channel');
  moves.length = 0;
  health.enter('b', 'm')?.refused();
  health.probed('b', true);
  assert.deepEqual(moves, ['b all open'], 'no probe took it out');
});

test('a trial whose circuit a probe has closed meanwhile moves nothing', () => {
  const { health, moves, at } = setUp();
  for (let count = 0; count < 2; count++) health.probed('a', false);
  at(500);
  const trial = health.enter('a', 'm');
  health.probed('a', true);
  trial?.nothing();
  assert.deepEqual(moves, ['a all open', 'a all trying', 'a all closed']);
  assert.ok(health.isFit('a', 'm'));
});

test('a busy Channel is judged by its latest two hundred results', () => {
  const { health } = setUp();
  for (let count = 0; count < 500; count++) health.enter('a', 'm')?.succeeded();
  fail(health, 99);
  assert.ok(health.isFit('a', 'm'));
  fail(health, 1);
  assert.ok(!health.isFit('a', 'm'), 'a hundred of two hundred');
});
