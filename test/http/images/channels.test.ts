/**
 * What the endpoints of pictures and vectors do with their Channels: a place is given back, a Channel is named, one fallback is
 * for all.
 */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { type Simulator, startSimulator } from '../../../src/simulator/simulator.ts';
import { eventually, type TestGateway, testGateway } from '../../support/test-gateway.ts';

const PRICE = { price: { input: '1', output: '2' } };
const REFUSED = { error: { message: "Unsupported parameter: 'stream'.", param: 'stream' } };

let sim: Simulator;
let gateway: TestGateway;
before(async () => {
  sim = await startSimulator();
  const on = (id: string, type: string, model: string, more: object = {}): object => ({
    id,
    type,
    base_url: sim.url,
    api_key: `sk-${id}`,
    models: { [model]: `up-${id}` },
    options: { max_concurrency: 1 },
    ...more,
  });
  gateway = await testGateway({
    channels: [
      on('narrow', 'openai_image', 'picture'),
      on('vectors', 'chat_completion', 'vector'),
      on('first', 'openai_image', 'either'),
      on('second', 'openai_image', 'either', { priority: 1 }),
    ],
    channel_header: true,
    health: { failures: 1000 },
    models: {
      picture: { kind: 'image', ...PRICE },
      vector: { kind: 'embedding', ...PRICE },
      either: { kind: 'image', ...PRICE },
    },
  });
});
after(async () => {
  await sim.close();
  await gateway[Symbol.asyncDispose]();
});
afterEach(() => {
  sim.reset();
  gateway.store.settled.length = 0;
});

const draw = (body: object) => gateway.post('/v1/images/generations', { model: 'picture', prompt: 'x', size: '64x64', ...body });
const embed = () => gateway.post('/v1/embeddings', { model: 'vector', input: 'x' });
const streams = () => sim.requests.map(({ body }) => (body as { stream?: boolean }).stream === true);

test('a place on a Channel is given back when the answer is whole', async () => {
  for (let count = 0; count < 3; count++) {
    for (const response of [await draw({}), await draw({ n: 3 }), await draw({ stream: true }), await embed()]) {
      const text = await response.text();
      assert.equal(response.status, 200, text);
      assert.doesNotMatch(text, /"error"/);
    }
  }
  await eventually(() => gateway.store.settled.length === 18);
});

test('the Channel of an answer is in its row and, where that is switched on, in a header', async () => {
  assert.equal((await draw({})).headers.get('x-mizu-channel'), 'narrow');
  assert.equal((await embed()).headers.get('x-mizu-channel'), 'vectors');
  // Each of several pictures has a Channel of its own.
  assert.equal((await draw({ n: 2 })).headers.get('x-mizu-channel'), null);
  await eventually(() => gateway.store.settled.length === 4);
  assert.deepEqual(
    gateway.store.settled.map(({ channelId, upstreamModel }) => [channelId, upstreamModel]),
    [
      ['narrow', 'up-narrow'],
      ['vectors', 'up-vectors'],
      ['narrow', 'up-narrow'],
      ['narrow', 'up-narrow'],
    ],
  );
});

test('where no stream was asked for, no refusal of one is answered with another request', async () => {
  sim.enqueue({ faults: [{ type: 'status', status: 400, body: REFUSED }] });
  assert.equal((await draw({})).status, 400);
  assert.equal(sim.requests.length, 1);
});

test('the one fallback is for all Channels of the exchange', async () => {
  sim.enqueue({ faults: [{ type: 'status', status: 400, body: REFUSED }] }, { faults: [{ type: 'status', status: 500 }] });
  const response = await draw({ model: 'either', stream: true });
  assert.match(await response.text(), /event: image_generation\.completed/);
  assert.deepEqual(
    sim.requests.map(({ model }) => model),
    ['up-first', 'up-first', 'up-second'],
  );
  assert.deepEqual(streams(), [true, false, false]);
});
