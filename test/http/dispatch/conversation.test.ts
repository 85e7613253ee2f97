/** What keeps a conversation together: affinity, opaque values, the limits of a Channel, and what may leave for an upstream. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type FakeRequest, fakeUpstream, jsonAnswer, openStream, wholeMessage } from '../../support/fake-upstream.ts';
import { ask, channel, eventually, MODELS, testGateway } from '../../support/test-gateway.ts';

test('a growing history stays on its channel', async () => {
  const ups = await Promise.all([1, 2, 3].map(() => fakeUpstream(jsonAnswer(200, wholeMessage('fine')))));
  await using gateway = await testGateway({
    channels: ups.map(({ url }, index) => channel(url, { id: `c${index}` })),
    models: MODELS,
  });
  const messages: object[] = [{ role: 'user', content: 'a question of its own' }];
  for (let turn = 0; turn < 8; turn++) {
    await gateway.post('/v1/messages', ask({ messages }));
    messages.push({ role: 'assistant', content: 'fine' }, { role: 'user', content: `and ${turn}` });
  }
  assert.equal(ups.filter(({ requests }) => requests.length > 0).length, 1);
  assert.equal(gateway.store.settled.filter(({ affinity }) => affinity?.hit === true).length, 7);
  for (let other = 0; other < 30; other++)
    await gateway.post('/v1/messages', ask({ messages: [{ role: 'user', content: `q${other}` }] }));
  assert.equal(ups.filter(({ requests }) => requests.length > 0).length, 3, 'other conversations are spread');
  await Promise.all(ups.map((up) => up.close()));
});

test('a request that is wrong by itself does not take its conversation off its channel', async () => {
  const refused = jsonAnswer(400, { type: 'error', error: { type: 'invalid_request_error', message: 'no' } });
  const fine = jsonAnswer(200, wholeMessage('fine'));
  const answer = (request: FakeRequest) => (request.body.includes('nonsense') ? refused(request) : fine(request));
  const ups = await Promise.all([1, 2, 3, 4].map(() => fakeUpstream(answer)));
  await using gateway = await testGateway({
    channels: ups.map(({ url }, index) => channel(url, { id: `c${index}` })),
    models: MODELS,
  });
  const first = [{ role: 'user', content: 'a question' }];
  const turn = (content: string) =>
    gateway.post(
      '/v1/messages',
      ask({ messages: [...first, { role: 'assistant', content: 'fine' }, { role: 'user', content }] }),
    );
  await gateway.post('/v1/messages', ask({ messages: first }));
  const channels = new Set<string | undefined>();
  for (let round = 0; round < 6; round++) {
    assert.equal((await turn('nonsense')).status, 400);
    assert.equal((await turn('go on')).status, 200);
    channels.add(gateway.store.settled.at(-1)?.channelId);
  }
  assert.equal(channels.size, 1, [...channels].join());
  await Promise.all(ups.map((up) => up.close()));
});

const THINKING = {
  ...wholeMessage('fine'),
  content: [
    { type: 'thinking', thinking: 'hm', signature: 'vendor-signature' },
    { type: 'text', text: 'fine' },
  ],
};

test('an opaque value leaves sealed, comes back opened, and is left out once when the upstream refuses it', async () => {
  let refuse = false;
  await using upstream = await fakeUpstream((request) => {
    if (!refuse || !request.body.includes('vendor-signature')) return jsonAnswer(200, THINKING)(request);
    const message = 'messages.1.content.0: Invalid `signature` in `thinking` block';
    return jsonAnswer(400, { type: 'error', error: { type: 'invalid_request_error', message } })(request);
  });
  await using gateway = await testGateway({ channels: [channel(upstream.url)], models: MODELS });
  const first = await (await gateway.post('/v1/messages', ask())).text();
  assert.doesNotMatch(first, /vendor-signature/);
  const sealed = /"signature":"(mz2\.[^"]+)"/.exec(first)?.[1];
  assert.ok(sealed);
  const messages = [
    { role: 'user', content: 'hi' },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'hm', signature: sealed },
        { type: 'text', text: 'fine' },
      ],
    },
    { role: 'user', content: 'more' },
  ];
  await gateway.post('/v1/messages', ask({ messages }));
  assert.match(upstream.requests[1]?.body ?? '', /"signature":"vendor-signature"/);
  refuse = true;
  assert.equal((await gateway.post('/v1/messages', ask({ messages }))).status, 200);
  assert.equal(upstream.requests.length, 4);
  assert.doesNotMatch(upstream.requests[3]?.body ?? '', /vendor-signature|mz2\./);
});

for (const type of ['messages', 'responses', 'chat_completion']) {
  test(`an opaque value finds its way back through a gateway whose upstream is another one (${type})`, async () => {
    await using vendor = await fakeUpstream(jsonAnswer(200, THINKING));
    await using inner = await testGateway({ channels: [channel(vendor.url)], models: MODELS });
    inner.store.addKey('sk-mizu-inner', {}, { id: 'inner' });
    await using outer = await testGateway({ channels: [channel(inner.url, { type, api_key: 'sk-mizu-inner' })], models: MODELS });
    const first = await (await outer.post('/v1/messages', ask())).text();
    assert.doesNotMatch(first, /vendor-signature/);
    const { content }: { content: object[] } = JSON.parse(first);
    const messages = [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content },
      { role: 'user', content: 'more' },
    ];
    assert.equal((await outer.post('/v1/messages', ask({ messages }))).status, 200);
    assert.match(vendor.requests[1]?.body ?? '', /"signature":"vendor-signature"/);
  });
}

test('signatures on texts and calls find their way back through a gateway whose upstream is another one', async () => {
  const parts = [
    { text: 'I call', thoughtSignature: 'U0lHVEVYVA==' },
    { functionCall: { name: 'f', args: {} }, thoughtSignature: 'U0lHQ0FMTA==' },
  ];
  const answer = {
    candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP' }],
    usageMetadata: { promptTokenCount: 1 },
  };
  await using vendor = await fakeUpstream(jsonAnswer(200, answer));
  await using inner = await testGateway({ channels: [channel(vendor.url, { type: 'gemini' })], models: MODELS });
  inner.store.addKey('sk-mizu-inner', {}, { id: 'inner' });
  for (const type of ['messages', 'responses', 'chat_completion']) {
    vendor.requests.length = 0;
    await using outer = await testGateway({ channels: [channel(inner.url, { type, api_key: 'sk-mizu-inner' })], models: MODELS });
    const tools = [{ name: 'f', input_schema: { type: 'object' } }];
    const { content }: { content: { type: string; id?: string }[] } = JSON.parse(
      await (await outer.post('/v1/messages', ask({ tools }))).text(),
    );
    const id = content.find((block) => block.type === 'tool_use')?.id;
    const messages = [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'r' }] },
    ];
    assert.equal((await outer.post('/v1/messages', ask({ tools, messages }))).status, 200);
    const sent = vendor.requests[1]?.body ?? '';
    for (const { thoughtSignature } of parts) assert.ok(sent.includes(thoughtSignature), `${type}: ${thoughtSignature}`);
  }
});

test('each channel that refuses an opaque value is asked once more without it', async () => {
  let refuse = false;
  const refusing = (then: ReturnType<typeof jsonAnswer>) =>
    fakeUpstream((request) => {
      if (!refuse) return jsonAnswer(200, THINKING)(request);
      if (!request.body.includes('vendor-signature')) return then(request);
      const message = 'messages.1.content.0: Invalid `signature` in `thinking` block';
      return jsonAnswer(400, { type: 'error', error: { type: 'invalid_request_error', message } })(request);
    });
  await using sick = await refusing(jsonAnswer(500, { type: 'error', error: { type: 'api_error', message: 'no' } }));
  await using well = await refusing(jsonAnswer(200, THINKING));
  await using gateway = await testGateway({
    channels: [
      channel(sick.url, { opaque_scope: 'one vendor' }),
      channel(well.url, { id: 'two', priority: 1, opaque_scope: 'one vendor' }),
    ],
    models: MODELS,
  });
  const { content }: { content: object[] } = JSON.parse(await (await gateway.post('/v1/messages', ask())).text());
  refuse = true;
  const messages = [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content },
    { role: 'user', content: 'more' },
  ];
  const response = await gateway.post('/v1/messages', ask({ messages }));
  assert.equal(response.status, 200, await response.text());
  const withValue = well.requests.map(({ body }) => body.includes('vendor-signature'));
  assert.deepEqual(withValue, [true, false]);
});

test('a channel’s concurrency limit queues, and a full queue goes to the next channel', async (t) => {
  let running = 0;
  let most = 0;
  const next = await fakeUpstream(jsonAnswer(200, wholeMessage('next')));
  const slow = await fakeUpstream(async (request) => {
    running += 1;
    most = Math.max(most, running);
    // Nobody is done before all have come.
    await eventually(() => next.requests.length === 2, 'the queue is full');
    running -= 1;
    await jsonAnswer(200, wholeMessage('slow'))(request);
  });
  t.after(() => Promise.all([slow.close(), next.close()]));
  await using gateway = await testGateway({
    channels: [
      channel(slow.url, { options: { max_concurrency: 2, max_queue: 2 } }),
      channel(next.url, { id: 'two', priority: 1 }),
    ],
    models: MODELS,
  });
  const answers = await Promise.all(
    Array.from({ length: 6 }, (_, index) =>
      gateway.post('/v1/messages', ask({ messages: [{ role: 'user', content: `${index}` }] })),
    ),
  );
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200, 200, 200, 200],
  );
  assert.equal(most, 2);
  assert.equal(slow.requests.length, 4);
  assert.equal(next.requests.length, 2);
});

test('X12: what leaves: the channel’s credential, the protocol’s headers, what the operator listed, and nothing else', async () => {
  await using upstream = await fakeUpstream(jsonAnswer(200, wholeMessage('fine')));
  const options = {
    auth: 'bearer',
    headers: { 'X-Team': 'a', 'user-agent': null },
    forward_headers: ['x-trace'],
    parameters: { temperature: 0.5 },
    drop_parameters: ['metadata'],
    path: '/custom/{model}',
  };
  await using gateway = await testGateway({
    channels: [channel(upstream.url, { options, models: { m: 'real model' } })],
    models: MODELS,
  });
  await gateway.post('/v1/messages', ask({ metadata: { user_id: 'u' }, api_base: 'http://evil' }), {
    headers: {
      'x-trace': 't',
      'x-secret': 's',
      'x-forwarded-for': '203.0.113.7',
      forwarded: 'for=203.0.113.7',
      via: '1.1 inner',
      'x-real-ip': '203.0.113.7',
      cookie: 'c',
      'anthropic-version': '2026-10-21',
      'anthropic-beta': 'b-1',
      'accept-encoding': 'gzip',
    },
  });
  const sent: FakeRequest | undefined = upstream.requests[0];
  assert.equal(sent?.path, '/custom/real%20model');
  const names = [...(sent?.headers.keys() ?? [])].sort();
  assert.deepEqual(names, [
    'accept',
    'accept-encoding',
    'anthropic-beta',
    'anthropic-version',
    'authorization',
    'connection',
    'content-length',
    'content-type',
    'host',
    'x-team',
    'x-trace',
  ]);
  assert.equal(sent?.headers.get('authorization'), 'Bearer sk-upstream');
  assert.equal(sent?.headers.get('accept-encoding'), 'identity');
  assert.equal(sent?.headers.get('anthropic-version'), '2026-10-21');
  const body: unknown = JSON.parse(sent?.body ?? '');
  assert.deepEqual(body, { model: 'real model', max_tokens: 100, messages: [{ role: 'user', content: 'hi' }], temperature: 0.5 });
});

test('betas of a messages client are kept, and the one that its files need is added once', async () => {
  await using upstream = await fakeUpstream(jsonAnswer(200, wholeMessage('fine')));
  await using gateway = await testGateway({ channels: [channel(upstream.url, { file_scope: 'files' })], models: MODELS });
  const content = [{ type: 'document', source: { type: 'file', file_id: 'file_1' } }];
  const body = ask({ messages: [{ role: 'user', content }] });
  const files = 'files-api-2025-04-14';
  for (const betas of [undefined, 'b-1, b-2', `${files}, b-1`]) {
    await gateway.post('/v1/messages', body, betas === undefined ? {} : { headers: { 'anthropic-beta': betas } });
  }
  assert.deepEqual(
    upstream.requests.map(({ headers }) => headers.get('anthropic-beta')),
    [files, `b-1, b-2,${files}`, `${files}, b-1`],
  );
});

test('betas of the Channel join those of the client and of the request', async () => {
  await using upstream = await fakeUpstream(jsonAnswer(200, wholeMessage('fine')));
  const options = { headers: { 'anthropic-beta': 'b-2,c-1' } };
  await using gateway = await testGateway({ channels: [channel(upstream.url, { options })], models: MODELS });
  await gateway.post('/v1/messages', ask({}), { headers: { 'anthropic-beta': 'b-1, b-2' } });
  await gateway.post('/v1/messages', ask({}));
  assert.deepEqual(
    upstream.requests.map(({ headers }) => headers.get('anthropic-beta')),
    ['b-1, b-2,c-1', 'b-2,c-1'],
  );
});

test('X8: a client that leaves before the first byte, and one that leaves a whole answer, let go of the upstream', async () => {
  for (const stream of [true, false]) {
    await using upstream = await fakeUpstream(({ socket }) => {
      if (stream) openStream(socket);
    });
    await using gateway = await testGateway({ channels: [channel(upstream.url)], models: MODELS });
    const abort = new AbortController();
    const asked = gateway.post('/v1/messages', ask({ stream }), { signal: abort.signal });
    await eventually(() => upstream.requests.length === 1, 'the attempt');
    abort.abort();
    await assert.rejects(asked);
    await eventually(() => upstream.sockets.size === 0, 'the upstream is let go');
    await eventually(() => gateway.store.settled.length === 1, 'settlement');
    assert.equal(gateway.store.settled[0]?.clientGone, true);
    assert.equal(gateway.store.settled[0]?.charge, undefined);
    assert.equal(gateway.store.held.size, 0);
  }
});

test('where a request goes: the endpoint behind the base URL, or the path that the Channel names in its place', async () => {
  await using upstream = await fakeUpstream(jsonAnswer(200, wholeMessage('fine')));
  const paths = async (base: string, path?: string) => {
    const options = path === undefined ? {} : { options: { path } };
    const channels = [channel(upstream.url + base, { models: { m: 'a model/1' }, ...options })];
    await using gateway = await testGateway({ channels, models: MODELS });
    assert.equal((await gateway.post('/v1/messages', ask())).status, 200);
    return upstream.requests.at(-1)?.path;
  };
  assert.equal(await paths(''), '/v1/messages');
  assert.equal(await paths('/proxy/'), '/proxy/v1/messages');
  assert.equal(await paths('/proxy/v2'), '/proxy/v2/messages');
  assert.equal(await paths('/v1', '/custom/{model}/ask?key=1'), '/custom/a%20model%2F1/ask?key=1');
  assert.equal(await paths('/proxy', '/custom'), '/custom', 'all of it');
});
