/** An upstream that is asked over a WebSocket and ends its answer with more than any answer may hold: a failure, and over. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { WebSocketServer } from 'ws';
import { eventually, testGateway } from '../../support/test-gateway.ts';
import { connect } from './socket-client.ts';

const about = { id: 'resp_1', object: 'response', created_at: 1, model: 'm' };
const usage = { input_tokens: 1_000, output_tokens: 10, total_tokens: 1_010 };

test('a terminal of too many values fails its turn, free, and the next one is answered', async () => {
  const upstream = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(upstream, 'listening');
  let asked = 0;
  upstream.on('connection', (ws) => {
    ws.on('error', () => undefined);
    ws.on('message', () => {
      const hostile = asked++ === 0;
      const content = [{ type: 'output_text', text: 'Hi', annotations: [] }];
      const output = [{ type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content }];
      const values = hostile ? { x: Array.from({ length: 400_000 }, () => ({})) } : {};
      const response = { ...about, status: 'completed', output, usage, ...values };
      ws.send(JSON.stringify({ type: 'response.created', response: { ...about, status: 'in_progress', output: [] } }));
      ws.send(JSON.stringify({ type: 'response.completed', response }));
    });
  });
  const { port } = upstream.address() as AddressInfo;
  try {
    const one = { id: 'one', type: 'responses', base_url: `http://127.0.0.1:${port}`, api_key: 'k', models: ['m'] };
    await using gateway = await testGateway({
      channels: [{ ...one, options: { websocket: true } }],
      models: { m: { price: { input: '1', output: '2' } } },
    });
    const client = await connect(gateway);
    const { settled, held } = gateway.store;
    for (const end of [/^(error|response\.failed)$/, /^response\.completed$/]) {
      const events = await client.turn({ type: 'response.create', model: 'm', input: 'hi', store: false });
      assert.match(events.at(-1)?.type ?? '', end);
    }
    client.ws.terminate();
    await client.closed;
    await eventually(() => settled.length === 2 && held.size === 0, 'both turns have a row, and nothing is held');
    assert.deepEqual(
      settled.map(({ charge }) => charge?.total ?? 0n),
      [0n, 1_020_000n],
    );
  } finally {
    upstream.close();
  }
});
