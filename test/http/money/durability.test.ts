/**
 * `ledger.durability`: with `strict` the end of an answer waits until its charge is on disk; by default no byte waits for
 * anything.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Frame } from '../../../src/codecs/codec.ts';
import { startSimulator } from '../../../src/simulator/simulator.ts';
import { StoreError } from '../../../src/store/store-error.ts';
import { sseDecode } from '../../../src/streams/sse-decode.ts';
import { chat, messages as messagesDialect, responses, UPSTREAMS } from '../../support/dialects.ts';
import { eventually, type TestGateway, testGateway } from '../../support/test-gateway.ts';
import { connect } from '../websocket/socket-client.ts';

const messages = [{ role: 'user', content: 'hi' }];
/** Clients that stream, with the order of their dialect. */
const STREAMS = [
  { side: chat, path: '/v1/chat/completions', body: { messages, stream_options: { include_usage: true } } },
  { side: responses, path: '/v1/responses', body: { input: 'hi' } },
  { side: messagesDialect, path: '/v1/messages', body: { max_tokens: 10, messages } },
];
const ASKS: Readonly<Record<string, readonly [path: string, body: object]>> = {
  'a chat stream': ['/v1/chat/completions', { model: 'm', stream: true, messages }],
  'a chat answer': ['/v1/chat/completions', { model: 'm', messages }],
  'a responses stream': ['/v1/responses', { model: 'm', stream: true, input: 'hi' }],
  'a messages stream': ['/v1/messages', { model: 'm', stream: true, max_tokens: 10, messages }],
  'a completions stream': ['/v1/completions', { model: 'm', stream: true, prompt: 'hi' }],
  'an embedding': ['/v1/embeddings', { model: 'e', input: 'hi' }],
  'a picture': ['/v1/images/generations', { model: 'i', prompt: 'a hill' }],
  'a stream of a picture': ['/v1/images/generations', { model: 'i', prompt: 'a hill', stream: true }],
};

const UPSTREAM_TYPES = UPSTREAMS.map(({ upstream }) => upstream.channelType);

/** How a stream ends well in any dialect. */
const SUCCESS = /"finish_reason":"|response\.completed|message_stop|image_generation\.completed/;

async function gatewayWith(t: TestContext, durability: string, more: object = {}) {
  const simulator = await startSimulator({ pace: { ms: 0 } });
  t.after(() => simulator.close());
  const channel = (id: string, type: string, model: string) => ({
    id,
    type,
    base_url: simulator.url,
    api_key: 'k',
    models: [model],
  });
  const gateway = await testGateway(
    {
      ...more,
      ledger: { durability },
      channels: [
        channel('t', 'messages', 'm'),
        channel('e', 'chat_completion', 'e'),
        channel('i', 'openai_image', 'i'),
        ...UPSTREAM_TYPES.map((type) => channel(type, type, type)),
      ],
      models: {
        ...Object.fromEntries(UPSTREAM_TYPES.map((type) => [type, { price: { input: '1', output: '2' } }])),
        m: { price: { input: '1', output: '2' } },
        e: { kind: 'embedding', price: { input: '1' } },
        i: { kind: 'image', price: { input: '1', output: '2' } },
      },
    },
    { level: 'error' },
  );
  return Object.assign(gateway, { simulator });
}

/** From now on no settlement reaches the disk. */
function refuseCharges(t: TestContext, { store: { settlements } }: TestGateway): void {
  const settle = settlements.settle.bind(settlements);
  t.mock.method(settlements, 'settle', (settlement: Parameters<typeof settle>[0]) => {
    settle(settlement);
    return Promise.reject(new StoreError('disk_full', 'nothing was written'));
  });
}

for (const [what, [path, body]] of Object.entries(ASKS)) {
  test(`strict: ${what} is whole only when its charge is on disk`, async (t) => {
    await using gateway = await gatewayWith(t, 'strict');
    const disk = Promise.withResolvers<void>();
    gateway.store.disk = disk.promise;
    let whole = false;
    const answer = gateway.post(path, body).then(async (response) => {
      const text = await response.text();
      whole = true;
      return { status: response.status, text };
    });
    await eventually(() => gateway.store.settled.length === 1, 'it is settled');
    await new Promise((resolve) => setTimeout(resolve, 60));
    assert.equal(whole, false, 'the client has it all before the disk has its charge');
    disk.resolve();
    const { status, text } = await answer;
    assert.equal(status, 200, text);
    assert.doesNotMatch(text, /"error":\{/);
    const [row] = gateway.store.settled;
    assert.equal(row?.status, 'success');
    assert.equal(typeof row?.firstByteMs, 'number');
    assert.equal(gateway.store.settled.length, 1);
  });

  test(`strict: nothing of ${what} is asked upstream before its opening is on disk`, async (t) => {
    await using gateway = await gatewayWith(t, 'strict');
    const disk = Promise.withResolvers<void>();
    gateway.store.openDisk = disk.promise;
    const answer = gateway.post(path, body).then((response) => response.text());
    await eventually(() => gateway.store.opened.length === 1, 'it is opened');
    await new Promise((resolve) => setTimeout(resolve, 60));
    assert.deepEqual(gateway.simulator.requests, []);
    disk.resolve();
    assert.notEqual(await answer, '');
    assert.equal(gateway.simulator.requests.length, 1);
  });

  test(`strict: ${what} whose charge cannot be written is no success`, async (t) => {
    await using gateway = await gatewayWith(t, 'strict');
    refuseCharges(t, gateway);
    const response = await gateway.post(path, body);
    const text = await response.text();
    assert.doesNotMatch(text, SUCCESS);
    assert.match(text, /store_unavailable/);
    assert.equal(response.status, 'stream' in body ? 200 : 503);
    assert.equal(gateway.store.held.size, 0);
    assert.equal(gateway.store.settled.length, 1);
  });

  test(`by default ${what} does not wait for the disk`, async (t) => {
    await using gateway = await gatewayWith(t, 'batched');
    const disk = Promise.withResolvers<void>();
    gateway.store.disk = disk.promise;
    const response = await gateway.post(path, body);
    assert.notEqual(await response.text(), '');
    disk.resolve();
  });
}

test('strict: a request whose opening the disk refused is refused, and reserves nothing any more', async (t) => {
  await using gateway = await gatewayWith(t, 'strict');
  for (const [what, [path, body]] of Object.entries(ASKS)) {
    gateway.store.openDisk = Promise.reject(new StoreError('disk_full', 'nothing was written'));
    // Nobody may be waiting for it yet: who opens an exchange is.
    gateway.store.openDisk.catch(() => undefined);
    const response = await gateway.post(path, body);
    // The head of that one goes out at once.
    assert.equal(response.status, what === 'a stream of a picture' ? 200 : 503, what);
    assert.match(await response.text(), /store_unavailable/, what);
    assert.deepEqual([gateway.store.held.size, gateway.simulator.requests.length], [0, 0], what);
  }
});

function framesOf(text: string): Frame[] {
  const frames: Frame[] = [];
  const sse = sseDecode({ maxEventBytes: 1024 * 1024 });
  sse.push(Buffer.from(text), frames);
  sse.end(frames);
  return frames;
}

for (const { side, path, body } of STREAMS) {
  const { dialect } = side.client;
  test(`strict: a ${dialect} stream whose charge cannot be written ends in words of failure, whoever answered`, async (t) => {
    await using gateway = await gatewayWith(t, 'strict');
    const whole = { reply: { pieces: [{ type: 'text' as const, text: 'hello' }], usage: { input: 10, output: 5 } } };
    gateway.simulator.enqueue({ ...whole, times: 2 * UPSTREAM_TYPES.length });
    const ask = async (model: string) => framesOf(await (await gateway.post(path, { ...body, model, stream: true })).text());
    const good = new Map<string, Frame[]>();
    for (const model of UPSTREAM_TYPES) good.set(model, await ask(model));
    refuseCharges(t, gateway);
    for (const model of UPSTREAM_TYPES) {
      const frames = await ask(model);
      assert.equal(side.check(good.get(model) ?? []), 'success');
      assert.equal(side.check(frames), 'failure');
      assert.match(frames.at(-1)?.data ?? '', /"code":"store_unavailable"/);
      const said = frames.map(({ data }) => data).join('\n');
      assert.match(said, /hello/, 'what was said before stays said');
      if (dialect === 'responses') {
        const { response } = JSON.parse(frames.at(-1)?.data ?? '');
        assert.deepEqual([response.status, response.usage.output_tokens], ['failed', 5]);
        assert.equal(response.output[0].content[0].text, 'hello');
      }
    }
    assert.equal(gateway.store.held.size, 0);
  });
}

test('strict: a turn of a WebSocket whose charge cannot be written ends in words of failure, and the next is answered', async (t) => {
  await using gateway = await gatewayWith(t, 'strict');
  for (const version of ['2026-02-04', '2026-02-06']) {
    const client = await connect(gateway, { headers: { 'openai-beta': `responses_websockets=${version}` } });
    t.after(() => client.ws.terminate());
    refuseCharges(t, gateway);
    for (let turn = 0; turn < 2; turn++) {
      const said = await client.turn({ type: 'response.create', model: 'responses', input: 'hi' });
      assert.equal(said.at(-1)?.type, 'response.failed');
      assert.match(JSON.stringify(said.at(-1)), /store_unavailable/);
    }
    t.mock.restoreAll();
    const good = await client.turn({ type: 'response.create', model: 'responses', input: 'hi' });
    assert.equal(good.at(-1)?.type, version === '2026-02-04' ? 'response.done' : 'response.completed');
  }
});

test('strict: what the client read as a failure is not remembered as an answer', async (t) => {
  await using gateway = await gatewayWith(t, 'strict');
  const ask = (more: object) => gateway.post('/v1/responses', { model: 'responses', input: 'hi', stream: true, ...more });
  const client = await connect(gateway, { headers: { 'openai-beta': 'responses_websockets=2026-02-04' } });
  t.after(() => client.ws.terminate());
  refuseCharges(t, gateway);
  const { response } = JSON.parse(framesOf(await (await ask({})).text()).at(-1)?.data ?? '');
  const failed = await client.turn({ type: 'response.create', model: 'responses', input: 'hi' });
  assert.equal(failed.at(-1)?.type, 'response.failed');
  t.mock.restoreAll();
  const continued = await ask({ previous_response_id: response.id });
  assert.match(await continued.text(), /previous_response_not_found/);
  const appended = await client.turn({ type: 'response.append', input: [] });
  assert.match(JSON.stringify(appended), /previous_response_not_found/);
});

test('strict: an answer that failed says why, also where its row cannot be written', async (t) => {
  await using gateway = await gatewayWith(t, 'strict');
  refuseCharges(t, gateway);
  for (const { side, path, body } of STREAMS) {
    for (const model of UPSTREAM_TYPES) {
      const reply = { pieces: [{ type: 'text' as const, text: 'one two three four five six seven eight nine ten' }] };
      gateway.simulator.enqueue({ reply, faults: [{ type: 'cut', at: 8 }] });
      const frames = framesOf(await (await gateway.post(path, { ...body, model, stream: true })).text());
      assert.equal(side.check(frames, side.upstream.channelType === model), 'failure');
      assert.match(frames.at(-1)?.data ?? '', /upstream_error/, model);
      gateway.simulator.enqueue({ times: 2, faults: [{ type: 'status', status: 400 }] });
      for (const stream of [true, false]) {
        const refused = await gateway.post(path, { ...body, model, stream });
        assert.equal(refused.status, 400, await refused.text());
      }
    }
  }
});

test('strict: a stream whose head is out before every upstream failed says so, also where its row cannot be written', async (t) => {
  await using gateway = await gatewayWith(t, 'strict', { commit_after_ms: 1 });
  refuseCharges(t, gateway);
  for (const { side, path, body } of STREAMS) {
    gateway.simulator.enqueue({
      faults: [
        { type: 'slow-headers', ms: 60 },
        { type: 'status', status: 400 },
      ],
    });
    const response = await gateway.post(path, { ...body, model: 'messages', stream: true });
    assert.equal(response.status, 200);
    const frames = framesOf(await response.text());
    assert.equal(side.check(frames), 'failure');
    assert.match(frames.at(-1)?.data ?? '', /upstream_error/);
  }
});
