/** Clients that read slowly, or no more, while several parts of the gateway have something to write to them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { beginMessage, endMessage, fakeUpstream } from '../../support/fake-upstream.ts';
import { channel, eventually, MODELS, testGateway } from '../../support/test-gateway.ts';
import { connect } from './socket-client.ts';

/** More than the buffers of a connection on this machine hold. */
const EVENTS = 400;
const TEXT = 'word '.repeat(13_000);

test('a client that reads no more, sends a long steer and leaves: its turn ends, settled once', async (t) => {
  const upstream = await fakeUpstream(({ socket }) => {
    const stream = beginMessage(socket, 'so ');
    const delta = { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: TEXT } };
    for (let n = 0; n < EVENTS; n++) stream.event('content_block_delta', delta);
    endMessage(stream);
  });
  t.after(() => upstream.close());
  await using gateway = await testGateway({ channels: [channel(upstream.url)], models: MODELS });
  gateway.store.walletNanos = 10n ** 15n;
  const client = await connect(gateway);
  client.send({ type: 'response.create', model: 'm', input: 'hi' });
  const { response } = (await client.next(({ type }) => type === 'response.created')) as unknown as { response: { id: string } };
  client.ws.pause();
  await new Promise((resolve) => setTimeout(resolve, 500));
  client.send({ type: 'response.steer', previous_response_id: response.id, input: 'x'.repeat(1_200_000) });
  await new Promise((resolve) => setTimeout(resolve, 500));
  assert.equal(gateway.store.settled.length, 0, 'the turn waits for its client');
  client.ws.terminate();
  await eventually(() => gateway.store.settled.length === 1, 'the row');
  assert.equal(gateway.store.held.size, 0);
});
