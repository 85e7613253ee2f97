/**
 * What an idle WebSocket costs: 1,000 of them, the clients in a process of their own. Run by hand or by CI, not by `npm test`.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { KEY, MODELS, testGateway } from '../support/test-gateway.ts';

const CONNECTIONS = 1_000;
const MAX_BYTES = 25 * 1024;

setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');

async function settledMemory(): Promise<number> {
  for (let round = 0; round < 5; round++) {
    collect();
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return process.memoryUsage().rss;
}

/** Opens sockets that say nothing, or take one warm-up first; resolves when all are idle. */
async function idleClients(url: string, count: number, warmUp: boolean): Promise<{ end(): Promise<void> }> {
  const source = `
    const { WebSocket } = require('ws');
    let idle = 0;
    for (let index = 0; index < ${count}; index++) {
      const ws = new WebSocket('${url}', { headers: { authorization: 'Bearer ${KEY}' } });
      const ready = () => { if (++idle === ${count}) console.log('idle'); };
      const ask = JSON.stringify({ type: 'response.create', model: 'm', input: 'hi', generate: false, store: false });
      ws.on('open', () => ${warmUp} ? ws.send(ask) : ready());
      ws.on('message', (data) => { if (String(data).includes('response.completed')) ready(); });
    }`;
  const child = spawn(process.execPath, ['-e', source], { stdio: ['ignore', 'pipe', 'inherit'] });
  await new Promise((resolve) => child.stdout.once('data', resolve));
  return {
    async end() {
      const ended = new Promise((resolve) => child.once('close', resolve));
      child.kill();
      await ended;
    },
  };
}

test(`F44: ${CONNECTIONS} idle WebSockets cost under ${MAX_BYTES} bytes each`, async () => {
  await using gateway = await testGateway(
    { channels: [{ id: 'one', type: 'messages', base_url: 'http://127.0.0.1:9', api_key: 'k', models: ['m'] }], models: MODELS },
    { level: 'silent' },
  );
  const url = `${gateway.url.replace('http', 'ws')}/v1/responses`;
  const warm = await idleClients(url, 50, true);
  await warm.end();
  const before = await settledMemory();
  const clients = await idleClients(url, CONNECTIONS, false);
  const each = (await settledMemory()) - before;
  await clients.end();
  console.log(`${Math.round(each / CONNECTIONS)} bytes each`);
  assert.ok(each / CONNECTIONS < MAX_BYTES, `${each / CONNECTIONS} bytes each`);
});
