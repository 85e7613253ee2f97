/** The image endpoints over sockets, through each kind of route: the official SDK in front, the simulated upstream behind. */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { readPng } from '../../../src/simulator/png.ts';
import { channel, eventually, KEY, testGateway } from '../../support/test-gateway.ts';
import { blob, dataUrl, file, png, readSse, sentBody, type Studio, studio } from './studio.ts';

let place: Studio;
before(async () => {
  place = await studio();
});
after(() => place[Symbol.asyncDispose]());
afterEach(() => {
  place.sim.reset();
  place.gateway.store.settled.length = 0;
});

const sizeOf = (b64: string | undefined) => readPng(Buffer.from(b64 ?? '', 'base64'));
const settled = (count: number) => eventually(() => place.gateway.store.settled.length === count, `${count} settlements`);

for (const model of ['native', 'router', 'tool']) {
  test(`generate through ${model}: a real picture, usage, one row`, async () => {
    const answer = await place.client.images.generate({ model, prompt: 'a red door', size: '64x64' });
    assert.equal(answer.data?.length, 1);
    assert.ok(sizeOf(answer.data?.[0]?.b64_json) !== undefined);
    assert.ok((answer.usage?.output_tokens ?? 0) > 0);
    assert.equal(place.sim.requests.length, 1);
    assert.equal(place.sim.requests[0]?.model, `up-${model}`);
    await settled(1);
    assert.equal(place.gateway.store.settled[0]?.usage?.images, 1);
    assert.equal(place.gateway.store.held.size, 0);
  });

  test(`stream through ${model}: comment at once, one completion, [DONE]`, async () => {
    const response = await place.gateway.post('/v1/images/generations', { model, prompt: 'a door', size: '64x64', stream: true });
    assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8');
    const text = await response.text();
    assert.ok(text.startsWith(': '), 'a comment comes first');
    const { events } = readSse(text);
    assert.deepEqual(
      events.map(({ event }) => event),
      ['image_generation.completed', undefined],
    );
    const completed = JSON.parse(events[0]?.data ?? '');
    assert.equal(completed.type, 'image_generation.completed');
    assert.ok(sizeOf(completed.b64_json) !== undefined);
    assert.equal(typeof completed.created_at, 'number');
    assert.ok(completed.usage.output_tokens > 0);
    assert.equal(events[1]?.data, '[DONE]');
    await settled(1);
    const [row] = place.gateway.store.settled;
    assert.deepEqual([row?.stream, row?.httpStatus, typeof row?.firstOutputMs], [true, 200, 'number']);
  });
}

test('the SDK reads a streamed picture', async () => {
  const types: string[] = [];
  const asked = { model: 'native', prompt: 'x', stream: true, size: '1024x1024', partial_images: 2 } as const;
  for await (const event of await place.client.images.generate(asked)) types.push(event.type);
  assert.deepEqual(types, ['image_generation.completed']);
  assert.equal(sentBody(place.sim)['partial_images'], undefined);
});

test('I1 edit: one file as image, several as image[], with a mask, all bytes untouched', async () => {
  const picture = png();
  const mask = png(40, 30, true);
  await place.client.images.edit({ model: 'native', prompt: 'x', image: await file(picture), mask: await file(mask, 'm.png') });
  const [first] = place.sim.requests;
  const files = first?.parts.filter(({ filename }) => filename !== undefined) ?? [];
  assert.deepEqual(
    files.map(({ name, filename, mimeType }) => [name, filename, mimeType]),
    [
      ['image', 'a.png', 'image/png'],
      ['mask', 'm.png', 'image/png'],
    ],
  );
  assert.ok(picture.equals(files[0]?.bytes ?? Buffer.alloc(0)));
  assert.ok(mask.equals(files[1]?.bytes ?? Buffer.alloc(0)));
  const many = await Promise.all(Array.from({ length: 16 }, (_, index) => file(png(40, 30, false, index), `${index}.png`)));
  const answer = await place.client.images.edit({ model: 'native', prompt: 'x', image: many });
  assert.equal(answer.data?.length, 1);
  const names = place.sim.requests[1]?.parts.filter(({ filename }) => filename !== undefined).map(({ name }) => name);
  assert.deepEqual(
    names,
    Array.from({ length: 16 }, () => 'image[]'),
  );
  assert.deepEqual(
    place.sim.requests[1]?.parts.filter(({ filename }) => filename === undefined).map(({ name, text }) => [name, text]),
    [
      ['model', 'up-native'],
      ['prompt', 'x'],
    ],
  );
});

test('I1, I3 mask and mask[] are one mask; image and image[] are one list', async () => {
  for (const [image, mask] of [
    ['image', 'mask'],
    ['image[]', 'mask[]'],
  ] as const) {
    const response = await place.form([
      ['model', 'native'],
      ['prompt', 'x'],
      [mask, blob(png(40, 30, true))],
      [image, blob()],
    ]);
    assert.equal(response.status, 200, await response.clone().text());
  }
  assert.deepEqual(
    place.sim.requests.map(({ parts }) => parts.filter(({ name }) => name === 'mask').length),
    [1, 1],
  );
});

test('what browsers and scripts send: a file that nobody chose is none, and True is true', async () => {
  const response = await place.form([
    ['model', 'native'],
    ['prompt', 'x'],
    ['stream', 'True'],
    ['image', blob()],
    ['mask', blob(Buffer.alloc(0), 'application/octet-stream'), ''],
  ]);
  assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8', await response.clone().text());
  assert.deepEqual(
    readSse(await response.text()).events.map(({ event }) => event),
    ['image_edit.completed', undefined],
  );
  assert.equal(
    place.sim.requests[0]?.parts.some(({ name }) => name === 'mask'),
    false,
  );
});

test('the SDK streams an edit', async () => {
  const stream = await place.client.images.edit({ model: 'native', prompt: 'x', image: await file(), stream: true });
  const types: string[] = [];
  for await (const event of stream) types.push(event.type);
  assert.deepEqual(types, ['image_edit.completed']);
});

test('I4 JSON edits: inline goes as a form, a link or a file id keeps JSON with the base64 as it came', async () => {
  const inline = {
    model: 'native',
    prompt: 'x',
    images: [{ image_url: dataUrl() }],
    mask: { image_url: dataUrl(png(40, 30, true)) },
  };
  assert.equal((await place.gateway.post('/v1/images/edits', inline)).status, 200);
  const parts = place.sim.requests[0]?.parts ?? [];
  assert.ok(png().equals(parts.find(({ name }) => name === 'image')?.bytes ?? Buffer.alloc(0)));
  assert.ok(png(40, 30, true).equals(parts.find(({ name }) => name === 'mask')?.bytes ?? Buffer.alloc(0)));
  const mixed = {
    ...inline,
    images: [{ image_url: dataUrl() }, { file_id: 'file-1' }, { image_url: 'https://a.example/x.png' }],
  };
  assert.equal((await place.gateway.post('/v1/images/edits', mixed)).status, 200);
  assert.equal(place.sim.requests[1]?.text, JSON.stringify({ ...mixed, model: 'up-native' }));
});

test('I11: the router: nested references, no n, its model list path', async () => {
  const body = { model: 'router', prompt: 'x', images: [{ image_url: dataUrl() }, { image_url: 'http://10.0.0.1/private.png' }] };
  const response = await place.gateway.post('/v1/images/edits', { ...body, stream: true, size: '64x64' });
  const { events } = readSse(await response.text());
  assert.equal(events[0]?.event, 'image_edit.completed');
  assert.equal(JSON.parse(events[0]?.data ?? '').media_type, 'image/png');
  const [sent] = place.sim.requests;
  assert.equal(sent?.path, '/api/v1/images');
  assert.deepEqual(sent?.body, {
    model: 'up-router',
    prompt: 'x',
    size: '64x64',
    input_references: [
      { type: 'image_url', image_url: { url: dataUrl() } },
      { type: 'image_url', image_url: { url: 'http://10.0.0.1/private.png' } },
    ],
  });
});

test('the tool: forced, request beats defaults, the mask beside its image', async () => {
  const response = await place.form([
    ['model', 'tool'],
    ['prompt', 'paint it blue'],
    ['quality', 'high'],
    ['background', 'transparent'],
    ['output_compression', '90'],
    ['user', '12345'],
    ['image', blob()],
    ['mask', blob(png(40, 30, true)), 'm.png'],
  ]);
  assert.equal(response.status, 200, await response.clone().text());
  const { model, input, tools, tool_choice, user, background } = sentBody(place.sim);
  assert.equal(model, 'up-tool');
  assert.equal(user, '12345', 'a user that looks like a number stays text');
  assert.equal(background, undefined);
  assert.deepEqual(input, [
    {
      role: 'user',
      content: [
        { type: 'input_text', text: 'paint it blue' },
        { type: 'input_image', image_url: dataUrl() },
      ],
    },
  ]);
  assert.deepEqual(tools, [
    {
      type: 'image_generation',
      size: '64x64',
      quality: 'high',
      background: 'transparent',
      output_compression: 90,
      input_image_mask: { image_url: dataUrl(png(40, 30, true)) },
    },
  ]);
  assert.deepEqual(tool_choice, { type: 'image_generation' });
});

test('I7 n is split: three requests, three rows, three bills, in the order of their index', async () => {
  const pictures = [1, 2, 3].map((seed) => png(8, 8, false, seed).toString('base64'));
  const waits = [60, 0, 30];
  for (const [index, data] of pictures.entries()) {
    place.sim.enqueue({
      reply: { pieces: [{ type: 'image', data, size: '8x8' }], usage: { input: 5, output: 7 } },
      pace: { firstMs: waits[index] ?? 0 },
    });
  }
  const answer = await place.client.images.generate({ model: 'native', prompt: 'x', n: 3 });
  assert.equal(place.sim.requests.length, 3);
  assert.deepEqual(
    place.sim.requests.map(({ body }) => (body as { n?: number }).n),
    [1, 1, 1],
  );
  assert.deepEqual(new Set(answer.data?.map(({ b64_json }) => b64_json)), new Set(pictures));
  assert.deepEqual([answer.usage?.input_tokens, answer.usage?.output_tokens, answer.usage?.total_tokens], [15, 21, 36]);
  assert.equal(answer.size, '8x8');
  await settled(3);
  const rows = place.gateway.store.settled;
  assert.deepEqual(
    rows.map(({ usage }) => usage?.images),
    [1, 1, 1],
  );
  const ids = rows.map(({ requestId }) => requestId);
  assert.ok(ids.every((id, index) => id.endsWith(`-${index + 1}`)));
  assert.equal(new Set(rows.map(({ exchangeId }) => exchangeId)).size, 3);
});

test('partial success: what was made is answered and billed, what failed is logged', async () => {
  place.sim.enqueue({ faults: [{ type: 'status', status: 500 }], times: 1 });
  const answer = await place.client.images.generate({ model: 'native', prompt: 'x', n: 2, size: '64x64' });
  assert.equal(answer.data?.length, 1);
  await settled(2);
  assert.deepEqual(place.gateway.store.settled.map(({ status }) => status).sort(), ['error', 'success']);
  place.sim.enqueue({ faults: [{ type: 'status', status: 500 }], times: 2 });
  await assert.rejects(place.client.images.generate({ model: 'native', prompt: 'x', n: 2 }), {
    status: 502,
    code: 'upstream_error',
  });
});

test('metadata: lifted only when all agree, absent stays absent (I10)', async () => {
  for (const [quality, background] of [
    ['low', 'opaque'],
    ['high', 'opaque'],
  ] as const) {
    place.sim.enqueue({
      raw: {
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ created: 5, quality, background, data: [{ b64_json: 'iVBORw0KGgo=' }] }),
      },
    });
  }
  const response = await place.gateway.post('/v1/images/generations', { model: 'native', prompt: 'x', n: 2 });
  const body = (await response.json()) as Record<string, unknown>;
  assert.deepEqual(Object.keys(body), ['created', 'background', 'data']);
  assert.deepEqual((body['data'] as { quality: string }[]).map(({ quality }) => quality).sort(), ['high', 'low']);
  const sent = sentBody(place.sim);
  assert.deepEqual(Object.keys(sent).sort(), ['model', 'n', 'prompt'], 'nothing is made up');
});

test('same dialect, one picture: the upstream answer to the byte', async () => {
  const text = '{ "created": 7,\n "data": [{"b64_json":"iVBORw0KGgo=","new":1.0}], "model":"img-2", "later": {"a":1e2} }';
  place.sim.enqueue({ raw: { headers: { 'content-type': 'application/json' }, body: text } });
  assert.equal(await (await place.gateway.post('/v1/images/generations', { model: 'native', prompt: 'x' })).text(), text);
});

test('I9 an empty or undecodable picture is a failure and costs nothing', async () => {
  for (const data of ['', 'not base64!']) {
    place.sim.reset();
    place.gateway.store.settled.length = 0;
    place.sim.enqueue({
      raw: {
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ created: 1, data: [{ b64_json: data }], usage: { input_tokens: 5, output_tokens: 5 } }),
      },
    });
    const response = await place.gateway.post('/v1/images/generations', { model: 'native', prompt: 'x' });
    assert.equal(response.status, 502);
    await settled(1);
    assert.equal(place.gateway.store.settled[0]?.charge, undefined);
  }
});

test('a responses upstream that failed, or answered in words alone, costs what it reported', async () => {
  const usage = { input_tokens: 5, output_tokens: 3, total_tokens: 8 };
  const words = { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'I cannot.' }] };
  for (const response of [
    { status: 'failed', error: { code: 'server_error', message: 'no' }, output: [], usage },
    { status: 'completed', output: [words], usage },
    { status: 'incomplete', incomplete_details: { reason: 'content_filter' }, output: [], usage },
    { status: 'failed', error: { code: 'server_error', message: 'no' }, output: [] },
  ]) {
    place.sim.enqueue({ raw: { headers: { 'content-type': 'application/json' }, body: JSON.stringify(response) } });
    await place.gateway.post('/v1/images/generations', { model: 'tool', prompt: 'x' });
  }
  await settled(4);
  const rows = place.gateway.store.settled.map(({ status, usage: used }) => [status, used]);
  const told = ['error', { input: 5, output: 3 }];
  assert.deepEqual(rows, [told, told, told, ['error', undefined]]);
});

test('I6 JSON instead of the stream becomes a completion; a JSON error stays an error', async () => {
  const ask = { model: 'native', prompt: 'x', stream: true };
  const json = (body: object) => ({ raw: { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) } });
  place.sim.enqueue(
    json({
      created: 9,
      size: '8x8',
      data: [{ b64_json: 'iVBORw0KGgo=', revised_prompt: 'y' }],
      usage: { input_tokens: 1, output_tokens: 2 },
    }),
  );
  const good = readSse(await (await place.gateway.post('/v1/images/generations', ask)).text());
  assert.deepEqual(JSON.parse(good.events[0]?.data ?? ''), {
    type: 'image_generation.completed',
    created_at: 9,
    b64_json: 'iVBORw0KGgo=',
    revised_prompt: 'y',
    size: '8x8',
    usage: { input_tokens: 1, output_tokens: 2 },
  });
  place.sim.enqueue(json({ error: { message: 'no such luck', type: 'server_error', code: null } }));
  const bad = readSse(await (await place.gateway.post('/v1/images/generations', ask)).text());
  assert.deepEqual(
    bad.events.map(({ event, data }) => event ?? data),
    ['error', '[DONE]'],
  );
  assert.equal(JSON.parse(bad.events[0]?.data ?? '').error.code, 'upstream_error');
});

for (const model of ['native', 'router', 'tool']) {
  for (const [name, fault] of [
    ['an error event', { type: 'error-event', at: 0 }],
    ['no terminal', { type: 'no-terminal' }],
    ['[DONE] alone', { type: 'done-only' }],
    ['a cut', { type: 'cut', atByte: 300 }],
    ['garbage', { type: 'garbage', at: 0 }],
    ['a web page', { type: 'html', status: 200 }],
  ] as const) {
    test(`stream through ${model} with ${name}: an error event and [DONE], never a completion, no charge`, async () => {
      place.sim.enqueue({ faults: [fault], times: 1 });
      const response = await place.gateway.post('/v1/images/generations', { model, prompt: 'x', size: '64x64', stream: true });
      const { events } = readSse(await response.text());
      assert.deepEqual(
        events.map(({ event, data }) => event ?? data),
        ['error', '[DONE]'],
      );
      await settled(1);
      const [row] = place.gateway.store.settled;
      assert.equal(row?.status, 'error');
      assert.equal(row?.charge, undefined);
      assert.equal(row?.httpStatus, 200, 'what the client was answered');
    });
  }
}

test('one fallback after a 400 that names streaming; one row that streams', async () => {
  for (const [model, status] of [
    ['native', 400],
    ['tool', 422],
    ['router', 400],
  ] as const) {
    place.sim.reset();
    place.gateway.store.settled.length = 0;
    const body = {
      error: {
        message: "Unsupported parameter: 'stream' is not supported by this model.",
        param: 'stream',
        code: 'unsupported_parameter',
      },
    };
    place.sim.enqueue({ faults: [{ type: 'status', status, body }] });
    const response = await place.gateway.post('/v1/images/generations', { model, prompt: 'x', size: '64x64', stream: true });
    const { events } = readSse(await response.text());
    assert.equal(events[0]?.event, 'image_generation.completed');
    assert.deepEqual(
      place.sim.requests.map((request) => (request.body as { stream?: boolean }).stream),
      [true, undefined],
    );
    await settled(1);
    assert.deepEqual([place.gateway.store.settled[0]?.stream, place.gateway.store.settled[0]?.usage?.images], [true, 1]);
  }
});

test('a Channel that refused to stream a model is not asked to again, whoever asks, and its other models are', async () => {
  const ofImages = { kind: 'image', price: { output: '2' } };
  await using other = await testGateway({
    channels: [channel(place.sim.url, { type: 'openai_image', models: { first: 'up-first', second: 'up-second' } })],
    models: { first: ofImages, second: ofImages },
  });
  place.sim.reset();
  const body = { error: { message: "Unsupported parameter: 'stream' is not supported by this model.", param: 'stream' } };
  place.sim.enqueue({ faults: [{ type: 'status', status: 400, body }] });
  other.store.addKey('sk-other', { accountId: 'acct_2' }, { id: 'acct_2' });
  for (const [model, key] of [
    ['first', KEY],
    ['first', 'sk-other'],
    ['second', KEY],
  ]) {
    const headers = { authorization: `Bearer ${key}` };
    const asked = { model, prompt: 'x', size: '64x64', stream: true };
    const response = await other.post('/v1/images/generations', asked, { headers });
    assert.equal(readSse(await response.text()).events[0]?.event, 'image_generation.completed');
  }
  assert.deepEqual(
    place.sim.requests.map(({ body }) => [(body as { model: string }).model, (body as { stream?: boolean }).stream]),
    [
      ['up-first', true],
      ['up-first', undefined],
      ['up-first', undefined],
      ['up-second', true],
    ],
  );
});

test('no fallback for other refusals, and none for a broken connection', async () => {
  const message = (text: string, param: string | null = null) => ({
    error: { message: text, param, type: 'invalid_request_error', code: null },
  });
  for (const fault of [
    { type: 'status', status: 400, body: message('The prompt mentions a stream in the woods.') },
    { type: 'status', status: 500, body: message('stream is not supported', 'stream') },
    { type: 'cut', at: 0 },
  ] as const) {
    place.sim.reset();
    place.sim.enqueue({ faults: [fault] });
    const response = await place.gateway.post('/v1/images/generations', { model: 'native', prompt: 'x', stream: true });
    assert.equal(readSse(await response.text()).events[0]?.event, 'error');
    assert.equal(place.sim.requests.length, 1);
  }
});

test('V3, F25: I12 links of an upstream are passed on and never opened', async () => {
  const url = `${place.sim.url}/secret.png`;
  place.sim.enqueue({
    raw: { headers: { 'content-type': 'application/json' }, body: JSON.stringify({ created: 1, data: [{ url }] }) },
  });
  const answer = await place.client.images.generate({ model: 'native', prompt: 'x', response_format: 'url' });
  assert.equal(answer.data?.[0]?.url, url);
  await place.gateway.post('/v1/images/edits', { model: 'native', prompt: 'x', images: [{ image_url: url }] });
  assert.deepEqual(
    place.sim.requests.map(({ path }) => path),
    ['/v1/images/generations', '/v1/images/edits'],
  );
});

test('an upstream 400 passes as itself', async () => {
  const body = {
    error: {
      message: 'Your request was rejected.',
      type: 'image_generation_user_error',
      param: null,
      code: 'moderation_blocked',
    },
  };
  place.sim.enqueue({ faults: [{ type: 'status', status: 400, body }] });
  await assert.rejects(place.client.images.generate({ model: 'native', prompt: 'x' }), {
    status: 400,
    code: 'moderation_blocked',
  });
});

test('what an upstream refuses inside its stream is the asker’s too, and says nothing of the Channel', async () => {
  await using own = await studio({ file: { health: { failures: 1 } } });
  const error = {
    type: 'image_generation_user_error',
    code: 'moderation_blocked',
    message: 'Your request was rejected.',
    param: null,
  };
  const events = `event: error\ndata: ${JSON.stringify({ type: 'error', error })}\n\n`;
  own.sim.enqueue({ raw: { headers: { 'content-type': 'text/event-stream' }, body: events } });
  const refused = await own.gateway.post('/v1/images/generations', { model: 'native', prompt: 'x', stream: true });
  assert.match(await refused.text(), /"type":"invalid_request_error","param":null,"code":"moderation_blocked"/);
  const next = await own.gateway.post('/v1/images/generations', { model: 'native', prompt: 'x' });
  assert.equal(next.status, 200, 'the circuit is still closed');
});
