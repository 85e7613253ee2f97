/**
 * Bad requests and bad upstreams, in every client dialect: the documented error in the caller's own shape, nothing hangs, nothing
 * leaks.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import type { Script } from '../../src/simulator/script.ts';
import { startSimulator } from '../../src/simulator/simulator.ts';
import { eventually, KEY, type TestGateway, testGateway } from '../support/test-gateway.ts';

interface Dialect {
  readonly path: string;
  ask(stream: boolean): Record<string, unknown>;
  /** The member that holds the conversation. */
  readonly turns: string;
  readonly badRole: unknown;
  /** The shape of an error body, with its code or type inside. */
  readonly error: (text: string) => { readonly message: string; readonly words: string };
  /** An error in mid-stream. */
  readonly failedStream: RegExp;
}

const openaiError = (text: string): { message: string; words: string } => {
  const { error }: { error: { message: string; type: string; code: string | null; param: string | null } } = JSON.parse(text);
  assert.equal(typeof error.message, 'string');
  assert.equal(typeof error.type, 'string');
  return { message: error.message, words: `${error.type} ${error.code} ${error.param}` };
};

const DIALECTS: Readonly<Record<string, Dialect>> = {
  chat: {
    path: '/v1/chat/completions',
    ask: (stream) => ({ model: 'm', stream, messages: [{ role: 'user', content: 'hi' }] }),
    turns: 'messages',
    badRole: [{ role: 'wizard', content: 'hi' }],
    error: openaiError,
    failedStream: /data: \{"error":\{/,
  },
  responses: {
    path: '/v1/responses',
    ask: (stream) => ({ model: 'm', stream, input: [{ role: 'user', content: 'hi' }] }),
    turns: 'input',
    badRole: [{ role: 'wizard', content: 'hi' }],
    error: openaiError,
    failedStream: /event: response\.failed\n|event: error\n/,
  },
  messages: {
    path: '/v1/messages',
    ask: (stream) => ({ model: 'm', stream, max_tokens: 50, messages: [{ role: 'user', content: 'hi' }] }),
    turns: 'messages',
    badRole: [{ role: 'wizard', content: 'hi' }],
    error(text) {
      const body: { type: string; error: { type: string; message: string }; request_id: string } = JSON.parse(text);
      assert.equal(body.type, 'error');
      assert.match(body.request_id, /^req_/);
      return { message: body.error.message, words: body.error.type };
    },
    failedStream: /event: error\n/,
  },
  completions: {
    path: '/v1/completions',
    ask: (stream) => ({ model: 'm', stream, prompt: 'hi' }),
    turns: 'prompt',
    badRole: [{ role: 'wizard' }],
    error: openaiError,
    failedStream: /data: \{"error":\{/,
  },
};

const simulator = await startSimulator({ journal: 1 });
test.after(() => simulator.close());

const gatewayOf = (more: object = {}): Promise<TestGateway> =>
  testGateway(
    {
      channels: [{ id: 'one', type: 'chat_completion', base_url: simulator.url, api_key: 'sk-upstream-canary', models: ['m'] }],
      models: { m: { price: { input: '1', output: '2' } } },
      limits: { json_bytes: 20_000, body_ms: 300 },
      health: { failures: 1_000_000, refused_cooldown_ms: 1, rate_limit_cooldown_ms: 1 },
      ...more,
    },
    { level: 'error' },
  );

/** Bytes as they are; resolves with what came back until the connection closed. */
async function raw(url: string, bytes: string, end: boolean): Promise<string> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  let text = '';
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  socket.on('error', () => undefined);
  socket.write(bytes);
  if (end) socket.end();
  const timer = setTimeout(() => socket.destroy(), 4000);
  await once(socket, 'close');
  clearTimeout(timer);
  return text;
}

for (const [name, dialect] of Object.entries(DIALECTS)) {
  test(`${name}: requests that are none`, async () => {
    await using gateway = await gatewayOf();
    const whole = dialect.ask(false);
    const { model: _model, ...modelless } = whole;
    const cases: readonly [string, unknown, number, RegExp][] = [
      ['nothing', '', 400, /empty/],
      ['cut JSON', '{"model": "m"', 400, /JSON/],
      ['no object', '[1]', 400, /object/],
      ['a wrong type', { ...whole, [dialect.turns]: 5 }, 400, new RegExp(dialect.turns)],
      ['a wrong model', { ...whole, model: 7 }, 400, /model/],
      ['no model', modelless, 400, /model/],
      ['an unknown role', { ...whole, [dialect.turns]: dialect.badRole }, 400, new RegExp(`${dialect.turns}.*|role`)],
      ['a wrong flag', { ...whole, stream: 'yes' }, 400, /stream/],
      ['an unknown model', { ...whole, model: 'nobody' }, 404, /nobody/],
      ['too much', { ...whole, user: 'x'.repeat(30_000) }, 413, /20000/],
    ];
    for (const [what, body, status, message] of cases) {
      const response = await gateway.post(dialect.path, body);
      const text = await response.text();
      assert.equal(response.status, status, `${what}: ${text}`);
      assert.match(response.headers.get('content-type') ?? '', /^application\/json/);
      assert.match(dialect.error(text).message, message, what);
    }
    assert.equal(gateway.store.opened.length, 0, 'nothing was dispatched');
    assert.equal((await gateway.post(dialect.path, whole)).status, 200, 'and the gateway serves on');
  });

  test(`${name}: a body that stops in the middle, and headers without one`, async () => {
    await using gateway = await gatewayOf();
    const head = (length: number) =>
      `POST ${dialect.path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`;
    const slow = await raw(gateway.url, `${head(200)}{"model":`, false);
    assert.match(slow, /^HTTP\/1\.1 408 /, 'it never came');
    dialect.error(slow.slice(slow.indexOf('\r\n\r\n') + 4).replace(/^[0-9a-f]+\r\n|\r\n0\r\n\r\n$/g, ''));
    await raw(gateway.url, `${head(200)}{"model":`, true);
    assert.match(await raw(gateway.url, head(0).replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n'), false), /^HTTP\/1\.1 400 /);
    const leaving = connect(Number(new URL(gateway.url).port), '127.0.0.1');
    leaving.write(`${head(200)}{"mod`);
    await new Promise((resolve) => setTimeout(resolve, 20));
    leaving.resetAndDestroy();
    await eventually(() => gateway.store.held.size === 0, 'nothing is held');
    assert.equal((await gateway.post(dialect.path, dialect.ask(false))).status, 200);
  });

  test(`${name}: a byte order mark before JSON is no part of it, the client's or the upstream's`, async () => {
    await using gateway = await gatewayOf();
    const answer = { choices: [{ index: 0, message: { role: 'assistant', content: 'marked' }, finish_reason: 'stop' }] };
    simulator.reset();
    simulator.enqueue({
      raw: { headers: { 'content-type': 'application/json' }, body: `\ufeff${JSON.stringify(answer)}` },
      times: 2,
    });
    for (const stream of [true, false]) {
      const response = await gateway.post(dialect.path, `\ufeff${JSON.stringify(dialect.ask(stream))}`);
      assert.match(await response.text(), /marked/);
      assert.equal(response.status, 200);
    }
    assert.doesNotMatch(simulator.requests[0]?.text ?? '', /\ufeff/);
  });

  const reply = { pieces: [{ type: 'text' as const, text: ['one ', 'two ', 'three'] }], usage: { input: 3, output: 3 } };
  const SICK: Readonly<Record<string, { readonly script: Script; readonly stream: number; readonly whole: number }>> = {
    garbage: { script: { reply, faults: [{ type: 'garbage', at: 0 }] }, stream: 502, whole: 502 },
    'a web page': { script: { reply, faults: [{ type: 'html', status: 200 }] }, stream: 502, whole: 502 },
    'a web page as 502': { script: { reply, faults: [{ type: 'html' }] }, stream: 502, whole: 502 },
    'an error inside a 200': { script: { reply, faults: [{ type: 'error-event', at: 0 }] }, stream: 502, whole: 502 },
    'an error object as a 200': {
      script: {
        raw: {
          headers: { 'content-type': 'application/json' },
          body: '{"error":{"message":"see https://canary.example sk-canary1234567890","type":"server_error","code":null}}',
        },
      },
      stream: 502,
      whole: 502,
    },
    'a refusal in a field that no event has (llama.cpp)': {
      script: {
        raw: {
          headers: { 'content-type': 'text/event-stream' },
          body: 'error: {"code":400,"message":"the request is too long","type":"invalid_request_error"}\n\ndata: [DONE]\n\n',
        },
      },
      stream: 400,
      whole: 400,
    },
    'a close after the first byte': { script: { reply, faults: [{ type: 'cut', atByte: 1 }] }, stream: 502, whole: 502 },
    'an end after the first byte': { script: { reply, faults: [{ type: 'end', atByte: 1 }] }, stream: 502, whole: 502 },
    'a 503': { script: { reply, faults: [{ type: 'status', status: 503 }] }, stream: 502, whole: 502 },
    'a 401': { script: { reply, faults: [{ type: 'status', status: 401 }] }, stream: 502, whole: 502 },
    'a 422': { script: { reply, faults: [{ type: 'status', status: 422 }] }, stream: 422, whole: 422 },
    'a break in the middle': { script: { reply, faults: [{ type: 'cut', at: 2 }] }, stream: 200, whole: 0 },
    'an end without a terminal': { script: { reply, faults: [{ type: 'no-terminal' }] }, stream: 200, whole: 0 },
    'garbage in the middle': { script: { reply, faults: [{ type: 'garbage', at: 3 }] }, stream: 200, whole: 0 },
  };

  test(`${name}: upstreams that answer badly`, async () => {
    await using gateway = await gatewayOf();
    for (const [what, { script, ...statuses }] of Object.entries(SICK)) {
      for (const stream of [true, false]) {
        const wanted = stream ? statuses.stream : statuses.whole;
        if (wanted === 0) continue;
        simulator.reset();
        simulator.enqueue({ ...script, times: 10, pace: { ms: 1 } });
        const before = gateway.store.settled.length;
        const response = await gateway.post(dialect.path, dialect.ask(stream));
        const text = await response.text();
        assert.equal(response.status, wanted, `${what}, ${stream ? 'stream' : 'whole'}: ${text}`);
        assert.doesNotMatch(text, /canary|127\.0\.0\.1|<html/);
        if (wanted === 200) assert.match(text, dialect.failedStream, what);
        else dialect.error(text);
        await eventually(() => gateway.store.settled.length === before + 1, 'settlement');
        const entry = gateway.store.settled.at(-1);
        assert.equal(entry?.status, 'error', what);
        assert.equal(entry?.charge, undefined, `${what} is free`);
        gateway.running.gateway.dispatcher.health.keepOnly(new Set());
      }
    }
    assert.equal(gateway.store.held.size, 0);
    simulator.reset();
    simulator.enqueue({ reply });
    assert.equal((await gateway.post(dialect.path, dialect.ask(false))).status, 200);
  });
}
