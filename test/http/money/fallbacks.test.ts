/**
 * Fallbacks of a model: tried when its Channels have failed and nothing was sent, charged at the price of the model that answers.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Script } from '../../../src/simulator/script.ts';
import { CLIENTS, type MoneyGateway, moneyGateway, type Owner } from '../../support/money-gateway.ts';

const HELLO = [{ type: 'text', text: 'hello' }] as const;
const FUNDS = 10n ** 12n;
const price = (input: string, output: string) => ({ price: { input, output } });

/** `first` has a Channel of responses; `second` and `third` of messages. */
const MODELS = {
  first: { ...price('1', '2'), fallbacks: ['second', 'third'] },
  second: { ...price('10', '20'), fallbacks: ['last'] },
  third: price('100', '200'),
  last: price('1000', '2000'),
};
const channel = (id: string, type: string, models: object, more: object = {}) => ({
  ...{ id, type, base_url: 'SIMULATOR', api_key: 'k', models },
  ...more,
});
const CHANNELS = [
  channel('a', 'responses', { first: 'up-first' }),
  channel('b', 'messages', { second: 'up-second', third: 'up-third' }),
  channel('c', 'chat_completion', { last: 'up-last' }),
];

async function gatewayOf(t: TestContext, more: object = {}): Promise<{ gateway: MoneyGateway; owner: Owner }> {
  const gateway = await moneyGateway(t, { health: { failures: 1000 }, channels: CHANNELS, models: MODELS, ...more });
  return { gateway, owner: await gateway.owner(FUNDS) };
}

const isFor =
  (model: string): NonNullable<Script['match']> =>
  ({ body }) =>
    JSON.stringify(body).includes(`"${model}"`);
const fails = (model: string, status = 500): Script => ({ match: isFor(model), faults: [{ type: 'status', status }], times: 10 });
const answers = (model: string): Script => ({ match: isFor(model), reply: { pieces: HELLO, usage: { input: 10, output: 5 } } });

for (const stream of [true, false]) {
  const form = stream ? 'stream' : 'whole';
  for (const client of Object.keys(CLIENTS) as (keyof typeof CLIENTS)[]) {
    test(`the next model answers at its own price; the client reads the name that it asked for (${client}, ${form})`, async (t) => {
      const { gateway, owner } = await gatewayOf(t);
      gateway.simulator.enqueue(fails('up-first'));
      gateway.simulator.enqueue(answers('up-second'));
      const { path, ask } = CLIENTS[client];
      const response = await gateway.post(owner, path, ask('first', stream));
      const text = await response.text();
      assert.equal(response.status, 200, text);
      assert.equal(response.headers.get('x-mizu-model'), 'second');
      assert.match(text, /"model":\s?"first"/);
      assert.doesNotMatch(text, /second/);
      const [row] = await gateway.settled(owner, 1);
      assert.deepEqual([row?.model, row?.servedModel, row?.upstreamModel], ['first', 'second', 'up-second']);
      assert.deepEqual(
        row?.attempts.map(({ channelId, model, upstreamModel, errorCode }) => [
          channelId,
          model,
          upstreamModel,
          errorCode === undefined,
        ]),
        [
          ['a', undefined, 'up-first', false],
          ['b', 'second', 'up-second', true],
        ],
      );
      assert.equal(row?.charge?.total, 10n * 10_000n + 5n * 20_000n);
    });
  }
}

test('the model itself answers: no fallback is tried, and the header says so', async (t) => {
  const { gateway, owner } = await gatewayOf(t);
  gateway.simulator.enqueue(answers('up-first'));
  const response = await gateway.post(owner, '/v1/responses', { model: 'first', input: 'hi' });
  await response.text();
  assert.equal(response.headers.get('x-mizu-model'), 'first');
  const [row] = await gateway.settled(owner, 1);
  assert.deepEqual([row?.servedModel, row?.attempts.length, row?.charge?.total], [undefined, 1, 10n * 1_000n + 5n * 2_000n]);
  gateway.simulator.enqueue(answers('up-third'));
  assert.equal((await gateway.post(owner, '/v1/responses', { model: 'third', input: 'hi' })).headers.get('x-mizu-model'), null);
});

test('they are tried in turn, their own fallbacks are not followed, and the error is that of the model that was asked', async (t) => {
  const { gateway, owner } = await gatewayOf(t);
  for (const model of ['up-first', 'up-second', 'up-third']) gateway.simulator.enqueue(fails(model));
  const response = await gateway.post(owner, '/v1/responses', { model: 'first', input: 'hi' });
  assert.equal(response.status, 502);
  const [row] = await gateway.settled(owner, 1);
  assert.deepEqual(
    row?.attempts.map(({ upstreamModel }) => upstreamModel),
    ['up-first', 'up-second', 'up-third'],
  );
  assert.deepEqual([row?.charge, row?.servedModel], [undefined, undefined]);
  assert.equal(await gateway.wallet(owner), FUNDS);
});

test('a request that is wrong by itself is not tried with another model', async (t) => {
  const { gateway, owner } = await gatewayOf(t);
  gateway.simulator.enqueue(fails('up-first', 400));
  const response = await gateway.post(owner, '/v1/responses', { model: 'first', input: 'hi' });
  assert.equal(response.status, 400);
  const [row] = await gateway.settled(owner, 1);
  assert.equal(row?.attempts.length, 1);
});

test('a fallback that the key or the class may not use is passed over', async (t) => {
  const channels = [
    CHANNELS[0],
    channel('b', 'messages', { third: 'up-third' }),
    channel('d', 'messages', { second: 'up-second' }, { classes: ['vip'] }),
  ];
  const { gateway, owner } = await gatewayOf(t, {
    channels,
    models: { first: MODELS.first, second: price('10', '20'), third: MODELS.third },
  });
  for (let asked = 0; asked < 2; asked++) gateway.simulator.enqueue(fails('up-first'));
  gateway.simulator.enqueue(answers('up-third'));
  const response = await gateway.post(owner, '/v1/responses', { model: 'first', input: 'hi' });
  assert.equal(response.headers.get('x-mizu-model'), 'third', 'the class has no `second`');
  const limited = await gateway.owner(FUNDS, { models: ['first'] });
  assert.equal(
    (await gateway.post(limited, '/v1/responses', { model: 'first', input: 'hi' })).status,
    502,
    'the key has the model alone',
  );
});

test('a model whose Channels are all out of service is answered by its fallback', async (t) => {
  const { gateway, owner } = await gatewayOf(t, { channels: [{ ...CHANNELS[0], disabled: true }, CHANNELS[1], CHANNELS[2]] });
  gateway.simulator.enqueue(answers('up-second'));
  const response = await gateway.post(owner, '/v1/chat/completions', CLIENTS.chat.ask('first', false));
  assert.equal(response.status, 200, await response.text());
  assert.equal(response.headers.get('x-mizu-model'), 'second');
});

test('the reservation covers the dearest of them, and shrinks to the charge of the one that answered', async (t) => {
  const { gateway, owner } = await gatewayOf(t);
  gateway.simulator.enqueue({ ...answers('up-first'), pace: { firstMs: 20, ms: 20 } });
  const response = await gateway.post(owner, '/v1/responses', {
    model: 'first',
    input: 'abcd',
    max_output_tokens: 100,
    stream: true,
  });
  assert.equal(gateway.store.admission.reserved(owner.key.id), 100_000n + 100n * 200_000n);
  await response.text();
  const [row] = await gateway.settled(owner, 1);
  assert.equal(row?.charge?.total, 10n * 1_000n + 5n * 2_000n);
  assert.equal(gateway.store.admission.reserved(owner.key.id), 0n);
});

test('a stream that broke after its first words is no case for a fallback', async (t) => {
  const { gateway, owner } = await gatewayOf(t);
  gateway.simulator.enqueue({
    match: isFor('up-first'),
    reply: { pieces: [{ type: 'text', text: 'one two three four five' }] },
    faults: [{ type: 'cut', at: 6 }],
    times: 10,
  });
  const response = await gateway.post(owner, '/v1/responses', { model: 'first', input: 'hi', stream: true });
  assert.match(await response.text(), /response\.failed|"type":"error"/);
  const [row] = await gateway.settled(owner, 1);
  assert.deepEqual([row?.attempts.length, row?.servedModel], [1, undefined]);
});

test('what no answer tells is flagged by what reached the model that answered', async (t) => {
  const models = {
    ...MODELS,
    first: { ...price('1', '2'), fallbacks: ['last'] },
    said: { ...price('1', '2'), fallbacks: ['second'] },
  };
  const channels = [...CHANNELS, channel('d', 'chat_completion', { said: 'up-said' })];
  const { gateway, owner } = await gatewayOf(t, { models, channels });
  const body = { messages: [{ role: 'user', content: 'hi' }], web_search_options: {} };
  for (const [asked, failing, answering] of [
    ['first', 'up-first', 'up-last'],
    ['said', 'up-said', 'up-second'],
  ] as const) {
    gateway.simulator.enqueue(fails(failing));
    gateway.simulator.enqueue(answers(answering));
    assert.equal((await gateway.post(owner, '/v1/chat/completions', { model: asked, ...body })).status, 200);
  }
  const flags = (await gateway.settled(owner, 2)).map(({ servedModel, charge }) => [servedModel, charge?.flags]);
  assert.deepEqual(flags, [
    ['last', ['unseen:web_search_options']],
    ['second', []],
  ]);
});

test('a fallback whose Channel refuses breakpoints of its own is asked without them', async (t) => {
  const options = { cache_breakpoints: 'auto' };
  const { gateway, owner } = await gatewayOf(t, {
    models: { ...MODELS, first: { ...price('1', '2'), fallbacks: ['last'] } },
    channels: [CHANNELS[0], CHANNELS[1], channel('c', 'chat_completion', { last: 'up-last' }, { options })],
  });
  gateway.simulator.enqueue(fails('up-first'));
  const message = "Unknown parameter: 'messages[0].content[0].prompt_cache_breakpoint'.";
  const body = { error: { message, type: 'invalid_request_error' } };
  gateway.simulator.enqueue({
    match: ({ body: sent }) => JSON.stringify(sent).includes('prompt_cache_breakpoint'),
    faults: [{ type: 'status', status: 400, body }],
  });
  gateway.simulator.enqueue(answers('up-last'));
  const response = await gateway.post(owner, '/v1/responses', { model: 'first', input: 'hi' });
  assert.equal(response.status, 200, await response.text());
});

test('pictures: another model of the same kind draws, at its price', async (t) => {
  const picture = (id: string) => ({ kind: 'image', price: { image: id } });
  const gateway = await moneyGateway(t, {
    health: { failures: 1000 },
    channels: [channel('a', 'openai_image', { fine: 'up-fine' }), channel('b', 'openai_image', { plain: 'up-plain' })],
    models: { fine: { ...picture('0.1'), fallbacks: ['plain'] }, plain: picture('0.02') },
  });
  const owner = await gateway.owner(FUNDS);
  for (const body of [{}, { n: 2 }, { stream: true }]) {
    gateway.simulator.enqueue(fails('up-fine'));
    const response = await gateway.post(owner, '/v1/images/generations', { model: 'fine', prompt: 'a cat', ...body });
    assert.equal(response.status, 200, await response.text());
    assert.equal(response.headers.get('x-mizu-model'), 'n' in body || 'stream' in body ? null : 'plain');
    assert.match(response.headers.get('access-control-expose-headers') ?? '', /x-mizu-model/);
  }
  const rows = await gateway.settled(owner, 4);
  for (const row of rows) assert.deepEqual([row.model, row.servedModel, row.charge?.total], ['fine', 'plain', 20_000_000n]);
});
