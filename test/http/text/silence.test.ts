/** Long silence: the end after a finish that no terminal follows, idle and first-data limits, a client that does not read. */
import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { PassThrough } from 'node:stream';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import type { Step } from '../../../src/codecs/canonical/event.ts';
import type { DecodeContext, Frame } from '../../../src/codecs/codec.ts';
import { codecs } from '../../../src/codecs/registry.ts';
import { verbatimNames } from '../../../src/codecs/tools/names.ts';
import { AnswerStream } from '../../../src/http/text/answer-stream.ts';
import { readBody } from '../../../src/streams/body-source.ts';
import { createIdleTimers } from '../../../src/streams/idle-timers.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import {
  endMessage,
  type FakeAnswer,
  fakeUpstream,
  jsonAnswer,
  openStream,
  sayMessages,
  startMessage,
  wholeMessage,
} from '../../support/fake-upstream.ts';
import { responseContext } from '../../support/wire.ts';
import { ask, channel, eventually, KEY, MODELS, testGateway } from '../../support/test-gateway.ts';

const FINISHED = {
  chat_completion: [
    {
      id: 'c',
      object: 'chat.completion.chunk',
      created: 1,
      model: 'm',
      choices: [{ index: 0, delta: { role: 'assistant', content: 'hi' }, finish_reason: null }],
    },
    {
      id: 'c',
      object: 'chat.completion.chunk',
      created: 1,
      model: 'm',
      choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
    },
  ],
  gemini: [
    { candidates: [{ index: 0, content: { role: 'model', parts: [{ text: 'hi' }] } }] },
    {
      candidates: [{ index: 0, content: { role: 'model', parts: [{ text: '!' }] }, finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 },
    },
  ],
} as const;

const READ_TURNS = 20;

/** What an upstream of this type would be read with, on a clock that the test moves. */
function answerOn(
  clock: ReturnType<typeof createFakeClock>,
  type: 'gemini' | 'chat_completion' | 'responses',
  idleMs: number,
  maxBytes = 1 << 30,
) {
  const codec = codecs.upstream(type);
  const json = { model: 'm', messages: [{ role: 'user', content: 'hi' }], stream: true };
  const request = codecs.client('chat').decodeRequest(JSON.stringify(json), json, { open: () => undefined });
  const context: DecodeContext = {
    owner: { channelType: type, scope: 's', model: 'm' },
    request,
    toolNames: verbatimNames,
    options: {},
    mint: (prefix: string) => `${prefix}1`,
  };
  const body = new PassThrough();
  const timers = createIdleTimers(clock, { firstDataMs: 60_000, idleMs }, (error) => body.destroy(error));
  const limits = { clock, maxEventBytes: 100_000, maxBytes, timers };
  const source = new AnswerStream(readBody(body), codec.decodeEvents(context), limits);
  const steps: Step[] = [];
  const read = async (): Promise<void> => {
    for (let turn = 0; turn < READ_TURNS && !source.ended; turn++) {
      source.take(steps);
      await setImmediate();
    }
  };
  const write = (chunk: object): void => void body.write(`data: ${JSON.stringify(chunk)}\n\n`);
  return { body, source, steps, read, write };
}

for (const [type, chunks] of Object.entries(FINISHED)) {
  for (const finished of [true, false]) {
    test(`${type}: five seconds of silence ${finished ? 'after the finish are a good end' : 'before it are none'}`, async () => {
      const clock = createFakeClock();
      // After the finish the Channel's own limit, shorter here, makes no failure of an answer that is whole.
      const kind = type === 'gemini' ? 'gemini' : 'chat_completion';
      const { body, source, steps, read, write } = answerOn(clock, kind, finished ? 2_500 : 60_000);
      for (const chunk of finished ? chunks : chunks.slice(0, 1)) write(chunk);
      await read();
      clock.advance(3_000);
      if (finished) body.write(': a comment is no word\n\n');
      await setImmediate();
      source.take(steps);
      clock.advance(1_999);
      source.take(steps);
      assert.ok(!source.ended, 'not before five seconds');
      clock.advance(1);
      await read();
      assert.equal(source.ended, finished);
      const outcome = steps.flatMap(({ events }) => events).find((event) => event.type === 'response.end');
      assert.equal(outcome?.outcome.status, finished ? 'completed' : undefined);
      source.cancel();
      assert.equal(clock.pending, 0, 'no timer is left');
    });
  }
}

test('E10: an upstream that talks is not silent, though the client hears nothing of it for longer than idle_ms', async () => {
  const clock = createFakeClock();
  const { source, steps, read, write } = answerOn(clock, 'chat_completion', 1_000);
  const call = (index: number, piece: object): object => ({
    id: 'c',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [{ index: 0, delta: { tool_calls: [{ index, ...piece }] }, finish_reason: null }],
  });
  const heard: Frame[] = [];
  const client = codecs.client('messages');
  const owner = { channelType: 'chat_completion' as const, scope: 's', model: 'm' };
  const encoder = client.encodeEvents(responseContext(client, owner));
  const hear = (): number => {
    const before = heard.length;
    for (const step of steps.splice(0)) encoder.push(step, heard);
    return heard.length - before;
  };
  const open = (id: string): object => ({ id, type: 'function', function: { name: 'f', arguments: '' } });
  write(call(0, open('a')));
  write(call(1, open('b')));
  await read();
  assert.ok(hear() > 0, 'the first call is said');
  for (let piece = 0; piece < 5; piece++) {
    clock.advance(900);
    write(call(1, { function: { arguments: ' ' } }));
    await read();
    assert.equal(hear(), 0, 'the second call waits for the first');
    assert.ok(!source.ended);
  }
  write({ ...FINISHED.chat_completion[1], choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] });
  await read();
  clock.advance(5_000);
  await read();
  assert.ok(source.ended);
  const end = steps.flatMap(({ events }) => events).at(-1);
  assert.equal(end?.type === 'response.end' ? end.outcome.status : end?.type, 'completed');
});

test('a keep-alive event of a responses upstream is a sign of life and no data', async () => {
  const created = { type: 'response.created', response: { id: 'r', object: 'response', status: 'in_progress', output: [] } };
  for (const before of [[created], []]) {
    const clock = createFakeClock();
    const { body, read, write } = answerOn(clock, 'responses', 20_000);
    for (const said of before) write(said);
    for (let waited = 0; waited < 60_000; waited += 10_000) {
      assert.ok(!body.destroyed);
      write({ type: 'keepalive', sequence_number: waited });
      await read();
      clock.advance(10_000);
    }
    assert.ok(body.destroyed, 'after first_data_ms');
  }
});

test('F4: silence before the first data: comments do not count, the limit is first_data_ms', async (t) => {
  const upstream = await fakeUpstream(({ socket }) => {
    const stream = openStream(socket);
    const timer = setInterval(() => stream.raw(': PROCESSING\n\n'), 20);
    socket.on('close', () => clearInterval(timer));
  });
  t.after(() => upstream.close());
  await using gateway = await testGateway({
    channels: [channel(upstream.url, { timeouts: { first_data_ms: 150, idle_ms: 50 } })],
    models: MODELS,
  });
  const response = await gateway.post('/v1/messages', ask({ stream: true }));
  assert.equal(response.status, 502);
  await eventually(() => upstream.sockets.size === 0, 'the upstream is let go');
  assert.equal(gateway.store.settled[0]?.attempts[0]?.errorCode, 'timeout');
});

test('a head that went out early is what the row says of its status; one that was never needed never goes', async (t) => {
  const clock = createFakeClock();
  const upstream = await fakeUpstream(() => undefined);
  t.after(() => upstream.close());
  await using gateway = await testGateway({ channels: [channel(upstream.url)], models: MODELS }, { clock });
  const refuse = jsonAnswer(500, {});
  const asked = async (count: number) => {
    const answer = gateway.post('/v1/messages', ask({ stream: true }));
    await eventually(() => upstream.requests.length === count, 'the upstream is asked');
    return { answer, request: upstream.requests.at(-1) ?? assert.fail() };
  };
  const soon = await asked(1);
  await refuse(soon.request);
  assert.equal((await soon.answer).status, 502);
  // What would fire now would throw here.
  clock.advance(10_000);

  const late = await asked(2);
  clock.advance(10_000);
  const response = await late.answer;
  await refuse(late.request);
  assert.match(await response.text(), /event: error\n/);
  await eventually(() => gateway.store.settled.length === 2, 'the rows');
  assert.deepEqual(
    gateway.store.settled.map(({ status, httpStatus }) => [status, httpStatus]),
    [
      ['error', 502],
      ['error', 200],
    ],
  );
});

test('an answer that begins with what the client’s protocol cannot say: its head does not wait for the first word', async () => {
  await using upstream = await fakeUpstream(({ socket }) => {
    const stream = openStream(socket);
    const thinking = { type: 'thinking', thinking: '', signature: '' };
    stream.event('message_start', { type: 'message_start', message: { ...wholeMessage(''), content: [], stop_reason: null } });
    stream.event('content_block_start', { type: 'content_block_start', index: 0, content_block: thinking });
    const delta = { type: 'thinking_delta', thinking: 'hm' };
    stream.event('content_block_delta', { type: 'content_block_delta', index: 0, delta });
  });
  // No keep-alive takes it along.
  await using gateway = await testGateway({ channels: [channel(upstream.url)], models: MODELS, keep_alive_ms: 3_600_000 });
  const client = new AbortController();
  const body = { model: 'm', prompt: 'hi', stream: true };
  void sleep(20_000, undefined, { ref: false }).then(() => client.abort());
  const { status, headers } = await gateway.post('/v1/completions', body, { signal: client.signal });
  assert.deepEqual([status, headers.get('content-type')], [200, 'text/event-stream; charset=utf-8']);
  client.abort();
});

test('silence in the middle: the failure is said in the stream after idle_ms', async (t) => {
  const upstream = await fakeUpstream(({ socket }) => {
    const stream = openStream(socket);
    startMessage(stream);
    stream.event('content_block_delta', { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'half' } });
  });
  t.after(() => upstream.close());
  await using gateway = await testGateway({ channels: [channel(upstream.url, { timeouts: { idle_ms: 80 } })], models: MODELS });
  const text = await (await gateway.post('/v1/messages', ask({ stream: true }))).text();
  assert.match(text, /event: error\n/);
  assert.match(text, /silent|fell/);
  await eventually(() => gateway.store.settled.length === 1, 'the row');
  assert.equal(gateway.store.settled[0]?.status, 'error');
});

/** Where the patience with a reader may stand: for all Channels, or for the one that answers. */
const patience = (write_stall_ms: number) =>
  [
    ['of all Channels', { timeouts: { write_stall_ms } }, {}],
    ['of its Channel', {}, { timeouts: { write_stall_ms } }],
  ] as const;

for (const [whose, top, own] of patience(200))
  test(`X7: a client that stops reading is let go after write_stall_ms ${whose}, with its upstream`, async (t) => {
    const upstream = await fakeUpstream(({ socket }) => {
      const stream = openStream(socket);
      startMessage(stream);
      const text = 'x'.repeat(60_000);
      const timer = setInterval(() => {
        if (socket.writableLength < 1_000_000) {
          stream.event('content_block_delta', { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } });
        }
      }, 1);
      socket.on('close', () => clearInterval(timer));
    });
    t.after(() => upstream.close());
    await using gateway = await testGateway({
      channels: [channel(upstream.url, own)],
      models: MODELS,
      ...top,
    });
    const payload = JSON.stringify(ask({ stream: true }));
    const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
    socket.on('error', () => undefined);
    socket.write(
      `POST /v1/messages HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\ncontent-length: ${payload.length}\r\n\r\n${payload}`,
    );
    socket.pause();
    await new Promise<void>((resolve, reject) => {
      const started = performance.now();
      const look = (): void => {
        if (gateway.store.settled.length === 1) resolve();
        else if (performance.now() - started > 20_000) reject(new Error('it was never let go'));
        else setTimeout(look, 10);
      };
      look();
    });
    assert.equal(gateway.store.settled[0]?.clientGone, true);
    await eventually(() => upstream.sockets.size === 0, 'the upstream is let go');
    socket.destroy();
  });

/** Larger than every socket buffer together. */
const FLOOD = 'x'.repeat(16_000_000);

function requestOf(body: object): string {
  const payload = JSON.stringify(body);
  return `POST /v1/messages HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\ncontent-length: ${payload.length}\r\n\r\n${payload}`;
}

/** More than both socket buffers may hold back before the writer's side is told that there is room again. */
const READ_BETWEEN_LOOKS = 3_000_000;

/** Asks over a raw socket, and reads one packet every `everyMs`, or nothing. */
function slowClient(url: string, body: object, everyMs?: number): { readonly socket: Socket; readonly received: () => number } {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  let received = 0;
  socket.on('error', () => undefined);
  socket.on('data', (bytes) => {
    received += bytes.length;
    socket.pause();
    if (everyMs !== undefined) setTimeout(() => socket.resume(), everyMs);
  });
  socket.write(requestOf(body));
  return { socket, received: () => received };
}

test('F17: a client that reads slowly gets its one large event, however long it takes', async (t) => {
  const upstream = await fakeUpstream(sayMessages(FLOOD));
  t.after(() => upstream.close());
  const clock = createFakeClock();
  await using gateway = await testGateway(
    { channels: [channel(upstream.url)], models: MODELS, timeouts: { write_stall_ms: 1000 } },
    { clock },
  );
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
  t.after(() => socket.destroy());
  socket.write(requestOf(ask({ stream: true })));
  let received = 0;
  let sinceLast = 0;
  for await (const bytes of socket) {
    received += bytes.length;
    sinceLast += bytes.length;
    if (received > FLOOD.length) break;
    if (sinceLast < READ_BETWEEN_LOOKS) continue;
    sinceLast = 0;
    // The gateway has a turn to write what there is room for now, then almost all of its patience passes.
    await setImmediate();
    clock.advance(900);
  }
  assert.ok(received > FLOOD.length, `${received} bytes`);
  await eventually(() => gateway.store.settled.length === 1, 'the row');
  assert.equal(gateway.store.settled[0]?.clientGone, undefined);
});

test('F17: while a client reads nothing the upstream is not silent; once it reads again, silence counts again', async (t) => {
  let say = (_text: string): void => undefined;
  const upstream = await fakeUpstream(({ socket }) => {
    const stream = openStream(socket);
    startMessage(stream);
    say = (text) =>
      stream.event('content_block_delta', { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } });
    say(FLOOD);
  });
  t.after(() => upstream.close());
  await using gateway = await testGateway({ channels: [channel(upstream.url)], models: MODELS, timeouts: { idle_ms: 800 } });
  const { port } = new URL(gateway.url);
  const socket = connect(Number(port), '127.0.0.1');
  t.after(() => socket.destroy());
  socket.write(requestOf(ask({ stream: true })));
  await eventually(() => upstream.requests[0]?.socket.writableLength === 0, 'the gateway has it all');
  await sleep(2_000);
  say('and then nothing');
  let end = '';
  for await (const bytes of socket) {
    end = (end + String(bytes)).slice(-2_000);
    if (end.includes('event: error')) break;
  }
  assert.match(end, /and then nothing[\s\S]*event: error/);
  await eventually(() => gateway.store.settled.length === 1, 'the row');
  assert.deepEqual([gateway.store.settled[0]?.errorCode, gateway.store.settled[0]?.clientGone], ['upstream_error', undefined]);
});

for (const [whose, top, own] of patience(100))
  test(`F17: a client that takes nothing of a large whole answer is let go after write_stall_ms ${whose}`, async (t) => {
    const upstream = await fakeUpstream(jsonAnswer(200, wholeMessage(FLOOD)));
    t.after(() => upstream.close());
    await using gateway = await testGateway({
      channels: [channel(upstream.url, own)],
      models: MODELS,
      ...top,
    });
    const { socket } = slowClient(gateway.url, ask());
    await eventually(() => gateway.store.settled.length === 1, 'the answer');
    const { keySlots, inFlight } = gateway.running.gateway;
    assert.deepEqual([keySlots.size, inFlight.count], [1, 1], 'it is still being answered');
    await eventually(() => keySlots.size === 0 && inFlight.count === 0, 'its place is free');
    socket.destroy();
  });

test('F19: a pipelined answer that waits for the one before it is not taken for one that nobody reads', async (t) => {
  let finish = (): void => undefined;
  const large = 'y'.repeat(200_000);
  const upstream = await fakeUpstream((request) => {
    if (/"max_tokens":\s*2/.test(request.body)) {
      if (/"stream":\s*true/.test(request.body)) sayMessages(large)(request);
      else jsonAnswer(200, wholeMessage(large))(request);
      return;
    }
    const stream = openStream(request.socket);
    startMessage(stream);
    stream.event('content_block_delta', { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'x' } });
    finish = () => endMessage(stream);
  });
  t.after(() => upstream.close());
  await using gateway = await testGateway({
    channels: [channel(upstream.url)],
    models: MODELS,
    timeouts: { write_stall_ms: 60 },
  });
  for (const stream of [true, false]) {
    const { socket, received } = slowClient(gateway.url, ask({ stream: true }), 0);
    await eventually(() => received() > 0, 'the first stream');
    socket.write(requestOf(ask({ stream, max_tokens: 2 })));
    await sleep(300);
    finish();
    await eventually(() => received() > large.length, `the ${stream ? 'stream' : 'answer'} behind it`);
    socket.destroy();
  }
});

test('a client that leaves after the finish leaves no timer behind', async () => {
  const clock = createFakeClock();
  const { source, read, write } = answerOn(clock, 'chat_completion', 60_000);
  for (const chunk of FINISHED.chat_completion) write(chunk);
  await read();
  assert.deepEqual([source.ended, clock.pending], [false, 1]);
  source.cancel();
  assert.equal(clock.pending, 0);
});

test('an answer may have every byte of its limit, and what follows its end in the same read is not counted', async () => {
  const said = [...FINISHED.chat_completion.map((chunk) => JSON.stringify(chunk)), '[DONE]'];
  const text = said.map((data) => `data: ${data}\n\n`).join('');
  for (const [bytes, isTaken] of [
    [text.length, true],
    [text.length - 1, false],
  ] as const) {
    const { body, source, steps, read } = answerOn(createFakeClock(), 'chat_completion', 60_000, bytes);
    body.write(`${text}: what nobody reads\n\n`);
    if (isTaken) await read();
    else await assert.rejects(read, { message: 'The upstream sent an answer that is too large.' });
    assert.equal(source.ended, isTaken);
    assert.equal(steps.at(-1)?.events.at(-1)?.type === 'response.end', isTaken);
    source.cancel();
  }
  // One that ends with its bytes and no word behind them.
  const bytes = FINISHED.gemini.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('');
  const { body, source, read } = answerOn(createFakeClock(), 'gemini', 60_000, bytes.length);
  body.end(bytes);
  await read();
  assert.ok(source.ended);
});

test('an answer that grows beyond limits.answer_bytes is an error, and its upstream is let go', async (t) => {
  const endless: FakeAnswer = ({ socket }) => {
    const stream = openStream(socket);
    startMessage(stream);
    const delta = { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'x'.repeat(50_000) } };
    for (let count = 0; count < 3; count++) stream.event('content_block_delta', delta);
  };
  const upstream = await fakeUpstream(endless);
  t.after(() => upstream.close());
  await using gateway = await testGateway({
    channels: [channel(upstream.url)],
    models: MODELS,
    limits: { answer_bytes: 100_000 },
  });
  const streamed = await gateway.post('/v1/messages', ask({ stream: true }));
  assert.match(await streamed.text(), /event: error\n/);
  await eventually(() => upstream.sockets.size === 0, 'the upstream of the stream is let go');
  upstream.answer = jsonAnswer(200, wholeMessage('x'.repeat(150_000)));
  assert.equal((await gateway.post('/v1/messages', ask())).status, 502);
  await eventually(() => upstream.sockets.size === 0, 'the upstream of the whole answer is let go');
});
