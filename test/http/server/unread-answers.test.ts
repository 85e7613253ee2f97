/** Short answers to requests that are pipelined, and a client that reads none of them. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import { channel, KEY, testGateway } from '../../support/test-gateway.ts';

const PIPELINED = 300;
const names = Array.from({ length: 300 }, (_, n) => `a-model-with-a-long-name-${n}`);
const models = Object.fromEntries(names.map((name) => [name, { price: { input: '1', output: '2' } }]));

test('F17: a client that pipelines and reads nothing is let go after the write stall; one that reads slowly gets every answer', async () => {
  const file = { channels: [channel('http://127.0.0.1:9', { models: names })], models, timeouts: { write_stall_ms: 2_000 } };
  await using gateway = await testGateway(file);
  const headers = { authorization: `Bearer ${KEY}` };
  const { length } = await (await fetch(`${gateway.url}/v1/models`, { headers })).text();
  assert.ok(length < 64 * 1024, 'a short answer');
  const all = length * PIPELINED;
  const ask = () => {
    const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
    const request = `GET /v1/models HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${KEY}\r\n`;
    socket.on('error', () => undefined).pause();
    for (let n = 1; n < PIPELINED; n++) socket.write(`${request}\r\n`);
    socket.write(`${request}connection: close\r\n\r\n`);
    return socket;
  };
  const deaf = ask();
  const slow = ask();
  let read = 0;
  slow.on('data', (bytes: Buffer) => {
    read += bytes.length;
    slow.pause();
    setTimeout(() => slow.resume(), 8);
  });
  slow.resume();
  await once(slow, 'close');
  assert.ok(read > all, `${read} of ${all} bytes`);
  await new Promise((resolve) => setTimeout(resolve, 5_000));
  let heard = 0;
  deaf.on('data', (bytes: Buffer) => {
    heard += bytes.length;
  });
  deaf.resume();
  await once(deaf, 'close');
  assert.ok(heard < all, `${heard} bytes came to one who did not read`);
});
