/** What operators see of an exchange: metrics, rows, log lines, headers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeUpstream, jsonAnswer, openStream, sayMessages, startMessage, wholeMessage } from '../support/fake-upstream.ts';
import { ask, channel, eventually, KEY, MODELS, type TestGateway, testGateway } from '../support/test-gateway.ts';

const well = await fakeUpstream((request) =>
  (JSON.parse(request.body).stream === true ? sayMessages('fine') : jsonAnswer(200, wholeMessage('fine')))(request),
);
test.after(() => well.close());

const metrics = (gateway: TestGateway): Promise<string> => gateway.running.gateway.metrics.registry.metrics();
const logged = (gateway: TestGateway, message: string): Record<string, unknown>[] =>
  gateway.logLines.map((line): Record<string, unknown> => JSON.parse(line)).filter(({ msg }) => msg === message);

test('metrics: requests, errors, attempts, first token, gaps, tokens, in flight, circuits', async () => {
  await using gateway = await testGateway({ channels: [channel(well.url)], models: MODELS });
  assert.match(await (await gateway.post('/v1/messages', ask({ stream: true }))).text(), /message_stop/);
  assert.equal((await gateway.post('/v1/messages', ask())).status, 200);
  assert.equal((await gateway.post('/v1/messages', ask({ model: 'nothing' }))).status, 404);
  await eventually(() => gateway.store.settled.length === 3, 'all rows');
  await eventually(() => gateway.running.gateway.metrics !== undefined);
  const text = await metrics(gateway);
  assert.match(text, /^mizu_requests_total\{route="messages",status="200"\} 2$/m);
  assert.match(text, /^mizu_errors_total\{route="messages",code="model_not_found"\} 1$/m);
  assert.match(text, /^mizu_attempts_total\{channel="one",outcome="success",reason=""\} 2$/m);
  assert.match(text, /^mizu_time_to_first_token_seconds_count\{route="messages"\} 1$/m, 'of the stream alone');
  assert.match(text, /^# TYPE mizu_time_between_tokens_seconds histogram$/m);
  assert.match(text, /^mizu_tokens_total\{kind="input"\} 14$/m);
  assert.match(text, /^mizu_tokens_total\{kind="output"\} 10$/m);
  assert.match(text, /^mizu_requests_in_flight\{route="messages"\} 0$/m);
  assert.match(text, /^# TYPE mizu_circuit_open gauge$/m);
});

test('metrics: what requests hold in memory, by kind, while they hold it', async () => {
  await using silent = await fakeUpstream(() => undefined);
  await using gateway = await testGateway({ channels: [channel(silent.url)], models: MODELS });
  const client = new AbortController();
  const asked = gateway.post('/v1/messages', ask({ metadata: { user_id: 'x'.repeat(1000) } }), { signal: client.signal });
  asked.catch(() => undefined);
  const heldOf = async (kind: string): Promise<number> =>
    Number(new RegExp(`^mizu_held\\{kind="${kind}"\\} (\\d+)$`, 'm').exec(await metrics(gateway))?.[1]);
  await eventually(() => silent.requests.length === 1, 'the request upstream');
  assert.ok((await heldOf('body_bytes')) > 1000);
  assert.ok((await heldOf('body_values')) > 3);
  client.abort();
  await eventually(() => gateway.store.settled.length === 1, 'the row');
  for (const kind of [
    'body_bytes',
    'body_values',
    'history_bytes',
    'unfinished_message_bytes',
    'large_bodies',
    'waiting_requests',
    'waiting_streams',
    'leaving_clients',
    'reserved_usd',
  ])
    assert.equal(await heldOf(kind), 0, kind);
});

test('a failure inside a stream reaches the error metric, though its status was 200', async () => {
  await using sick = await fakeUpstream(({ socket }) => {
    const stream = openStream(socket);
    startMessage(stream);
    stream.event('content_block_delta', { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'half' } });
    setTimeout(() => socket.destroy(), 10);
  });
  await using gateway = await testGateway({ channels: [channel(sick.url)], models: MODELS });
  assert.match(await (await gateway.post('/v1/messages', ask({ stream: true }))).text(), /event: error/);
  await eventually(() => gateway.store.settled.length === 1, 'the row');
  await new Promise((resolve) => setImmediate(resolve));
  const text = await metrics(gateway);
  assert.match(text, /^mizu_requests_total\{route="messages",status="200"\} 1$/m);
  assert.match(text, /^mizu_errors_total\{route="messages",code="upstream_error"\} 1$/m);
  assert.match(text, /^mizu_attempts_total\{channel="one",outcome="failure",reason="network"\} 1$/m);
  assert.doesNotMatch(text, /^mizu_attempts_total\{channel="one",outcome="success"/m);
  assert.deepEqual(logged(gateway, 'exchange')[0]?.['failed_attempts'], ['one network']);
  const [attempt] = gateway.store.settled[0]?.attempts ?? [];
  assert.deepEqual([attempt?.errorCode, attempt?.upstreamStatus], ['network', 200]);
});

test('a client that left before it had an answer is no 200', async () => {
  await using silent = await fakeUpstream(() => undefined);
  await using gateway = await testGateway({ channels: [channel(silent.url)], models: MODELS });
  for (const stream of [true, false]) {
    const client = new AbortController();
    const left = assert.rejects(gateway.post('/v1/messages', ask({ stream }), { signal: client.signal }));
    await eventually(() => silent.requests.length === (stream ? 1 : 2), 'the upstream is asked');
    client.abort();
    await left;
  }
  await eventually(() => gateway.store.settled.length === 2, 'rows');
  assert.deepEqual(
    gateway.store.settled.map(({ httpStatus }) => httpStatus),
    [499, 499],
  );
  await new Promise((resolve) => setImmediate(resolve));
  const text = await metrics(gateway);
  assert.match(text, /^mizu_requests_total\{route="messages",status="499"\} 2$/m);
  assert.doesNotMatch(text, /^mizu_requests_total\{route="messages",status="200"/m);
});

test('F43: labels stay few, whatever names clients and upstreams invent', async () => {
  let count = 0;
  await using inventive = await fakeUpstream((request) => {
    const error = { type: `kind_${++count}`, code: `code_${count}`, message: 'no' };
    return jsonAnswer(200, { type: 'error', error })(request);
  });
  await using gateway = await testGateway({
    channels: [channel(inventive.url)],
    models: MODELS,
    health: { failures: 1000 },
  });
  for (let round = 0; round < 40; round++) {
    await gateway.post('/v1/messages', ask({ model: `model-${round}` }));
    await gateway.post(`/v1/path-${round}`, {});
    await gateway.post('/v1/messages', ask({ stream: round % 2 === 0 }), { headers: { 'x-request-id': `id-${round}` } });
  }
  const text = await metrics(gateway);
  assert.doesNotMatch(text, /model-\d|path-\d|kind_\d|code_\d|id-\d/);
  assert.ok(text.split('\n').length < 250, `${text.split('\n').length} lines`);
});

test('a refused request of a known key has a row and a line; one of nobody has neither', async () => {
  await using gateway = await testGateway({ channels: [channel(well.url)], models: MODELS });
  const cases: readonly [unknown, string, string][] = [
    ['{', 'invalid_request', ''],
    [ask({ messages: 5 }), 'invalid_request', ''],
    [ask({ model: 'x'.repeat(1000), stream: true }), 'model_not_found', 'x'.repeat(256)],
  ];
  for (const [index, [body, code, model]] of cases.entries()) {
    await gateway.post('/v1/messages', body, { headers: { 'x-request-id': `mine-${index}` } });
    const entry = gateway.store.settled[index];
    assert.equal(entry?.errorCode, code);
    assert.equal(entry?.requestId, `mine-${index}`);
    assert.equal(entry?.model, model);
    assert.equal(entry?.status, 'error');
    assert.equal(entry?.charge, undefined);
    assert.deepEqual(entry?.attempts, []);
  }
  assert.equal(logged(gateway, 'refused').filter(({ level }) => level === 'info').length, 3);
  gateway.store.walletNanos = 0n;
  assert.equal((await gateway.post('/v1/messages', ask())).status, 402);
  assert.equal(gateway.store.settled[3]?.errorCode, 'insufficient_balance');
  assert.equal(gateway.store.settled[3]?.model, 'm');

  await gateway.post('/v1/messages', ask(), { headers: { authorization: 'Bearer nobody' } });
  await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${KEY}` } });
  await gateway.post('/v1/nowhere', {});
  assert.equal(gateway.store.settled.length, 4, 'neither strangers nor looks at lists are rows');
  assert.equal(gateway.store.held.size, 0);
});

test('one log line an exchange, good or bad', async () => {
  await using gateway = await testGateway({ channels: [channel(well.url)], models: MODELS }, { level: 'info' });
  await (await gateway.post('/v1/messages', ask({ stream: true }))).text();
  await gateway.post('/v1/messages', ask());
  await gateway.post('/v1/messages', '{');
  const lines = () => gateway.logLines.filter((line) => line.includes('"level":"info"'));
  await eventually(() => lines().length >= 3, 'the lines');
  assert.equal(lines().length, 3, lines().join(''));
  const [line] = logged(gateway, 'exchange');
  for (const name of [
    'request_id',
    'exchange_id',
    'key_id',
    'model',
    'channel',
    'attempts',
    'status',
    'ttft_ms',
    'duration_ms',
  ]) {
    assert.notEqual(line?.[name], undefined, name);
  }
  assert.equal(line?.['failed_attempts'], undefined);
});

test('the log line of an exchange names the Channels that failed, and why in words of ours', async () => {
  const words = { type: 'error', error: { type: 'canary', message: 'canary' } };
  await using sick = await fakeUpstream(jsonAnswer(500, words));
  await using gateway = await testGateway({
    channels: [
      channel(sick.url, { id: 'sick' }),
      channel('http://127.0.0.1:1', { id: 'dead', priority: 1 }),
      channel(well.url, { priority: 2 }),
    ],
    models: MODELS,
  });
  assert.equal((await gateway.post('/v1/messages', ask())).status, 200);
  await eventually(() => logged(gateway, 'exchange').length === 1, 'the line');
  const [line] = logged(gateway, 'exchange');
  assert.deepEqual([line?.['channel'], line?.['failed_attempts']], ['one', ['sick status_500', 'dead network']]);
  assert.ok(!gateway.logLines.join('').includes('canary'));
});

test('x-mizu-channel names the Channel, for streams too, when it is switched on', async () => {
  const file = { channels: [channel(well.url)], models: MODELS };
  await using gateway = await testGateway(file);
  for (const stream of [true, false]) {
    assert.equal((await gateway.post('/v1/messages', ask({ stream }))).headers.get('x-mizu-channel'), null);
  }
  gateway.configure({ ...file, channel_header: true });
  for (const stream of [true, false]) {
    assert.equal((await gateway.post('/v1/messages', ask({ stream }))).headers.get('x-mizu-channel'), 'one');
  }
});

test('a circuit that opens is counted and logged', async () => {
  await using sick = await fakeUpstream(jsonAnswer(500, { type: 'error', error: { type: 'api_error', message: 'no' } }));
  await using gateway = await testGateway({
    channels: [channel(sick.url, { id: 'sick' }), channel(well.url, { priority: 1 })],
    models: MODELS,
    health: { failures: 2, cooldown_ms: 60_000 },
  });
  for (let round = 0; round < 4; round++) {
    const messages = [{ role: 'user', content: `conversation ${round}` }];
    assert.equal((await gateway.post('/v1/messages', ask({ messages }))).status, 200);
  }
  assert.equal(sick.requests.length, 2, 'an open circuit is not asked');
  const text = await metrics(gateway);
  assert.match(text, /^mizu_circuit_open\{channel="sick",model="m",state="open"\} 1$/m);
  assert.match(text, /^mizu_circuit_transitions_total\{channel="sick",state="open"\} 1$/m);
  assert.match(text, /^mizu_attempts_total\{channel="sick",outcome="failure",reason="status_500"\} 2$/m);
  assert.deepEqual(
    logged(gateway, 'circuit').map(({ channel: id, state }) => [id, state]),
    [['sick', 'open']],
  );
});

test('F42, V8: canaries: no secret in logs, metrics, channel reports or answers, whatever the upstream says', async () => {
  await using leaky = await fakeUpstream((request) => {
    const key = request.headers.get('x-api-key') ?? '';
    const message = `max_tokens bad for key ${key} at https://up-canary.example/v1 org-canary12345678 sk-ant-canary99999999`;
    return jsonAnswer(400, { type: 'error', error: { type: 'invalid_request_error', message } })(request);
  });
  const secret = 'sk-up-canary-0123456789abcdef';
  await using gateway = await testGateway({
    channels: [channel(leaky.url, { api_key: secret, options: { headers: { 'x-gateway-secret': 'canary-header' } } })],
    models: MODELS,
  });
  const seen: string[] = [];
  for (const stream of [true, false]) {
    const response = await gateway.post('/v1/messages', ask({ stream, system: 'canary-prompt' }), {
      headers: { cookie: 'session=canary-cookie', 'x-goog-api-key': 'canary-goog' },
    });
    seen.push(JSON.stringify([...response.headers]), await response.text());
  }
  const strange = await gateway.post('/v1/messages', ask(), { headers: { authorization: 'Bearer sk-canary-wrong' } });
  seen.push(await strange.text());
  const { channelReport } = await import('../../src/http/operations/reports.ts');
  seen.push(await metrics(gateway), JSON.stringify(channelReport(gateway.running.gateway)), gateway.logLines.join(''));
  for (const text of seen) assert.doesNotMatch(text, /canary|sk-mizu-test/);
  assert.match(gateway.store.settled[0]?.errorText ?? '', /up-canary/, 'the request log alone has the upstream’s words');
});

test('embeddings and pictures: refused requests have rows, and are counted', async () => {
  await using gateway = await testGateway({ channels: [channel(well.url)], models: MODELS });
  for (const [path, body] of [
    ['/v1/embeddings', { model: 'nobody', input: 'hi' }],
    ['/v1/images/generations', { model: 'nobody', prompt: 'a cat' }],
  ] as const) {
    assert.equal((await gateway.post(path, body)).status, 404);
    const entry = gateway.store.settled.at(-1);
    assert.equal(entry?.errorCode, 'model_not_found');
    assert.equal(entry?.model, 'nobody');
  }
  assert.equal(gateway.store.settled.length, 2);
});
