/** Messages so long that they leave in fragments: whole for the client, in order, with nothing between their pieces. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { WebSocket } from 'ws';
import { KEY, type TestGateway, testGateway } from '../../support/test-gateway.ts';

const CONFIG = {
  channels: [{ id: 'one', type: 'messages', base_url: 'http://127.0.0.1:9', api_key: 'k', models: ['m'] }],
  models: { m: { price: { input: '1', output: '2' } } },
};
/** Twice in each event of a warm-up's three; a character of four bytes stands where pieces meet. */
const LONG = `a${'😀'.repeat(1_500_000)}`;
const WARM_UP = JSON.stringify({ type: 'response.create', model: 'm', instructions: LONG, input: 'x', generate: false });

interface Told {
  readonly type: string;
  readonly response?: { readonly id: string; readonly instructions: string };
}

async function open(gateway: TestGateway): Promise<WebSocket> {
  const url = `ws://127.0.0.1:${gateway.running.port}/v1/responses`;
  const ws = new WebSocket(url, { headers: { authorization: `Bearer ${KEY}` } });
  await once(ws, 'open');
  return ws;
}

/** The next so many messages. */
function next(ws: WebSocket, count: number): Promise<Told[]> {
  const told: Told[] = [];
  return new Promise((resolve) => {
    const listen = (data: unknown): void => {
      told.push(JSON.parse(String(data)) as Told);
      if (told.length < count) return;
      ws.off('message', listen);
      resolve(told);
    };
    ws.on('message', listen);
  });
}

test('long messages come whole, and refusals and pongs beside them do not get into them', async () => {
  await using gateway = await testGateway(CONFIG);
  const ws = await open(gateway);
  const told = next(ws, 5);
  const ponged = once(ws, 'pong');
  ws.send(WARM_UP);
  ws.send('{}');
  ws.ping('p');
  ws.send('{"type":"what"}');
  const events = await told;
  await ponged;
  const long = events.filter(({ response }) => response !== undefined);
  assert.deepEqual(
    long.map(({ type }) => type),
    ['response.created', 'response.in_progress', 'response.completed'],
  );
  for (const { response } of long) assert.ok(response?.instructions === LONG, 'each has the whole text');
  assert.equal(events.filter(({ type }) => type === 'error').length, 2);
  ws.terminate();
});

test('what a create inherits is inherited however long it is', async () => {
  await using gateway = await testGateway(CONFIG);
  const ws = await open(gateway);
  const first = next(ws, 3);
  ws.send(WARM_UP);
  const id = (await first)[2]?.response?.id;
  const second = next(ws, 3);
  ws.send(JSON.stringify({ type: 'response.create', model: 'm', previous_response_id: id, input: 'y', generate: false }));
  for (const { response } of await second) assert.ok(response?.instructions === LONG, 'it is that of the turn before');
  ws.terminate();
});

test('a client that leaves within a long message is gone, and the next one is served', async () => {
  await using gateway = await testGateway(CONFIG);
  const leaver = await open(gateway);
  leaver.send(WARM_UP);
  leaver.pause();
  await new Promise((resolve) => setTimeout(resolve, 50));
  leaver.terminate();
  const ws = await open(gateway);
  const told = next(ws, 3);
  ws.send(WARM_UP);
  assert.equal((await told).length, 3);
  ws.terminate();
});
