/** What a WebSocket keeps is bounded: turns for the next turn, messages that are not finished, connections. */
import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { WebSocket } from 'ws';
import { MessageMeter } from '../../../src/http/websocket/message-meter.ts';
import { startSimulator } from '../../../src/simulator/simulator.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { beginMessage, endMessage, fakeUpstream } from '../../support/fake-upstream.ts';
import {
  channel,
  eventually,
  KEY,
  MODELS,
  type TestGateway,
  type TestGatewayOptions,
  testGateway,
} from '../../support/test-gateway.ts';
import { connect, type ServerEvent, type SocketClient, socketClient } from './socket-client.ts';

const simulator = await startSimulator();
test.after(() => simulator.close());
test.beforeEach(() => simulator.reset());

const gatewayWith = (file: object, options?: TestGatewayOptions): Promise<TestGateway> =>
  testGateway({ channels: [channel(simulator.url)], models: MODELS, ...file }, options);
const slots = (gateway: TestGateway) => gateway.running.gateway.keySlots;

interface WarmUp {
  readonly client: SocketClient;
  readonly id: string;
}

async function warmUp(gateway: TestGateway, bytes: number): Promise<WarmUp> {
  const client = await connect(gateway);
  const create = { type: 'response.create', model: 'm', store: false, generate: false };
  const events = await client.turn({ ...create, input: 'x'.repeat(bytes), instructions: 'y'.repeat(bytes) });
  const { id } = (events.at(-1) ?? assert.fail())['response'] as { id: string };
  return { client, id };
}

const goOn = ({ client, id }: WarmUp): Promise<ServerEvent[]> =>
  client.turn({ type: 'response.create', model: 'm', store: false, input: 'go on', previous_response_id: id });

test('warm-ups count in the budgets of the history: forty connections keep what one key may have, and the last can go on', async () => {
  await using gateway = await gatewayWith({ history: { entry_bytes: 100_000, key_bytes: 200_000, total_bytes: 1_000_000 } });
  const warm: WarmUp[] = [];
  for (let n = 0; n < 40; n++) warm.push(await warmUp(gateway, 20_000));
  const kept = await Promise.all(warm.map(goOn));
  const isKept = kept.map((events) => events.at(-1)?.type === 'response.completed');
  // Each is 40,000 bytes and a little; whichever went on may have cost another its place since.
  assert.ok(isKept.filter(Boolean).length <= 4, `${isKept.filter(Boolean).length} of 40 were kept`);
  assert.equal(isKept.at(-1), true);
  const lost = kept[0]?.at(-1);
  assert.match(JSON.stringify(lost), /"status":400.*previous_response_not_found/);
  for (const { client } of warm) client.ws.close();
  await Promise.all(warm.map(({ client }) => client.closed));
});

test('of a response that a failed turn continued nothing is kept, neither while the connection is open nor afterwards', async () => {
  await using gateway = await gatewayWith({});
  const { memory } = gateway.running.gateway;
  const warm = await warmUp(gateway, 20_000);
  assert.ok(memory.bytes > 40_000);
  const failed = await warm.client.turn({
    type: 'response.create',
    model: 'none',
    previous_response_id: warm.id,
    input: 'go on',
  });
  assert.equal(failed.at(-1)?.type, 'error');
  assert.equal(memory.bytes, 0);
  assert.match(JSON.stringify(await goOn(warm)), /previous_response_not_found/);
  warm.client.ws.close();
  await warm.client.closed;
});

test('a warm-up that no budget has room for is answered, and cannot be continued; an honest conversation never notices', async () => {
  await using gateway = await gatewayWith({ history: { entry_bytes: 50_000, key_bytes: 200_000, total_bytes: 1_000_000 } });
  const large = await warmUp(gateway, 40_000);
  assert.match(JSON.stringify(await goOn(large)), /previous_response_not_found/);
  let { client, id } = await warmUp(gateway, 5_000);
  for (let turn = 0; turn < 10; turn++) {
    const last = (await goOn({ client, id })).at(-1);
    assert.equal(last?.type, 'response.completed');
    id = (last['response'] as { id: string }).id;
  }
  client.ws.close();
  large.client.ws.close();
  await Promise.all([client.closed, large.client.closed]);
});

/** A client that sends the first fragment of a message and no end. */
async function begun(gateway: TestGateway, bytes: number): Promise<SocketClient> {
  const ws = new WebSocket(`${gateway.url.replace('http', 'ws')}/v1/responses`, { headers: { 'x-api-key': KEY } });
  const client = socketClient(ws);
  await once(ws, 'open');
  ws.send('{"type":"response.create","input":"', { fin: false });
  for (let sent = 0; sent < bytes; sent += 10_000) ws.send('x'.repeat(10_000), { fin: false });
  return client;
}

test('unfinished messages of one key are bounded together: the connection that goes over is closed with 1009, others go on', async () => {
  await using gateway = await gatewayWith({ websocket: { unfinished_bytes: 250_000 } });
  const first = await begun(gateway, 100_000);
  const second = await begun(gateway, 100_000);
  await eventually(() => slots(gateway).bytes > 200_000, 'they count among what the key holds');
  const third = await begun(gateway, 100_000);
  const [error] = [await third.next()];
  assert.match(JSON.stringify(error), /"status":413.*request_too_large/);
  assert.equal((await third.closed).code, 1009);
  gateway.store.addKey('sk-mizu-other');
  const other = await connect(gateway, { headers: { authorization: 'Bearer sk-mizu-other' } });
  const answer = await other.turn({ type: 'response.create', model: 'm', input: 'z'.repeat(200_000) });
  assert.equal(answer.at(-1)?.type, 'response.completed');
  first.ws.send('", "model":"m"}');
  assert.equal((await first.next(({ type }) => type === 'response.completed')).type, 'response.completed');
  second.ws.terminate();
  for (const client of [first, other]) client.ws.close();
  await Promise.all([first.closed, second.closed, other.closed]);
  await eventually(() => slots(gateway).bytes === 0);
});

test('a turn that waited for the end of the one before, on a connection that takes no more, leaves nothing behind', async (t) => {
  const upstream = await fakeUpstream(({ socket }) => {
    const stream = beginMessage(socket, 'x'.repeat(300_000));
    finish = () => endMessage(stream);
  });
  let finish = (): void => assert.fail('the upstream has not been asked');
  t.after(() => upstream.close());
  await using gateway = await testGateway({
    channels: [channel(upstream.url)],
    models: MODELS,
    websocket: { unfinished_bytes: 250_000 },
  });
  const sockets: Socket[] = [];
  const onSocket = (message: unknown): void => void sockets.push((message as { socket: Socket }).socket);
  subscribe('net.server.socket', onSocket);
  const client = await connect(gateway);
  unsubscribe('net.server.socket', onSocket);
  const own = sockets[0] ?? assert.fail('a socket of the gateway');
  client.send({ type: 'response.create', model: 'm', input: 'hi' });
  await client.next(({ type }) => type === 'response.output_text.delta');
  // As where the client does not read: the end of the turn has been written, and waits.
  own.cork();
  finish();
  await eventually(() => own.writableLength > 1024 * 1024, 'the end of the turn waits for its client');
  client.send({ type: 'response.create', model: 'm', input: 'y'.repeat(100_000) });
  await eventually(() => slots(gateway).bytes > 100_000, 'the next turn waits');
  const waiting = slots(gateway).bytes;
  client.ws.send('{"type":"response.create","input":"', { fin: false });
  for (let sent = 0; sent < 300_000; sent += 10_000) client.ws.send('x'.repeat(10_000), { fin: false });
  await eventually(() => slots(gateway).bytes > waiting + 250_000, 'the message that is too much has arrived');
  own.uncork();
  await client.closed;
  await eventually(() => gateway.store.settled.length === 1, 'its row');
  assert.equal(upstream.requests.length, 1, 'the next turn was not begun');
  await eventually(() => slots(gateway).size === 0, 'all of what it held is given back');
});

test('an unfinished message counts in limits.key_body_bytes, too', async () => {
  await using gateway = await gatewayWith({ limits: { key_body_bytes: 250_000 } });
  const open = await begun(gateway, 200_000);
  await eventually(() => slots(gateway).bytes > 200_000);
  const refused = await gateway.post('/v1/responses', { model: 'm', input: 'x'.repeat(100_000) });
  assert.equal(refused.status, 429);
  await refused.text();
  open.ws.terminate();
  await open.closed;
  await eventually(() => slots(gateway).bytes === 0);
});

test('a message has thirty seconds from its first byte; one that is whole in time does not, however long the turn', async () => {
  const clock = createFakeClock();
  await using gateway = await gatewayWith({}, { clock });
  const slow = await begun(gateway, 10_000);
  await eventually(() => slots(gateway).bytes > 10_000);
  const quick = await connect(gateway);
  assert.equal((await quick.turn({ type: 'response.create', model: 'm', input: 'hi' })).at(-1)?.type, 'response.completed');
  clock.advance(29_000);
  slow.ws.send('x', { fin: false });
  clock.advance(1_001);
  assert.match(JSON.stringify(await slow.next()), /"status":408.*request_timeout/);
  assert.equal((await slow.closed).code, 1008);
  assert.equal(quick.ws.readyState, WebSocket.OPEN);
  quick.ws.close();
  await quick.closed;
});

test('a key has 64 connections by default; one more is 429 before the upgrade', async () => {
  await using gateway = await gatewayWith({});
  const clients = await Promise.all(Array.from({ length: 64 }, () => connect(gateway)));
  const ws = new WebSocket(`${gateway.url.replace('http', 'ws')}/v1/responses`, { headers: { 'x-api-key': KEY } });
  ws.on('error', () => undefined);
  const [, response] = await once(ws, 'unexpected-response');
  assert.equal(response.statusCode, 429);
  response.resume();
  for (const client of clients) client.ws.close();
  await Promise.all(clients.map(({ closed }) => closed));
});

test('a large message of a key without money is 402 and not read; what came behind it keeps its place', async () => {
  await using gateway = await gatewayWith({});
  gateway.store.walletNanos = 0n;
  const client = await connect(gateway);
  client.send({ type: 'response.create', model: 'm', input: 'x'.repeat(70_000) });
  client.send({ type: 'nonsense' });
  const [first, second] = [await client.next(), await client.next()];
  assert.match(JSON.stringify(first), /"status":402.*insufficient_balance/);
  assert.match(JSON.stringify(second), /invalid_websocket_event/);
  const [small] = await client.turn({ type: 'response.create', model: 'unknown', input: 'x' });
  assert.match(JSON.stringify(small), /model_not_found/, 'a small one is told its other mistakes first');
  gateway.store.walletNanos = 1n;
  const last = (await client.turn({ type: 'response.create', model: 'm', input: 'x'.repeat(70_000) })).at(-1);
  assert.equal(last?.type, 'response.completed');
  client.ws.close();
  await client.closed;
});

test('the meter sees what a message holds at every cut of its frames, and nothing of control frames between them', () => {
  const frame = (first: number, payload: number): Buffer => {
    const head = Buffer.alloc(payload < 126 ? 6 : payload < 65_536 ? 8 : 14);
    head[0] = first;
    head[1] = 0x80 | (payload < 126 ? payload : payload < 65_536 ? 126 : 127);
    if (payload >= 65_536) head.writeBigUInt64BE(BigInt(payload), 2);
    else if (payload >= 126) head.writeUInt16BE(payload, 2);
    return Buffer.concat([head, Buffer.alloc(payload, 0xff)]);
  };
  const bytes = Buffer.concat([
    frame(0x81, 5),
    frame(0x01, 200),
    frame(0x89, 100),
    frame(0x00, 0),
    frame(0x80, 70_000),
    frame(0x81, 0),
    frame(0x01, 300),
  ]);
  for (const size of [1, 2, 3, 7, 64, 1_000, bytes.length]) {
    const meter = new MessageMeter();
    let most = 0;
    for (let at = 0; at < bytes.length; at += size) {
      meter.push(bytes.subarray(at, at + size));
      most = Math.max(most, meter.unfinished);
    }
    assert.equal(meter.finished, 3);
    assert.ok(meter.unfinished >= 300 && meter.unfinished <= 300 + 256 * 301);
    if (size < 1_000) assert.ok(most >= 69_000);
  }
});
