/**
 * What a request takes is weighed: each weight of `test/support/weights.ts` has the option, default, metric and tests that stand
 * there, and each refusal has its status and code in the words of every endpoint, over WebSocket too, and is counted.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect as connectSocket, type Socket } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { startSimulator } from '../../../src/simulator/simulator.ts';
import { MAX_BARE } from '../../../src/codecs/json/scan.ts';
import { ask, channel, eventually, KEY, MODELS, type TestGateway, testConfig, testGateway } from '../../support/test-gateway.ts';
import { WEIGHTS } from '../../support/weights.ts';
import { connect } from '../websocket/socket-client.ts';

const simulator = await startSimulator();
test.after(() => simulator.close());
test.beforeEach(() => simulator.reset());

const ROOT = join(import.meta.dirname, '../..');

function titlesIn(file: string): string {
  return readFileSync(join(ROOT, file), 'utf8');
}

function defaultOf(path: string): unknown {
  const [section = '', name = ''] = path.split('.');
  const schema = JSON.parse(readFileSync(join(ROOT, '../mizu.schema.json'), 'utf8'));
  return name === '' ? undefined : schema.properties[section].properties[name].default;
}

test('every weight has its option with its default, and tests of that title', () => {
  for (const { what, option, tests } of WEIGHTS) {
    if (option !== undefined) assert.equal(defaultOf(option[0]), option[1], what);
    assert.ok(tests.length > 0, what);
    for (const [file, title] of tests) {
      assert.ok(title !== '', what);
      const found = [`test('${title}`, `test(\`${title}`, `test("${title}`].some((line) => titlesIn(file).includes(line));
      assert.ok(found, `${what}: ${file} has no test "${title}…"`);
    }
  }
  assert.equal(testConfig({ channels: [channel('http://127.0.0.1:9')], models: MODELS }).models.get('m')?.rateLimits, undefined);
});

/** Each endpoint that takes a body, by its name in the metrics. */
const ENDPOINTS = {
  chat_completions: 'chat/completions',
  responses: 'responses',
  responses_compact: 'responses/compact',
  messages: 'messages',
  completions: 'completions',
  embeddings: 'embeddings',
  image_generations: 'images/generations',
  image_edits: 'images/edits',
  videos: 'videos',
} as const;

async function counted(gateway: TestGateway, route: string, code: string): Promise<number> {
  const text = await gateway.running.gateway.metrics.registry.metrics();
  return Number(new RegExp(`^mizu_errors_total\\{route="${route}",code="${code}"\\} (\\d+)$`, 'm').exec(text)?.[1] ?? 0);
}

/** A request whose body never ends holds its place until the socket is destroyed. */
async function holder(t: TestContext, gateway: TestGateway, key: string, bytes: number): Promise<Socket> {
  const before = gateway.running.gateway.keySlots.bytes;
  const socket = connectSocket(Number(new URL(gateway.url).port), '127.0.0.1');
  t.after(() => socket.destroy());
  await once(socket, 'connect');
  socket.write(`POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: ${key}\r\ncontent-length: ${bytes}\r\n\r\n{`);
  await eventually(() => gateway.running.gateway.keySlots.bytes > before);
  return socket;
}

interface Case {
  readonly what: string;
  readonly file: object;
  readonly body: object;
  /** What no `JSON.stringify` writes. */
  readonly spelt?: (text: string) => string;
  /** Where the body is too large before that. */
  readonly except?: keyof typeof ENDPOINTS;
  /** Its code there, where it is another. */
  readonly overSocket?: string;
  readonly begin?: (t: TestContext, gateway: TestGateway) => Promise<unknown> | undefined;
}

const members = (count: number): object => Object.fromEntries(Array.from({ length: count }, (_, at) => [`m${at}`, at]));
const CASES: readonly Case[] = [
  { what: 'bytes of a body', file: { limits: { json_bytes: 2_048 } }, body: { x: 'x'.repeat(3_000) } },
  { what: 'JSON values', file: { limits: { json_values: 1_024 } }, body: { x: Array(1_100).fill(0) } },
  { what: 'members of one object', file: { limits: { object_members: 1_024 } }, body: { x: members(1_100) } },
  {
    what: 'one number, or white space in a row',
    file: {},
    except: 'videos',
    overSocket: 'invalid_websocket_event',
    body: { x: 1.5 },
    spelt: (text) => text.replace('"x":1.5', `"x":1.${'5'.repeat(MAX_BARE)}`),
  },
  {
    what: 'one number, or white space in a row',
    file: {},
    except: 'videos',
    overSocket: 'invalid_websocket_event',
    body: {},
    spelt: (text) => text.replace('{', `{${' \n'.repeat(MAX_BARE / 2)} `),
  },
  {
    what: 'a body over 64 KiB of an account without balance',
    file: {},
    body: { x: 'x'.repeat(70_000) },
    begin(_t, gateway) {
      gateway.store.walletNanos = 0n;
      return undefined;
    },
  },
  {
    what: 'bodies of one key at once',
    file: { limits: { key_body_bytes: 4_096 } },
    body: { x: 'x'.repeat(3_000) },
    begin: (t, gateway) => holder(t, gateway, KEY, 2_000),
  },
  {
    what: 'bodies of all keys at once',
    file: { limits: { body_bytes: 4_096 } },
    body: { x: 'x'.repeat(3_000) },
    begin(t, gateway) {
      gateway.store.addKey('sk-mizu-other');
      return holder(t, gateway, 'sk-mizu-other', 2_000);
    },
  },
  {
    what: 'requests of one key at once, in a process',
    file: { limits: { key_exchanges: 1 } },
    body: {},
    begin: (t, gateway) => holder(t, gateway, KEY, 100),
  },
];

for (const { what, file, body, spelt = (text: string) => text, except, overSocket, begin } of CASES) {
  const refusal = WEIGHTS.find((weight) => weight.what === what)?.refusal;
  test(`${what}: the refusal in the words of every endpoint, and counted`, async (t) => {
    assert.ok(refusal !== undefined);
    await using gateway = await testGateway({ channels: [channel(simulator.url)], models: MODELS, ...file });
    await begin?.(t, gateway);
    const waits = refusal.status === 429 || refusal.status === 503;
    for (const [route, path] of Object.entries(ENDPOINTS)) {
      if (route === except) continue;
      const response = await gateway.post(`/v1/${path}`, spelt(JSON.stringify(ask(body))), {
        headers: { 'idempotency-key': 'k' },
      });
      const { type, error } = JSON.parse(await response.text());
      assert.equal(response.status, refusal.status, path);
      assert.equal(error.code, refusal.code, path);
      assert.equal(type, route === 'messages' ? 'error' : undefined, path);
      assert.ok(error.message.length > 0 && typeof error.type === 'string', path);
      assert.equal(response.headers.get('retry-after'), waits ? '1' : null, path);
      assert.equal(await counted(gateway, route, refusal.code), 1, path);
    }
    const client = await connect(gateway);
    const [event] = await client.turn(spelt(JSON.stringify({ type: 'response.create', model: 'm', input: 'hi', ...body })));
    const said = event as { readonly status?: number; readonly error?: { readonly code?: string } } | undefined;
    const code = overSocket ?? refusal.code;
    assert.deepEqual([said?.status, said?.error?.code], [refusal.status, code], 'over WebSocket');
    await eventually(() => client.events.length > 0);
    assert.equal(await counted(gateway, 'responses', code), code === refusal.code ? 2 : 1, 'over WebSocket, too');
    client.ws.close();
    await client.closed;
    assert.equal(simulator.requests.length, 0);
  });
}

test('a form over its bytes is 413, whether it says so or not', async () => {
  await using gateway = await testGateway({
    channels: [channel(simulator.url)],
    models: MODELS,
    limits: { multipart_bytes: 2_048 },
  });
  const form = new FormData();
  form.set('prompt', 'x'.repeat(3_000));
  const declared = new Response(form);
  const type = declared.headers.get('content-type') ?? '';
  const bytes = new Uint8Array(await declared.arrayBuffer());
  for (const sent of [bytes, new Blob([bytes]).stream()]) {
    const init = {
      method: 'POST',
      headers: { 'x-api-key': KEY, 'content-type': type },
      body: sent,
      duplex: 'half',
    } as RequestInit;
    const response = await fetch(`${gateway.url}/v1/images/edits`, init);
    assert.equal(response.status, 413);
    assert.match(await response.text(), /request_too_large/);
  }
});

test('every metric of a weight is there once what it counts has happened', async (t) => {
  await using gateway = await testGateway({ channels: [channel(simulator.url)], models: MODELS });
  const { metrics } = gateway.running.gateway;
  for (const { refusal } of WEIGHTS) if (refusal !== undefined) metrics.requestRefused('responses', refusal);
  metrics.rateLimited('key', 'requests');
  t.diagnostic(`${WEIGHTS.length} weights`);
  const text = await metrics.registry.metrics();
  for (const { what, metric } of WEIGHTS) assert.ok(text.includes(`\n${metric} `), `${what}: ${metric}`);
});
