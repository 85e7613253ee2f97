/**
 * The attempt loop by itself: in which order Channels are asked, how long is waited, what is recorded, and what the client is
 * told.
 */
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { setImmediate as aTick } from 'node:timers/promises';
import { type ErrorDetails, GatewayError, notConvertible } from '../../../src/codecs/canonical/error.ts';
import { Affinity } from '../../../src/http/dispatch/affinity.ts';
import { Concurrency } from '../../../src/http/dispatch/concurrency.ts';
import { dispatch } from '../../../src/http/dispatch/dispatch.ts';
import type { Attempt, Plan, Target } from '../../../src/http/dispatch/plan.ts';
import { Health } from '../../../src/http/dispatch/health.ts';
import { RetryBudget } from '../../../src/http/dispatch/retry-budget.ts';
import { UnknownMembers } from '../../../src/http/dispatch/unknown-members.ts';
import type { Accepted } from '../../../src/http/dispatch/accepted.ts';
import type { AttemptEntry } from '../../../src/store/request-log.ts';
import { StoreError } from '../../../src/store/store-error.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { channelsOf } from './channels.ts';

const SETTINGS = { failures: 100, windowMs: 1000, cooldownMs: 500, rateLimitCooldownMs: 200, refusedCooldownMs: 800 };

/** What an attempt comes to; `late`: a failure after the head of an answer was there; `after`: one after so long. */
type Said = GatewayError | string | { readonly late: GatewayError } | { readonly after: number; readonly error: GatewayError };

/** What the upstreams say, by Channel and in order; the last word of each stands for all later ones. */
function setUp(
  script: Readonly<Record<string, readonly Said[]>>,
  changes: Readonly<Record<string, object>> = {},
  random = () => 0,
  settings = SETTINGS,
) {
  const clock = createFakeClock(0);
  const dispatcher = {
    clock,
    random,
    health: new Health(clock, () => settings),
    affinity: new Affinity(clock, { maxEntries: 10, idleMs: 1e6 }),
    concurrency: new Concurrency(clock),
    retries: new RetryBudget(),
    unknown: new UnknownMembers(clock),
  };
  const client = new AbortController();
  const asked: string[] = [];
  const targets: Target[] = [];
  const attempts: AttemptEntry[] = [];
  const left = new Map(Object.entries(script).map(([id, words]) => [id, [...words]]));
  const attempt: Attempt<string> = async (target) => {
    const { id } = target.channel;
    asked.push(`${clock.monotonic()} ${id}`);
    targets.push(target);
    const words = left.get(id) ?? [];
    const said = words.length > 1 ? words.shift() : words[0];
    clock.advance(1);
    if (said instanceof GatewayError) throw said;
    if (typeof said === 'object' && 'after' in said) {
      clock.advance(said.after - 1);
      throw said.error;
    }
    target.note.upstreamStatus = 200;
    if (typeof said !== 'object') return said ?? 'ok';
    throw said.late;
  };
  const channels = channelsOf(...Object.keys(script).map((id, priority) => ({ id, priority, ...changes[id] })));
  return {
    ...dispatcher,
    client,
    asked,
    targets,
    attempts,
    /** Time passes by itself until the exchange is over. */
    async run(plan: Partial<Plan> = {}): Promise<Accepted<string> | GatewayError> {
      const whole: Plan = {
        ...{ channels, model: 'm', maxAttempts: 5, maxRetryWaitMs: 1000, signal: client.signal },
        ...plan,
      };
      let ended: Accepted<string> | GatewayError | undefined;
      dispatch(whole, attempt, dispatcher, attempts).then(
        (accepted) => {
          ended = accepted;
        },
        (error: GatewayError) => {
          ended = error;
        },
      );
      for (let ms = 0; ms < 20_000 && ended === undefined; ms++) {
        await aTick();
        if (ended === undefined && clock.pending > 0) clock.advance(1);
      }
      assert.ok(ended !== undefined, 'it ends');
      return ended;
    },
  };
}

const fault = (details: ErrorDetails): GatewayError => new GatewayError('upstream_error', 'It failed.', details);
const said = (status: number, retryAfterMs?: number): GatewayError =>
  fault({ reason: 'http_status', upstream: { status, text: 'words', ...(retryAfterMs === undefined ? {} : { retryAfterMs }) } });
const socketClosed = (bytesRead: number, code = 'UND_ERR_SOCKET'): GatewayError =>
  fault({ reason: 'network', cause: Object.assign(new Error('closed'), { code, socket: { bytesRead } }) });
function answerOf(ended: Accepted<string> | GatewayError): Accepted<string> {
  if (ended instanceof GatewayError) throw ended;
  return ended;
}
function errorOf(ended: Accepted<string> | GatewayError): GatewayError {
  assert.ok(ended instanceof GatewayError);
  return ended;
}

test('the next Channel is asked at once, and every attempt is recorded with what was learnt', async () => {
  const loop = setUp({ a: [said(500)], b: ['fine'] }, { b: { models: { m: 'their-m' } } });
  const accepted = answerOf(await loop.run());
  assert.deepEqual(loop.asked, ['0 a', '1 b']);
  assert.deepEqual(
    [accepted.answer, accepted.channel.id, accepted.upstreamModel, accepted.affinityHit],
    ['fine', 'b', 'their-m', false],
  );
  assert.deepEqual(
    loop.targets.map(({ upstreamModel, without }) => [upstreamModel, ...without]),
    [['m'], ['their-m']],
  );
  const common = { channelType: 'messages', durationMs: 1 };
  assert.deepEqual(loop.attempts, [
    { ...common, channelId: 'a', upstreamModel: 'm', startedAtMs: 0, errorCode: 'http_status', errorText: 'words' },
    { ...common, channelId: 'b', upstreamModel: 'their-m', startedAtMs: 1, upstreamStatus: 200 },
  ]);
});

test('no more attempts than allowed, within a round and between rounds', async () => {
  const within = setUp({ a: [said(500)], b: [said(500)], c: ['never'] });
  assert.equal(errorOf(await within.run({ maxAttempts: 2 })).code, 'upstream_error');
  assert.equal(within.attempts.length, 2);

  const between = setUp({ a: [said(500)] }, { a: { options: { retries: 5 } } });
  errorOf(await between.run({ maxAttempts: 2 }));
  assert.equal(between.attempts.length, 2);
  assert.equal(between.retries.spend('a'), true);
  assert.equal(between.retries.spend('a'), true);
  assert.equal(between.retries.spend('a'), false, 'one repeat was paid: none for the attempt that was never made');
});

test('a failure that may pass is repeated where the operator wants it, as often as it says', async () => {
  for (const [retries, times] of [
    [0, 1],
    [1, 2],
    [2, 3],
  ] as const) {
    const loop = setUp({ a: [said(503)] }, { a: { options: { retries } } });
    errorOf(await loop.run());
    assert.equal(loop.asked.length, times);
  }
  const lasting = setUp({ a: [fault({ reason: 'truncated' })] }, { a: { options: { retries: 2 } } });
  errorOf(await lasting.run());
  assert.equal(lasting.asked.length, 1, 'what does not pass is not repeated');
  // What is starting up says so (Bedrock): its own number holds where it is the larger.
  for (const [retries, times] of [
    [0, 3],
    [3, 4],
  ] as const) {
    const upstream = { status: 503, text: 'not ready' };
    const starting = fault({ reason: 'http_status', upstream, repeats: 2 });
    const loop = setUp({ a: [starting] }, { a: { options: { retries } } });
    errorOf(await loop.run());
    assert.equal(loop.asked.length, times);
  }
});

/** What is left of the budget of the Channel `a`, which is then gone. */
function spendable(loop: ReturnType<typeof setUp>): number {
  let count = 0;
  while (loop.retries.spend('a')) count += 1;
  return count;
}

test('a repeat that an open circuit would not let through is neither waited for nor paid', async () => {
  const loop = setUp({ a: [said(503)] }, { a: { options: { retries: 2 } } }, () => 0, { ...SETTINGS, failures: 1 });
  errorOf(await loop.run());
  assert.deepEqual([loop.asked, loop.clock.monotonic()], [['0 a'], 1]);
  assert.equal(spendable(loop), 3);
});

test('the budget of repeats grows with the exchanges, not with the repeats', async () => {
  const invited = setUp({ a: [said(429, 1)] });
  errorOf(await invited.run());
  assert.equal(invited.asked.length, 2);
  assert.equal(spendable(invited), 3);
  const busy = setUp({ a: ['fine'] });
  for (let count = 0; count < 6; count++) answerOf(await busy.run({ maxAttempts: 99 }));
  assert.equal(spendable(busy), 4);
  const out = setUp({ a: ['fine'] });
  out.health.enter('a', 'm')?.refused();
  for (let count = 0; count < 6; count++) errorOf(await out.run());
  assert.equal(spendable(out), 3, 'what is passed over is no load of the Channel');
});

test('the wait between rounds doubles, four times', async () => {
  const loop = setUp({ a: [said(429, 0)] }, { a: { options: { retries: 5 } } }, () => 1);
  for (let count = 0; count < 99; count++) loop.retries.asked('a');
  errorOf(await loop.run({ maxAttempts: 7 }));
  assert.deepEqual(loop.asked, ['0 a', '251 a', '752 a', '1753 a', '3754 a', '7755 a', '11756 a']);
});

test('each Channel that names a time is waited for once: then the client is told how long to wait', async () => {
  const only = setUp({ a: [said(429, 1000)] });
  const told = errorOf(await only.run());
  assert.deepEqual(only.asked, ['0 a', '1001 a']);
  assert.deepEqual([told.code, told.status, told.details.retryAfterMs], ['upstream_error', 502, 1000]);
  const two = setUp({ a: [said(429, 100)], b: [said(503, 100)] });
  errorOf(await two.run());
  assert.deepEqual(two.asked, ['0 a', '1 b', '101 a', '103 b']);
});

test('an invited Channel is waited for if its time is short, and needs no budget', async () => {
  const short = setUp({ a: [said(429, 1000), 'fine'] });
  assert.equal(answerOf(await short.run()).answer, 'fine');
  assert.deepEqual(short.asked, ['0 a', '1001 a']);
  assert.equal(getEventListeners(short.client.signal, 'abort').length, 0, 'nothing listens any more');

  const long = setUp({ a: [said(429, 1001), 'never'] });
  errorOf(await long.run());
  assert.deepEqual(long.asked, ['0 a']);

  const own = setUp({ a: [fault({ retryAfterMs: 40, upstream: { status: 503, retryAfterMs: 9000 } }), 'fine'] });
  answerOf(await own.run());
  assert.deepEqual(own.asked, ['0 a', '41 a'], 'our own figure goes before the upstream’s');
});

test('nobody waits for a Channel whose circuit stays open for longer than it asked', async () => {
  for (const status of [401, 402, 403, 404]) {
    const refused = setUp({ a: [said(status, 500), 'never'] });
    errorOf(await refused.run());
    assert.deepEqual([refused.asked, refused.clock.monotonic()], [['0 a'], 1], `${status}`);
  }
  const sick = setUp({ a: [said(503, 100), said(503, 100), 'never'] }, {}, () => 0, { ...SETTINGS, failures: 2 });
  errorOf(await sick.run());
  assert.deepEqual([sick.asked, sick.clock.monotonic()], [['0 a', '101 a'], 102]);
});

test('the client is told when the first Channel may answer, whichever failed last', async () => {
  const told = async (script: Parameters<typeof setUp>[0], plan: Partial<Plan> = {}): Promise<number | undefined> =>
    errorOf(await setUp(script).run({ maxRetryWaitMs: 1, ...plan })).details.retryAfterMs;
  assert.equal(await told({ a: [said(503, 9000)] }), 9000);
  assert.equal(await told({ a: [said(503, 3000)], b: [said(503, 9000)] }), 2999);
  assert.equal(await told({ a: [said(503, 9000)], b: [said(503, 3000)] }), 3000);
  assert.equal(await told({ a: [said(400)], b: [said(429, 9000)] }), 9000, 'a wrong request stays wrong');
  assert.equal(
    await told({ a: [said(401)], b: [said(429, 9000)] }),
    799,
    'the circuit of the refused one lets it through before',
  );
  assert.equal(await told({ a: [said(500)], b: [said(429, 9000)] }), undefined, 'one may be asked at once');
  assert.equal(await told({ a: [said(429, 9000)], b: [said(500)] }, { maxAttempts: 1 }), undefined, 'one was not asked');
  assert.equal(await told({ a: [said(500)] }), undefined);
  assert.equal(await told({ a: [said(401)] }), undefined, 'no wait is known to mend our credential');
  assert.equal(await told({ a: [said(400)], b: [said(413)] }), undefined, 'nor a request that is wrong');
});

test('each keeps the time that it named; one that named a later one is asked in a later round', async () => {
  const loop = setUp({ a: [said(503, 600)], b: [said(503, 100), said(500)] });
  errorOf(await loop.run({ maxAttempts: 4 }));
  assert.deepEqual(loop.asked, ['0 a', '1 b', '102 b', '601 a']);
});

test('whoever became ready during the wait is asked in the same round, the earlier first', async () => {
  const loop = setUp({ a: [said(503, 150)], b: [said(503, 100)] }, {}, () => 1);
  errorOf(await loop.run({ maxAttempts: 4 }));
  assert.deepEqual(loop.asked, ['0 a', '1 b', '352 b', '353 a']);
});

test('a request that is wrong by itself leaves its conversation where it is; a failure does not', async () => {
  for (const [error, kept] of [
    [said(400), 'a'],
    [said(500), undefined],
  ] as const) {
    const loop = setUp({ a: [error] });
    loop.affinity.succeeded('talk', 'a');
    errorOf(await loop.run({ conversation: 'talk' }));
    assert.equal(loop.affinity.channelOf('talk'), kept);
  }
});

test('the Channel of the conversation is asked first, and that is told', async () => {
  const loop = setUp({ a: ['from a'], b: ['from b'] });
  loop.affinity.succeeded('talk', 'b');
  const accepted = answerOf(await loop.run({ conversation: 'talk' }));
  assert.deepEqual([accepted.answer, accepted.affinityHit], ['from b', true]);
  assert.equal(answerOf(await loop.run()).answer, 'from a', 'no conversation, no preference');
});

test('a refused opaque value is left out once at each Channel, and only where there are some', async () => {
  const refused = fault({ upstream: { status: 400, text: 'invalid_encrypted_content' } });
  const opaque = new Set(['opaque'] as const);
  const once = setUp({ a: [refused, 'fine'] });
  answerOf(await once.run({ carries: opaque }));
  assert.deepEqual(
    once.targets.map(({ without }) => [...without]),
    [[], ['opaque']],
  );
  const always = setUp({ a: [refused], b: [refused] });
  errorOf(await always.run({ carries: opaque }));
  assert.deepEqual(
    always.targets.map(({ without }) => [...without]),
    [[], ['opaque'], [], ['opaque']],
  );
  for (const [error, carries] of [
    [refused, new Set<never>()],
    [said(500), opaque],
  ] as const) {
    const none = setUp({ a: [error] });
    errorOf(await none.run({ carries }));
    assert.equal(none.asked.length, 1);
  }
});

test('refused raw reasoning is left out once, too, beside opaque values that were refused', async () => {
  const opaque = fault({ upstream: { status: 400, text: 'invalid_encrypted_content' } });
  const text = "Invalid 'input[1].content': array too long. Expected an array with maximum length 0, but got one with length 1.";
  const raw = fault({ upstream: { status: 400, text } });
  const both = setUp({ a: [raw, opaque, 'fine'] });
  answerOf(await both.run({ carries: new Set(['opaque', 'raw'] as const) }));
  assert.deepEqual(
    both.targets.map(({ without }) => [...without]),
    [[], ['raw'], ['raw', 'opaque']],
  );
  const none = setUp({ a: [raw] });
  errorOf(await none.run({ carries: new Set(['opaque'] as const) }));
  assert.equal(none.asked.length, 1);
});

test('F13: a kept connection that was dead is no failure of the Channel, once', async () => {
  for (const code of ['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']) {
    const stale = setUp({ a: [socketClosed(100, code), 'fine'] });
    answerOf(await stale.run());
    assert.deepEqual(stale.asked, ['0 a', '1 a'], code);
    assert.equal(stale.targets[1]?.without.size, 0);
  }
  const dead = setUp({ a: [socketClosed(100)] });
  errorOf(await dead.run());
  assert.equal(dead.asked.length, 2);
  for (const error of [
    socketClosed(0),
    fault({ reason: 'timeout', cause: socketClosed(100).details.cause }),
    fault({ reason: 'network', cause: Object.assign(new Error('no'), { code: 'ENOTFOUND', socket: { bytesRead: 1 } }) }),
    fault({ reason: 'network', cause: Object.assign(new Error('closed'), { code: 'ECONNRESET' }) }),
    fault({ reason: 'network' }),
    { late: socketClosed(100) },
  ]) {
    const fresh = setUp({ a: [error] });
    errorOf(await fresh.run());
    assert.equal(fresh.asked.length, 1);
  }
});

test('F9: a client is told to come back when the upstream says, within a day', async () => {
  for (const [waitMs, told] of [
    [60_000, 59_999],
    [3_600_000, 3_599_999],
    [86_500_000, 86_399_999],
    [Number.MAX_SAFE_INTEGER - 1, 86_399_999],
  ] as const) {
    for (const status of [429, 503]) {
      const error = errorOf(await setUp({ a: [said(status, waitMs)] }).run());
      assert.ok(Math.abs((error.details.retryAfterMs ?? 0) - told) <= 1, `${status} ${waitMs}: ${error.details.retryAfterMs}`);
    }
  }
});

test('F13: a kept connection that breaks while its request is worked on was not dead: nothing is sent twice', async () => {
  for (const [afterMs, times] of [
    [1999, 2],
    [2001, 1],
    [240_000, 1],
  ] as const) {
    const loop = setUp({ a: [{ after: afterMs, error: socketClosed(100) }, 'fine'] });
    await loop.run();
    assert.equal(loop.asked.length, times, `${afterMs} ms`);
  }
});

test('a Channel that cannot say the request is no attempt, and the reason is told where no other can', async () => {
  const refusal = notConvertible('tools', 'No.');
  const other = setUp({ a: [refusal], b: ['fine'] });
  answerOf(await other.run());
  assert.deepEqual(
    other.attempts.map(({ channelId }) => channelId),
    ['b'],
  );
  const last = notConvertible('top_k', 'No.');
  assert.equal(await setUp({ a: [refusal], b: [last] }).run(), refusal, 'the first says why');
  assert.equal(errorOf(await setUp({ a: [refusal], b: [said(500)] }).run()).code, 'upstream_error');
});

test('the request is called wrong only when no Channel was passed over that may be able to say it', async () => {
  const refusal = notConvertible('tools', 'No.');
  const cooled = setUp({ a: [refusal], b: ['never'] });
  cooled.health.enter('b', 'm')?.rateLimited(7000);
  const shut = errorOf(await cooled.run());
  assert.deepEqual([shut.code, shut.status, shut.details.retryAfterMs], ['no_healthy_upstream', 503, 6999]);
  assert.deepEqual(cooled.asked, ['0 a']);

  const full = setUp({ a: [refusal], b: ['fine'] }, { b: { options: { max_concurrency: 1, max_queue: 0 } } });
  const first = answerOf(await full.run());
  assert.equal(errorOf(await full.run()).code, 'overloaded');
  first.succeeded();
  answerOf(await full.run());
});

test('what must be on disk before an attempt is awaited before each one, and before nothing else', async () => {
  const loop = setUp({ a: [said(503)], b: [said(429, 10), 'fine'], c: ['never'] }, { b: { models: { m: 'their-m' } } });
  loop.health.enter('c', 'm')?.rateLimited(7000);
  const begun: string[] = [];
  answerOf(
    await loop.run({
      async beforeAttempt({ id }, upstreamModel) {
        await aTick();
        begun.push(`${id} ${upstreamModel} ${loop.asked.length}`);
      },
    }),
  );
  assert.deepEqual(begun, ['a m 0', 'b their-m 1', 'b their-m 2']);
});

test('an attempt that must not begin is not sent, and no other Channel is asked', async () => {
  for (const [thrown, code] of [
    [new GatewayError('video_submission_started', 'No.'), 'video_submission_started'],
    [new StoreError('unavailable', 'away'), 'store_unavailable'],
    [Object.assign(new Error('full'), { code: 'ENOSPC' }), 'internal_error'],
  ] as const) {
    const loop = setUp({ a: ['never'], b: ['never'] }, { a: { options: { max_concurrency: 1 } } });
    const ended = errorOf(await loop.run({ beforeAttempt: () => Promise.reject(thrown) }));
    assert.equal(ended.code, code);
    assert.deepEqual([loop.asked, loop.attempts], [[], []]);
    assert.equal(loop.concurrency.running('a'), 0);
    assert.ok(loop.health.isFit('a', 'm'));
  }
});

test('an attempt whose outcome is unclear is the last one, also where its Channel may be repeated, and also when the exchange was aborted', async () => {
  const unclear = (details: ErrorDetails): GatewayError => fault({ ...details, lost: true });
  const cause = Object.assign(new Error('closed'), { code: 'ECONNRESET', socket: { bytesRead: 100 } });
  for (const error of [
    unclear({ reason: 'network', cause }),
    unclear({ reason: 'http_status', upstream: { status: 503, retryAfterMs: 10 } }),
    unclear({ reason: 'timeout' }),
  ]) {
    const loop = setUp({ a: [error], b: ['never'] }, { a: { options: { retries: 5 } } });
    assert.equal(await loop.run(), error);
    assert.deepEqual([loop.asked, loop.attempts.length], [['0 a'], 1]);
  }
  const cut = setUp({ a: [unclear({})], b: ['never'] });
  cut.clock.setTimeout(() => cut.client.abort(new GatewayError('client_closed_request', 'Gone.')), 1);
  assert.equal(errorOf(await cut.run()).details.lost, true);
  const sick = setUp({ a: [unclear({ reason: 'network' })] }, {}, () => 0, { ...SETTINGS, failures: 1 });
  errorOf(await sick.run());
  assert.equal(sick.health.isFit('a', 'm'), false, 'its circuit learns of it');
});

test('a fault of nobody upstream ends the exchange', async () => {
  const own = new GatewayError('internal_error', 'Oh.');
  const loop = setUp({ a: [own], b: ['never'] });
  assert.equal(await loop.run(), own);
  assert.equal(loop.attempts.length, 1);
});

test('open circuits and full Channels are passed over; what the client is told says which', async () => {
  const open = setUp({ a: ['never'] });
  open.health.enter('a', 'm')?.rateLimited(7000);
  const none = errorOf(await open.run());
  assert.deepEqual([none.code, none.details.retryAfterMs], ['no_healthy_upstream', 7000]);
  assert.equal(answerOf(await open.run({ circuit: 'm/other' })).answer, 'never', 'an endpoint with a circuit of its own');

  const full = setUp({ a: ['fine'] }, { a: { options: { max_concurrency: 1, max_queue: 0 } } });
  const first = answerOf(await full.run());
  const busy = errorOf(await full.run());
  assert.deepEqual([busy.code, busy.details.retryAfterMs], ['overloaded', 1000]);
  first.succeeded();
  answerOf(await full.run());

  const circuits = setUp({ a: ['fine'] }, { a: { options: { max_concurrency: 1, max_queue: 1, queue_ms: 5000 } } });
  const long = answerOf(await circuits.run());
  const queued = circuits.run();
  await aTick();
  circuits.health.enter('a', 'm')?.rateLimited(7000);
  assert.equal(errorOf(await circuits.run()).code, 'no_healthy_upstream', 'nobody waits for a Channel that will not be asked');
  long.succeeded();
  assert.equal(errorOf(await queued).code, 'no_healthy_upstream', 'the circuit opened during the wait');
  assert.equal(circuits.concurrency.running('a'), 0);
  assert.equal(circuits.asked.length, 1);

  const failing = setUp({ a: [said(500)] }, { a: { options: { max_concurrency: 1, max_queue: 0 } } });
  errorOf(await failing.run());
  assert.equal(failing.concurrency.running('a'), 0, 'a failure gives its place back');
});

test('the circuit learns how an attempt failed, and a trial keeps others out only until its first words', async () => {
  const unknown = setUp({ a: [said(404)] });
  errorOf(await unknown.run());
  assert.equal(unknown.health.isFit('a', 'm'), false);
  const trial = setUp({ a: ['fine'] });
  trial.health.enter('a', 'm')?.rateLimited(100);
  trial.clock.advance(100);
  const long = answerOf(await trial.run());
  answerOf(await trial.run()).succeeded();
  const many = [trial.health.enter('a', 'm'), trial.health.enter('a', 'm')];
  assert.ok(!many.includes(undefined), 'a good answer lets everybody in again');
  long.succeeded();
});

test('an answer that broke after it was shown gives its place back, and its circuit and its conversation learn of it', async () => {
  const busy = { a: { options: { max_concurrency: 1, max_queue: 0 } } };
  const once = { ...SETTINGS, failures: 1 };
  const loop = setUp({ a: ['fine'], b: ['fine'] }, busy, () => 0, once);
  const next = async (): Promise<Accepted<string>> => answerOf(await loop.run({ conversation: 'talk' }));
  const first = await next();
  assert.equal(loop.concurrency.running('a'), 1);
  first.succeeded();
  assert.deepEqual([loop.concurrency.running('a'), loop.affinity.channelOf('talk')], [0, 'a']);

  (await next()).failed(new GatewayError('client_closed_request', 'Gone.'));
  assert.deepEqual(
    [loop.concurrency.running('a'), loop.affinity.channelOf('talk')],
    [0, 'a'],
    'a client that left teaches nothing',
  );
  assert.ok(loop.health.isFit('a', 'm'));

  (await next()).failed(fault({ reason: 'truncated' }));
  assert.deepEqual([loop.concurrency.running('a'), loop.affinity.channelOf('talk')], [0, undefined]);
  assert.equal(loop.health.isFit('a', 'm'), false);
  assert.equal((await next()).channel.id, 'b');
});

test('what a failure said that it used stands in its attempt', async () => {
  const loop = setUp({ a: [{ late: fault({ reason: 'truncated', usage: { input: 3, output: 0 } }) }] });
  errorOf(await loop.run());
  assert.deepEqual(loop.attempts[0]?.usage, { input: 3 });
  assert.equal(loop.attempts[0]?.upstreamStatus, 200);
});

test('X11: a client that leaves is told nothing else, whatever the upstream says', async () => {
  const gone = new GatewayError('client_closed_request', 'Gone.');
  const waiting = setUp({ a: [said(503, 500)] });
  waiting.clock.setTimeout(() => waiting.client.abort(gone), 100);
  assert.equal(await waiting.run(), gone);
  assert.deepEqual(waiting.asked, ['0 a']);
  assert.equal(waiting.clock.pending, 0, 'no timer is left');

  const during = setUp({ a: [said(500)], b: ['never'] });
  during.clock.setTimeout(() => during.client.abort(gone), 1);
  assert.equal(await during.run(), gone);
  assert.deepEqual(during.asked, ['0 a']);

  const refused = fault({ upstream: { status: 400, text: 'invalid_encrypted_content' } });
  for (const [script, times] of [
    [[refused, 'never'], 1],
    [[refused, said(500)], 2],
  ] as const) {
    const opaque = setUp({ a: script });
    opaque.clock.setTimeout(() => opaque.client.abort(gone), times);
    assert.equal(await opaque.run({ carries: new Set(['opaque'] as const) }), gone);
    assert.equal(opaque.asked.length, times);
  }
});
