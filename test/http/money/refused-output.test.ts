/**
 * What a model writes is the client's to ask for, and when it reads is its own choice: however an answer ends by that, the words
 * that the client got are paid for, and no Channel is closed to others. Each event of the upstream comes by itself, so that the
 * report is not there yet when something is refused.
 */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Piece } from '../../../src/simulator/reply.ts';
import type { Script } from '../../../src/simulator/script.ts';
import type { RequestLogRow } from '../../../src/store/request-log.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { fakeUpstream, openStream, startMessage } from '../../support/fake-upstream.ts';
import { CLIENTS, FORMS, type MoneyGateway, moneyGateway, PRICE, sse } from '../../support/money-gateway.ts';
import { drawn } from '../../support/sampled.ts';
import { ask, channel, eventually, KEY, testGateway } from '../../support/test-gateway.ts';

type Client = keyof typeof CLIENTS;
const STREAM = { 'content-type': 'text/event-stream' };

/** Eighty tokens. */
const ESSAY = 'Morning is good. '.repeat(20);
const LEAST = 60n * 25_000n;
const called = (input: string): readonly Piece[] => [
  { type: 'text', text: ESSAY },
  { type: 'tool', name: 'f', arguments: input, id: 'call_1' },
];

/** By the words that a prompt can bring about. */
const WRITTEN: Readonly<Record<string, readonly Piece[]>> = {
  'arguments that are cut': called('{"a":'),
  'arguments that are a list': called('[1]'),
  'arguments that are a text': called('"a"'),
  'arguments with a member twice': called('{"a":1,"a":2}'),
  'arguments of 600 levels': called(`${'{"a":'.repeat(600)}1${'}'.repeat(600)}`),
  'arguments behind which something follows': called('{} {}'),
  'a name of 300 characters': [
    { type: 'text', text: ESSAY },
    { type: 'tool', name: 'f'.repeat(300), arguments: '{}', id: 'call_1' },
  ],
  'half a character': [{ type: 'text', text: `${ESSAY}\ud800` }],
  'a character of no width': [{ type: 'text', text: `${ESSAY}\u0000` }],
};

const PARAMETERS = { type: 'object', properties: {} };
const TOOLS: Readonly<Record<Client, object>> = {
  chat: { tools: [{ type: 'function', function: { name: 'f', parameters: PARAMETERS } }] },
  completions: {},
  responses: { tools: [{ type: 'function', name: 'f', parameters: PARAMETERS }] },
  messages: { tools: [{ name: 'f', input_schema: PARAMETERS }] },
};

async function written(gateway: MoneyGateway, client: Client, model: string, script: Script): Promise<RequestLogRow> {
  const owner = await gateway.owner(10n ** 12n);
  gateway.simulator.enqueue({ pace: { ms: 2, cut: 'event' }, strict: false, ...script });
  const { path, ask } = CLIENTS[client];
  const response = await gateway.post(owner, path, {
    ...ask(model, true),
    ...TOOLS[client],
    ...(client === 'messages' ? { max_tokens: 1_000 } : {}),
  });
  const text = await response.text();
  assert.match(text, /Morning/);
  const [row] = await gateway.settled(owner, 1);
  assert.ok(row);
  return row;
}

const CASES = FORMS.flatMap(({ name: model, type }) =>
  Object.entries(WRITTEN).flatMap(([what, pieces]) =>
    // Gemini sends arguments as objects; others are no text of its protocol.
    type === 'gemini' && what.startsWith('arguments')
      ? []
      : (Object.keys(CLIENTS) as Client[]).map((client) => ({ model, what, pieces, client })),
  ),
);

for (const [model, cases] of Map.groupBy(drawn(CASES, 24, 'written'), (drawnCase) => drawnCase.model)) {
  test(`words that a client got are paid for, whatever else the model wrote: ${model}`, async (t) => {
    const gateway = await moneyGateway(t, { health: { failures: 1 } });
    for (const { what, pieces, client } of cases) {
      const row = await written(gateway, client, model, { reply: { pieces, usage: { input: 5, output: 90 } } });
      assert.ok((row.charge?.total ?? 0n) >= LEAST, `${what}: ${client}: ${row.charge?.total}`);
    }
  });
}

test('arguments that are no object are counted as an answer that its client has left, and the Channel is asked again', async (t) => {
  const gateway = await moneyGateway(t, { health: { failures: 1 } });
  for (const model of ['responses', 'messages']) {
    for (let time = 0; time < 3; time++) {
      const row = await written(gateway, 'messages', model, {
        reply: { pieces: called('{"a":'), usage: { input: 5, output: 90 } },
      });
      assert.equal(row.errorCode, 'upstream_error');
      assert.ok((row.usage?.output ?? 0) >= 60 && row.charge?.flags.includes('estimated'), model);
    }
  }
});

test('hidden reasoning before them is charged by its time', async (t) => {
  const gateway = await moneyGateway(t, { models: { responses: { price: { ...PRICE, input: '0' } } } });
  const reply = { pieces: called('{"a":'), usage: { input: 5, output: 90 } };
  const row = await written(gateway, 'messages', 'responses', { reply, pace: { firstMs: 3_000, ms: 2, cut: 'event' } });
  const { output = 0, reasoning = 0 } = row.usage ?? {};
  assert.ok(output + reasoning >= 150, `${output} and ${reasoning}`);
});

test('Gemini’s refusals of what the model wrote: paid for, and the Channel is asked again', async (t) => {
  const gateway = await moneyGateway(t, { health: { failures: 1 } });
  const part = { candidates: [{ index: 0, content: { role: 'model', parts: [{ text: ESSAY }] } }] };
  for (const reason of ['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL', 'TOO_MANY_TOOL_CALLS', 'MALFORMED_RESPONSE']) {
    const chunks = [sse(part), sse({ candidates: [{ index: 0, finishReason: reason }] })];
    const row = await written(gateway, 'chat', 'gemini', { raw: { headers: STREAM, chunks } });
    assert.equal(row.errorCode, 'upstream_error', reason);
    assert.ok((row.charge?.total ?? 0n) >= LEAST && row.charge?.flags.includes('estimated'), reason);
  }
  const chunk = (delta: object, finish: string | null) =>
    sse({
      id: 'c',
      object: 'chat.completion.chunk',
      created: 1,
      model: 'x',
      choices: [{ index: 0, delta, finish_reason: finish }],
    });
  for (let time = 0; time < 3; time++) {
    const chunks = [chunk({ content: ESSAY }, null), chunk({}, 'function_call_filter: MALFORMED_FUNCTION_CALL')];
    const row = await written(gateway, 'chat', 'chat_completion', { raw: { headers: STREAM, chunks } });
    assert.ok((row.charge?.total ?? 0n) >= LEAST);
  }
});

test('a picture that a model will not draw and a summary that it will not write close no Channel', async (t) => {
  const gateway = await moneyGateway(t, {
    health: { failures: 1 },
    models: {
      painter: { kind: 'image', price: { input: '1', output: '2' } },
      responses: { price: PRICE, compaction: 'summary' },
    },
    channels: [
      {
        ...{ id: 'painter', type: 'responses', base_url: 'SIMULATOR', api_key: 'k', models: ['painter', 'responses'] },
        options: { image_enable_openai_generation_tool: true },
      },
    ],
  });
  const asked = [
    [
      '/v1/images/generations',
      { model: 'painter', prompt: 'Draw nothing.' },
      { pieces: [{ type: 'text', text: 'I will not.' }] },
    ],
    ['/v1/responses/compact', { model: 'responses', input: 'Write no summary.' }, { pieces: [] }],
  ] as const;
  for (const [path, body, reply] of asked) {
    for (let time = 0; time < 3; time++) {
      gateway.simulator.enqueue({ reply, strict: false });
      const response = await gateway.post(await gateway.owner(10n ** 12n), path, body);
      assert.match(`${response.status} ${await response.text()}`, /^502 .*upstream_error/, path);
    }
  }
});

const CHEAP = { m: { price: { input: '0.001', output: '0.001' } } };
/** Longer than what all buffers between two sockets hold. */
const EVENTS = 16_000;

test('an upstream that gives up on a client which reads nothing: paid for, and the Channel is asked again', async (t) => {
  const upstream = await fakeUpstream(({ socket }) => {
    const stream = openStream(socket);
    startMessage(stream);
    const delta = { type: 'text_delta', text: 'x '.repeat(500) };
    for (let at = 0; at < EVENTS; at++) stream.event('content_block_delta', { type: 'content_block_delta', index: 0, delta });
  });
  t.after(() => upstream.close());
  const clock = createFakeClock();
  const file = { channels: [channel(upstream.url)], models: CHEAP, health: { failures: 1 } };
  await using gateway = await testGateway(file, { clock });
  const body = JSON.stringify(ask({ stream: true }));
  for (let time = 1; time <= 2; time++) {
    const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
    t.after(() => socket.destroy());
    socket.write(
      `POST /v1/messages HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    await eventually(() => upstream.requests.length === time, 'the request');
    // Nothing moves any more: whoever could take something is full.
    for (let left = -1, same = 0; same < 40; ) {
      const now = upstream.requests[time - 1]?.socket.writableLength ?? 0;
      same = now === left ? same + 1 : 0;
      left = now;
      await sleep(10);
    }
    clock.advance(11_000);
    upstream.requests[time - 1]?.socket.destroy();
    let end = '';
    for await (const bytes of socket) {
      end = (end + String(bytes)).slice(-2_000);
      if (end.includes('event: error')) break;
    }
    assert.match(end, /event: error/);
    await eventually(() => gateway.store.settled.length === time, 'the row');
    const row = gateway.store.settled[time - 1];
    assert.deepEqual([row?.errorCode, row?.clientGone], ['upstream_error', undefined]);
    assert.ok((row?.usage?.output ?? 0) > 1_000 && row?.charge?.flags.includes('estimated'));
  }
});
