/** Responses over WebSocket through real sockets: who may open one, what a turn is, what ends it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { test } from 'node:test';
import { WebSocket } from 'ws';
import { createFakeClock } from '../../support/fake-clock.ts';
import { fakeUpstream, sayMessages } from '../../support/fake-upstream.ts';
import { eventually, KEY, type TestGateway, testGateway } from '../../support/test-gateway.ts';
import { formsConfig, startVendors, upstreamForms } from '../../support/upstream-forms.ts';
import { connect, type ServerEvent, socketClient } from './socket-client.ts';
import { sized } from '../../support/sampled.ts';

const simulator = await startVendors({ pace: { cut: 'packet' } });
test.after(() => simulator.close());
test.beforeEach(() => simulator.reset());

const FORMS = upstreamForms(import.meta.filename);

function configOf(changes: object = {}): object {
  return {
    ...formsConfig(FORMS, simulator.url),
    ...changes,
  };
}

const V1 = { 'openai-beta': 'responses_websockets=2026-02-04' };
const V2 = { 'openai-beta': 'responses=experimental, responses_websockets=2026-02-06' };

const say = (text: string) => ({ reply: { pieces: [{ type: 'text' as const, text }], usage: { input: 10, output: 5 } } });
const slow = (text: string) => ({ ...say(text), pace: { ms: 20 } });
const create = (changes: object = {}) => ({ type: 'response.create', model: 'messages', input: 'hi', ...changes });

interface Body {
  readonly id: string;
  readonly completed_at: number | null;
  readonly output: readonly { readonly type: string; readonly call_id?: string }[];
}

function responseOf(event: ServerEvent | undefined): Body {
  assert.ok(event !== undefined && typeof event['response'] === 'object', JSON.stringify(event));
  return event['response'] as Body;
}

function errorOf(event: ServerEvent | undefined): { readonly status: unknown; readonly code: unknown; readonly param: unknown } {
  assert.equal(event?.type, 'error', JSON.stringify(event));
  const { code, param } = event['error'] as { code: unknown; param: unknown };
  return { status: event['status'], code, param };
}

/** The status and body that an upgrade was refused with. */
async function refusedUpgrade(gateway: TestGateway, path: string, headers: Record<string, string>) {
  const ws = new WebSocket(gateway.url.replace('http', 'ws') + path, { headers });
  return await new Promise<{ status: number; body: string; id: unknown }>((resolve, reject) => {
    ws.on('unexpected-response', (_request, response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          body: Buffer.concat(chunks).toString(),
          id: response.headers['x-request-id'],
        }),
      );
    });
    ws.on('open', () => reject(new Error('it was opened')));
    ws.on('error', () => undefined);
  });
}

test('W1: who may not come in is told before the upgrade, over plain HTTP; no model is asked for', async () => {
  await using gateway = await testGateway(configOf({ websocket: { per_key: 1 } }));
  gateway.store.addKey('sk-mizu-elsewhere', { id: 'key_ip', ips: ['10.0.0.0/8'] });
  gateway.store.addKey('sk-mizu-off', { id: 'key_off', disabled: true });
  const cases: [Record<string, string>, number, string][] = [
    [{}, 401, 'unauthorized'],
    [{ authorization: 'Bearer sk-mizu-wrong' }, 401, 'unauthorized'],
    [{ authorization: 'Bearer sk-mizu-off' }, 401, 'unauthorized'],
    [{ authorization: `Bearer ${KEY}`, 'x-api-key': 'sk-mizu-off' }, 401, 'unauthorized'],
    [{ authorization: 'Bearer sk-mizu-elsewhere' }, 403, 'ip_not_allowed'],
  ];
  for (const [headers, status, code] of cases) {
    const refused = await refusedUpgrade(gateway, '/v1/responses', headers);
    assert.equal(refused.status, status);
    assert.equal(JSON.parse(refused.body).error.code, code);
    assert.match(String(refused.id), /^req_/);
  }
  const first = await connect(gateway, { headers: { 'x-api-key': KEY } });
  assert.equal((await refusedUpgrade(gateway, '/v1/responses', { 'x-api-key': KEY })).status, 429);
  first.ws.close();
  await first.closed;
  gateway.store.broken = true;
  assert.equal((await refusedUpgrade(gateway, '/v1/responses', { 'x-api-key': KEY })).status, 503);
  const counted = await gateway.running.gateway.metrics.registry.metrics();
  for (const [status, count] of [
    [401, 4],
    [403, 1],
    [429, 1],
    [503, 1],
  ])
    assert.ok(
      counted.includes(`mizu_requests_total{route="responses",status="${status}"} ${count}\n`),
      `${status} in ${counted}`,
    );
});

test('the answer to an upgrade has a request id, too: the client’s own, or one of ours', async () => {
  await using gateway = await testGateway(configOf());
  for (const [headers, id] of [
    [{}, /^req_[0-9a-f]{32}$/],
    [{ 'x-request-id': 'mine-1' }, /^mine-1$/],
  ] as const) {
    const url = `${gateway.url.replace('http', 'ws')}/v1/responses`;
    const ws = new WebSocket(url, { headers: { authorization: `Bearer ${KEY}`, ...headers } });
    const [response] = await once(ws, 'upgrade');
    assert.match(String(response.headers['x-request-id']), id);
    ws.terminate();
  }
});

test('the size of a message: a reload counts for the connections that are opened after it', async () => {
  await using gateway = await testGateway(configOf({ limits: { json_bytes: 65_536 } }));
  const before = await connect(gateway);
  gateway.configure(configOf({ limits: { json_bytes: 1_024 } }));
  const after = await connect(gateway);
  for (const [client, limit] of [
    [before, 65_536],
    [after, 1_024],
  ] as const) {
    client.send(' '.repeat(limit + 1));
    const told = await client.next();
    assert.match(JSON.stringify(told), new RegExp(`at most ${limit} bytes`));
    assert.equal((await client.closed).code, 1009);
  }
});

test('every alias opens, other paths and other protocols do not', async () => {
  await using gateway = await testGateway(configOf());
  for (const prefix of ['/v1', '', '/api/v1', '/api']) {
    for (const path of ['/responses', '/codex/responses']) {
      const client = await connect(gateway, { path: `${prefix}${path}?beta=true` });
      client.ws.close();
      await client.closed;
    }
  }
  assert.equal((await refusedUpgrade(gateway, '/v1/models', { authorization: `Bearer ${KEY}` })).status, 200);
  assert.equal((await refusedUpgrade(gateway, '/v1/nothing', {})).status, 404);
  const plain = await new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${KEY}`, connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c' };
    request(`${gateway.url}/v1/responses`, { method: 'POST', headers }, (answer) => resolve(answer.resume().statusCode))
      .on('error', reject)
      .end('{"model":"messages","input":"hi"}');
  });
  assert.equal(plain, 200, 'an upgrade to something else is ignored');
});

for (const { name: model } of FORMS) {
  test(`a tool turn, continued on the connection although store is false, over ${model}`, async () => {
    await using gateway = await testGateway(configOf());
    const client = await connect(gateway, { headers: V2 });
    simulator.enqueue({
      reply: {
        pieces: [
          { type: 'reasoning', summary: ['hm'], opaque: true },
          { type: 'tool', name: 'look', arguments: '{"at":1}' },
        ],
      },
    });
    const tools = [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }];
    const first = await client.turn(create({ model, tools, store: false, input: 'question' }));
    assert.equal(first[0]?.type, 'response.created');
    assert.deepEqual(
      first.map((event) => event['sequence_number']),
      first.map((_, index) => index),
    );
    const answer = responseOf(first.at(-1));
    const call = answer.output.find(({ type }) => type === 'function_call');
    simulator.enqueue(say('the end'));
    const output = { type: 'function_call_output', call_id: call?.call_id, output: 'result' };
    const second = await client.turn(create({ model, tools, store: false, previous_response_id: answer.id, input: [output] }));
    assert.equal(second.at(-1)?.type, 'response.completed');
    const sent = simulator.requests.at(-1)?.text ?? '';
    for (const piece of ['question', 'look', 'result']) assert.ok(sent.includes(piece), sent);
    for (const piece of ['"generate"', 'response.create', 'mz2.', 'previous_response_id']) assert.ok(!sent.includes(piece), sent);
    client.ws.close();
    await client.closed;
    const later = await connect(gateway, { headers: V2 });
    const gone = await later.turn(create({ model, previous_response_id: responseOf(second.at(-1)).id }));
    assert.deepEqual(errorOf(gone[0]), { status: 400, code: 'previous_response_not_found', param: 'previous_response_id' });
    const rows = gateway.store.settled.map(({ status, errorCode }) => errorCode ?? status);
    assert.deepEqual(rows, ['success', 'success', 'previous_response_not_found']);
  });
}

for (const { name: model } of FORMS) {
  test(`W13: what is said twice reaches ${model} twice, within one input and over turns`, async () => {
    await using gateway = await testGateway(configOf());
    const client = await connect(gateway);
    const again = { type: 'message', role: 'user', content: 'once more' };
    const marked = { ...again, id: 'msg_1' };
    const calls = ['call_1', 'call_2'].flatMap((call_id) => [
      { type: 'function_call', call_id, name: 'look', arguments: '{"at":"door"}' },
      { type: 'function_call_output', call_id, output: 'still closed' },
    ]);
    const input = [again, again, marked, marked, ...calls];
    simulator.enqueue(say('one'), say('two'));
    const first = responseOf((await client.turn(create({ model, store: false, input }))).at(-1));
    const sent = () => simulator.requests.at(-1)?.text ?? '';
    const count = (piece: string) => sent().split(piece).length - 1;
    assert.deepEqual([count('once more'), count('still closed')], [4, 2], sent());
    await client.turn(create({ model, store: false, previous_response_id: first.id, input: [again, marked] }));
    assert.deepEqual([count('once more'), count('still closed')], [6, 2], sent());
  });
}

test('W9: each turn has a row, an exchange, a charge and an outcome of its own', async () => {
  await using gateway = await testGateway(configOf());
  const client = await connect(gateway);
  simulator.enqueue(say('one'));
  await client.turn(create());
  simulator.enqueue({ ...say('a b c d e f'), faults: [{ type: 'cut', at: 5 }] });
  await client.turn(create());
  await client.turn(create({ model: 'nothing' }));
  simulator.enqueue({ reply: { pieces: [{ type: 'text', text: 'two' }], usage: { input: 30, output: 7 } } });
  await client.turn(create({ model: 'responses' }));
  client.ws.close();
  await client.closed;
  await eventually(() => gateway.store.settled.length === 4);
  const { settled } = gateway.store;
  const rows = settled.map(({ model, status, errorCode, attempts, usage }) => [
    model,
    errorCode ?? status,
    attempts.length,
    usage?.input,
    usage?.output,
  ]);
  assert.deepEqual(rows, [
    ['messages', 'success', 1, 10, 5],
    ['messages', 'upstream_error', 1, 10, 1],
    ['nothing', 'model_not_found', 0, undefined, undefined],
    ['responses', 'success', 1, 30, 7],
  ]);
  assert.ok(settled.every(({ clientGone }) => clientGone === undefined));
  for (const id of ['exchangeId', 'requestId'] as const) assert.equal(new Set(settled.map((row) => row[id])).size, 4, id);
});

test('W2: a warm-up is answered without an upstream, a charge or a row, and can be continued', async () => {
  await using gateway = await testGateway(configOf());
  const client = await connect(gateway, { headers: V2 });
  const events = await client.turn(create({ generate: false, store: false, input: 'the prompt' }));
  assert.deepEqual(
    events.map(({ type }) => type),
    ['response.created', 'response.in_progress', 'response.completed'],
  );
  const warm = responseOf(events.at(-1));
  assert.deepEqual(warm.output, []);
  assert.equal(typeof warm.completed_at, 'number');
  assert.equal(simulator.requests.length, 0);
  assert.equal(gateway.store.opened.length, 0);
  await client.turn(create({ previous_response_id: warm.id, input: 'the question' }));
  const sent = simulator.requests.at(-1)?.text ?? '';
  assert.ok(sent.includes('the prompt') && sent.includes('the question'));
  const wrong = await client.turn(create({ generate: false, model: 'nothing' }));
  assert.equal(errorOf(wrong[0]).code, 'model_not_found');
  const asked = simulator.requests.length;
  for (const generate of ['false', 0, 'no', {}]) {
    const [refused] = await client.turn(create({ generate }));
    assert.deepEqual(errorOf(refused), { status: 400, code: 'invalid_request', param: 'generate' });
  }
  assert.equal(simulator.requests.length, asked, 'nobody was asked, and nothing is charged');
  assert.equal((await client.turn(create({ generate: null }))).at(-1)?.type, 'response.completed');
});

test('a warm-up may show instructions and tools alone: its input comes with the question', async () => {
  await using gateway = await testGateway(configOf());
  const client = await connect(gateway, { headers: V2 });
  for (const input of [undefined, null]) {
    const warm = await client.turn(create({ generate: false, store: false, instructions: 'stay brief', input }));
    assert.equal(warm.at(-1)?.type, 'response.completed', JSON.stringify(warm));
    const { id } = responseOf(warm.at(-1));
    await client.turn({ type: 'response.create', previous_response_id: id, input: 'the question' });
    const sent = simulator.requests.at(-1)?.text ?? '';
    assert.ok(sent.includes('stay brief') && sent.includes('the question'), sent);
  }
});

test('a create that continues the last response says what it changes; one that continues another inherits nothing', async () => {
  await using gateway = await testGateway(configOf());
  for (const headers of [V1, V2, {}]) {
    const client = await connect(gateway, { headers });
    const tools = [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }];
    const warm = await client.turn(create({ instructions: 'stay brief', tools, temperature: 0.25, generate: false }));
    const { id: warmId } = responseOf(warm.at(-1));
    // No model either: it is a member like the others.
    const events = await client.turn({
      type: 'response.create',
      previous_response_id: warmId,
      input: 'question',
      temperature: 0.75,
    });
    const sent = simulator.requests.at(-1)?.text ?? '';
    for (const piece of ['hi', 'question', 'stay brief', '"look"', '0.75']) assert.ok(sent.includes(piece), sent);
    assert.ok(!sent.includes('0.25'), sent);
    const { id } = responseOf(events.at(-1));
    await client.turn(create({ previous_response_id: id, input: 'more', instructions: null, tools: [] }));
    const changed = simulator.requests.at(-1)?.text ?? '';
    for (const piece of ['question', 'more', '0.75']) assert.ok(changed.includes(piece), changed);
    for (const piece of ['stay brief', '"look"']) assert.ok(!changed.includes(piece), changed);
    // The warm-up is not the last response any more: stored history is what it is over HTTP.
    await client.turn(create({ previous_response_id: warmId, input: 'elsewhere' }));
    const branch = simulator.requests.at(-1)?.text ?? '';
    assert.ok(branch.includes('hi') && !branch.includes('stay brief') && !branch.includes('0.25'), branch);
    client.ws.close();
  }
});

test('stored responses are shared between HTTP and WebSocket', async () => {
  await using gateway = await testGateway(configOf());
  const client = await connect(gateway);
  const events = await client.turn(create({ input: 'over the socket' }));
  const { id } = responseOf(events.at(-1));
  const answer = await gateway.post('/v1/responses', { model: 'messages', input: 'over http', previous_response_id: id });
  const { id: next }: Body = JSON.parse(await answer.text());
  await client.turn(create({ previous_response_id: next, input: 'and back' }));
  const sent = simulator.requests.at(-1)?.text ?? '';
  for (const piece of ['over the socket', 'over http', 'and back']) assert.ok(sent.includes(piece));
});

test('v1: the good ending is response.done, and response.append continues with the last controls', async () => {
  await using gateway = await testGateway(configOf());
  const client = await connect(gateway, { headers: V1 });
  simulator.enqueue({ reply: { pieces: [{ type: 'tool', name: 'look', arguments: '{}' }] } });
  const tools = [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }];
  const first = await client.turn(create({ tools, instructions: 'stay brief', input: 'question', store: false }));
  assert.equal(first.at(-1)?.type, 'response.done');
  assert.equal(first.filter(({ type }) => type === 'response.completed').length, 0);
  const call = responseOf(first.at(-1)).output.find(({ type }) => type === 'function_call');
  simulator.enqueue(say('done'));
  const second = await client.turn({
    type: 'response.append',
    input: [{ type: 'function_call_output', call_id: call?.call_id, output: 'result' }],
  });
  assert.equal(second.at(-1)?.type, 'response.done');
  const sent = simulator.requests.at(-1)?.text ?? '';
  for (const piece of ['stay brief', 'question', 'look', 'result']) assert.ok(sent.includes(piece), sent);
  simulator.enqueue({ reply: { pieces: [{ type: 'text', text: 'cut' }], finish: 'length' } });
  const third = await client.turn({ type: 'response.append', input: 'more' });
  assert.equal(third.at(-1)?.type, 'response.incomplete', 'only the good ending is renamed');
  await client.turn({ type: 'response.append', input: 'again' });
  assert.ok(!simulator.requests.at(-1)?.text.includes('"more"'), 'what was cut is not continued');
  assert.ok(simulator.requests.at(-1)?.text.includes('result'));
});

test('v2 takes no append; a client that says nothing of itself becomes v1 by sending one', async () => {
  await using gateway = await testGateway(configOf());
  const second = await connect(gateway, {
    headers: { 'openai-beta': 'responses_websockets=2026-02-04,responses_websockets=2026-02-06' },
  });
  await second.turn(create());
  assert.equal(errorOf((await second.turn({ type: 'response.append', input: [] }))[0]).code, 'invalid_websocket_event');
  const unsaid = await connect(gateway);
  assert.equal(errorOf((await unsaid.turn({ type: 'response.append', input: 'x' }))[0]).code, 'previous_response_not_found');
  const other = await connect(gateway);
  assert.equal((await other.turn(create())).at(-1)?.type, 'response.completed');
  assert.equal((await other.turn({ type: 'response.append', input: 'x' })).at(-1)?.type, 'response.done');
});

test('F26: bad messages are answered and the connection goes on', async () => {
  await using gateway = await testGateway(configOf());
  const client = await connect(gateway);
  const bad: [object | string | Buffer, string | null][] = [
    [Buffer.from('{}'), null],
    ['not json', null],
    ['[]', null],
    ['', null],
    ['{}', 'type'],
    [{ type: 'response.steered' }, 'type'],
    [{ type: 7 }, 'type'],
    [{ type: 'response.append' }, 'input'],
    [`{"type":"response.create","input":${'['.repeat(600)}${']'.repeat(600)}}`, null],
  ];
  for (const [message, param] of bad) {
    client.send(message);
    assert.deepEqual(errorOf(await client.next()), { status: 400, code: 'invalid_websocket_event', param });
  }
  client.send({ type: 'response.processed', response_id: 'resp_x' });
  const wrong: [object, number, string][] = [
    [create({ model: undefined }), 400, 'invalid_request'],
    [create({ model: 'nothing' }), 404, 'model_not_found'],
    [create({ input: [{ role: 'nobody', content: 'x' }] }), 400, 'invalid_request'],
    [create({ background: true }), 400, 'background_not_supported'],
    [create({ previous_response_id: 'a', conversation: 'b' }), 400, 'invalid_request'],
  ];
  for (const [event, status, code] of wrong) {
    const { status: gotStatus, code: gotCode } = errorOf((await client.turn(event))[0]);
    assert.deepEqual([gotStatus, gotCode], [status, code]);
  }
  assert.equal((await client.turn(create({ stream: false }))).at(-1)?.type, 'response.completed', 'a stream is implied');
  const nested = await client.turn({ type: 'response.create', response: { model: 'messages', input: 'nested' } });
  assert.equal(nested.at(-1)?.type, 'response.completed');
});

test('F26: one at a time: a second create is refused, the first goes on; the lane is echoed', async () => {
  await using gateway = await testGateway(configOf());
  const client = await connect(gateway);
  simulator.enqueue(slow('one two three four five'));
  client.send(create({ stream_id: 'lane-1' }));
  await client.next(({ type }) => type === 'response.output_text.delta');
  client.send(create({ stream_id: 'lane-2' }));
  const busy = await client.next(({ type }) => type === 'error');
  assert.deepEqual([errorOf(busy).status, errorOf(busy).code, busy['stream_id']], [409, 'websocket_busy', 'lane-2']);
  const end = await client.next(({ type }) => type === 'response.completed');
  assert.equal(end['stream_id'], 'lane-1');
  assert.ok(client.events.filter(({ type }) => type !== 'error').every((event) => event['stream_id'] === 'lane-1'));
});

test('with durability strict each turn is in the books before its ending is said', async () => {
  await using gateway = await testGateway(configOf());
  const settle = gateway.store.settlements.settle.bind(gateway.store.settlements);
  Object.assign(gateway.store.settlements, {
    settle: async (settlement: Parameters<typeof settle>[0]) => {
      await new Promise((resolve) => setTimeout(resolve, 30));
      return await settle(settlement);
    },
  });
  gateway.configure(configOf({ ledger: { durability: 'strict' } }));
  const client = await connect(gateway);
  for (let turn = 1; turn <= 3; turn++) {
    assert.equal((await client.turn(create())).at(-1)?.type, 'response.completed');
    assert.equal(gateway.store.settled.length, turn);
  }
});

test('W11: after the last turn the next is refused before any work, and the connection closes', async () => {
  await using gateway = await testGateway(configOf({ websocket: { turns: 3 } }));
  const client = await connect(gateway);
  await client.turn(create());
  await client.turn(create({ generate: false }));
  client.send('not json');
  await client.next(({ type }) => type === 'error');
  await client.turn(create());
  const asked = simulator.requests.length;
  const [refused] = await client.turn(create());
  assert.deepEqual(errorOf(refused), { status: 400, code: 'websocket_connection_limit_reached', param: null });
  await client.closed;
  assert.equal(simulator.requests.length, asked);
});

test('F26: 128 turns are the default', async () => {
  await using gateway = await testGateway(configOf());
  const client = await connect(gateway);
  for (let turn = 0; turn < 128; turn++) {
    assert.equal((await client.turn(create({ generate: false }))).at(-1)?.type, 'response.completed');
  }
  assert.equal(errorOf((await client.turn(create({ generate: false })))[0]).code, 'websocket_connection_limit_reached');
  await client.closed;
});

test('a connection that is as old as it may get begins no turn, and closes as after its last one', async () => {
  const clock = createFakeClock();
  await using gateway = await testGateway(configOf({ websocket: { lifetime_ms: 40_000 } }), { clock });
  const client = await connect(gateway);
  clock.advance(39_999);
  assert.equal((await client.turn(create())).at(-1)?.type, 'response.completed');
  clock.advance(1);
  const [refused] = await client.turn(create());
  assert.deepEqual(errorOf(refused), { status: 400, code: 'websocket_connection_limit_reached', param: null });
  assert.equal((await client.closed).code, 1001);
  assert.equal(simulator.requests.length, 1);
});

test('a connection is idle since the end of its last turn', async () => {
  const clock = createFakeClock();
  await using gateway = await testGateway(configOf({ websocket: { idle_ms: 40_000 } }), { clock });
  const client = await connect(gateway);
  simulator.enqueue(slow('a b c d e f'));
  client.send(create());
  await client.next(({ type }) => type === 'response.output_text.delta');
  clock.advance(30_000);
  await client.next(({ type }) => type === 'response.completed');
  await eventually(() => gateway.store.settled.length === 1);
  clock.advance(30_000);
  assert.equal((await client.turn(create())).at(-1)?.type, 'response.completed');
});

test('an idle time that is shorter than the interval of pings is kept, too, and brings no more pings', async () => {
  const clock = createFakeClock();
  await using gateway = await testGateway(configOf({ websocket: { idle_ms: 4_000 } }), { clock });
  const client = await connect(gateway);
  let pings = 0;
  client.ws.on('ping', () => {
    pings += 1;
  });
  clock.advance(3_000);
  assert.equal((await client.turn(create())).at(-1)?.type, 'response.completed');
  await eventually(() => gateway.store.settled.length === 1);
  clock.advance(3_000);
  assert.equal((await client.turn(create())).at(-1)?.type, 'response.completed');
  await eventually(() => gateway.store.settled.length === 2);
  clock.advance(8_000);
  assert.deepEqual(await client.closed, { code: 1000, reason: 'idle' });
  assert.equal(pings, 0);
});

test('W5: a client that closes cancels the upstream at once, and no Channel is blamed', async () => {
  await using gateway = await testGateway(configOf());
  for (const phase of ['before the first word', 'in the middle'] as const) {
    const client = await connect(gateway);
    simulator.enqueue(phase === 'in the middle' ? slow('a b c d e f g h i j k l m n o p') : { faults: [{ type: 'silent' }] });
    client.send(create());
    if (phase === 'in the middle') await client.next(({ type }) => type === 'response.output_text.delta');
    else await eventually(() => simulator.requests.length === 1);
    client.ws.terminate();
    await eventually(() => simulator.requests.at(-1)?.state === 'left', `the upstream is let go ${phase}`);
  }
  await eventually(() => gateway.store.settled.length === 2);
  for (const entry of gateway.store.settled) assert.equal(entry.clientGone, true);
  const client = await connect(gateway);
  assert.equal((await client.turn(create())).at(-1)?.type, 'response.completed');
});

test('response.cancel ends the turn in its own words; the connection goes on', async () => {
  await using gateway = await testGateway(configOf());
  const client = await connect(gateway);
  simulator.enqueue(slow('a b c d e f g h i j k l m n o p'));
  client.send(create());
  await client.next(({ type }) => type === 'response.output_text.delta');
  client.send({ type: 'response.cancel' });
  const end = await client.next(({ type }) => type === 'response.failed');
  assert.equal((end['response'] as { error: { code: string } }).error.code, 'cancelled');
  await eventually(() => simulator.requests.at(-1)?.state === 'left');
  simulator.enqueue({ faults: [{ type: 'silent' }] });
  client.send(create());
  await eventually(() => simulator.requests.length === 2);
  client.send({ type: 'response.cancel' });
  assert.equal(errorOf(await client.next(({ type }) => type === 'error')).code, 'cancelled');
  assert.equal((await client.turn(create())).at(-1)?.type, 'response.completed');
  client.send({ type: 'response.cancel', stream_id: 'lane' });
  const nothing = await client.next();
  assert.deepEqual([errorOf(nothing).code, nothing['stream_id']], ['response_cancel_not_active', 'lane']);
});

test('response.cancel ends a turn that waits for the one before it to be settled: nobody is asked for it', async () => {
  await using gateway = await testGateway(configOf());
  const counted = Promise.withResolvers<number>();
  Object.assign(gateway.running.gateway.tokenizer, { count: () => counted.promise });
  const client = await connect(gateway);
  simulator.enqueue({ reply: { pieces: [{ type: 'text', text: 'a b c' }], usage: null } });
  assert.equal((await client.turn(create())).at(-1)?.type, 'response.completed');
  client.send(create({ stream_id: 'next' }));
  client.send({ type: 'response.cancel' });
  client.send(create({ stream_id: 'third' }));
  const busy = await client.next();
  assert.deepEqual([errorOf(busy).code, busy['stream_id']], ['websocket_busy', 'third']);
  counted.resolve(3);
  const end = await client.next();
  assert.deepEqual([errorOf(end).code, end['stream_id']], ['cancelled', 'next']);
  client.send({ type: 'response.cancel' });
  assert.equal(errorOf(await client.next()).code, 'response_cancel_not_active');
  await eventually(() => gateway.store.settled.length === 2, 'each has its row');
  assert.deepEqual(
    gateway.store.settled.map(({ status, errorCode, attempts }) => [status, errorCode, attempts.length]),
    [
      ['success', undefined, 1],
      ['error', 'client_closed_request', 0],
    ],
  );
  assert.equal(simulator.requests.length, 1);
  assert.equal((await client.turn(create())).at(-1)?.type, 'response.completed');
});

test('response.cancel ends the turn that a draining connection still answers, and nothing once its end is out', async () => {
  for (const isCancelled of [true, false]) {
    const gateway = await testGateway(configOf());
    const counted = Promise.withResolvers<number>();
    if (!isCancelled) Object.assign(gateway.running.gateway.tokenizer, { count: () => counted.promise });
    const client = await connect(gateway);
    simulator.enqueue({
      reply: { pieces: [{ type: 'text', text: 'a b c d e f g h i j k l m' }], usage: null },
      pace: { ms: 20 },
    });
    client.send(create());
    await client.next(({ type }) => type === 'response.output_text.delta');
    const stopped = gateway.running.stop();
    if (isCancelled) {
      client.send({ type: 'response.cancel' });
      const end = await client.next(({ type }) => type === 'response.failed' || type === 'error');
      assert.equal((end['response'] as { error: { code: string } } | undefined)?.error.code, 'cancelled', JSON.stringify(end));
      await eventually(() => simulator.requests.at(-1)?.state === 'left', 'the upstream is let go');
    } else {
      await client.next(({ type }) => type === 'response.completed');
      client.send({ type: 'response.cancel' });
      assert.equal(errorOf(await client.next()).code, 'response_cancel_not_active');
      counted.resolve(3);
    }
    assert.equal((await client.closed).code, 1001);
    await stopped;
    assert.deepEqual(
      gateway.store.settled.map(({ status, errorCode }) => [status, errorCode]),
      [['success', isCancelled ? 'client_closed_request' : undefined]],
    );
    await gateway[Symbol.asyncDispose]();
    simulator.reset();
  }
});

test('W6: an upstream that dies in mid-turn ends in response.failed, a refused one in an error frame; both can be retried', async () => {
  await using gateway = await testGateway(configOf());
  const client = await connect(gateway);
  const good = responseOf((await client.turn(create({ store: false }))).at(-1));
  simulator.enqueue({ ...say('a b c d e f'), faults: [{ type: 'cut', at: 5 }] });
  const broken = await client.turn(create({ store: false, previous_response_id: good.id }));
  assert.equal(broken.at(-1)?.type, 'response.failed');
  const stale = await client.turn(create({ store: false, previous_response_id: good.id }));
  assert.equal(errorOf(stale[0]).code, 'previous_response_not_found');
  simulator.enqueue({ faults: [{ type: 'status', status: 500 }] });
  const refused = await client.turn(create({ store: false }));
  assert.deepEqual(errorOf(refused[0]), { status: 502, code: 'upstream_error', param: null });
  gateway.running.gateway.dispatcher.health.keepOnly(new Set());
  const again = await client.turn(create({ store: false }));
  assert.equal(again.at(-1)?.type, 'response.completed');
  const failedId = responseOf(broken.at(-1)).id;
  assert.equal(errorOf((await client.turn(create({ previous_response_id: failedId })))[0]).code, 'previous_response_not_found');
});

test('a continuation that fails lets go of the id that it named, on this connection alone', async () => {
  await using gateway = await testGateway(configOf());
  const client = await connect(gateway);
  const orphan = [{ type: 'function_call_output', call_id: 'call_missing', output: 'nobody asked' }];
  const faults: [string, object][] = [
    ['error', { input: orphan }],
    ['error', { model: 'nosuch' }],
    ['error', { tools: 5 }],
  ];
  for (const [type, fault] of faults) {
    const good = responseOf((await client.turn(create({ store: false }))).at(-1));
    const failed = await client.turn(create({ store: false, previous_response_id: good.id, ...fault }));
    assert.equal(failed.at(-1)?.type, type);
    const retry = await client.turn(create({ store: false, previous_response_id: good.id }));
    assert.deepEqual(errorOf(retry[0]), {
      status: 400,
      code: 'previous_response_not_found',
      param: 'previous_response_id',
    });
    // What the key stored is no matter of the connection.
    const stored = responseOf((await client.turn(create())).at(-1));
    await client.turn(create({ previous_response_id: stored.id, ...fault }));
    assert.equal((await client.turn(create({ previous_response_id: stored.id }))).at(-1)?.type, 'response.completed');
    // A failure of something else lets go of nothing.
    const kept = responseOf((await client.turn(create({ store: false }))).at(-1));
    await client.turn(create({ store: false, previous_response_id: 'resp_mizu_00000000000000000000000000000000' }));
    assert.equal((await client.turn(create({ previous_response_id: kept.id }))).at(-1)?.type, 'response.completed');
  }
});

test('the result of a call that is nowhere in the conversation: refused in a turn that continues, left out in one that does not', async () => {
  await using gateway = await testGateway(configOf());
  for (const { name: model, type } of FORMS) {
    const client = await connect(gateway, { headers: V1 });
    const tools = [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }];
    simulator.enqueue({ reply: { pieces: [{ type: 'tool', name: 'look', arguments: '{}' }] } });
    const called = responseOf((await client.turn(create({ model, tools }))).at(-1));
    const callId = called.output.find(({ type }) => type === 'function_call')?.call_id;
    const result = { type: 'function_call_output', call_id: callId, output: 'blue' };
    const orphan = { type: 'function_call_output', call_id: 'call_missing', output: 'grey' };
    const before = simulator.requests.length;
    const continued = create({ model, tools, previous_response_id: called.id, input: [result, orphan] });
    assert.deepEqual(errorOf((await client.turn(continued)).at(-1)), {
      status: 400,
      code: 'tool_call_not_found',
      param: 'input[1].call_id',
    });
    const warm = create({ model, tools, previous_response_id: called.id, input: [result, orphan], generate: false });
    assert.equal(errorOf((await client.turn(warm)).at(-1)).code, 'tool_call_not_found');
    assert.equal(simulator.requests.length, before);
    const good = create({ model, tools, previous_response_id: called.id, input: [result] });
    assert.equal((await client.turn(good)).at(-1)?.type, 'response.done');
    const appended = { type: 'response.append', input: [orphan] };
    assert.deepEqual(errorOf((await client.turn(appended)).at(-1)), {
      status: 400,
      code: 'tool_call_not_found',
      param: 'input[0].call_id',
    });
    if (type !== 'responses') {
      const fresh = await client.turn(create({ model, tools, input: [{ role: 'user', content: 'hi' }, orphan] }));
      assert.equal(fresh.at(-1)?.type, 'response.done');
      assert.ok(!simulator.requests.at(-1)?.text.includes('grey'));
    }
    client.ws.close();
  }
});

test('response.steer is refused in the vendor’s own event, with the input as it was, and disturbs no turn', async () => {
  await using gateway = await testGateway(configOf());
  const client = await connect(gateway);
  const steer = async (event: object) => {
    client.send({ type: 'response.steer', ...event });
    const { error, steer, ...rest } = await client.next(({ type }) => type === 'response.steer.failed');
    assert.equal(rest['sequence_number'], 0);
    const { code, type } = error as { code: string; type: string };
    assert.equal(type, 'invalid_request_error');
    return { code, steer, lane: rest['stream_id'] };
  };
  const input = [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'only "blue"' }] }];
  const half: object[] = [{}, { previous_response_id: 'resp_1' }, { input }, { previous_response_id: 5, input }];
  half.push({ previous_response_id: 'resp_1', input: '' }, { previous_response_id: 'resp_1', input: [] });
  half.push({ previous_response_id: 'resp_1', input: [{ role: 'system', content: 'x' }] });
  for (const event of half) assert.equal((await steer(event)).code, 'invalid_input', JSON.stringify(event));
  assert.deepEqual(await steer({ previous_response_id: 'resp_1', input, stream_id: 'lane' }), {
    code: 'response_not_found',
    steer: { input, previous_response_id: 'resp_1' },
    lane: 'lane',
  });
  simulator.enqueue(slow('a b c d e f g h'));
  client.send(create());
  const begun = responseOf(await client.next(({ type }) => type === 'response.created'));
  assert.equal((await steer({ previous_response_id: begun.id, input: 'hurry' })).code, 'steering_not_supported');
  const end = responseOf(await client.next(({ type }) => type === 'response.completed'));
  assert.equal((await steer({ previous_response_id: end.id, input: 'hurry' })).code, 'response_already_completed');
});

test('W12: a turn that failed, was cut or was cancelled behind a whole tool call leaves nothing that is continued', async () => {
  await using gateway = await testGateway(configOf());
  const client = await connect(gateway, { headers: V1 });
  const tools = [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }];
  const good = responseOf((await client.turn(create({ store: false, tools, input: 'the good turn' }))).at(-1));
  const called = [
    { type: 'tool' as const, name: 'look', arguments: '{"at":"vanished"}' },
    { type: 'text' as const, text: 'a b c d e f g h' },
  ];
  const next = create({ store: false, tools, previous_response_id: good.id, input: 'a vanished turn' });
  const ways: [string, () => Promise<ServerEvent | undefined>][] = [
    [
      'response.incomplete',
      async () => {
        simulator.enqueue({ reply: { pieces: called, finish: 'length' } });
        return (await client.turn(next)).at(-1);
      },
    ],
    [
      'response.failed',
      async () => {
        simulator.enqueue({ reply: { pieces: called }, pace: { ms: 20 } });
        client.send(next);
        await client.next(({ type }) => type === 'response.output_text.delta');
        client.send({ type: 'response.cancel' });
        return await client.next(({ type }) => type === 'response.failed');
      },
    ],
  ];
  for (const [ending, lose] of ways) {
    const last = await lose();
    assert.equal(last?.type, ending);
    assert.ok(
      responseOf(last).output.some(({ type }) => type === 'function_call'),
      'the call had been said whole',
    );
  }
  for (const event of [
    create({ store: false, tools, previous_response_id: good.id, input: 'by id' }),
    { type: 'response.append', input: 'appended' },
  ]) {
    assert.equal((await client.turn(event)).at(-1)?.type, 'response.done');
    const sent = simulator.requests.at(-1)?.text ?? '';
    assert.ok(sent.includes('the good turn') && !sent.includes('vanished'), sent);
  }
  const { id } = responseOf((await client.turn(create({ store: false, tools, input: 'another good turn' }))).at(-1));
  simulator.enqueue({ reply: { pieces: called }, faults: [{ type: 'no-terminal' }] });
  const failed = (await client.turn({ ...next, previous_response_id: id })).at(-1);
  assert.equal(failed?.type, 'response.failed');
  for (const event of [create({ store: false, tools, previous_response_id: id }), { type: 'response.append', input: 'appended' }])
    assert.equal(errorOf((await client.turn(event)).at(-1)).code, 'previous_response_not_found');
});

test('W8: a create without a previous id is a new conversation', async () => {
  await using gateway = await testGateway(configOf());
  const client = await connect(gateway);
  await client.turn(create({ input: 'the old transcript' }));
  await client.turn(create({ input: 'a summary of it' }));
  assert.ok(!simulator.requests.at(-1)?.text.includes('the old transcript'));
});

test('W7: after the connection is gone an unknown id is refused before any upstream is asked', async () => {
  await using gateway = await testGateway(configOf());
  const client = await connect(gateway);
  const { id } = responseOf((await client.turn(create({ store: false }))).at(-1));
  client.ws.close();
  const answer = await gateway.post('/v1/responses', { model: 'messages', input: 'only the new', previous_response_id: id });
  assert.equal(answer.status, 400);
  assert.match(await answer.text(), /previous_response_not_found/);
  assert.equal(simulator.requests.length, 1);
});

test('F26: money and keys are looked at anew in every turn', async () => {
  await using gateway = await testGateway(configOf());
  const client = await connect(gateway);
  await client.turn(create());
  const { walletNanos } = gateway.store;
  gateway.store.walletNanos = 0n;
  assert.deepEqual(errorOf((await client.turn(create()))[0]), { status: 402, code: 'insufficient_balance', param: null });
  gateway.store.walletNanos = walletNanos;
  gateway.store.limitReached = true;
  assert.equal(errorOf((await client.turn(create()))[0]).code, 'api_key_spend_limit_reached');
  gateway.store.limitReached = false;
  gateway.store.broken = true;
  assert.equal(errorOf((await client.turn(create()))[0]).status, 503);
  gateway.store.broken = false;
  assert.equal((await client.turn(create())).at(-1)?.type, 'response.completed');
  gateway.store.addKey(KEY, { id: 'key_1', disabled: true });
  assert.deepEqual(errorOf((await client.turn(create()))[0]), { status: 401, code: 'unauthorized', param: null });
  assert.equal((await client.closed).code, 1008);
  assert.equal(gateway.store.held.size, 0);
});

test('W10: pings of the server keep a quiet connection; two that are missed end it, and an idle one is closed', async () => {
  const clock = createFakeClock();
  await using gateway = await testGateway(configOf({ websocket: { idle_ms: 600_000 } }), { clock });
  const client = await connect(gateway);
  let pings = 0;
  client.ws.on('ping', () => {
    pings += 1;
  });
  for (let beat = 1; beat <= 19; beat++) {
    clock.advance(30_000);
    await eventually(() => pings === beat);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  clock.advance(30_000);
  assert.deepEqual(await client.closed, { code: 1000, reason: 'idle' });
  const dead = new WebSocket(`${gateway.url.replace('http', 'ws')}/v1/responses`, {
    headers: { 'x-api-key': KEY },
    autoPong: false,
  });
  const { closed } = socketClient(dead);
  await new Promise((resolve) => dead.once('open', resolve));
  for (let beat = 0; beat < 3; beat++) {
    clock.advance(30_000);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.equal((await closed).code, 1006);
});

test('a create that crosses the close for idleness is not begun', async () => {
  const clock = createFakeClock();
  await using gateway = await testGateway(configOf({ websocket: { idle_ms: 1_000 } }), { clock });
  const client = await connect(gateway);
  client.ws.pause();
  clock.advance(30_000);
  client.send(create());
  // Answered behind the create: whatever the create was to begin has begun.
  const pong = new Promise((resolve) => client.ws.once('pong', resolve));
  client.ws.ping();
  await new Promise((resolve) => setTimeout(resolve, 50));
  client.ws.resume();
  await Promise.race([pong, client.closed]);
  assert.equal((await client.closed).code, 1000);
  assert.equal(simulator.requests.length, 0);
  assert.equal(gateway.store.opened.length, 0);
});

test('W3: pings are answered and messages stay whole while a turn is running', async () => {
  await using gateway = await testGateway(configOf());
  const client = await connect(gateway);
  simulator.enqueue(slow('a b c d e f g h'));
  client.send(create());
  await client.next(({ type }) => type === 'response.output_text.delta');
  const pong = new Promise((resolve) => client.ws.once('pong', (data) => resolve(String(data))));
  client.ws.ping('are you there');
  assert.equal(await pong, 'are you there');
  assert.ok(!client.events.some(({ type }) => type === 'response.completed'), 'the pong came in the middle');
  await client.next(({ type }) => type === 'response.completed');
});

test('drain: idle sessions close at once, a running turn ends first, nobody comes in', async () => {
  await using gateway = await testGateway(configOf());
  const idle = await connect(gateway);
  const busy = await connect(gateway);
  simulator.enqueue(slow('a b c d e f'));
  busy.send(create());
  await busy.next(({ type }) => type === 'response.output_text.delta');
  const stopped = gateway.running.stop();
  assert.equal((await idle.closed).code, 1001);
  await busy.next(({ type }) => type === 'response.completed');
  assert.equal((await busy.closed).code, 1001);
  await stopped;
});

test('a conversation over its bound is refused by name and the connection goes on', async () => {
  await using gateway = await testGateway(configOf({ history: { entry_bytes: 4_000 } }));
  const client = await connect(gateway);
  const first = responseOf((await client.turn(create({ input: 'x'.repeat(2_000), store: false }))).at(-1));
  const over = await client.turn(create({ input: 'y'.repeat(3_000), previous_response_id: first.id }));
  assert.deepEqual([errorOf(over[0]).status, errorOf(over[0]).code], [413, 'websocket_history_limit_exceeded']);
  assert.equal((await client.turn(create({ input: 'z' }))).at(-1)?.type, 'response.completed');
});

test('F17: a reader that takes nothing stops the upstream and is let go after the write stall', async () => {
  await using gateway = await testGateway(configOf({ timeouts: { write_stall_ms: 300 } }));
  const client = await connect(gateway);
  const words = Array.from({ length: 400 }, () => 'w'.repeat(64 * 1024));
  simulator.enqueue({ reply: { pieces: [{ type: 'text', text: words }] } });
  client.send(create());
  await client.next(({ type }) => type === 'response.output_text.delta');
  client.ws.pause();
  await eventually(() => gateway.store.settled.length === 1, 'the turn is settled');
  assert.equal(gateway.store.settled[0]?.clientGone, true);
  await eventually(() => simulator.requests.at(-1)?.state === 'left', 'the upstream is let go');
  client.ws.resume();
  assert.equal((await client.closed).code, 1006);
});

test('F17: a reader of one large message gets it, however long it takes', async (t) => {
  const upstream = await fakeUpstream(sayMessages('x'.repeat(sized(8_000_000, 16_000_000))));
  t.after(() => upstream.close());
  const clock = createFakeClock();
  const config = configOf({
    channels: [{ id: 'large', type: 'messages', base_url: upstream.url, api_key: 'k', models: ['messages'] }],
    timeouts: { write_stall_ms: 1000 },
  });
  await using gateway = await testGateway(config, { clock });
  const ws = new WebSocket(`${gateway.url.replace('http', 'ws')}/v1/responses`, { headers: { authorization: `Bearer ${KEY}` } });
  t.after(() => ws.terminate());
  ws.on('upgrade', ({ socket }) => {
    let sinceLast = 0;
    socket.on('data', (bytes: Buffer) => {
      sinceLast += bytes.length;
      // More than both socket buffers may hold back before the gateway is told that there is room again.
      if (sinceLast < 3_000_000) return;
      sinceLast = 0;
      socket.pause();
      // The gateway has a turn to write what there is room for now, then almost all of its patience passes.
      setImmediate(() => {
        clock.advance(900);
        socket.resume();
      });
    });
  });
  const client = socketClient(ws);
  await once(ws, 'open');
  assert.equal((await client.turn(create())).at(-1)?.type, 'response.completed');
});
