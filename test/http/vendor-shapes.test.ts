/** The endpoints beside text, and compaction: what clients read has the types of the vendors' SDKs. */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { KEY, testGateway } from '../support/test-gateway.ts';
import { misfits, type VendorFile, VendorTypes } from '../support/vendor-types.ts';
import { type Studio, studio } from './images/studio.ts';

const types = new VendorTypes();
let place: Studio;
before(async () => {
  place = await studio();
});
after(async () => {
  types[Symbol.dispose]();
  await place[Symbol.asyncDispose]();
});
afterEach(() => place.sim.reset());

/** Where the types ask for more than there is to say, and why. */
const EXCEPTIONS: Readonly<Record<string, RegExp>> = {
  // What only the vendor knows of its own models; the SDK hands on what it reads.
  ModelInfo: /^\.(capabilities|deprecated_at|lifecycle|line|max_input_tokens|max_tokens|retires_at): is missing$/,
  // Routers tell neither the tokens of pictures and of text apart nor how a picture was made, and nothing is invented.
  ImagesResponse: /^\.usage\.input_tokens_details: is missing$/,
  ImageGenStreamEvent: /^\.(usage\.input_tokens_details|background|output_format|quality|size): is missing$/,
  // The vendor keeps the user's own messages, too, for which the type has no item.
  CompactedResponse: /^\.output\[0\]: \{"role":"user"/,
};

function fits(value: unknown, file: VendorFile, name: string): void {
  const wrong = misfits(value, types.shape(file, name)).filter((one) => EXCEPTIONS[name]?.test(one) !== true);
  assert.deepEqual(wrong, [], `${name}: ${JSON.stringify(value).slice(0, 800)}`);
}

test('the list of models and each of them are those of both SDKs', async () => {
  const get = async (path: string): Promise<{ data: unknown[] }> => {
    const answer = await fetch(`${place.gateway.url}${path}`, { headers: { authorization: `Bearer ${KEY}` } });
    assert.equal(answer.status, 200);
    return JSON.parse(await answer.text());
  };
  for (const model of [...(await get('/v1/models')).data, await get('/v1/models/text')]) {
    fits(model, 'openaiModels', 'Model');
    fits(model, 'anthropicModels', 'ModelInfo');
  }
});

test('embeddings, as floats', async () => {
  const answer = await place.gateway.post('/v1/embeddings', { model: 'vectors', input: ['a'], encoding_format: 'float' });
  fits(JSON.parse(await answer.text()), 'embeddings', 'CreateEmbeddingResponse');
});

for (const model of ['native', 'router', 'tool']) {
  test(`pictures of the route ${model}, whole and as a stream`, async () => {
    const whole = await place.gateway.post('/v1/images/generations', { model, prompt: 'a cat' });
    fits(JSON.parse(await whole.text()), 'images', 'ImagesResponse');
    const stream = await place.gateway.post('/v1/images/generations', { model, prompt: 'a cat', stream: true });
    const events = [...(await stream.text()).matchAll(/^data: (\{.*\})$/gm)].map(([, data]): unknown => JSON.parse(data ?? ''));
    assert.ok(events.length > 0);
    for (const event of events) fits(event, 'images', 'ImageGenStreamEvent');
  });
}

test('a compaction by summary', async () => {
  const channels = (['chat_completion', 'responses', 'messages', 'gemini'] as const).map((type) => ({
    id: type,
    type,
    base_url: place.sim.url,
    api_key: 'k',
    models: [type],
    options: { compaction: 'summary' },
  }));
  const models = Object.fromEntries(channels.map(({ type }) => [type, { price: { input: '1', output: '2' } }]));
  await using gateway = await testGateway({ channels, models });
  for (const { type } of channels) {
    place.sim.enqueue({ reply: { pieces: [{ type: 'text', text: 'They spoke of cats.' }], usage: { input: 4, output: 5 } } });
    const input = [{ role: 'user', content: 'A cat.' }];
    const answer = await gateway.post('/v1/responses/compact', { model: type, input });
    const body: unknown = JSON.parse(await answer.text());
    fits(body, 'responses', 'CompactedResponse');
  }
});
