/** `POST /v1/responses/compact`: what reaches the upstream, what comes back, what it costs. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type FakeRequest, fakeUpstream, jsonAnswer, rawAnswer } from '../../support/fake-upstream.ts';
import { eventually, type TestGateway, testGateway } from '../../support/test-gateway.ts';

const COMPACTED =
  '{ "id":"resp_c1", "object":"response.compaction",\n "output":[{"id":"cmp_1","type":"compaction","encrypted_content":"gAAAA=="}],"x":1.50,"usage":{"input_tokens":120,"input_tokens_details":{"cached_tokens":20},"output_tokens":40,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":160}}';
const RESPONSE = {
  id: 'resp_up',
  object: 'response',
  status: 'completed',
  output: [
    { id: 'rs_1', type: 'reasoning', summary: [], encrypted_content: 'gAAAA-secret' },
    {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: 'hello', annotations: [] }],
    },
  ],
  usage: { input_tokens: 5, output_tokens: 2, total_tokens: 7 },
};

function answer(request: FakeRequest): void {
  if (request.path.endsWith('/compact')) void rawAnswer(200, { 'content-type': 'application/json' }, COMPACTED)(request);
  else void jsonAnswer(200, RESPONSE)(request);
}

const upstream = await fakeUpstream(answer);
test.after(() => upstream.close());
test.beforeEach(() => {
  upstream.requests.length = 0;
  upstream.answer = answer;
});

function configOf(channel: object = {}): object {
  return {
    channels: [{ id: 'one', type: 'responses', base_url: upstream.url, api_key: 'k', models: { m: 'up-m' }, ...channel }],
    models: { m: { price: { input: '1', output: '2' } } },
  };
}

async function refused(gateway: TestGateway, body: unknown): Promise<{ status: number; code: string; param: string | null }> {
  const response = await gateway.post('/v1/responses/compact', body);
  const { error }: { error: { code: string; param: string | null } } = JSON.parse(await response.text());
  return { status: response.status, code: error.code, param: error.param };
}

test('beneath a path of the Channel’s own, whose query stays behind it', async () => {
  for (const [path, asked] of [
    ['/openai/responses', '/openai/responses/compact'],
    ['/openai/{model}/responses?api-version=2026-01&x=?', '/openai/up-m/responses/compact?api-version=2026-01&x=?'],
  ] as const) {
    await using gateway = await testGateway(configOf({ options: { path } }));
    assert.equal((await gateway.post('/v1/responses/compact', { model: 'm', input: 'hi' })).status, 200);
    assert.equal(upstream.requests.at(-1)?.path, asked);
  }
});

test('the body goes on with only the model changed, and the answer comes back byte for byte', async () => {
  await using gateway = await testGateway(configOf({ options: { parameters: { temperature: 0.5 } } }));
  const body = '{ "model":"m", "input":[{"role":"user","content":"hi","n":1.0}] ,"instructions":"be brief","x_unknown":[1.50]}';
  for (const path of [
    '/v1/responses/compact',
    '/responses/compact',
    '/api/v1/responses/compact',
    '/v1/codex/responses/compact',
  ]) {
    const response = await gateway.post(path, body);
    assert.equal(response.status, 200);
    assert.equal(await response.text(), COMPACTED);
  }
  assert.equal(upstream.requests[0]?.path, '/v1/responses/compact');
  assert.equal(upstream.requests[0]?.body, body.replace('"m"', '"up-m"'));
  await eventually(() => gateway.store.settled.length === 4);
  const [entry] = gateway.store.settled;
  assert.equal(entry?.endpoint, 'responses_compact');
  assert.deepEqual([entry?.usage?.input, entry?.usage?.cachedInput, entry?.usage?.output], [100, 20, 40]);
  assert.equal(entry?.stream, false);
});

test('a mapped sibling is on the wire, at the price of the conversation’s model', async () => {
  await using gateway = await testGateway(configOf({ models: { m: 'up-m', 'm-openai-compact': 'up-small' } }));
  await gateway.post('/v1/responses/compact', { model: 'm', input: 'hi' });
  assert.equal(upstream.requests[0]?.body, '{"model":"up-small","input":"hi"}');
  await eventually(() => gateway.store.settled.length === 1);
  const [entry] = gateway.store.settled;
  assert.deepEqual([entry?.model, entry?.upstreamModel], ['m', 'up-small']);
  assert.equal(entry?.charge?.total, 100n * 1000n + 40n * 2000n);
});

test('history is expanded and envelopes are opened', async () => {
  await using gateway = await testGateway(configOf());
  const first: { id: string; output: { encrypted_content?: string }[] } = JSON.parse(
    await (await gateway.post('/v1/responses', { model: 'm', input: 'hi' })).text(),
  );
  assert.match(first.output[0]?.encrypted_content ?? '', /^mz2\./);
  await gateway.post('/v1/responses/compact', { model: 'm', previous_response_id: first.id });
  const sent = upstream.requests.at(-1)?.body ?? '';
  assert.ok(
    sent.includes('"gAAAA-secret"') && sent.includes('hello') && !sent.includes('mz2.') && !sent.includes('previous_response_id'),
    sent,
  );
  await gateway.post('/v1/responses/compact', { model: 'm', input: [{ role: 'user', content: 'hi' }, ...first.output] });
  assert.ok(upstream.requests.at(-1)?.body.includes('"gAAAA-secret"'));
});

test('items that are only named are said, but to the Channel that stored them', async () => {
  const second = { id: 'two', type: 'responses', base_url: upstream.url, api_key: 'k', models: ['other'] };
  const { channels, models } = configOf() as { channels: object[]; models: object };
  const price = { price: { input: '1', output: '2' } };
  await using gateway = await testGateway({ channels: [...channels, second], models: { ...models, other: price } });
  await gateway.post('/v1/responses', { model: 'm', input: 'hi' });
  const input = [
    { role: 'user', content: 'hi' },
    { type: 'item_reference', id: 'msg_1' },
  ];
  const sent = async (model: string) => {
    await gateway.post('/v1/responses/compact', { model, input });
    return JSON.parse(upstream.requests.at(-1)?.body ?? '').input;
  };
  assert.deepEqual(await sent('m'), input);
  assert.deepEqual(await sent('other'), [input[0], RESPONSE.output[1]]);
});

test('what is no compaction is refused before or after', async () => {
  await using gateway = await testGateway(configOf());
  const bad: [unknown, number, string, string | null][] = [
    [{ model: 'm', input: 'x', stream: true }, 400, 'invalid_request', 'stream'],
    [{ model: 'm' }, 400, 'invalid_request', 'input'],
    [{ input: 'x' }, 400, 'invalid_request', 'model'],
    [{ model: 'm', previous_response_id: 'resp_x' }, 400, 'previous_response_not_found', 'previous_response_id'],
    [{ model: 'none', input: 'x' }, 404, 'model_not_found', 'model'],
  ];
  for (const [body, status, code, param] of bad) assert.deepEqual(await refused(gateway, body), { status, code, param });
  assert.equal(upstream.requests.length, 0);
  for (const body of ['{}', '[]', 'nothing', '{"output":null}', '{"output":[],"error":{"message":"no"}}']) {
    upstream.answer = rawAnswer(200, { 'content-type': 'application/json' }, body);
    assert.equal((await refused(gateway, { model: 'm', input: 'x' })).status, 502, body);
    gateway.running.gateway.dispatcher.health.keepOnly(new Set());
  }
  upstream.answer = jsonAnswer(400, { error: { message: 'too short', code: 'x', param: 'input' } });
  assert.equal((await refused(gateway, { model: 'm', input: 'x' })).status, 400);
});

test('an upstream without the endpoint is closed for compaction, and for nothing else', async () => {
  await using gateway = await testGateway(configOf());
  upstream.answer = (request) => {
    if (request.path.endsWith('/compact'))
      void jsonAnswer(404, { error: { message: 'Invalid URL', type: 'not_found' } })(request);
    else answer(request);
  };
  const body = { model: 'm', input: 'hi' };
  assert.deepEqual(await refused(gateway, body), { status: 502, code: 'upstream_error', param: null });
  assert.equal((await gateway.post('/v1/responses', body)).status, 200, 'its models are as good as before');
  assert.deepEqual(await refused(gateway, body), { status: 503, code: 'no_healthy_upstream', param: null });
  assert.equal(upstream.requests.length, 2, 'and it is not asked again at once');
});

test('only a responses Channel can compact', async () => {
  await using gateway = await testGateway(configOf({ type: 'messages' }));
  assert.deepEqual(await refused(gateway, { model: 'm', input: 'x' }), { status: 503, code: 'no_healthy_upstream', param: null });
});

test('the next Channel is tried, and a success without usage is billed by estimate', async () => {
  await using gateway = await testGateway({
    channels: ['one', 'two'].map((id, priority) => ({
      id,
      type: 'responses',
      base_url: upstream.url,
      api_key: id,
      models: ['m'],
      priority,
    })),
    models: { m: { price: { input: '1', output: '2' } } },
  });
  upstream.answer = (request) => {
    if (request.headers.get('authorization') === 'Bearer one') void jsonAnswer(500, {})(request);
    else
      void jsonAnswer(200, { object: 'response.compaction', output: [{ type: 'compaction', encrypted_content: 'x' }] })(request);
  };
  assert.equal((await gateway.post('/v1/responses/compact', { model: 'm', input: 'some words' })).status, 200);
  await eventually(() => gateway.store.settled.length === 1);
  const [entry] = gateway.store.settled;
  assert.deepEqual(
    entry?.attempts.map(({ channelId }) => channelId),
    ['one', 'two'],
  );
  assert.deepEqual(entry?.charge?.flags, ['estimated']);
});

test('U3: what a report leaves out is counted and flagged, what it says stays', async () => {
  await using gateway = await testGateway(configOf());
  const output = [{ type: 'compaction', encrypted_content: 'x'.repeat(40) }];
  upstream.answer = jsonAnswer(200, { object: 'response.compaction', output, usage: { input_tokens: 120 } });
  assert.equal((await gateway.post('/v1/responses/compact', { model: 'm', input: 'some words' })).status, 200);
  await eventually(() => gateway.store.settled.length === 1);
  const [entry] = gateway.store.settled;
  assert.equal(entry?.usage?.input, 120);
  assert.ok((entry?.usage?.output ?? 0) > 0);
  assert.deepEqual(entry?.charge?.flags, ['estimated']);
});

test('what the user wrote is no output of a compaction, and a tier that is named without usage prices it', async () => {
  await using gateway = await testGateway(configOf());
  const message = { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'some words '.repeat(1_000) }] };
  const output = [message, { type: 'compaction', encrypted_content: 'x' }];
  upstream.answer = jsonAnswer(200, { object: 'response.compaction', output, service_tier: 'priority' });
  assert.equal((await gateway.post('/v1/responses/compact', { model: 'm', input: 'some words' })).status, 200);
  await eventually(() => gateway.store.settled.length === 1);
  const [entry] = gateway.store.settled;
  assert.ok((entry?.usage?.output ?? 0) < 50, `${entry?.usage?.output} tokens`);
  assert.equal(entry?.usage?.serviceTier, 'priority');
});

test('a compaction that failed costs what it reported, one that reported nothing is free', async () => {
  await using gateway = await testGateway(configOf());
  const failed = { object: 'response.compaction', status: 'failed', error: { code: 'server_error', message: 'no' }, output: [] };
  upstream.answer = jsonAnswer(200, { ...failed, usage: { input_tokens: 120, output_tokens: 4 } });
  assert.equal((await gateway.post('/v1/responses/compact', { model: 'm', input: 'x' })).status, 502);
  upstream.answer = jsonAnswer(200, failed);
  assert.equal((await gateway.post('/v1/responses/compact', { model: 'm', input: 'x' })).status, 502);
  await eventually(() => gateway.store.settled.length === 2);
  const [told, silent] = gateway.store.settled;
  assert.deepEqual([told?.status, told?.usage], ['error', { input: 120, output: 4 }]);
  assert.equal(told?.charge?.total, 128_000n);
  assert.deepEqual([silent?.status, silent?.usage, silent?.charge], ['error', undefined, undefined]);
});

test('a path that the operator gave is that of responses: the endpoint is beneath it', async () => {
  await using gateway = await testGateway(configOf({ options: { path: '/deployments/{model}/responses' } }));
  assert.equal((await gateway.post('/v1/responses/compact', { model: 'm', input: 'hi' })).status, 200);
  assert.equal(upstream.requests[0]?.path, '/deployments/up-m/responses/compact');
});

test('a summary keeps each message of the user, however the input spells it', async () => {
  await using gateway = await testGateway(configOf({ options: { compaction: 'summary' } }));
  const image = { type: 'input_image', image_url: 'https://example.com/a.png' };
  const input = ['one', { type: null, role: 'user', content: 'two', id: null }, { role: 'assistant', content: 'no' }, image, ''];
  const answered = await gateway.post('/v1/responses/compact', { model: 'm', input });
  const { output }: { output: { type: string; role?: string; id: string; content?: unknown }[] } = JSON.parse(
    await answered.text(),
  );
  const text = (said: string) => [{ type: 'input_text', text: said }];
  assert.deepEqual(
    output.map(({ type, role, content }) => [type, role, content]),
    [
      ['message', 'user', text('one')],
      ['message', 'user', text('two')],
      ['message', 'user', [image]],
      ['message', 'user', text('')],
      ['compaction', undefined, undefined],
    ],
  );
  assert.ok(output.every(({ id }) => /^(msg|cmp)_/.test(id)));
});
