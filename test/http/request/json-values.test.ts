/**
 * A request is bounded in JSON values before it is parsed: 32 KB of gzip were 32 MB of `{},`, and those a gigabyte of objects.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { startSimulator } from '../../../src/simulator/simulator.ts';
import { ask, channel, eventually, KEY, MODELS, testGateway } from '../../support/test-gateway.ts';
import { connect } from '../websocket/socket-client.ts';

const simulator = await startSimulator();
test.after(() => simulator.close());
test.beforeEach(() => simulator.reset());

const file = { channels: [channel(simulator.url)], models: MODELS };
const many = (count: number): string => `[${'{},'.repeat(count - 1)}{}]`;
const bodyOf = (count: number): string =>
  `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"x":${many(count)}}`;

test('too many values are 413 at every endpoint, compressed or not, and nothing is parsed', async () => {
  await using gateway = await testGateway(file);
  const headers = { 'idempotency-key': 'k' };
  const paths =
    'chat/completions responses responses/compact messages completions embeddings images/generations images/edits videos';
  const parse = JSON.parse;
  const lengths: number[] = [];
  JSON.parse = (text: string, reviver) => {
    lengths.push(text.length);
    return parse(text, reviver);
  };
  try {
    for (const path of paths.split(' ')) {
      const response = await gateway.post(`/v1/${path}`, bodyOf(250_000), { headers });
      const body = await response.text();
      assert.equal(response.status, 413, path);
      assert.match(body, /request_too_large|request_entity_too_large/, path);
      assert.match(body, /more than 250000 JSON values/, path);
    }
    const packed = gzipSync(bodyOf(10 * 2 ** 20));
    assert.ok(packed.length < 64 * 1024);
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'content-encoding': 'gzip' },
      body: packed,
    });
    assert.equal(response.status, 413);
    await response.text();
  } finally {
    JSON.parse = parse;
  }
  assert.ok(
    lengths.every((length) => length < 500_000),
    'a refused body was parsed',
  );
  await eventually(() => gateway.running.gateway.keySlots.bytes === 0);
});

test('the same over WebSocket; the limit is an option, and every value counts', async () => {
  await using gateway = await testGateway({ ...file, limits: { json_values: 1_024 } });
  const client = await connect(gateway);
  const [refused] = await client.turn({ type: 'response.create', model: 'm', input: 'hi', x: JSON.parse(many(1_025)) });
  assert.match(JSON.stringify(refused), /"status":413.*more than 1024 JSON values/);
  assert.equal((await client.turn({ type: 'response.create', model: 'm', input: 'hi' })).at(-1)?.type, 'response.completed');
  client.ws.close();
  await client.closed;
  // The body, seven values of its own, the list and its objects.
  assert.equal((await gateway.post('/v1/messages', bodyOf(1_024 - 8))).status, 200);
  assert.equal((await gateway.post('/v1/messages', bodyOf(1_024 - 7))).status, 413);
});

test('a text that is not ASCII alone weighs two bytes a character, wherever it comes from', async () => {
  await using gateway = await testGateway({ ...file, limits: { key_body_bytes: 300_000 } });
  const { keySlots } = gateway.running.gateway;
  const pieces = [{ type: 'text' as const, text: 'one two three four five six' }];
  /** What a key holds while its answer goes on, at least. */
  const weight = async (path: string, body: object, isOver: RegExp): Promise<number> => {
    simulator.enqueue({ reply: { pieces }, pace: { ms: 20 } });
    const response = await gateway.post(path, { ...body, stream: true });
    const { bytes } = keySlots;
    assert.match(await response.text(), isOver);
    await eventually(() => keySlots.bytes === 0);
    return bytes;
  };
  const said = (content: string) => ask({ messages: [{ role: 'user', content }] });
  const text = 'x'.repeat(20_000);
  const [ascii, emoji, chinese] = [said(text), said(`${text}\u{1f600}`), said('\u4e2d'.repeat(20_000))];
  const end = /message_stop/;
  assert.ok((await weight('/v1/messages', ascii, end)) < 22_000);
  const doubled = await weight('/v1/messages', emoji, end);
  assert.ok(doubled > 40_000 && doubled < 42_000, `${doubled}`);
  const wide = await weight('/v1/messages', chinese, end);
  assert.ok(wide > 60_000 && wide < 62_000, `${wide}: its bytes are more than two a character`);
  const first = (await (await gateway.post('/v1/responses', { model: 'm', input: `${text}\u{1f600}` })).json()) as { id: string };
  const continued = { model: 'm', input: 'hi', previous_response_id: first.id };
  const recalled = await weight('/v1/responses', continued, /response\.completed/);
  assert.ok(recalled > 40_000 && recalled < 44_000, `${recalled}: what is brought back weighs the same`);
});

test('one object has at most 50,000 members, wherever it stands; the engine lists the names of one in a single step', async () => {
  await using gateway = await testGateway({ ...file, limits: { object_members: 1_024 } });
  const members = (count: number): object => Object.fromEntries(Array.from({ length: count }, (_, at) => [`m${at}`, at]));
  const status = async (more: object): Promise<number> => (await gateway.post('/v1/messages', ask(more))).status;
  assert.equal(await status({ metadata: { user_id: 'u' }, x: [members(1_024), members(1_024)] }), 200);
  const refused = await gateway.post('/v1/messages', ask({ x: [[{ y: members(1_025) }]] }));
  assert.equal(refused.status, 413);
  assert.match(await refused.text(), /An object of the body has more than 1024 members/);
  const client = await connect(gateway);
  const [event] = await client.turn({ type: 'response.create', model: 'm', input: 'hi', x: members(1_025) });
  assert.match(JSON.stringify(event), /"status":413.*more than 1024 members/);
  client.ws.close();
  await client.closed;
  await using usual = await testGateway(file);
  assert.equal((await usual.post('/v1/messages', ask({ x: members(50_000) }))).status, 200);
  assert.equal((await usual.post('/v1/messages', ask({ x: members(50_001) }))).status, 413);
});

test('values are part of what a key holds: many such bodies at once are refused, not kept', async () => {
  await using gateway = await testGateway({ ...file, limits: { key_body_bytes: 5_000_000 } });
  simulator.enqueue({ reply: { pieces: [{ type: 'text', text: 'one two three four five six' }] }, pace: { ms: 40 } });
  const first = await gateway.post('/v1/messages', { ...JSON.parse(bodyOf(30_000)), stream: true });
  assert.equal(first.status, 200);
  const second = await gateway.post('/v1/messages', bodyOf(30_000));
  assert.equal(second.status, 429);
  assert.match(await second.text(), /too many bytes at once/);
  await first.text();
  await eventually(() => gateway.running.gateway.keySlots.bytes === 0);
  assert.equal((await gateway.post('/v1/messages', bodyOf(30_000))).status, 200);
});

test('real agents are far from it: a megabyte of 200 turns, 300 tools with schemas, sixteen pictures', async () => {
  await using gateway = await testGateway(file);
  const properties = Object.fromEntries(
    Array.from({ length: 12 }, (_, at) => [
      `parameter_${at}`,
      {
        type: 'object',
        description: 'what it is for',
        properties: { a: { type: 'string', enum: ['x', 'y'] }, b: { type: 'number' } },
      },
    ]),
  );
  const tools = Array.from({ length: 300 }, (_, at) => ({
    name: `tool_${at}`,
    description: 'does something',
    input_schema: { type: 'object', properties, required: Object.keys(properties), additionalProperties: false },
  }));
  const source = { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo='.repeat(1_000) };
  const pictures = Array.from({ length: 16 }, () => ({ type: 'image', source }));
  const turns = Array.from({ length: 100 }, (_, at) => [
    { role: 'assistant', content: [{ type: 'tool_use', id: `toolu_${at}`, name: 'tool_1', input: { a: 'x'.repeat(5_000) } }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: `toolu_${at}`, content: 'y'.repeat(5_000) }] },
  ]).flat();
  const messages = [{ role: 'user', content: [...pictures, { type: 'text', text: 'go on' }] }, ...turns];
  assert.equal((await gateway.post('/v1/messages', ask({ messages, tools }))).status, 200);
});
