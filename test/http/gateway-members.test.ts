/** What a client may not say to an upstream of its own protocol: which upstream, which credential, which other model. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeUpstream, jsonAnswer } from '../support/fake-upstream.ts';
import { type TestGateway, testGateway } from '../support/test-gateway.ts';

const ENDPOINTS = [
  { path: '/v1/chat/completions', model: 'chat', rest: { messages: [{ role: 'user', content: 'hi' }] } },
  { path: '/v1/responses', model: 'responses', rest: { input: 'hi' } },
  { path: '/v1/responses/compact', model: 'responses', rest: { input: 'hi' } },
  { path: '/v1/messages', model: 'messages', rest: { max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] } },
  { path: '/v1/embeddings', model: 'vectors', rest: { input: 'hi' } },
  { path: '/v1/images/generations', model: 'pictures', rest: { prompt: 'hi' } },
] as const;

const TYPES = {
  chat: 'chat_completion',
  responses: 'responses',
  messages: 'messages',
  vectors: 'chat_completion',
  pictures: 'openai_image',
} as const;
const KINDS: Readonly<Record<string, object>> = { vectors: { kind: 'embedding' }, pictures: { kind: 'image' } };

const gatewayTo = (url: string): Promise<TestGateway> =>
  testGateway({
    channels: Object.entries(TYPES).map(([model, type]) => ({
      id: model,
      type,
      base_url: url,
      api_key: 'k',
      models: { [model]: `up-${model}` },
    })),
    models: Object.fromEntries(
      Object.keys(TYPES).map((model) => [model, { ...KINDS[model], price: { input: '1', output: '2' } }]),
    ),
  });

const EVIL = 'http://evil.test/another-model';

for (const { path, model, rest } of ENDPOINTS) {
  test(`${path}: members that choose a model, an upstream or a credential stay, in whatever letters and however often`, async () => {
    await using upstream = await fakeUpstream(jsonAnswer(400, { error: { message: 'no' } }));
    await using gateway = await gatewayTo(upstream.url);
    const names = [
      'Model',
      'MODEL',
      'mo\u{64}eL',
      'models',
      'Models',
      'Fallbacks',
      'api_Base',
      'BASE_URL',
      'base_url',
      'uſer_config',
      'Max_Tokens',
      'MAX_COMPLETION_TOKENS',
      'max_output_Tokens',
      ...['N', 'Stream', 'STREAM_options', 'Messages', 'Input', 'INPUT', 'Prompt', 'System', 'ſystem', 'Instructions', 'Tools'],
      ...['Functions', 'Web_Search_Options', 'Service_Tier', 'Speed', 'Inference_Geo'],
    ];
    const chosen = Object.fromEntries(names.map((name) => [name, EVIL]));
    await gateway.post(path, { ...chosen, model, ...rest, future: 1, ...chosen });
    assert.deepEqual(JSON.parse(upstream.requests[0]?.body ?? ''), { model: `up-${model}`, ...rest, future: 1 });
  });

  test(`${path}: of members of one name only the last, which is the one that was looked at, goes on`, async () => {
    await using upstream = await fakeUpstream(jsonAnswer(400, { error: { message: 'no' } }));
    await using gateway = await gatewayTo(upstream.url);
    const first = ['model', ...Object.keys(rest)].map((name) => `"${name}":"${EVIL}"`);
    const last = JSON.stringify({ model, ...rest }).slice(1, -1);
    await gateway.post(path, ` {${first.join()}, "m\\u006fdel" : "x","future":8 , ${last},"future":1.0}`);
    const sent = last.replace(`"${model}"`, `"up-${model}"`);
    assert.equal(upstream.requests[0]?.body, `{${sent},"future":1.0}`);
  });
}

test('a cap of the output under several names is the one that the request is weighed by, whichever the server reads', async () => {
  await using upstream = await fakeUpstream(jsonAnswer(400, { error: { message: 'no' } }));
  await using gateway = await gatewayTo(upstream.url);
  const messages = [{ role: 'user', content: 'hi' }];
  const sent = async (caps: object): Promise<unknown> => {
    await gateway.post('/v1/chat/completions', { model: 'chat', messages, ...caps });
    const { model: _model, messages: _messages, ...rest } = JSON.parse(upstream.requests.at(-1)?.body ?? '');
    return rest;
  };
  const large = { max_tokens: 100_000, n_predict: -1, max_new_tokens: 100_000 };
  assert.deepEqual(await sent({ max_completion_tokens: 5, ...large }), {
    ...{ max_completion_tokens: 5, max_tokens: 5, n_predict: 5, max_new_tokens: 5 },
  });
  assert.deepEqual(await sent({ max_tokens: 5, n_predict: 6 }), { max_tokens: 5, n_predict: 5 });
  const small = { max_completion_tokens: 5, max_tokens: 4, n_predict: 3 };
  assert.deepEqual(await sent(small), small, 'a smaller one is the client’s own choice');
  assert.deepEqual(await sent({ n_predict: 7 }), { n_predict: 7 });
});
