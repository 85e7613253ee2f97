/** The output cap that the gateway says where the client says none, at models that write less. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeUpstream, jsonAnswer, wholeMessage } from '../../support/fake-upstream.ts';
import { channel, MODELS, testGateway } from '../../support/test-gateway.ts';

const USER = [{ role: 'user', content: 'hi' }];
const CLIENTS = {
  '/v1/chat/completions': { model: 'm', messages: USER },
  '/v1/responses': { model: 'm', input: 'hi' },
  '/v1/completions': { model: 'm', prompt: 'hi' },
  '/v1/messages': { model: 'm', messages: USER },
};
const WORDS: Readonly<Record<string, (asked: number, most: number) => string>> = {
  Anthropic: (asked, most) => `max_tokens: ${asked} > ${most}, which is the maximum allowed number of output tokens for up`,
  Bedrock: (_asked, most) =>
    `The maximum tokens you requested exceeds the model limit of ${most}. Try again with a maximum tokens value that is lower.`,
};

/** A vendor whose model writes `most` tokens, and the caps that it was asked for. */
async function vendor(most: number, words = WORDS['Anthropic']) {
  const asked: number[] = [];
  const upstream = await fakeUpstream((request) => {
    const cap: number = JSON.parse(request.body).max_tokens;
    asked.push(cap);
    const error = { type: 'invalid_request_error', message: words?.(cap, most) };
    (cap > most ? jsonAnswer(400, { type: 'error', error }) : jsonAnswer(200, wholeMessage('fine')))(request);
  });
  return { asked, url: upstream.url, [Symbol.asyncDispose]: () => upstream.close() };
}

for (const [path, body] of Object.entries(CLIENTS)) {
  test(`${path} without a cap: a model that writes less than the gateway's is asked for what it can, later from the start`, async () => {
    await using upstream = await vendor(64_000);
    await using gateway = await testGateway({ channels: [channel(upstream.url)], models: MODELS });
    for (let turn = 0; turn < 2; turn += 1) assert.equal((await gateway.post(path, body)).status, 200);
    assert.deepEqual(upstream.asked, [128_000, 64_000, 64_000]);
  });
}

for (const [name, words] of Object.entries(WORDS)) {
  test(`the largest cap that the model takes is asked for, in the words of ${name}`, async () => {
    for (const [most, cap] of [
      [128_000, undefined],
      [100_000, 64_000],
      [32_000, 32_000],
      [8192, 8192],
      [4096, 4096],
    ] as const) {
      await using upstream = await vendor(most, words);
      await using gateway = await testGateway({ channels: [channel(upstream.url)], models: MODELS });
      assert.equal((await gateway.post('/v1/chat/completions', CLIENTS['/v1/chat/completions'])).status, 200);
      assert.deepEqual(upstream.asked, cap === undefined ? [128_000] : [128_000, cap]);
    }
  });
}

test('a cap of the client’s own is its mistake: told at once, and nothing is learnt of it', async () => {
  await using upstream = await vendor(64_000);
  await using gateway = await testGateway({ channels: [channel(upstream.url)], models: MODELS });
  const body = { ...CLIENTS['/v1/chat/completions'], max_completion_tokens: 100_000 };
  const refused = await gateway.post('/v1/chat/completions', body);
  assert.equal(refused.status, 400);
  assert.match(await refused.text(), /max_completion_tokens: 100000 > 64000/);
  assert.deepEqual(upstream.asked, [100_000]);
});

test('a model that writes less than any known one is told, after one attempt', async () => {
  await using upstream = await vendor(1000);
  await using gateway = await testGateway({ channels: [channel(upstream.url)], models: MODELS });
  assert.equal((await gateway.post('/v1/messages', CLIENTS['/v1/messages'])).status, 400);
  assert.deepEqual(upstream.asked, [128_000]);
});

test('a cap that does not fit behind a long prompt is lowered for this request alone', async () => {
  const asked: number[] = [];
  await using upstream = await fakeUpstream((request) => {
    const { max_tokens: cap, messages } = JSON.parse(request.body);
    asked.push(cap);
    const input = JSON.stringify(messages).includes('long') ? 190_000 : 10;
    const message = `input length and \`max_tokens\` exceed context limit: ${input} + ${cap} > 200000, decrease input length`;
    const refusal = jsonAnswer(400, { type: 'error', error: { type: 'invalid_request_error', message } });
    (input + cap > 200_000 ? refusal : jsonAnswer(200, wholeMessage('fine')))(request);
  });
  await using gateway = await testGateway({ channels: [channel(upstream.url)], models: MODELS });
  for (const content of ['long', 'short']) {
    const body = { model: 'm', messages: [{ role: 'user', content }] };
    assert.equal((await gateway.post('/v1/chat/completions', body)).status, 200);
  }
  assert.deepEqual(asked, [128_000, 8192, 128_000]);
});
