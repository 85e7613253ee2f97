/** Concurrency limits with their queue, retries of one Channel within a budget, active probes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RetryBudget } from '../../../src/http/dispatch/retry-budget.ts';
import { Concurrency } from '../../../src/http/dispatch/concurrency.ts';
import { Health } from '../../../src/http/dispatch/health.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import {
  type FakeAnswer,
  type FakeRequest,
  fakeUpstream,
  jsonAnswer,
  openStream,
  sayMessages,
  startMessage,
  wholeMessage,
} from '../../support/fake-upstream.ts';
import { waitFor } from '../../support/processes.ts';
import { ask, channel, eventually, MODELS, testGateway } from '../../support/test-gateway.ts';

const failure = (status: number, headers: Record<string, string> = {}) =>
  jsonAnswer(status, { type: 'error', error: { type: 'api_error', message: 'no' } }, headers);

test('a Channel serves so many at once; the others wait in order, and no more than the queue holds', async (t) => {
  const waiting: FakeRequest[] = [];
  const slow = await fakeUpstream((request) => void waiting.push(request));
  t.after(() => slow.close());
  await using gateway = await testGateway({
    channels: [channel(slow.url, { options: { max_concurrency: 2, max_queue: 1, queue_ms: 5000 } })],
    models: MODELS,
  });
  const asked = [1, 2, 3].map(() => gateway.post('/v1/messages', ask()));
  await eventually(() => waiting.length === 2, 'two are served');
  await new Promise((resolve) => setTimeout(resolve, 30));
  const refused = await gateway.post('/v1/messages', ask());
  assert.equal(refused.status, 503);
  assert.equal(refused.headers.get('retry-after'), '1');
  assert.match(await refused.text(), /busy/);
  assert.equal(waiting.length, 2, 'the third still waits');
  const answer = jsonAnswer(200, wholeMessage('fine'));
  for (let index = 0; index < 3; index++) {
    await eventually(() => waiting[index] !== undefined, `request ${index}`);
    const request = waiting[index];
    if (request !== undefined) await answer(request);
  }
  for (const response of await Promise.all(asked)) assert.equal(response.status, 200);
  assert.equal(gateway.running.gateway.dispatcher.concurrency.running('one'), 0);
});

test('a place is given back by an attempt that failed, and by one that the circuit refused after its wait', async (t) => {
  const waiting: FakeRequest[] = [];
  const slow = await fakeUpstream((request) => void waiting.push(request));
  t.after(() => slow.close());
  await using gateway = await testGateway({
    channels: [channel(slow.url, { options: { max_concurrency: 1, max_queue: 1, queue_ms: 5000 } })],
    models: MODELS,
    health: { failures: 1 },
  });
  const { concurrency } = gateway.running.gateway.dispatcher;
  const first = gateway.post('/v1/messages', ask());
  await eventually(() => waiting.length === 1, 'one is served');
  const second = gateway.post('/v1/messages', ask());
  await new Promise((resolve) => setTimeout(resolve, 30));
  assert.equal(waiting.length, 1, 'the other waits');
  const [request] = waiting;
  if (request !== undefined) await failure(500)(request);
  assert.equal((await first).status, 502);
  assert.equal((await second).status, 503);
  assert.equal(waiting.length, 1, 'a circuit that opened meanwhile lets nobody through');
  assert.equal(concurrency.running('one'), 0);
});

test('a place is given back however an answer ends', async (t) => {
  const upstream = await fakeUpstream(sayMessages('hi'));
  t.after(() => upstream.close());
  const options = { max_concurrency: 1, max_queue: 0 };
  await using gateway = await testGateway({
    channels: [
      channel(upstream.url, { options }),
      channel(upstream.url, { id: 'two', type: 'responses', models: ['r'], options }),
    ],
    models: { ...MODELS, r: MODELS.m },
  });
  const { concurrency } = gateway.running.gateway.dispatcher;
  const response = (changes: object) => jsonAnswer(200, { id: 'resp_1', object: 'response', model: 'r', ...changes });
  const picture = { type: 'image_generation_call', id: 'ig_1', status: 'completed', result: 'aGk=' };
  const failed = { status: 'failed', output: [], error: { code: 'server_error', message: 'no' } };
  const text = { type: 'message', id: 'm1', role: 'assistant', content: [{ type: 'output_text', text: 'a', annotations: [] }] };
  const broken: FakeAnswer = ({ socket }) => {
    startMessage(openStream(socket));
    socket.end();
  };
  const halfSaid: FakeAnswer = ({ socket }) => {
    const stream = openStream(socket);
    startMessage(stream);
    stream.event('content_block_delta', { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'half' } });
    setTimeout(() => socket.end(), 20);
  };
  const ways: readonly (readonly [way: string, path: string, body: object, answer: FakeAnswer])[] = [
    ['a stream', '/v1/messages', ask({ stream: true }), sayMessages('hi')],
    ['a stream that breaks before a word', '/v1/messages', ask({ stream: true }), broken],
    ['a stream that breaks behind one', '/v1/messages', ask({ stream: true }), halfSaid],
    ['a whole answer', '/v1/messages', ask(), jsonAnswer(200, wholeMessage('fine'))],
    ['one that is none', '/v1/messages', ask(), jsonAnswer(200, {})],
    ['one that cannot be said', '/v1/messages', ask({ model: 'r' }), response({ status: 'completed', output: [picture] })],
    ['one that failed', '/v1/responses', { model: 'r', input: 'hi' }, response(failed)],
    ['one that failed behind a text', '/v1/responses', { model: 'r', input: 'hi' }, response({ ...failed, output: [text] })],
  ];
  for (const [count, [way, path, body, answer]] of ways.entries()) {
    upstream.answer = answer;
    await (await gateway.post(path, body)).text();
    await eventually(() => gateway.store.settled.length === count + 1, `${way} is settled`);
    assert.deepEqual([upstream.requests.length, concurrency.running('one'), concurrency.running('two')], [count + 1, 0, 0], way);
    gateway.running.gateway.dispatcher.health.keepOnly(new Set());
  }
});

test('a wait that is too long goes to the next Channel; a client that leaves the queue frees its place', async () => {
  const clock = createFakeClock();
  const concurrency = new Concurrency(clock);
  const slots = { max: 1, maxQueue: 1, queueMs: 100 };
  const signal = new AbortController().signal;
  const release = await concurrency.take('a', slots, signal);
  const late = concurrency.take('a', slots, signal);
  assert.equal(await concurrency.take('a', slots, signal), undefined, 'the queue is full');
  clock.advance(100);
  assert.equal(await late, undefined, 'too long');
  const leaving = new AbortController();
  const left = concurrency.take('a', slots, leaving.signal);
  leaving.abort();
  await assert.rejects(left, { code: 'client_closed_request' });
  const next = concurrency.take('a', slots, signal);
  release?.();
  release?.();
  assert.equal(concurrency.running('a'), 1, 'one place, given on once');
  (await next)?.();
  assert.equal(concurrency.running('a'), 0);
});

test('a limit that a reload lowers or raises counts for those who wait, in their order', async () => {
  const concurrency = new Concurrency(createFakeClock());
  const signal = new AbortController().signal;
  const order: string[] = [];
  const take = (name: string, max: number) =>
    concurrency.take('a', { max, maxQueue: 9, queueMs: 100 }, signal).then((release) => {
      order.push(name);
      return release;
    });
  const running = await Promise.all(['one', 'two', 'three'].map((name) => take(name, 3)));
  const waiting = ['four', 'five'].map((name) => take(name, 3));
  const six = take('six', 1);
  running[0]?.();
  running[1]?.();
  assert.equal(concurrency.running('a'), 1, 'lowered: nobody comes in before there is room');
  running[2]?.();
  const four = await waiting[0];
  assert.deepEqual(order, ['one', 'two', 'three', 'four']);
  const seven = take('seven', 3);
  const rest = await Promise.all([...waiting.slice(1), six]);
  assert.equal(concurrency.running('a'), 3, 'raised: those who wait come in at once');
  assert.deepEqual(order.slice(4), ['five', 'six'], 'and before whoever came later');
  four?.();
  (await seven)?.();
  for (const release of rest) release?.();
  assert.equal(concurrency.running('a'), 0);
});

test('a client that left before its place in the queue takes none', async () => {
  const clock = createFakeClock();
  const concurrency = new Concurrency(clock);
  const slots = { max: 1, maxQueue: 1, queueMs: 100 };
  const release = await concurrency.take('a', slots, new AbortController().signal);
  await assert.rejects(concurrency.take('a', slots, AbortSignal.abort()), { code: 'client_closed_request' });
  assert.equal(clock.pending, 0, 'nobody waits');
  release?.();
  assert.equal(concurrency.running('a'), 0);
});

test('one Channel alone: a failure is final by default, and repeated where the operator wants it', async (t) => {
  let calls = 0;
  const shaky = await fakeUpstream((request) => {
    calls += 1;
    return (calls % 2 === 1 ? failure(503) : sayMessages('second time'))(request);
  });
  t.after(() => shaky.close());
  await using gateway = await testGateway({ channels: [channel(shaky.url)], models: MODELS });
  assert.equal((await gateway.post('/v1/messages', ask({ stream: true }))).status, 502);
  assert.equal(calls, 1, 'clients repeat by themselves: the gateway does not multiply');
  calls = 0;
  gateway.configure({ channels: [channel(shaky.url, { options: { retries: 1 } })], models: MODELS });
  const response = await gateway.post('/v1/messages', ask({ stream: true }));
  assert.match(await response.text(), /second time/);
  assert.equal(calls, 2);
  await eventually(() => gateway.store.settled.length === 2, 'rows');
  assert.equal(gateway.store.settled[1]?.attempts.length, 2);
});

test('what cannot pass is not repeated, and repeats stop at the budget', async (t) => {
  let status = 400;
  const sick = await fakeUpstream((request) => failure(status)(request));
  t.after(() => sick.close());
  await using gateway = await testGateway({
    channels: [channel(sick.url, { options: { retries: 5 } })],
    models: MODELS,
    health: { failures: 10_000 },
    dispatch: { max_attempts: 2 },
  });
  for (const [fault, requests] of [
    [400, 1],
    [401, 1],
    [413, 1],
  ] as const) {
    status = fault;
    const before = sick.requests.length;
    await gateway.post('/v1/messages', ask());
    assert.equal(sick.requests.length - before, requests, String(fault));
    gateway.running.gateway.dispatcher.health.keepOnly(new Set());
  }
  status = 500;
  const before = sick.requests.length;
  for (let round = 0; round < 10; round++) await gateway.post('/v1/messages', ask());
  const repeats = sick.requests.length - before - 10;
  assert.ok(repeats <= 6, `${repeats} repeats for 10 exchanges`);
  assert.ok(repeats > 3, `${repeats} repeats: the load earns some beside those of a quiet time`);
});

test('the budget is a fifth of the load', () => {
  const budget = new RetryBudget();
  let repeats = 0;
  for (let round = 0; round < 1000; round++) {
    budget.asked('a');
    if (budget.spend('a')) repeats += 1;
  }
  assert.ok(repeats >= 195 && repeats <= 205, String(repeats));
  assert.ok(budget.spend('b'), 'each Channel has its own');
});

test('X11: a client that leaves during the backoff ends it', async (t) => {
  const sick = await fakeUpstream(failure(503));
  t.after(() => sick.close());
  await using gateway = await testGateway({ channels: [channel(sick.url, { options: { retries: 5 } })], models: MODELS });
  gateway.running.gateway.dispatcher.retries.asked('one');
  const abort = new AbortController();
  const asked = gateway.post('/v1/messages', ask(), { signal: abort.signal });
  await eventually(() => sick.requests.length > 0, 'the first attempt');
  abort.abort();
  await assert.rejects(asked);
  await eventually(() => gateway.store.settled.length === 1, 'settlement');
  assert.equal(gateway.store.settled[0]?.clientGone, true);
  assert.ok(sick.requests.length <= 2);
});

test('probes: two failures in a row take a Channel out, a good one brings it back, and only what probes took out', () => {
  const clock = createFakeClock();
  const settings = { failures: 3, windowMs: 1000, cooldownMs: 60_000, rateLimitCooldownMs: 1, refusedCooldownMs: 50_000 };
  const moves: string[] = [];
  const health = new Health(
    clock,
    () => settings,
    (id, model, state) => moves.push(`${id} ${model ?? '*'} ${state}`),
  );
  health.probed('a', false);
  assert.ok(health.isFit('a', 'm'));
  health.probed('a', true);
  health.probed('a', false);
  assert.ok(health.isFit('a', 'm'), 'in a row');
  health.probed('a', false);
  assert.ok(!health.isFit('a', 'm'));
  health.probed('a', true);
  assert.ok(health.isFit('a', 'm'));
  assert.deepEqual(moves, ['a * open', 'a * closed']);
  health.enter('a', 'm')?.refused();
  health.probed('a', false);
  health.probed('a', false);
  health.probed('a', true);
  assert.ok(!health.isFit('a', 'm'), 'a refused credential is no matter of probes');
});

test('probes ask for the model list with the credential, and count', async (t) => {
  const paths: string[] = [];
  let status = 200;
  const upstream = await fakeUpstream((request) => {
    paths.push(`${request.method} ${request.path} ${request.headers.get('x-api-key')}`);
    return jsonAnswer(status, { data: [] })(request);
  });
  t.after(() => upstream.close());
  await using gateway = await testGateway({ channels: [channel(upstream.url)], models: MODELS, health: { probe_ms: 1000 } });
  await waitFor(
    () => (paths.length > 0 ? true : undefined),
    () => 'no probe',
  );
  assert.equal(paths[0], 'GET /v1/models sk-upstream');
  status = 500;
  const { health } = gateway.running.gateway.dispatcher;
  await waitFor(
    () => (health.isFit('one', 'm') ? undefined : true),
    () => 'it was never taken out',
  );
  const text = await gateway.running.gateway.metrics.registry.metrics();
  assert.match(text, /mizu_probes_total\{channel="one",outcome="failure"\} [2-9]/);
  const refused = await gateway.post('/v1/messages', ask());
  assert.equal(refused.status, 503);
  assert.match(await refused.text(), /No upstream/);
  const wait = Number(refused.headers.get('retry-after'));
  assert.ok(wait >= 1 && wait <= 30, `retry-after: ${wait}`);
});
