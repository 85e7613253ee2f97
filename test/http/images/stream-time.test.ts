/**
 * The clock of an image stream: comments at once and every 15 s, an upstream timeout that they do not extend, and a client that
 * leaves.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { atOnce, type Steps } from '../../../src/codecs/steps.ts';
import { LargeWork } from '../../../src/http/request/large-work.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { fakeUpstream, openStream, rawAnswer } from '../../support/fake-upstream.ts';
import { eventually, type TestGateway, testGateway } from '../../support/test-gateway.ts';
import { readSse } from './studio.ts';

const file = (url: string, more: object = {}) => ({
  channels: [
    {
      id: 'one',
      type: 'openai_image',
      base_url: url,
      api_key: 'k',
      models: ['m'],
      timeouts: { first_data_ms: 100_000 },
      ...more,
    },
  ],
  models: { m: { kind: 'image', price: { input: '1', output: '2' } } },
});
const ask = (gateway: TestGateway, more: object = {}, init: { readonly signal?: AbortSignal } = {}) =>
  gateway.post('/v1/images/generations', { model: 'm', prompt: 'x', ...more }, init);

const COMPLETED = { type: 'image_generation.completed', b64_json: 'iVBORw0KGgo=', created_at: 1 };

/** Reads on as text arrives. */
function follow(response: Response): { text: string; readonly done: Promise<void> } {
  const seen = { text: '', done: Promise.resolve() };
  const decoder = new TextDecoder();
  seen.done = (async () => {
    for await (const chunk of response.body ?? []) seen.text += decoder.decode(chunk, { stream: true });
  })();
  return seen;
}

/** The upstream ends with its picture, and the client has it. */
async function completes(stream: ReturnType<typeof openStream>, seen: ReturnType<typeof follow>): Promise<void> {
  stream.event('image_generation.completed', COMPLETED);
  stream.end();
  await seen.done;
  assert.deepEqual(
    readSse(seen.text).events.map(({ event, data }) => event ?? data),
    ['image_generation.completed', '[DONE]'],
  );
}

test('a comment at once, then one after each 15 s; the picture ends it', async () => {
  const clock = createFakeClock();
  await using upstream = await fakeUpstream(() => undefined);
  await using gateway = await testGateway(file(upstream.url), { clock });
  const response = await ask(gateway, { stream: true });
  assert.equal(response.status, 200);
  const seen = follow(response);
  const comments = (count: number) => eventually(() => readSse(seen.text).comments === count, `${count} comments`);
  await comments(1);
  await eventually(() => upstream.requests.length === 1);
  for (let count = 2; count <= 4; count++) {
    clock.advance(14_999);
    clock.advance(1);
    await comments(count);
  }
  const [request] = upstream.requests;
  if (request === undefined) throw new Error('no request');
  const stream = openStream(request.socket);
  await completes(stream, seen);
  await eventually(() => gateway.store.settled.length === 1);
});

test('F4: neither our comments nor the upstream’s extend its time: error event, [DONE]', async () => {
  const clock = createFakeClock();
  await using upstream = await fakeUpstream(() => undefined);
  await using gateway = await testGateway(file(upstream.url), { clock });
  const seen = follow(await ask(gateway, { stream: true }));
  await eventually(() => upstream.requests.length === 1);
  const [request] = upstream.requests;
  if (request === undefined) throw new Error('no request');
  const stream = openStream(request.socket);
  for (let round = 0; round < 9; round++) {
    stream.raw(': PROCESSING\n\n');
    clock.advance(11_000);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  assert.deepEqual(readSse(seen.text).events, []);
  clock.advance(1_001);
  await seen.done;
  const { events } = readSse(seen.text);
  assert.deepEqual(
    events.map(({ event, data }) => event ?? data),
    ['error', '[DONE]'],
  );
  assert.match(JSON.parse(events[0]?.data ?? '').error.message, /in time/);
  await eventually(() => upstream.sockets.size === 0, 'the upstream is let go');
});

const ENDLESS = {
  previews: () => ({ type: 'image_generation.partial_image', b64_json: 'iVBORw0KGgo='.repeat(1_000) }),
  'pictures that are never counted': (n: number) => ({
    type: 'image_generation.partial_succeeded',
    url: `https://x.test/${n}.png`,
  }),
  'finished calls': (n: number) => ({
    type: 'response.output_item.done',
    item: { type: 'image_generation_call', id: `ig_${n}`, result: 'iVBORw0KGgo=' },
  }),
};
for (const [what, event] of Object.entries(ENDLESS)) {
  test(`F4: a stream of ${what} that never ends is cut at limits.answer_bytes, and its upstream let go`, async () => {
    await using upstream = await fakeUpstream(({ socket }) => {
      const stream = openStream(socket);
      const more = (n: number): void => {
        if (socket.destroyed) return;
        for (let next = n; next < n + 200; next += 1) stream.event('', event(next));
        setTimeout(() => more(n + 200), 1);
      };
      more(0);
    });
    const type = what === 'finished calls' ? { type: 'responses', options: { image_enable_openai_generation_tool: true } } : {};
    const { channels, models } = file(upstream.url, type);
    await using gateway = await testGateway({ channels, models, limits: { answer_bytes: 1024 * 1024 } });
    const { events } = readSse(await (await ask(gateway, { stream: true }, { signal: AbortSignal.timeout(10_000) })).text());
    assert.match(JSON.parse(events[0]?.data ?? '{}').error.message, /too large/);
    await eventually(() => upstream.sockets.size === 0, 'the upstream is let go');
    await eventually(() => gateway.store.settled.length === 1, 'settlement');
    assert.equal(gateway.store.held.size, 0);
  });
}

for (const stream of [false, true]) {
  test(`F16: a client that leaves cancels its upstream at once, ${stream ? 'with' : 'without'} a stream`, async () => {
    await using upstream = await fakeUpstream(() => undefined);
    await using gateway = await testGateway(file(upstream.url));
    const abort = new AbortController();
    const asked = ask(gateway, { stream }, { signal: abort.signal }).then((response) => response.text());
    await eventually(() => upstream.requests.length === 1);
    abort.abort();
    await assert.rejects(asked);
    await eventually(() => upstream.sockets.size === 0, 'the upstream is let go');
    await eventually(() => gateway.store.settled.length === 1, 'settlement');
    const [row] = gateway.store.settled;
    assert.deepEqual([row?.clientGone, row?.charge], [true, undefined]);
    assert.equal(gateway.store.held.size, 0);
  });
}

test('until there is a picture the next Channel may be tried, with a stream too', async () => {
  await using broken = await fakeUpstream(({ socket }) => {
    const stream = openStream(socket);
    stream.event('image_generation.partial_image', { type: 'image_generation.partial_image', b64_json: 'iVBORw0KGgo=' });
    stream.event('error', { type: 'error', error: { message: 'no', code: 'server_error' } });
    stream.end();
  });
  await using good = await fakeUpstream(
    rawAnswer(200, { 'content-type': 'application/json' }, JSON.stringify({ created: 1, data: [{ b64_json: 'iVBORw0KGgo=' }] })),
  );
  const { channels, models } = file(broken.url);
  const second = { ...channels[0], id: 'two', base_url: good.url, priority: 1 };
  await using gateway = await testGateway({ channels: [...channels, second], models });
  const { events } = readSse(await (await ask(gateway, { stream: true })).text());
  assert.equal(events[0]?.event, 'image_generation.completed');
  await eventually(() => gateway.store.settled.length === 1);
  assert.deepEqual(
    gateway.store.settled[0]?.attempts.map(({ channelId }) => channelId),
    ['one', 'two'],
  );
});

test('I2 a form is sent again whole to the next Channel', async () => {
  const bodies: string[] = [];
  await using broken = await fakeUpstream((request) => {
    bodies.push(request.body);
    rawAnswer(500, {}, '{}')(request);
  });
  await using good = await fakeUpstream((request) => {
    bodies.push(request.body);
    rawAnswer(
      200,
      { 'content-type': 'application/json' },
      JSON.stringify({ created: 1, data: [{ b64_json: 'iVBORw0KGgo=' }] }),
    )(request);
  });
  const { channels, models } = file(broken.url);
  await using gateway = await testGateway({
    channels: [...channels, { ...channels[0], id: 'two', base_url: good.url, priority: 1 }],
    models,
  });
  const response = await gateway.post('/v1/images/edits', {
    model: 'm',
    prompt: 'x',
    images: [{ image_url: 'data:image/png;base64,iVBORw0KGgo=' }],
  });
  assert.equal(response.status, 200);
  const plain = bodies.map((body) => body.replaceAll(/mizu-form-[0-9a-f]+/g, ''));
  assert.equal(plain[0], plain[1]);
  assert.match(plain[0] ?? '', /name="image"/);
});

test('no more than four pictures of one request are drawn at once', async () => {
  let open = 0;
  let most = 0;
  await using upstream = await fakeUpstream(async (request) => {
    open += 1;
    most = Math.max(most, open);
    await new Promise((resolve) => setTimeout(resolve, 10));
    open -= 1;
    rawAnswer(
      200,
      { 'content-type': 'application/json' },
      JSON.stringify({ created: 1, data: [{ b64_json: 'iVBORw0KGgo=' }] }),
    )(request);
  });
  await using gateway = await testGateway(file(upstream.url));
  const body = (await (await ask(gateway, { n: 10 })).json()) as { data: unknown[] };
  assert.equal(body.data.length, 10);
  assert.equal(most, 4);
});

test('every alias serves, and an empty wallet is refused before anything is sent', async () => {
  await using upstream = await fakeUpstream(
    rawAnswer(200, { 'content-type': 'application/json' }, JSON.stringify({ created: 1, data: [{ b64_json: 'iVBORw0KGgo=' }] })),
  );
  await using gateway = await testGateway(file(upstream.url));
  for (const prefix of ['/v1', '', '/api/v1', '/api']) {
    assert.equal((await gateway.post(`${prefix}/images/generations?x=1`, { model: 'm', prompt: 'x' })).status, 200);
  }
  assert.equal((await gateway.post('/v1/images/variations', {})).status, 404);
  gateway.store.walletNanos = 0n;
  const sent = upstream.requests.length;
  for (const stream of [false, true]) assert.equal((await ask(gateway, { stream })).status, 402);
  assert.equal(upstream.requests.length, sent);
});

test('with every circuit open a stream is refused like any other request, with the time to come again', async () => {
  await using upstream = await fakeUpstream(
    rawAnswer(404, { 'content-type': 'application/json' }, '{"error":{"message":"no such model"}}'),
  );
  await using gateway = await testGateway({ ...file(upstream.url), health: { failures: 1 } });
  assert.equal((await ask(gateway)).status, 502);
  for (const stream of [false, true]) {
    const refused = await ask(gateway, { stream });
    assert.equal(refused.status, 503);
    assert.ok(Number(refused.headers.get('retry-after')) > 1, `stream: ${stream}`);
    await refused.text();
  }
  await eventually(() => gateway.store.settled.length === 3, 'each has a row in the log');
  const refusals = gateway.store.settled.slice(1).map(({ errorCode, stream, model }) => [errorCode, stream, model]);
  assert.deepEqual(refusals, [
    ['no_healthy_upstream', false, 'm'],
    ['no_healthy_upstream', true, 'm'],
  ]);
  assert.equal(gateway.store.held.size, 0);
});

test('what the gateway takes to read a large event is no silence of its upstream', async (t) => {
  const clock = createFakeClock();
  await using upstream = await fakeUpstream(() => undefined);
  await using gateway = await testGateway(file(upstream.url, { timeouts: { first_data_ms: 1000, idle_ms: 1000 } }), { clock });
  const turn = Promise.withResolvers<void>();
  const run = t.mock.method(LargeWork.prototype, 'run', async (steps: Steps<unknown>) => {
    await turn.promise;
    return atOnce(steps);
  });
  const seen = follow(await ask(gateway, { stream: true }));
  await eventually(() => upstream.requests.length === 1);
  const [request] = upstream.requests;
  if (request === undefined) throw new Error('no request');
  const stream = openStream(request.socket);
  const type = 'image_generation.partial_image';
  stream.event(type, { ...COMPLETED, type, b64_json: 'AAAA'.repeat(20_000) });
  await eventually(() => run.mock.callCount() === 1, 'the large event');
  clock.advance(5000);
  turn.resolve();
  await completes(stream, seen);
});
