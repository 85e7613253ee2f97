/** Embeddings over sockets: the SDK's base64 default, floats, upstreams that ignore what was asked, and what is refused. */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { eventually, testGateway } from '../support/test-gateway.ts';
import { sentBody, type Studio, studio } from './images/studio.ts';

let place: Studio;
before(async () => {
  place = await studio();
});
after(() => place[Symbol.asyncDispose]());
afterEach(() => {
  place.sim.reset();
  place.gateway.store.settled.length = 0;
});

const raw = (body: string) => ({ raw: { headers: { 'content-type': 'application/json' }, body } });
const post = (body: object) => place.gateway.post('/v1/embeddings', { model: 'vectors', ...body });

test('the SDK: base64 by default, floats when asked, the same vectors', async () => {
  const asBase64 = await place.client.embeddings.create({ model: 'vectors', input: ['a cat', 'a dog'], dimensions: 8 });
  assert.equal(sentBody(place.sim)['encoding_format'], 'base64');
  const asFloats = await place.client.embeddings.create({
    model: 'vectors',
    input: ['a cat', 'a dog'],
    dimensions: 8,
    encoding_format: 'float',
  });
  assert.equal(asBase64.model, 'vectors');
  assert.deepEqual(
    asBase64.data.map(({ index }) => index),
    [0, 1],
  );
  for (const [index, { embedding }] of asBase64.data.entries()) {
    assert.equal(embedding.length, 8);
    assert.deepEqual([...embedding], [...Float32Array.from(asFloats.data[index]?.embedding ?? [])]);
  }
  await eventually(() => place.gateway.store.settled.length === 2);
  const [row] = place.gateway.store.settled;
  assert.equal(row?.usage?.input, asBase64.usage.prompt_tokens);
  assert.equal(row?.usage?.output, undefined);
});

test('the body goes on as it came but for the model, and comes back so, without the price of a router', async () => {
  const body = '{"input":"x", "model":"vectors","future":1.0, "user":"u"}';
  const answer =
    '{ "object":"list","data":[{"object":"embedding","index":0,"embedding":[1.0, -0.50]}],"model":"up","usage":{"prompt_tokens":1,"total_tokens":1,"cost":1e-3},"future":1e-3 }';
  place.sim.enqueue(raw(answer));
  const response = await place.gateway.post('/embeddings', body);
  assert.equal(await response.text(), answer.replace('"up"', '"vectors"').replace(',"cost":1e-3', ''));
  assert.equal(place.sim.requests[0]?.text, body.replace('"vectors"', '"up-vectors"'));
});

test('V1: members that choose upstreams or credentials reach no upstream', async () => {
  const chosen = { api_base: 'http://x.test', base_url: 'http://x.test', models: ['x'], fallbacks: ['x'], user_config: {} };
  assert.equal((await post({ input: 'x', ...chosen })).status, 200);
  assert.deepEqual(Object.keys(sentBody(place.sim)), ['model', 'input']);
});

test('each vector stands at its input and says so, whatever the order that the upstream answered in', async () => {
  const answer = (...data: object[]) => raw(JSON.stringify({ object: 'list', data, model: 'up' }));
  const vector = (index: number, value: number) => ({ object: 'embedding', index, embedding: [value] });
  const ask = async (...input: string[]): Promise<{ object?: string; data?: object[]; error?: { code: string } }> =>
    JSON.parse(await (await post({ input })).text());

  place.sim.enqueue(answer(vector(2, 30), vector(0, 10), vector(1, 20)));
  assert.deepEqual((await ask('a', 'b', 'c')).data, [vector(0, 10), vector(1, 20), vector(2, 30)]);

  place.sim.enqueue(raw('{"data":[{"embedding":[1]},{"embedding":[2]}]}'));
  const bare = await ask('a', 'b');
  assert.equal(bare.object, 'list');
  assert.deepEqual(bare.data, [
    { embedding: [1], object: 'embedding', index: 0 },
    { embedding: [2], object: 'embedding', index: 1 },
  ]);

  // What the upstream says of its vectors, and the order in which they reach the client.
  for (const { indices, inputs } of [
    { indices: [0, 0, 0], inputs: [0, 1, 2] },
    { indices: [null, 1, 2], inputs: [0, 1, 2] },
    { indices: [2, null, 1], inputs: [1, 2, 0] },
    { indices: [4, 5, 3], inputs: [2, 0, 1] },
  ]) {
    place.sim.enqueue(answer(...indices.map((index, at) => ({ object: 'embedding', index, embedding: [at] }))));
    const said = inputs.map((at, index) => ({ object: 'embedding', index, embedding: [at] }));
    assert.deepEqual((await ask('a', 'b', 'c')).data, said, `indices ${indices.join(', ')}`);
  }

  for (const indices of [
    [0, 2],
    [-1, 0],
    [0, 1.5],
    ['1', 0],
  ]) {
    place.sim.enqueue(answer(...indices.map((index) => ({ object: 'embedding', index, embedding: [1] }))));
    assert.equal((await ask('a', 'b')).error?.code, 'upstream_error', `indices ${indices.join(', ')}`);
  }
});

test('an upstream that ignores the asked-for encoding is converted, both ways, little-endian', async () => {
  const vector = [1, -2.5, 3.25];
  const bytes = Buffer.from(Float32Array.from(vector).buffer);
  const list = (embedding: unknown) =>
    JSON.stringify({
      object: 'list',
      data: [{ object: 'embedding', index: 0, embedding }],
      model: 'm',
      usage: { prompt_tokens: 1, total_tokens: 1 },
    });
  place.sim.enqueue(raw(list(vector)), raw(list(bytes.toString('base64'))));
  const base64 = (await (await post({ input: 'x', encoding_format: 'base64' })).json()) as { data: { embedding: string }[] };
  assert.equal(base64.data[0]?.embedding, bytes.toString('base64'));
  const floats = (await (await post({ input: 'x' })).json()) as { data: { embedding: number[] }[] };
  assert.deepEqual(floats.data[0]?.embedding, vector);
  place.sim.enqueue(raw(list('AAAA')));
  assert.equal((await post({ input: 'x', encoding_format: 'base64' })).status, 502, 'three bytes are no vector in any encoding');
});

test('usage that nobody reported is counted and flagged', async () => {
  place.sim.enqueue(raw('{"object":"list","data":[{"index":0,"embedding":[1]}],"model":"m"}'));
  assert.equal((await post({ input: 'four characters a token' })).status, 200);
  await eventually(() => place.gateway.store.settled.length === 1);
  assert.ok(place.gateway.store.settled[0]?.charge?.flags.includes('estimated'));
});

test('both counters of usage reach the client, whatever the upstream left out', async () => {
  const usage = async (reported: string): Promise<unknown> => {
    place.sim.enqueue(raw(`{"data":[{"index":0,"embedding":[1]}],"model":"m"${reported}}`));
    return ((await (await post({ input: 'x' })).json()) as { usage: unknown }).usage;
  };
  for (const nothing of ['', ',"usage":null', ',"usage":{}']) {
    assert.deepEqual(await usage(nothing), { prompt_tokens: 0, total_tokens: 0 }, nothing);
  }
  assert.deepEqual(await usage(',"usage":{"total_tokens":9,"more":1,"cost":1}'), { total_tokens: 9, more: 1, prompt_tokens: 9 });
  assert.deepEqual(await usage(',"usage":{"prompt_tokens":4}'), { prompt_tokens: 4, total_tokens: 4 });
  assert.deepEqual(await usage(',"usage":{"prompt_tokens":"4","total_tokens":"4"}'), { prompt_tokens: 4, total_tokens: 4 });
  assert.deepEqual(await usage(',"usage":{"prompt_tokens":-1,"total_tokens":4}'), { prompt_tokens: 4, total_tokens: 4 });
});

test('a report of no tokens is none: no text has no tokens, and the total may be all that is said', async () => {
  const reported = (usage: string) => raw(`{"object":"list","data":[{"index":0,"embedding":[1]}],"model":"m","usage":${usage}}`);
  place.sim.enqueue(reported('{"prompt_tokens":0,"total_tokens":0}'));
  place.sim.enqueue(reported('{"prompt_tokens":0,"total_tokens":9}'));
  for (let count = 0; count < 2; count++) assert.equal((await post({ input: 'four characters a token' })).status, 200);
  await eventually(() => place.gateway.store.settled.length === 2);
  const [zeros, total] = place.gateway.store.settled;
  assert.ok(zeros?.charge?.flags.includes('estimated'));
  assert.deepEqual([zeros?.usage?.input, total?.usage?.input], [6, 9]);
});

for (const [name, answer, format] of [
  ['no object in its list', '{"data":[5]}'],
  ['a number that is none, in base64', '{"data":[{"index":0,"embedding":"AADAfw=="}]}'],
  ['a number that no float32 holds', '{"data":[{"index":0,"embedding":[1e39]}]}', 'base64'],
  ['no list', '{"object":"list"}'],
  ['too few vectors', '{"data":[]}'],
  ['no vector', '{"data":[{"index":0,"embedding":null}]}'],
  ['words in a vector', '{"data":[{"index":0,"embedding":["a"]}]}'],
  ['a number that is none', '{"data":[{"index":0,"embedding":[1e999]}]}'],
  ['half a float', '{"data":[{"index":0,"embedding":"AAAA"}]}'],
  ['an error in a 200', '{"error":{"message":"no","code":500}}'],
  ['no JSON', '<html>'],
] as const) {
  test(`an upstream answer with ${name} is a 502 and costs nothing`, async () => {
    place.sim.enqueue(raw(answer));
    assert.equal((await post({ input: 'x', ...(format === undefined ? {} : { encoding_format: format }) })).status, 502);
    await eventually(() => place.gateway.store.settled.length === 1);
    assert.equal(place.gateway.store.settled[0]?.charge, undefined);
  });
}

for (const [body, param] of [
  [{ input: undefined }, 'input'],
  [{ input: '' }, 'input'],
  [{ input: [] }, 'input'],
  [{ input: [1, 2.5] }, 'input[1]'],
  [{ input: [1, -2] }, 'input[1]'],
  [{ input: [1, 'a'] }, 'input[1]'],
  [{ input: ['a', 1] }, 'input[1]'],
  [{ input: [[1], 'a'] }, 'input[1]'],
  [{ input: [[1], []] }, 'input[1]'],
  [{ input: [[1], [2, null]] }, 'input[1][1]'],
  [{ input: [null] }, 'input[0]'],
  [{ input: ['a', ['b']] }, 'input[1]'],
  [{ input: { a: 1 } }, 'input'],
  [{ input: 'x', encoding_format: 'int8' }, 'encoding_format'],
  [{ input: 'x', dimensions: 0 }, 'dimensions'],
  [{ input: 'x', stream: true }, 'stream'],
  [{ input: 'x', model: '' }, 'model'],
] as const) {
  test(`refused: ${JSON.stringify(body)} names ${param}`, async () => {
    const response = await post(body);
    const { error } = (await response.json()) as { error: { code: string; param: string } };
    assert.deepEqual([response.status, error.code, error.param], [400, 'invalid_request', param]);
    assert.equal(place.sim.requests.length, 0);
  });
}

test('token ids go on as they are, one vector for each list, and are counted exactly where the upstream does not', async () => {
  for (const [input, vectors] of [
    [[9, 8, 7], 1],
    [[[9, 8, 7], [6]], 2],
  ] as const) {
    const answer = await post({ input });
    assert.equal(answer.status, 200);
    const { data } = (await answer.json()) as { data: unknown[] };
    assert.equal(data.length, vectors);
    assert.deepEqual(sentBody(place.sim)['input'], input);
    place.sim.reset();
  }
  place.sim.enqueue(raw('{"data":[{"embedding":[1]}]}'));
  assert.equal((await post({ input: [9, 8, 7] })).status, 200);
  await eventually(() => place.gateway.store.settled.length === 3);
  const counted = place.gateway.store.settled[2];
  assert.deepEqual([counted?.usage?.input, counted?.charge?.flags.includes('estimated')], [3, true]);
});

test('token ids are refused at `input` where no Channel of the model reads them', async () => {
  await using other = await testGateway({
    channels: [{ id: 'far', type: 'gemini', base_url: 'http://127.0.0.1:9', api_key: 'k', models: ['far'] }],
    models: { far: { kind: 'embedding', price: { input: '1', output: '2' } } },
  });
  const ask = async (input: unknown) => {
    const answer = await other.post('/v1/embeddings', { model: 'far', input });
    return [answer.status, ((await answer.json()) as { error: { param: string | null } }).error.param];
  };
  assert.deepEqual(await ask([1, 2]), [400, 'input']);
  assert.deepEqual(await ask([[1, 2]]), [400, 'input']);
  assert.deepEqual(await ask('text'), [503, null]);
});

test('a model of another kind is refused, and the refusal says which', async () => {
  const response = await place.gateway.post('/v1/embeddings', { model: 'text', input: 'x' });
  const { error } = (await response.json()) as { error: { code: string; message: string; param: string } };
  assert.deepEqual([response.status, error.code, error.param], [400, 'model_kind_mismatch', 'model']);
  assert.match(error.message, /of kind text/);
});
