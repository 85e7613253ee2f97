/**
 * Every endpoint, over every upstream dialect, as clients read it: bodies, events and errors have the types of the vendors' SDKs.
 */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { KEY, testGateway } from '../support/test-gateway.ts';
import { misfits, type VendorFile, VendorTypes } from '../support/vendor-types.ts';
import { checkShape } from '../support/vendor-shapes.ts';
import { dataUrl, type Studio, studio } from './images/studio.ts';
import { connect } from './websocket/socket-client.ts';

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
  ImageEditStreamEvent: /^\.(usage\.input_tokens_details|background|output_format|quality|size): is missing$/,
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

test('embeddings, as floats, of texts and token ids; errors', async () => {
  for (const model of ['vectors', 'numbers']) {
    for (const input of ['a', ['a', 'b'], [1, 2], [[1], [2, 3]]]) {
      const answer = await place.gateway.post('/v1/embeddings', { model, input, encoding_format: 'float' });
      fits(JSON.parse(await answer.text()), 'embeddings', 'CreateEmbeddingResponse');
    }
  }
  const refused = await place.gateway.post('/v1/embeddings', { model: 'vectors', input: [] });
  fits(JSON.parse(await refused.text()).error, 'openaiErrors', 'ErrorObject');
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

  test(`edits of the route ${model}, whole and as a stream, and a refusal`, async () => {
    const edit = (more: object) =>
      place.gateway.post('/v1/images/edits', { model, prompt: 'a cat', images: [{ image_url: dataUrl() }], ...more });
    fits(JSON.parse(await (await edit({})).text()), 'images', 'ImagesResponse');
    const stream = await (await edit({ stream: true })).text();
    const events = [...stream.matchAll(/^data: (\{.*\})$/gm)].map(([, data]): unknown => JSON.parse(data ?? ''));
    assert.ok(events.length > 0);
    for (const event of events) fits(event, 'images', 'ImageEditStreamEvent');
    fits(JSON.parse(await (await edit({ n: 'x' })).text()).error, 'openaiErrors', 'ErrorObject');
  });
}

const TEXT_TYPES = ['chat_completion', 'responses', 'messages', 'gemini'] as const;
const textChannels = (url: string, options: object = {}) => ({
  channels: TEXT_TYPES.map((type) => ({ id: type, type, base_url: url, api_key: 'k', models: [type], options })),
  models: Object.fromEntries(TEXT_TYPES.map((type) => [type, { price: { input: '1', output: '2' } }])),
});

const tool = { name: 'look', description: 'Looks.', parameters: { type: 'object', properties: {} } };
const turns = { messages: [{ role: 'user', content: 'q' }] };
/** A request with all that an answer may show of it. */
const ASKED: Readonly<Record<string, readonly [string, object]>> = {
  chat: [
    '/v1/chat/completions',
    { ...turns, tools: [{ type: 'function', function: tool }], stream_options: { include_usage: true } },
  ],
  completions: ['/v1/completions', { prompt: 'q', stream_options: { include_usage: true } }],
  responses: ['/v1/responses', { input: 'q', tools: [{ type: 'function', ...tool }], metadata: { a: 'b' } }],
  messages: ['/v1/messages', { ...turns, max_tokens: 99, tools: [{ name: 'look', input_schema: tool.parameters }] }],
};

for (const [dialect, [path, body]] of Object.entries(ASKED)) {
  test(`${path} over every upstream: whole, as a stream, cut, refused${dialect === 'responses' ? ', over a WebSocket' : ''}`, async () => {
    await using gateway = await testGateway({ ...textChannels(place.sim.url), health: { failures: 1000 } });
    const words = { type: 'text' as const, text: 'one two three four five six' };
    const pieces =
      dialect === 'completions'
        ? [words]
        : [
            { type: 'reasoning' as const, raw: 'hm', summary: ['Hm.'], opaque: true as const },
            { ...words, citations: [{ url: 'https://a.test', title: 'a', start: 0, end: 3 }] },
            { type: 'tool' as const, name: 'look', arguments: '{}', signature: true as const },
          ];
    const answer = { reply: { pieces, usage: { input: 9, cached: 3, output: 5 } } };
    const refused = { reply: { pieces: [] }, faults: [{ type: 'status' as const, status: 400, message: 'no' }] };
    const cut = { ...answer, faults: [{ type: 'cut' as const, at: 7 }] };
    const eventsOf = (text: string): Record<string, unknown>[] =>
      [...text.matchAll(/^data: (\{.*\})$/gm)].map(([, data = '']) => JSON.parse(data));
    const checkError = (value: Record<string, unknown>): void => {
      // The id of the request stands in bodies alone.
      if (dialect === 'messages') fits({ request_id: null, ...value }, 'anthropicErrors', 'ErrorResponse');
      else fits(value['error'], 'openaiErrors', 'ErrorObject');
    };
    const checkEvents = (events: readonly Record<string, unknown>[], isOwn: boolean): void => {
      assert.ok(events.length > 0);
      for (const event of events) {
        if (event['error'] === undefined || dialect === 'responses') checkShape(types, dialect, event, 'event', isOwn);
        else checkError(event);
      }
    };
    const wholeOf = async (model: string): Promise<Record<string, unknown>> =>
      JSON.parse(await (await gateway.post(path, { model, ...body, stream_options: undefined })).text());
    for (const model of TEXT_TYPES) {
      place.sim.reset();
      const isOwn = model === dialect || (model === 'chat_completion' && dialect === 'chat');
      place.sim.enqueue(answer);
      checkShape(types, dialect, await wholeOf(model), 'body', isOwn);
      for (const script of [answer, cut]) {
        place.sim.enqueue(script);
        checkEvents(eventsOf(await (await gateway.post(path, { model, ...body, stream: true })).text()), isOwn);
      }
      place.sim.enqueue(refused);
      checkError(await wholeOf(model));
      if (dialect !== 'responses') continue;
      const client = await connect(gateway);
      place.sim.enqueue(answer);
      checkEvents(await client.turn({ type: 'response.create', model, ...body }), isOwn);
      client.send({ type: 'response.steer', previous_response_id: 'resp_1', input: 'x' });
      fits(await client.next(({ type }) => type === 'response.steer.failed'), 'responses', 'ResponseSteerFailedEvent');
      client.ws.close();
    }
  });
}

test('a compaction by summary', async () => {
  await using gateway = await testGateway(textChannels(place.sim.url, { compaction: 'summary' }));
  for (const type of TEXT_TYPES) {
    place.sim.enqueue({ reply: { pieces: [{ type: 'text', text: 'They spoke of cats.' }], usage: { input: 4, output: 5 } } });
    const input = [{ role: 'user', content: 'A cat.' }];
    const answer = await gateway.post('/v1/responses/compact', { model: type, input });
    const body: unknown = JSON.parse(await answer.text());
    fits(body, 'responses', 'CompactedResponse');
  }
});
