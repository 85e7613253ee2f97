/**
 * A model of another kind than the endpoint's is a mistake of the request, at every endpoint, in every way; none is tried again.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeUpstream } from '../../support/fake-upstream.ts';
import { testGateway } from '../../support/test-gateway.ts';
import { connect } from '../websocket/socket-client.ts';

const PRICE = { price: { input: '1', output: '2', image: '1' } };
const KINDS = ['text', 'embedding', 'image'] as const;

/** The kind that each endpoint serves, and a good request of it. */
const ENDPOINTS: readonly (readonly [(typeof KINDS)[number], string, object])[] = [
  ['text', '/v1/chat/completions', { messages: [{ role: 'user', content: 'x' }] }],
  ['text', '/v1/responses', { input: 'x' }],
  ['text', '/v1/responses/compact', { input: 'x' }],
  ['text', '/v1/messages', { max_tokens: 9, messages: [{ role: 'user', content: 'x' }] }],
  ['text', '/v1/completions', { prompt: 'x' }],
  ['embedding', '/v1/embeddings', { input: 'x' }],
  ['image', '/v1/images/generations', { prompt: 'x' }],
  ['image', '/v1/images/edits', { prompt: 'x', images: [{ image_url: 'data:image/png;base64,iVBORw0KGgo=' }] }],
];
const STREAMED = new Set(['/v1/embeddings', '/v1/responses/compact']);

test('every endpoint refuses models of other kinds with a 400 that names the model, whole and as a stream, in its own dialect', async () => {
  const asked: string[] = [];
  await using upstream = await fakeUpstream(({ path }) => {
    asked.push(path);
  });
  const models = Object.fromEntries(KINDS.map((kind) => [kind, kind === 'text' ? PRICE : { kind, ...PRICE }]));
  await using gateway = await testGateway({
    channels: [{ id: 'one', type: 'chat_completion', base_url: upstream.url, api_key: 'k', models: KINDS }],
    models: { ...models, elsewhere: { kind: 'embedding', ...PRICE } },
  });
  gateway.store.addKey('sk-narrow', { models: ['text'] });
  for (const [kind, path, body] of ENDPOINTS) {
    for (const model of KINDS.filter((other) => other !== kind)) {
      for (const stream of STREAMED.has(path) ? [undefined] : [false, true]) {
        const answer = await gateway.post(path, { ...body, model, stream });
        const { type, error } = JSON.parse(await answer.text());
        const what = `${path}, ${model}, ${stream}`;
        assert.equal(answer.status, 400, what);
        if (path !== '/v1/messages') assert.deepEqual([error.code, error.param], ['model_kind_mismatch', 'model'], what);
        else assert.deepEqual([type, error.type, error.code], ['error', 'invalid_request_error', 'model_kind_mismatch'], what);
        assert.equal(answer.headers.get('retry-after'), null, what);
      }
    }
    const told = async (model: string, key?: string) => {
      const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
      const answer = await gateway.post(path, { ...body, model }, { headers });
      return `${answer.status} ${/"code":"(\w+)"/.exec(await answer.text())?.[1]}`;
    };
    // Whether the model may be used, and whether there is one, come first.
    assert.equal(await told('nothing'), '404 model_not_found', path);
    const other = kind === 'embedding' ? 'image' : 'embedding';
    assert.equal(await told(other, 'sk-narrow'), '403 model_not_allowed', path);
  }
  const client = await connect(gateway);
  const [event] = await client.turn({ type: 'response.create', model: 'embedding', input: 'x' });
  const { code, param } = (event?.['error'] ?? {}) as { code?: string; param?: string };
  assert.deepEqual([event?.type, event?.['status'], code, param], ['error', 400, 'model_kind_mismatch', 'model']);
  client.ws.close();
  assert.deepEqual(asked, []);
});

test('a model of the right kind whose Channels cannot serve the endpoint is a 503, which may be tried again', async () => {
  await using gateway = await testGateway({
    channels: [
      { id: 'a', type: 'messages', base_url: 'http://127.0.0.1:9', api_key: 'k', models: KINDS },
      { id: 'b', type: 'messages', base_url: 'http://127.0.0.1:9', api_key: 'k', models: ['resting'], weight: 0 },
    ],
    models: { text: PRICE, resting: PRICE, embedding: { kind: 'embedding', ...PRICE }, image: { kind: 'image', ...PRICE } },
  });
  const bodies: Readonly<Record<string, object>> = {
    '/v1/responses/compact': { model: 'text', input: 'x' },
    '/v1/embeddings': { model: 'embedding', input: 'x' },
    '/v1/images/generations': { model: 'image', prompt: 'x' },
  };
  for (const [path, body] of Object.entries(bodies)) {
    const answer = await gateway.post(path, body);
    assert.match(`${answer.status} ${await answer.text()}`, /^503 .*no_healthy_upstream/s, path);
  }
  const client = await connect(gateway);
  const [event] = await client.turn({ type: 'response.create', model: 'resting', input: 'x' });
  const { code } = (event?.['error'] ?? {}) as { code?: string };
  assert.deepEqual([event?.['status'], code], [503, 'no_healthy_upstream']);
  client.ws.close();
});
