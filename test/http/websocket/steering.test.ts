/** Steering: over an upstream that is asked over a WebSocket, and what its sockets may do to a turn. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Script } from '../../../src/simulator/script.ts';
import { startSimulator } from '../../../src/simulator/simulator.ts';
import { startEchoUpstream } from '../../slow/faults/support/echo-upstream.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { eventually, type TestGateway, testGateway } from '../../support/test-gateway.ts';
import { connect, type ServerEvent, type SocketClient } from './socket-client.ts';

const simulator = await startSimulator();
test.after(() => simulator.close());
test.beforeEach(() => simulator.reset());

const PRICE = { price: { input: '1', output: '2' } };
const ONE = { id: 'one', type: 'responses', api_key: 'k', models: ['m'], options: { websocket: true } };
const configOf = (url: string, changes: object = {}, ...more: object[]): object => ({
  channels: [{ ...ONE, base_url: url, ...changes }, ...more],
  models: { m: PRICE },
});

const create = (changes: object = {}) => ({ type: 'response.create', model: 'm', input: 'hi', store: false, ...changes });
const saying = (text: string, more: object = {}): Script => ({
  reply: { pieces: [{ type: 'text', text }], usage: { input: 100, output: 10 }, ...more },
});
const slow = (text: string, more: object = {}): Script => ({ ...saying(text, more), pace: { ms: 20 } });
const MESSAGE = [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'only "blue"' }] }];

interface Body {
  readonly id: string;
  readonly status: string;
  readonly previous_response_id: string | null;
  readonly incomplete_details: unknown;
  readonly output: readonly {
    readonly type: string;
    readonly call_id?: string;
    readonly content?: readonly { text: string }[];
  }[];
}
const responseOf = (event: ServerEvent | undefined): Body => event?.['response'] as Body;
const isType =
  (...types: string[]) =>
  (event: ServerEvent): boolean =>
    types.includes(event.type);
const ENDED = isType('response.completed', 'response.incomplete', 'response.failed', 'error');
const textOf = ({ output }: Body): string => output.flatMap(({ content = [] }) => content.map(({ text }) => text)).join('');

/** Begins a turn and steers it once it speaks. */
async function steered(client: SocketClient, input: unknown, changes: object = {}): Promise<string> {
  client.send(create(changes));
  const { id } = responseOf(await client.next(isType('response.created')));
  await client.next(isType('response.output_text.delta', 'response.output_item.added'));
  client.send({ type: 'response.steer', previous_response_id: id, input });
  return id;
}

/** The rows of settled exchanges. */
async function rowsOf(gateway: TestGateway, count: number) {
  await eventually(() => gateway.store.settled.length === count, `${count} settlements`);
  return gateway.store.settled;
}

const asked = () =>
  simulator.requests.map(({ headers, body }) => ({ over: headers['upgrade'], body: body as { input: unknown } }));

test('a steer is passed on: accepted, the response ends as steered, and its successor is a turn of its own with its own price', async () => {
  await using gateway = await testGateway(configOf(simulator.url));
  const client = await connect(gateway);
  simulator.enqueue(slow('a red car goes by', { finish: 'steered' }), saying('a blue car'));
  const id = await steered(client, MESSAGE, { stream_id: 'lane' });
  const accepted = await client.next(isType('response.steer.accepted'));
  assert.equal((accepted['steer'] as { previous_response_id: string }).previous_response_id, id);
  assert.match(String((accepted['steer'] as { id: string }).id), /^steer_/);
  assert.equal(accepted['stream_id'], 'lane');
  const first = await client.next(ENDED);
  assert.equal(first.type, 'response.incomplete');
  assert.deepEqual(responseOf(first).incomplete_details, { reason: 'steered' });
  const begun = responseOf(await client.next(isType('response.created')));
  assert.notEqual(begun.id, id);
  assert.equal(begun.previous_response_id, id);
  const second = await client.next(ENDED);
  assert.equal(second['stream_id'], 'lane');
  assert.equal(textOf(responseOf(second)), 'a blue car');
  const rows = await rowsOf(gateway, 2);
  assert.deepEqual(
    rows.map(({ charge }) => charge?.total),
    [120_000n, 120_000n],
    'each at what the upstream counted',
  );
  assert.deepEqual(
    asked().map(({ over }) => over),
    ['websocket', 'websocket'],
  );

  // What comes next continues the whole of it, on the same connection.
  simulator.enqueue(saying('and a green one'));
  const [next] = (await client.turn(create({ previous_response_id: begun.id, input: 'and now?' }))).slice(-1);
  assert.equal(textOf(responseOf(next)), 'and a green one');
  const texts = JSON.stringify(asked().at(-1)?.body.input);
  for (const said of ['hi', 'a red car goes by', 'only \\"blue\\"', 'a blue car', 'and now?'])
    assert.ok(texts.includes(said) || texts.includes(said.replaceAll('\\', '\\\\')), `${said} in ${texts}`);
  assert.equal(new Set(simulator.requests.map(({ headers }) => headers['sec-websocket-key'])).size, 1);
});

test('a response that completes has a successor, too; input of two steers is said in order', async () => {
  await using gateway = await testGateway(configOf(simulator.url));
  const client = await connect(gateway);
  simulator.enqueue(slow('one two three four'), saying('five'));
  const id = await steered(client, 'first');
  client.send({ type: 'response.steer', previous_response_id: id, input: 'second' });
  await client.next(isType('response.steer.accepted'));
  await client.next(isType('response.steer.accepted'));
  assert.equal((await client.next(ENDED)).type, 'response.completed');
  const last = responseOf(await client.next(ENDED));
  assert.equal(textOf(last), 'five');
  simulator.enqueue(saying('six'));
  await client.turn(create({ previous_response_id: last.id, input: 'go on' }));
  const texts = JSON.stringify(asked().at(-1)?.body.input);
  assert.match(texts, /four.*"first".*"second".*five.*go on/);
});

test('steers that wait for the end of a response count as bodies of their key, until nothing of them is kept', async () => {
  await using gateway = await testGateway({ ...configOf(simulator.url), limits: { key_body_bytes: 500_000 } });
  const { keySlots } = gateway.running.gateway;
  const steer = (client: SocketClient, id: string, bytes: number): void =>
    client.send({ type: 'response.steer', previous_response_id: id, input: 'x'.repeat(bytes) });

  const answered = await connect(gateway);
  simulator.enqueue(slow('word '.repeat(50)), saying('five'));
  steer(answered, await steered(answered, 'first'), 100_000);
  await answered.next(isType('response.steer.accepted'));
  await answered.next(isType('response.steer.accepted'));
  assert.ok(keySlots.bytes > 100_000, `${keySlots.bytes} bytes`);
  await answered.next(isType('response.completed'));
  await answered.next(isType('response.completed'));
  await eventually(() => keySlots.bytes === 0, 'what was answered is let go');
  answered.ws.close();

  simulator.reset();
  const left = await connect(gateway);
  simulator.enqueue(slow('word '.repeat(50)));
  const id = await steered(left, 'first');
  for (let n = 0; n < 6; n++) steer(left, id, 100_000);
  assert.equal((await left.next(isType('error')))['status'], 429);
  left.ws.close();
  await Promise.all([answered.closed, left.closed]);
  await eventually(() => keySlots.bytes === 0, 'and what nobody waits for');
});

test('behind a call the input stays queued: pending comes after the end, and stands in front of the results', async () => {
  await using gateway = await testGateway(configOf(simulator.url));
  const client = await connect(gateway);
  const tools = [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }];
  const pieces = [
    { type: 'text' as const, text: 'one two three four' },
    { type: 'tool' as const, name: 'look', arguments: '{}' },
  ];
  simulator.enqueue({ reply: { pieces }, pace: { ms: 20 } });
  const id = await steered(client, 'only blue', { tools });
  const end = await client.next(isType('response.completed', 'response.steer.pending'));
  assert.equal(end.type, 'response.completed', 'pending follows the end');
  const call = responseOf(end).output.find(({ type }) => type === 'function_call');
  const pending = await client.next(isType('response.steer.pending'));
  assert.equal((pending['steer'] as { previous_response_id: string }).previous_response_id, id);
  assert.deepEqual(pending['required_input'], [{ type: 'function_call_output', call_id: call?.call_id, name: 'look' }]);
  simulator.enqueue(saying('blue it is'));
  const output = [{ type: 'function_call_output', call_id: call?.call_id, output: 'seen' }];
  const answer = (await client.turn(create({ previous_response_id: id, input: output, tools }))).at(-1);
  assert.equal(answer?.type, 'response.completed', JSON.stringify(answer));
  const texts = JSON.stringify(asked().at(-1)?.body.input);
  assert.match(texts, /function_call.*only blue.*function_call_output/);
  assert.equal(texts.split('only blue').length, 2, 'said once');
});

test('a steer that the upstream refuses comes back with its input; half-made ones and those of no turn never reach it', async () => {
  await using gateway = await testGateway(configOf(simulator.url));
  const client = await connect(gateway);
  const failure = async (event: object) => {
    client.send({ type: 'response.steer', ...event });
    const { error, steer } = await client.next(isType('response.steer.failed'));
    return { code: (error as { code: string }).code, steer };
  };
  for (const half of [{}, { previous_response_id: 'resp_1' }, { input: 'x' }, { previous_response_id: 'resp_1', input: [] }])
    assert.equal((await failure(half)).code, 'invalid_input');
  assert.deepEqual(await failure({ previous_response_id: 'resp_1', input: MESSAGE }), {
    code: 'response_not_found',
    steer: { input: MESSAGE, previous_response_id: 'resp_1' },
  });
  simulator.enqueue(slow('one two three four five six'));
  client.send(create());
  const { id } = responseOf(await client.next(isType('response.created')));
  assert.equal((await failure({ previous_response_id: `${id}x`, input: 'x' })).code, 'response_not_found');
  await client.next(ENDED);
  assert.equal((await failure({ previous_response_id: id, input: 'late' })).code, 'response_already_completed');
});

test('steers that wait for one answer have no more input together than a turn that is continued', async () => {
  await using gateway = await testGateway({ ...configOf(simulator.url), history: { entry_bytes: 4_096 } });
  const client = await connect(gateway);
  simulator.enqueue(slow('one two three four'), saying('five'));
  const id = await steered(client, 'a'.repeat(1_500));
  for (const letter of ['b', 'c']) client.send({ type: 'response.steer', previous_response_id: id, input: letter.repeat(1_500) });
  const { error, steer } = (await client.next(isType('response.steer.failed'))) as unknown as {
    error: { code: string; message: string };
    steer: { input: string };
  };
  assert.deepEqual([error.code, steer.input[0]], ['invalid_input', 'c']);
  assert.match(error.message, /too much input/);
  await client.next(ENDED);
  assert.equal(textOf(responseOf(await client.next(ENDED))), 'five', 'the others are answered');
});

test('long requests and steers reach the upstream whole, in order, and its long events the client', async (t) => {
  const long = `a${'😀'.repeat(1_500_000)}`;
  const upstream = await startEchoUpstream({ steers: 2 });
  t.after(() => upstream.close());
  await using gateway = await testGateway(configOf(upstream.url));
  const client = await connect(gateway);
  const id = await steered(client, long, { instructions: long });
  client.send({ type: 'response.steer', previous_response_id: id, input: 'short' });
  for (const expected of [long, 'short']) {
    const { steer } = (await client.next(isType('response.steer.accepted'))) as unknown as { steer: { input: string } };
    assert.ok(steer.input === expected, `${steer.input.length} characters`);
  }
  const first = responseOf(await client.next(ENDED)) as Body & { instructions: string };
  assert.ok(first.instructions === long, 'the upstream had all of it');
  const second = responseOf(await client.next(ENDED));
  assert.equal(second.previous_response_id, id);
  assert.equal(textOf(second), 'yes');
});

test('an upstream that opens no WebSocket is asked over HTTP, and its handshake is not asked for again', async () => {
  let upgrades = 0;
  const plain = createServer((request, response) => {
    if (request.headers.upgrade !== undefined) upgrades += 1;
    // A server without WebSockets reads the handshake as a GET.
    if (request.method === 'GET') response.writeHead(405).end();
    else
      void fetch(`${simulator.url}${request.url}`, {
        method: 'POST',
        body: request as never,
        duplex: 'half',
      } as RequestInit).then(async (answer) => {
        response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' });
        response.end(Buffer.from(await answer.arrayBuffer()));
      });
  });
  await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve));
  try {
    await using gateway = await testGateway(configOf(`http://127.0.0.1:${(plain.address() as AddressInfo).port}`));
    const client = await connect(gateway);
    for (const text of ['first', 'second']) {
      simulator.enqueue(saying(text));
      assert.equal(textOf(responseOf((await client.turn(create())).at(-1))), text);
    }
    assert.equal(upgrades, 1);
    for (const { attempts } of await rowsOf(gateway, 2)) assert.equal(attempts.length, 1);
  } finally {
    plain.closeAllConnections();
    plain.close();
  }
});

test('turns over HTTP, and Channels that do not declare it, open no WebSocket', async () => {
  await using gateway = await testGateway(configOf(simulator.url, { options: {} }));
  const client = await connect(gateway);
  simulator.enqueue(slow('one two three four'));
  const id = await steered(client, 'x');
  const { error } = await client.next(isType('response.steer.failed'));
  assert.equal((error as { code: string }).code, 'steering_not_supported');
  assert.equal(responseOf(await client.next(ENDED)).id, id);
  gateway.configure(configOf(simulator.url));
  simulator.enqueue(saying('over HTTP'));
  assert.equal((await gateway.post('/v1/responses', { model: 'm', input: 'hi', stream: true })).status, 200);
  assert.deepEqual(
    asked().map(({ over }) => over),
    [undefined, undefined],
  );
});

test('a refusal on the socket is judged by its status: the next Channel is asked, or the client is told', async () => {
  const other = { ...ONE, id: 'two', base_url: simulator.url, priority: 2, options: {} };
  await using gateway = await testGateway(configOf(simulator.url, { priority: 1 }, other));
  const client = await connect(gateway);
  simulator.enqueue({ faults: [{ type: 'status', status: 429 }] }, saying('from the other'));
  assert.equal(textOf(responseOf((await client.turn(create())).at(-1))), 'from the other');
  assert.deepEqual(
    asked().map(({ over }) => over),
    ['websocket', undefined],
  );
  gateway.configure(configOf(simulator.url));
  simulator.enqueue({ faults: [{ type: 'status', status: 400, message: 'no such thing', code: 'invalid_value' }] });
  const refused = (await client.turn(create())).at(-1);
  assert.equal(refused?.type, 'error');
  assert.equal(refused['status'], 400);
  assert.match(JSON.stringify(refused), /no such thing/);
});

test('a socket that is cut in mid-turn ends it as a stream that breaks; the steer comes back', async () => {
  await using gateway = await testGateway(configOf(simulator.url));
  const client = await connect(gateway);
  simulator.enqueue({ ...slow('one two three four five'), faults: [{ type: 'cut', at: 8 }] });
  const id = await steered(client, MESSAGE);
  await client.next(isType('response.steer.accepted'));
  const [end, back] = [
    await client.next(isType('response.failed', 'response.steer.failed')),
    await client.next(isType('response.failed', 'response.steer.failed')),
  ].sort((a, b) => a.type.localeCompare(b.type));
  assert.equal(responseOf(end).status, 'failed');
  assert.deepEqual(back?.['steer'], { ...(back?.['steer'] as object), input: MESSAGE, previous_response_id: id });
  assert.equal((back?.['error'] as { code: string } | undefined)?.code, 'successor_creation_failed');
  const [row] = await rowsOf(gateway, 1);
  assert.deepEqual([row?.status, row?.charge], ['error', undefined], 'as over HTTP: an upstream that breaks is not paid for');
  simulator.enqueue(saying('well again'));
  assert.equal(textOf(responseOf((await client.turn(create())).at(-1))), 'well again', 'on a new connection');
});

/** An upstream of raw WebSockets. */
async function socketUpstream(
  speak: (ws: WebSocket, message: { readonly type: string; readonly input?: unknown }, turn: number) => void,
) {
  const server = createServer();
  const sockets = new WebSocketServer({ server });
  let turns = 0;
  let opened = 0;
  sockets.on('connection', (ws) => {
    opened += 1;
    ws.on('error', () => undefined);
    ws.on('message', (data) => speak(ws, JSON.parse(String(data)), turns++));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    opened: () => opened,
    [Symbol.dispose]() {
      for (const ws of sockets.clients) ws.terminate();
      server.close();
    },
  };
}

const response = (status: string, text?: string) => ({
  id: 'resp_up',
  object: 'response',
  created_at: 1,
  status,
  model: 'm',
  output:
    text === undefined
      ? []
      : [
          {
            type: 'message',
            id: 'msg_1',
            role: 'assistant',
            status: 'completed',
            content: [{ type: 'output_text', text, annotations: [] }],
          },
        ],
  usage: text === undefined ? null : { input_tokens: 5, output_tokens: 1, total_tokens: 6 },
});
const say = (ws: WebSocket, type: string, members: object) => ws.send(JSON.stringify({ type, ...members }, undefined, 1));
const sayWhole = (ws: WebSocket, text: string) => {
  say(ws, 'response.created', { response: response('in_progress') });
  say(ws, 'response.completed', { response: response('completed', text) });
};

const beginText = (ws: WebSocket) => {
  const at = { output_index: 0, content_index: 0, item_id: 'msg_1' };
  say(ws, 'response.created', { response: response('in_progress') });
  const item = { type: 'message', id: 'msg_1', role: 'assistant', status: 'in_progress', content: [] };
  say(ws, 'response.output_item.added', { output_index: 0, item });
  say(ws, 'response.content_part.added', { ...at, part: { type: 'output_text', text: '', annotations: [] } });
  say(ws, 'response.output_text.delta', { ...at, delta: 'half a' });
};

/** A client that reads no further than the first words, and then sends three steers of five megabytes. */
async function steerUnread(gateway: Parameters<typeof connect>[0]) {
  const client = await connect(gateway);
  client.send(create());
  const { id } = responseOf(await client.next(isType('response.created')));
  await client.next(isType('response.output_text.delta'));
  client.ws.pause();
  const inputs = ['a', 'b', 'c'].map((letter) => letter.repeat(5 * 1024 * 1024));
  for (const input of inputs) client.send({ type: 'response.steer', previous_response_id: id, input });
  return { client, inputs };
}

test('long steers that are accepted while the client reads nothing wait for it, and the connection stays', async () => {
  let accepted = 0;
  using upstream = await socketUpstream((ws, { type, input }) => {
    if (type === 'response.create') beginText(ws);
    else say(ws, 'response.steer.accepted', { steer: { id: `steer_${accepted++}`, previous_response_id: 'resp_up', input } });
  });
  await using gateway = await testGateway(configOf(upstream.url));
  const { client, inputs } = await steerUnread(gateway);
  await eventually(() => accepted === 3, 'the upstream has accepted them');
  client.ws.ping();
  await sleep(300);
  client.ws.resume();
  for (const input of inputs) {
    const { steer } = await client.next(isType('response.steer.accepted'));
    assert.ok((steer as { input: string }).input === input, `of ${input[0]}`);
  }
});

test('an upstream that waits until the client has read what it accepted is not silent: the answer is whole, and paid for', async () => {
  let accepted = 0;
  using upstream = await socketUpstream((ws, { type, input }) => {
    if (type === 'response.create') beginText(ws);
    else {
      say(ws, 'response.steer.accepted', { steer: { id: `steer_${accepted++}`, previous_response_id: 'resp_up', input } });
      if (accepted === 3) say(ws, 'response.completed', { response: response('completed', 'half a') });
    }
  });
  const clock = createFakeClock();
  await using gateway = await testGateway(configOf(upstream.url, { timeouts: { idle_ms: 1000 } }), { clock });
  const { client } = await steerUnread(gateway);
  await eventually(() => accepted === 3, 'the upstream has accepted them');
  // The gateway reads what it can meanwhile.
  await sleep(300);
  clock.advance(2500);
  await sleep(50);
  assert.equal(gateway.store.settled.length, 0, 'the turn waits for its client');
  client.ws.resume();
  assert.equal((await client.next(ENDED)).type, 'response.completed');
  const [row] = await rowsOf(gateway, 1);
  assert.equal(row?.status, 'success');
  assert.equal(row?.charge?.total, 7_000n);
});

test('long steers that come to nothing together all come back, and the connection stays', async () => {
  let accepted = 0;
  using upstream = await socketUpstream((ws, { type, input }, turn) => {
    if (turn > 3) sayWhole(ws, 'well again');
    else if (type === 'response.create') beginText(ws);
    else {
      say(ws, 'response.steer.accepted', { steer: { id: `steer_${accepted++}`, previous_response_id: 'resp_up', input } });
      if (accepted === 3) ws.terminate();
    }
  });
  await using gateway = await testGateway(configOf(upstream.url));
  const client = await connect(gateway);
  client.send(create());
  const { id } = responseOf(await client.next(isType('response.created')));
  await client.next(isType('response.output_text.delta'));
  const inputs = ['a', '"', 'é'].map((letter) => letter.repeat(3 * 1024 * 1024));
  for (const input of inputs) client.send({ type: 'response.steer', previous_response_id: id, input });
  for (const input of inputs) {
    const { steer } = await client.next(isType('response.steer.failed'));
    assert.ok((steer as { input: string }).input === input, `of ${input[0]}`);
  }
  await eventually(() => client.events.some(({ type }) => type === 'response.failed'), 'the turn ends');
  client.send(create());
  assert.equal(textOf(responseOf(await client.next(isType('response.completed')))), 'well again');
});

const FIRST_END = { ...response('completed', 'turn 0'), id: 'resp_0' };
// An end that names no response, within an answer, is that answer's.
const AGAIN: readonly (readonly [string, object, readonly ('before' | 'within')[]])[] = [
  ['the same end', { type: 'response.completed', response: FIRST_END }, ['before', 'within']],
  ['its end under the older name', { type: 'response.done', response: FIRST_END }, ['before', 'within']],
  ['the older name of the end alone', { type: 'response.done' }, ['before']],
  ['words', { type: 'response.output_text.delta', item_id: 'msg_0', output_index: 0, content_index: 0, delta: '!' }, ['before']],
];

for (const [what, end, times] of AGAIN) {
  for (const [late, next] of [
    [1, 'the next answer'],
    [2, 'the answer after that'],
  ] as const) {
    for (const when of times) {
      test(`an upstream says ${what} once more ${when} ${next}: each turn has its own, and is paid once`, async () => {
        using upstream = await socketUpstream((ws, _message, turn) => {
          const named = (status: string, text?: string) => ({ response: { ...response(status, text), id: `resp_${turn}` } });
          if (turn === late && when === 'before') ws.send(JSON.stringify(end));
          say(ws, 'response.created', named('in_progress'));
          if (turn === late && when === 'within') ws.send(JSON.stringify(end));
          say(ws, 'response.completed', named('completed', `turn ${turn}`));
        });
        await using gateway = await testGateway(configOf(upstream.url));
        const client = await connect(gateway);
        const texts = ['turn 0', 'turn 1', 'turn 2', 'turn 3'];
        for (const text of texts) {
          const end = (await client.turn(create())).at(-1);
          assert.equal(end?.type, 'response.completed');
          assert.equal(textOf(responseOf(end)), text);
        }
        assert.deepEqual(
          (await rowsOf(gateway, texts.length)).map(({ charge }) => charge?.total),
          texts.map(() => 7_000n),
        );
        assert.equal(upstream.opened(), 1);
      });
    }
  }
}

test('a connection whose time is over is replaced, and the turn is asked again on a new one', async () => {
  using upstream = await socketUpstream((ws, _message, turn) => {
    if (turn === 1)
      say(ws, 'error', {
        status: 400,
        error: { type: 'invalid_request_error', code: 'websocket_connection_limit_reached', message: 'over' },
      });
    else sayWhole(ws, `turn ${turn}`);
  });
  await using gateway = await testGateway(configOf(upstream.url));
  const client = await connect(gateway);
  assert.equal(textOf(responseOf((await client.turn(create())).at(-1))), 'turn 0');
  assert.equal(textOf(responseOf((await client.turn(create())).at(-1))), 'turn 2');
  assert.equal(upstream.opened(), 2);
});

test('a kept connection that was closed meanwhile is asked again on a new one', async () => {
  using upstream = await socketUpstream((ws, _message, turn) => {
    if (turn === 1) ws.terminate();
    else sayWhole(ws, `turn ${turn}`);
  });
  await using gateway = await testGateway(configOf(upstream.url));
  const client = await connect(gateway);
  await client.turn(create());
  assert.equal(textOf(responseOf((await client.turn(create())).at(-1))), 'turn 2');
});

for (const code of [1000, 1011, 1013]) {
  test(`a connection that was opened for a turn, and is closed with ${code} in place of an answer, was none that was kept`, async () => {
    using upstream = await socketUpstream((ws, _message, turn) => {
      if (turn === 0) ws.close(code, 'later');
      else sayWhole(ws, `turn ${turn}`);
    });
    await using gateway = await testGateway(configOf(upstream.url));
    const client = await connect(gateway);
    assert.equal((await client.turn(create())).at(-1)?.type, 'error');
    assert.equal(upstream.opened(), 1, 'the turn is asked once');
    const [row] = await rowsOf(gateway, 1);
    assert.equal(row?.attempts.length, 1);
  });
}

const BROKEN: readonly (readonly [string, (ws: WebSocket) => void])[] = [
  ['closed in good order', (ws) => ws.close(1000)],
  ['closed with 1011', (ws) => ws.close(1011, 'internal')],
  [
    'a cut frame',
    (ws) =>
      void (ws as unknown as { _socket: { end(bytes: Buffer): void } })._socket.end(Buffer.from([0x81, 0x7e, 0x10, 0x00, 0x7b])),
  ],
  [
    'a masked frame',
    (ws) =>
      void (ws as unknown as { _socket: { write(bytes: Buffer): void } })._socket.write(
        Buffer.from([0x81, 0x82, 1, 2, 3, 4, 5, 6]),
      ),
  ],
  ['a binary message', (ws) => ws.send(Buffer.from('{}'))],
  ['no JSON', (ws) => ws.send('<html>')],
  ['an error without a status', (ws) => say(ws, 'error', { code: 'server_error', message: 'broke', param: null })],
  ['an error with a status', (ws) => say(ws, 'error', { status: 500, error: { code: 'server_error', message: 'broke' } })],
  ['a message above the limit', (ws) => ws.send(`"${'x'.repeat(70_000)}"`)],
];
for (const [name, breakIt] of BROKEN) {
  test(`behind the first words: ${name}: the turn fails in its own words, and the connection of the client lives`, async () => {
    using upstream = await socketUpstream((ws, _message, turn) => {
      if (turn > 0) return sayWhole(ws, 'well again');
      beginText(ws);
      setTimeout(() => breakIt(ws), 20);
    });
    await using gateway = await testGateway({ ...configOf(upstream.url), limits: { event_bytes: 65_536 } });
    const client = await connect(gateway);
    const end = (await client.turn(create())).at(-1);
    assert.equal(end?.type, 'response.failed', JSON.stringify(end));
    const [row] = await rowsOf(gateway, 1);
    assert.deepEqual([row?.status, row?.charge], ['error', undefined], 'as over HTTP: an upstream that breaks is not paid for');
    assert.equal(textOf(responseOf((await client.turn(create())).at(-1))), 'well again');
  });
}

test('silence: the handshake falls back to HTTP, the answer has the Channel’s own limits', async () => {
  using upstream = await socketUpstream((ws, _message, turn) => {
    if (turn === 0) say(ws, 'response.created', { response: response('in_progress') });
  });
  await using gateway = await testGateway(configOf(upstream.url, { timeouts: { first_data_ms: 150, idle_ms: 150 } }));
  const client = await connect(gateway);
  const silent = (await client.turn(create())).at(-1);
  assert.equal((silent?.['error'] as { code: string } | undefined)?.code, 'upstream_error', JSON.stringify(silent));
  const hung = createServer(() => undefined);
  await new Promise<void>((resolve) => hung.listen(0, '127.0.0.1', resolve));
  const { port } = hung.address() as AddressInfo;
  gateway.configure(configOf(`http://127.0.0.1:${port}`, { timeouts: { connect_ms: 50, first_data_ms: 300 } }));
  assert.equal((await client.turn(create())).at(-1)?.type, 'error');
  hung.closeAllConnections();
  hung.close();
});

test('a client that leaves, or cancels, cuts the upstream’s connection at once', async () => {
  const closed: Promise<void>[] = [];
  using upstream = await socketUpstream((ws) => {
    closed.push(new Promise((resolve) => ws.on('close', () => resolve())));
    beginText(ws);
  });
  await using gateway = await testGateway(configOf(upstream.url));
  const client = await connect(gateway);
  client.send(create());
  await client.next(isType('response.created'));
  client.send({ type: 'response.cancel' });
  assert.equal((await client.next(ENDED)).type, 'response.failed');
  await closed[0];
  client.send(create());
  await client.next(isType('response.created'));
  client.ws.terminate();
  await closed[1];
  await rowsOf(gateway, 2);
});

test('a successor that cannot be paid for is not begun: the input comes back, and nothing is charged for it', async () => {
  await using gateway = await testGateway(configOf(simulator.url));
  const client = await connect(gateway);
  simulator.enqueue(slow('one two three four five'), saying('never read'));
  const id = await steered(client, MESSAGE);
  await client.next(isType('response.steer.accepted'));
  gateway.store.walletNanos = 0n;
  assert.equal((await client.next(ENDED)).type, 'response.completed');
  const back = await client.next(isType('response.steer.failed', 'error', 'response.created'));
  assert.equal(back.type, 'response.steer.failed');
  assert.deepEqual(back['steer'], { input: MESSAGE, previous_response_id: id, id: (back['steer'] as { id: string }).id });
  assert.deepEqual(
    (await rowsOf(gateway, 2)).map(({ status, charge }) => [status, charge?.total]),
    [
      ['success', 120_000n],
      ['error', undefined],
    ],
  );
});

const LOST: readonly (readonly [string, string, (ws: WebSocket) => void])[] = [
  [
    'the response fails after it was accepted',
    'successor_creation_failed',
    (ws) => {
      acceptSteer(ws);
      say(ws, 'response.failed', { response: { ...response('failed'), error: { code: 'server_error', message: 'no' } } });
    },
  ],
  [
    'an error comes in place of the successor',
    'successor_creation_failed',
    (ws) => {
      acceptSteer(ws);
      say(ws, 'response.completed', { response: response('completed', 'half a') });
      say(ws, 'error', { status: 500, error: { type: 'server_error', code: 'server_error', message: 'no' } });
    },
  ],
  [
    'a successor comes without a word of the steer',
    'response_not_active',
    (ws) => {
      say(ws, 'response.completed', { response: response('completed', 'half a') });
      sayWhole(ws, 'an answer to what?');
    },
  ],
];
const acceptSteer = (ws: WebSocket): void => say(ws, 'response.steer.accepted', { steer: { id: 'steer_1' } });

for (const [what, code, answer] of LOST) {
  test(`a steer comes back where ${what}, and the next turn is answered`, async () => {
    using upstream = await socketUpstream((ws, { type }, turn) => {
      if (type === 'response.steer') answer(ws);
      else if (turn === 0) beginText(ws);
      else sayWhole(ws, 'the next turn');
    });
    await using gateway = await testGateway(configOf(upstream.url));
    const client = await connect(gateway);
    await steered(client, MESSAGE);
    // The one or the other comes first.
    const either = (event: ServerEvent): boolean => ENDED(event) || event.type === 'response.steer.failed';
    const told = [await client.next(either), await client.next(either)];
    const back = told.find((event) => !ENDED(event));
    assert.equal((back?.['error'] as { code: string } | undefined)?.code, code);
    assert.deepEqual((back?.['steer'] as { input: unknown } | undefined)?.input, MESSAGE);
    assert.equal(textOf(responseOf((await client.turn(create())).at(-1))), 'the next turn');
    assert.equal(client.events.filter(isType('response.created')).length, 2, 'no turn that the client did not ask for');
  });
}
