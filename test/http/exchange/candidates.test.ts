/** The models that may answer: what is reserved for all of them, and when the next one is tried. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import { Affinity } from '../../../src/http/dispatch/affinity.ts';
import { Concurrency } from '../../../src/http/dispatch/concurrency.ts';
import { Health } from '../../../src/http/dispatch/health.ts';
import type { Plan } from '../../../src/http/dispatch/plan.ts';
import { RetryBudget } from '../../../src/http/dispatch/retry-budget.ts';
import { UnknownMembers } from '../../../src/http/dispatch/unknown-members.ts';
import { dearestNanos, dispatchInTurn, inService } from '../../../src/http/exchange/candidates.ts';
import type { AttemptEntry } from '../../../src/store/request-log.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { channel, MODELS, testConfig, testRates } from '../../support/test-gateway.ts';

const config = testConfig({
  channels: [
    channel('http://127.0.0.1:1', { id: 'a', models: ['first'], options: { max_concurrency: 1, max_queue: 0 } }),
    channel('http://127.0.0.1:1', { id: 'b', models: ['second'] }),
  ],
  models: { first: { ...MODELS.m, fallbacks: ['second'] }, second: MODELS.m },
});
const [a, b] = config.channels;
const [first, second] = [config.models.get('first'), config.models.get('second')];
assert.ok(a !== undefined && b !== undefined && first !== undefined && second !== undefined);
const ofFirst = [a];
const candidates = [
  { model: first, channels: ofFirst },
  { model: second, channels: [b] },
];

function setUp() {
  const clock = createFakeClock(0);
  const settings = { failures: 100, windowMs: 1000, cooldownMs: 500, rateLimitCooldownMs: 200, refusedCooldownMs: 800 };
  const dispatcher = {
    clock,
    random: () => 0,
    health: new Health(clock, () => settings),
    affinity: new Affinity(clock, { maxEntries: 10, idleMs: 1e6 }),
    concurrency: new Concurrency(clock),
    retries: new RetryBudget(),
    unknown: new UnknownMembers(clock),
  };
  const attempts: AttemptEntry[] = [];
  const client = new AbortController();
  /** The Channel of the first model fails so, that of the second answers. */
  const run = async (failure: GatewayError | undefined, plan: Partial<Plan> = {}) => {
    const own = { channels: ofFirst, model: 'first', maxAttempts: 5, maxRetryWaitMs: 0, signal: client.signal };
    return await dispatchInTurn<string>(
      { ...own, ...plan },
      candidates,
      async ({ channel: { id } }) => {
        if (id === 'a' && failure !== undefined) throw failure;
        return `of ${id}`;
      },
      dispatcher,
      attempts,
    );
  };
  return { ...dispatcher, attempts, client, run };
}

test('what is reserved is the most that any of them may cost; one without a price costs nothing', () => {
  const estimate = { input: 100, output: 10 };
  const [cheap, dear] = [testRates({ input: '1', output: '2' }), testRates({ input: '10', output: '20' })];
  const most = 100n * 10_000n + 10n * 20_000n;
  for (const all of [
    [cheap, dear, undefined],
    [dear, undefined, cheap],
  ])
    assert.equal(dearestNanos(all.map((rates) => ({ estimate, rates }))), most);
  assert.equal(dearestNanos([{ estimate, rates: undefined }]), 0n);
});

test('a model without a Channel in service is nobody’s error where a fallback may answer, and the client’s where none may', () => {
  const none = (): never => {
    throw new GatewayError('no_healthy_upstream', 'None.');
  };
  assert.equal(inService(first, none), undefined);
  assert.throws(() => inService(second, none), { code: 'no_healthy_upstream' });
  assert.equal(
    inService(second, () => 'found'),
    'found',
  );
  const wrong = (): never => {
    throw new GatewayError('unsupported_conversion', 'No.');
  };
  assert.throws(() => inService(first, wrong), { code: 'unsupported_conversion' });
});

test('the next model is tried where the Channels of the first failed, are busy or closed', async () => {
  const failed = setUp();
  const { accepted, model } = await failed.run(new GatewayError('upstream_error', 'Oh.', { reason: 'truncated' }));
  assert.deepEqual([accepted.answer, model.name, failed.attempts.length], ['of b', 'second', 2]);

  const busy = setUp();
  await busy.run(undefined);
  const { accepted: other } = await busy.run(undefined);
  assert.equal(other.answer, 'of b', 'the one place of the Channel is taken');

  const closed = setUp();
  closed.health.enter('a', 'first')?.refused();
  assert.equal((await closed.run(undefined)).accepted.answer, 'of b');
});

test('no other model is tried where the request is wrong, may be under way, or where nobody waits', async () => {
  const wrong = setUp();
  const refusal = { reason: 'http_status', upstream: { status: 400, text: 'No.' } } as const;
  await assert.rejects(wrong.run(new GatewayError('upstream_error', 'No.', refusal)), { status: 400 });
  const lost = setUp();
  await assert.rejects(lost.run(new GatewayError('upstream_error', 'Oh.', { reason: 'network', lost: true })));
  const mute = setUp();
  await assert.rejects(mute.run(new GatewayError('response_not_representable', 'Oh.')), { code: 'response_not_representable' });
  const left = setUp();
  left.client.abort(new GatewayError('client_closed_request', 'Gone.'));
  await assert.rejects(left.run(new GatewayError('upstream_error', 'Oh.', { reason: 'truncated' })));
  for (const { attempts } of [wrong, lost, mute, left]) assert.ok(attempts.every(({ channelId }) => channelId === 'a'));
});

test('a conversation keeps the Channel of a fallback beside its own; where there is none, none is kept', async () => {
  const broken = new GatewayError('upstream_error', 'Oh.', { reason: 'truncated' });
  const kept = setUp();
  (await kept.run(undefined, { conversation: 'c' })).accepted.succeeded();
  assert.equal(kept.affinity.channelOf('c'), 'a');
  const fallback = await kept.run(broken, { conversation: 'c' });
  fallback.accepted.succeeded();
  assert.equal(fallback.accepted.affinityHit, false);
  assert.equal((await kept.run(broken, { conversation: 'c' })).accepted.affinityHit, true, 'its prompt cache is there');
  const none = setUp();
  (await none.run(broken)).accepted.succeeded();
  assert.equal(none.affinity.size, 0);
});
