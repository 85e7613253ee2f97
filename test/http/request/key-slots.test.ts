/** What one key may hold at once: every endpoint takes its slot, and gives it back whatever happens. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectSocket } from 'node:net';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { WebSocket } from 'ws';
import { KeySlots } from '../../../src/http/request/key-slots.ts';
import { startSimulator } from '../../../src/simulator/simulator.ts';
import { ask, channel, eventually, KEY, MODELS, type TestGateway, testGateway } from '../../support/test-gateway.ts';
import { connect } from '../websocket/socket-client.ts';

const simulator = await startSimulator();
test.after(() => simulator.close());
test.beforeEach(() => simulator.reset());

const gatewayWith = (limits: object): Promise<TestGateway> =>
  testGateway({ channels: [channel(simulator.url)], models: MODELS, limits });
const slow = { reply: { pieces: [{ type: 'text' as const, text: 'one two three four five six' }] }, pace: { ms: 40 } };
const slots = (gateway: TestGateway) => gateway.running.gateway.keySlots;

test('a compressed body counts as what it may become until it is here, and as what it is from then on', async () => {
  await using gateway = await gatewayWith({ json_bytes: 1_000_000, key_body_bytes: 1_500_000 });
  const headers = { authorization: `Bearer ${KEY}` };
  const arriving = connectSocket(Number(new URL(gateway.url).port), '127.0.0.1');
  arriving.write(
    `POST /v1/messages HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\ncontent-encoding: gzip\r\ncontent-length: 70000\r\n\r\n`,
  );
  await eventually(() => slots(gateway).size === 1);
  const send = (body: Buffer) =>
    fetch(`${gateway.url}/v1/messages`, { method: 'POST', body, headers: { ...headers, 'content-encoding': 'gzip' } });
  const packed = gzipSync(JSON.stringify(ask({ stream: true })));
  assert.equal((await send(packed)).status, 200, 'a small one becomes little');
  const large = gzipSync(JSON.stringify(ask({ system: 'x'.repeat(600_000) })));
  assert.ok(large.length < 1_000);
  assert.equal((await send(large)).status, 429, 'one that becomes more than was expected is refused while it arrives');
  arriving.destroy();
  await eventually(() => slots(gateway).size === 0);
  assert.equal((await send(large)).status, 200, 'alone it is as large as any body may be');
  for (let n = 0; n < 4; n++) simulator.enqueue(slow);
  const open = await Promise.all([1, 2, 3, 4].map(() => send(packed)));
  assert.deepEqual(new Set(open.map(({ status }) => status)), new Set([200]));
  await Promise.all(open.map((response) => response.text()));
  await eventually(() => slots(gateway).size === 0);
  assert.equal(slots(gateway).bytes, 0);
});

test('a key has half of what the process may hold, and the process a quarter of its heap; alone every body is taken', () => {
  const held = new KeySlots(4_000);
  const limits = { exchanges: 100, bodyBytes: 10_000, allBytes: 10_000 };
  const first = held.acquire('a', 450, limits);
  assert.throws(() => held.acquire('a', 100, limits), { code: 'rate_limited' });
  first.setWeight(100, 4);
  assert.throws(() => held.acquire('a', 1, limits), { code: 'rate_limited' }, 'four values count as 400 bytes');
  const second = held.acquire('b', 499, limits);
  assert.throws(() => held.acquire('c', 2, limits), { code: 'overloaded' });
  const third = held.acquire('c', 1, limits);
  assert.throws(() => third.growTo(100), { code: 'overloaded' });
  first.release();
  first.release();
  third.growTo(100);
  assert.throws(() => third.setWeight(1, 100), { code: 'overloaded' });
  second.release();
  third.setWeight(1, 100);
  assert.equal(held.bytes, 10_001, 'nothing stands beside it');
  third.release();
  assert.deepEqual([held.bytes, held.size], [0, 0]);
  const connection = held.hold('a', { ...limits, exchanges: 0 });
  connection.setWeight(400);
  assert.throws(() => held.acquire('a', 200, limits), { code: 'rate_limited' }, 'what a connection holds counts, too');
  connection.release();
  assert.equal(held.size, 0);
});

test('F38: every endpoint that takes a body takes a slot', async () => {
  await using gateway = await gatewayWith({ key_exchanges: 1 });
  const port = Number(new URL(gateway.url).port);
  const holder = connectSocket(port, '127.0.0.1');
  holder.write(`POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: ${KEY}\r\ncontent-length: 100\r\n\r\n{`);
  await eventually(() => slots(gateway).size === 1);
  const paths =
    'chat/completions responses responses/compact messages completions embeddings images/generations images/edits videos';
  for (const path of paths.split(' ')) {
    const response = await gateway.post(`/v1/${path}`, ask());
    assert.equal(response.status, 429, path);
    assert.equal(response.headers.get('retry-after'), '1');
    assert.match(await response.text(), /too many requests open/);
  }
  const client = await connect(gateway);
  const [refused] = await client.turn({ type: 'response.create', model: 'm', input: 'hi' });
  assert.match(JSON.stringify(refused), /"status":429.*too many requests open/);
  holder.destroy();
  await eventually(() => slots(gateway).size === 0);
  simulator.enqueue(slow);
  const turn = client.turn({ type: 'response.create', model: 'm', input: 'hi' });
  await eventually(() => slots(gateway).size === 1, 'a turn holds its slot');
  assert.equal((await turn).at(-1)?.type, 'response.completed');
  await eventually(() => slots(gateway).size === 0, 'and gives it back');
  client.ws.close();
  await client.closed;
});

/** Lookups of keys wait until they are let go. */
function holdLookups({ store }: TestGateway): { letGo(): void; readonly waiting: number } {
  let waiting = 0;
  let letGo = (): void => undefined;
  const gate = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const { authenticate } = store.keys;
  Object.assign(store.keys, {
    authenticate: async (token: string, nowMs: number) => {
      waiting += 1;
      await gate;
      return await authenticate.call(store.keys, token, nowMs);
    },
  });
  return {
    letGo: () => letGo(),
    get waiting() {
      return waiting;
    },
  };
}

test('a client that leaves while its key is looked up leaves nothing behind', async () => {
  await using gateway = await gatewayWith({ key_exchanges: 1 });
  const lookups = holdLookups(gateway);
  const socket = connectSocket(Number(new URL(gateway.url).port), '127.0.0.1');
  socket.write(`POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: ${KEY}\r\ncontent-length: 100\r\n\r\n{`);
  await eventually(() => lookups.waiting === 1);
  socket.destroy();
  await new Promise((resolve) => setTimeout(resolve, 50));
  lookups.letGo();
  assert.equal((await gateway.post('/v1/messages', ask())).status, 200);
  await eventually(() => slots(gateway).size === 0);
});

test('F26: connections that are opened at the same moment are counted like others', async () => {
  await using gateway = await testGateway({ channels: [channel(simulator.url)], models: MODELS, websocket: { per_key: 2 } });
  const lookups = holdLookups(gateway);
  const sockets = Array.from(
    { length: 6 },
    () => new WebSocket(`${gateway.url.replace('http', 'ws')}/v1/responses`, { headers: { 'x-api-key': KEY } }),
  );
  const outcomes = sockets.map(async (ws) => {
    ws.on('error', () => undefined);
    return await Promise.race([once(ws, 'open').then(() => 'open'), once(ws, 'unexpected-response').then(() => 'refused')]);
  });
  await eventually(() => lookups.waiting === 6);
  lookups.letGo();
  const seen = await Promise.all(outcomes);
  assert.equal(seen.filter((outcome) => outcome === 'open').length, 2);
  for (const ws of sockets) ws.terminate();
});

test('of many clients that leave at once while their keys are looked up, none leaves anything behind', async (t) => {
  await using gateway = await gatewayWith({});
  const { leavers } = gateway.running.gateway;
  const lookups = holdLookups(gateway);
  const head = `POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: ${KEY}\r\ncontent-length: 50000\r\n\r\n{`;
  const clients = Array.from({ length: 20 }, () => connectSocket(Number(new URL(gateway.url).port), '127.0.0.1'));
  for (const client of clients) client.on('error', () => undefined).write(head);
  await eventually(() => lookups.waiting === clients.length, 'all are looked up');
  // One of those that left is let go of in a turn: the calls of these hear of it after their keys were found.
  for (let n = 0; n < 50_000; n++) leavers.do(() => undefined);
  const left = t.mock.method(leavers, 'do').mock;
  for (const client of clients) client.resetAndDestroy();
  await eventually(() => left.callCount() === clients.length, 'all have left');
  assert.ok(leavers.waiting > clients.length);
  lookups.letGo();
  await eventually(() => leavers.waiting === 0, 'all are let go of');
  await eventually(() => slots(gateway).size === 0, 'nothing counts against the key');
});
