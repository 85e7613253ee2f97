import assert from 'node:assert/strict';
import { test } from 'node:test';
import { messagesClient } from '../../../src/codecs/messages/index.ts';
import { estimateInput } from '../../../src/http/money/estimate.ts';
import { startSimulator } from '../../../src/simulator/simulator.ts';
import { fakeUpstream, jsonAnswer, openStream, sayMessages, startMessage, wholeMessage } from '../../support/fake-upstream.ts';
import { ask, channel, eventually, MODELS, testGateway } from '../../support/test-gateway.ts';

test('a stream is relayed, settled once with its usage, and its connection is kept', async () => {
  await using upstream = await fakeUpstream(sayMessages('hello'));
  await using gateway = await testGateway({ channels: [channel(upstream.url)], models: MODELS });
  for (let round = 0; round < 3; round++) {
    const response = await gateway.post('/v1/messages', ask({ stream: true }));
    assert.equal(response.status, 200);
    assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8');
    const text = await response.text();
    assert.match(text, /hello/);
    assert.match(text, /"model":"m"/);
    assert.match(text, /event: message_stop\n/);
    await eventually(() => gateway.store.settled.length === round + 1, 'settlement');
  }
  assert.equal(upstream.sockets.size, 1, 'one connection serves all');
  const [entry] = gateway.store.settled;
  assert.equal(entry?.status, 'success');
  assert.equal(entry?.charge?.total, 7n * 1000n + 5n * 2000n);
  assert.equal(gateway.store.held.size, 0);
  const sent = upstream.requests[0];
  assert.equal(sent?.headers.get('x-api-key'), 'sk-upstream');
  assert.equal(sent?.headers.get('authorization'), undefined);
  assert.equal(sent?.path, '/v1/messages');
});

test('message_start of another protocol’s answer has the estimate of the admission, message_delta what was counted', async (t) => {
  const simulator = await startSimulator({ pace: { cut: 'packet' } });
  t.after(() => simulator.close());
  await using gateway = await testGateway({
    channels: (['chat_completion', 'responses', 'gemini'] as const).map((type) =>
      channel(simulator.url, { id: type, type, models: [type] }),
    ),
    models: { chat_completion: MODELS.m, responses: MODELS.m, gemini: MODELS.m },
  });
  const content = 'word '.repeat(800);
  for (const model of ['chat_completion', 'responses', 'gemini']) {
    const usage = { input: 777, output: 3 };
    simulator.enqueue({ reply: { pieces: [{ type: 'text', text: 'one two three' }], usage } });
    const body = { model, max_tokens: 9, messages: [{ role: 'user', content }] };
    const { messages, max_tokens } = body;
    const request = messagesClient.decodeRequest(
      JSON.stringify(body),
      { model, max_tokens, messages },
      { open: () => undefined },
    );
    const text = await (await gateway.post('/v1/messages', { ...body, stream: true })).text();
    const events = [...text.matchAll(/^data: (\{.*)$/gm)].map(([, json = '']) => JSON.parse(json));
    const [start, delta] = ['message_start', 'message_delta'].map((type) => events.find((event) => event.type === type));
    const counted = [start.message.usage.input_tokens, delta.usage.input_tokens];
    // Gemini counts the prompt with its first words.
    assert.deepEqual(counted, [model === 'gemini' ? 777 : estimateInput(request), 777], model);
    assert.ok(estimateInput(request) >= 1000);
  }
});

test('a whole answer', async () => {
  await using upstream = await fakeUpstream(jsonAnswer(200, wholeMessage('hello')));
  await using gateway = await testGateway({ channels: [channel(upstream.url)], models: MODELS });
  const response = await gateway.post('/messages', ask());
  assert.equal(response.status, 200);
  const text = await response.text();
  assert.match(text, /"text":"hello"/);
  assert.match(text, /"model":"m"/);
  assert.equal(gateway.store.settled[0]?.status, 'success');
  assert.ok(response.headers.get('request-id'));
});

test('a client that leaves cancels the upstream and is billed an estimate', async () => {
  await using upstream = await fakeUpstream(({ socket }) => {
    const stream = openStream(socket);
    startMessage(stream);
    stream.event('content_block_delta', {
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'text_delta', text: 'one two three' },
    });
  });
  await using gateway = await testGateway({ channels: [channel(upstream.url)], models: MODELS });
  const abort = new AbortController();
  const response = await gateway.post('/v1/messages', ask({ stream: true }), { signal: abort.signal });
  const reader = response.body?.getReader();
  await reader?.read();
  abort.abort();
  await eventually(() => upstream.sockets.size === 0, 'the upstream is let go');
  await eventually(() => gateway.store.settled.length === 1, 'settlement');
  const [entry] = gateway.store.settled;
  assert.equal(entry?.clientGone, true);
  assert.equal(entry?.usage?.input, 7);
  assert.equal(entry?.usage?.output, 3);
  assert.ok(entry?.charge?.flags.includes('estimated'));
  assert.equal(gateway.store.held.size, 0);
});
