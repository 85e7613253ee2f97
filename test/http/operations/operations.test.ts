/** Whom the operations port answers: on a loopback address only those who ask for that address. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { createLogger } from '../../../src/http/operations/logger.ts';
import { createOperationsServer } from '../../../src/http/operations/operations.ts';
import type { OperatorReports } from '../../../src/http/operations/reports.ts';
import { LoopTurns } from '../../../src/streams/loop-turns.ts';
import { fakeUpstream, jsonAnswer } from '../../support/fake-upstream.ts';
import { channel, eventually, MODELS, testGateway } from '../../support/test-gateway.ts';

const reports: OperatorReports = {
  metrics: async () => ({ type: 'text/plain', text: 'mizu_up 1\n' }),
  health: async () => ({ ready: true, report: { status: 'ok' } }),
  channels: async () => ({ channels: [] }),
  live: async () => [],
};

/** The status and body of `GET /metrics` at a port of this machine; `host` is the header. */
function askAs(host: string, port: number, address: string): Promise<{ readonly status: number; readonly body: string }> {
  return new Promise((resolve, reject) => {
    const asked = request({ host: address, port, path: '/metrics', headers: { host } }, (response) => {
      response.setEncoding('utf8');
      let body = '';
      response.on('data', (text: string) => {
        body += text;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
    });
    asked.on('error', reject).end();
  });
}

async function statuses(listen: string, address: string, hosts: readonly string[]): Promise<number[]> {
  const server = createOperationsServer(reports, createLogger('silent'));
  const port = await server.listen(listen, 0);
  try {
    return await Promise.all(hosts.map(async (host) => (await askAs(host, port, address)).status));
  } finally {
    await server.close();
  }
}

test('on loopback the names and addresses of this machine are answered, with a port and without', async () => {
  const hosts = ['localhost', 'LOCALHOST:8081', '127.0.0.1', '127.0.0.1:9', '[::1]', '[::1]:8081'];
  assert.deepEqual(await statuses('127.0.0.1', '127.0.0.1', hosts), [200, 200, 200, 200, 200, 200]);
  assert.deepEqual(await statuses('localhost', '127.0.0.1', hosts), [200, 200, 200, 200, 200, 200]);
  assert.deepEqual(await statuses('127.0.0.9', '127.0.0.9', ['127.0.0.9:8081', '127.0.0.8']), [200, 421]);
});

test('on loopback a name that somebody made to mean this machine is refused, and told what is answered', async () => {
  const hosts = ['evil.example', 'evil.example:8081', 'localhost.evil.example', '127.0.0.1.evil.example', '[::2]', '10.0.0.1'];
  assert.deepEqual(new Set(await statuses('127.0.0.1', '127.0.0.1', hosts)), new Set([421]));
  const server = createOperationsServer(reports, createLogger('silent'));
  const port = await server.listen('127.0.0.1', 0);
  const refused = await askAs('evil.example', port, '127.0.0.1').finally(() => server.close());
  assert.deepEqual(JSON.parse(refused.body), { error: 'answers to these hosts only: localhost, 127.0.0.1, [::1]' });
});

test('who asks for the metrics while they are made shares the next run, which knows what was counted since', async () => {
  let begun = 0;
  const first = Promise.withResolvers<void>();
  const metrics = async () => {
    begun += 1;
    if (begun === 1) await first.promise;
    if (begun === 2) throw new Error('a worker did not report its metrics');
    return { type: 'text/plain', text: `mizu_up ${begun}\n` };
  };
  // The last of the pipelined requests tells that those in front of it are there.
  const health = async () => {
    first.resolve();
    return await reports.health();
  };
  const server = createOperationsServer({ ...reports, metrics, health }, createLogger('silent'));
  const port = await server.listen('127.0.0.1', 0);
  try {
    const alone = askAs('localhost', port, '127.0.0.1');
    while (begun === 0) await new Promise(setImmediate);
    const asked = `${'GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n'.repeat(50)}GET /healthz HTTP/1.0\r\n\r\n`;
    const answers = await text(connect(port, '127.0.0.1').end(asked));
    assert.equal((await alone).body, 'mizu_up 1\n');
    assert.equal(answers.match(/HTTP\/1\.1 503 /g)?.length, 50);
    assert.equal(begun, 2);
    assert.equal((await askAs('localhost', port, '127.0.0.1')).body, 'mizu_up 3\n', 'one that failed is asked for again');
  } finally {
    await server.close();
  }
});

test('a crowd of connections that pipeline thousands of requests waits for turns, and others are answered between them', async (t) => {
  const turns = new LoopTurns();
  const server = createOperationsServer(reports, createLogger('silent'), { turns });
  const port = await server.listen('127.0.0.1', 0);
  const crowd = Array.from({ length: 60 }, () => connect(port, '127.0.0.1'));
  t.after(async () => {
    for (const socket of crowd) socket.destroy();
    await server.close();
  });
  await Promise.all(crowd.map((socket) => once(socket, 'connect')));
  for (const socket of crowd) socket.on('error', () => undefined).resume();
  for (const socket of crowd) socket.write('GET /nope HTTP/1.1\r\nhost: localhost\r\n\r\n'.repeat(1_500));
  while (turns.waiting === 0) await new Promise(setImmediate);
  let most = 0;
  const asked = askAs('localhost', port, '127.0.0.1').then(({ status }) => [status, turns.waiting] as const);
  for (let waiting = 1; waiting > 0; waiting = turns.waiting) {
    most = Math.max(most, waiting);
    await new Promise(setImmediate);
  }
  const [status, stillWaiting] = await asked;
  assert.equal(status, 200);
  assert.ok(stillWaiting > 0, 'it is answered while the crowd waits');
  assert.ok(most <= 4_096 + 1_500 + 130 * crowd.length, `${most} requests waited at once`);
});

test('strangers hold so many connections and no more: one too many is closed and told of once, and there is room when they leave', async (t) => {
  const lines: string[] = [];
  const log = createLogger('warn', { write: (line: string) => void lines.push(line) });
  const server = createOperationsServer(reports, log);
  const port = await server.listen('127.0.0.1', 0);
  const crowd: Socket[] = [];
  t.after(async () => {
    for (const socket of crowd) socket.destroy();
    await server.close();
  });
  let closed = 0;
  for (let n = 0; n < 600; n++) {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    crowd.push(socket.on('close', () => void closed++).resume());
  }
  await eventually(() => closed === 600 - 512, 'that those who are too many are closed');
  assert.deepEqual(
    lines.map((line) => JSON.parse(line).msg),
    ['the operations port has all the connections that it takes'],
  );
  for (const socket of crowd) socket.destroy();
  let isIn = false;
  await eventually(() => {
    void askAs('localhost', port, '127.0.0.1').then(
      ({ status }) => {
        isIn = isIn || status === 200;
      },
      () => undefined,
    );
    return isIn;
  }, 'that an operator is answered again');
});

test('whoever asks and does not read is let go, and so is one who says nothing; one who reads slowly gets it all', async () => {
  const text = 'x'.repeat(24 * 1024 * 1024);
  const metrics = async () => ({ type: 'text/plain', text });
  const bounds = { connections: 10, silentMs: 2_000 };
  const server = createOperationsServer({ ...reports, metrics }, createLogger('silent'), { bounds });
  const port = await server.listen('127.0.0.1', 0);
  const silent = connect(port, '127.0.0.1').resume();
  const deaf = connect(port, '127.0.0.1');
  deaf.on('error', () => undefined).write('GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n');
  const slow = connect(port, '127.0.0.1');
  slow.write('GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n');
  try {
    await once(silent, 'close');
    let read = 0;
    slow.on('data', ({ length }: Buffer) => {
      read += length;
      slow.pause();
      setTimeout(() => slow.resume(), 8);
    });
    await once(slow, 'close');
    assert.ok(read > text.length, `${read} bytes were read`);
    let got = 0;
    deaf.on('data', ({ length }: Buffer) => {
      got += length;
    });
    await once(deaf, 'close');
    assert.ok(got < text.length, `${got} bytes came to one who did not read`);
  } finally {
    for (const socket of [silent, deaf, slow]) socket.destroy();
    await server.close();
  }
});

test('a health check of HTTP/1.0, which names no host, is answered', async () => {
  const server = createOperationsServer(reports, createLogger('silent'));
  const port = await server.listen('127.0.0.1', 0);
  const socket = connect(port, '127.0.0.1').end('GET /healthz HTTP/1.0\r\n\r\n');
  assert.match(await text(socket).finally(() => server.close()), /^HTTP\/1\.1 200 [\s\S]*\{"status":"ok"\}$/);
});

test('every answer forbids sniffing and framing; a wrong method is told the right ones', async () => {
  const server = createOperationsServer(reports, createLogger('silent'));
  const port = await server.listen('127.0.0.1', 0);
  try {
    for (const [path, method, status] of [
      ['/metrics', 'GET', 200],
      ['/healthz', 'HEAD', 200],
      ['/channels', 'POST', 405],
      ['/nope', 'GET', 404],
    ] as const) {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method });
      assert.deepEqual(
        [answer.status, answer.headers.get('x-content-type-options'), answer.headers.get('x-frame-options')],
        [status, 'nosniff', 'DENY'],
        path,
      );
      assert.equal(answer.headers.get('allow'), status === 405 ? 'GET, HEAD' : null);
      await answer.text();
    }
  } finally {
    await server.close();
  }
});

test('on an address that the operator opened to others every name is answered', async () => {
  assert.deepEqual(await statuses('0.0.0.0', '127.0.0.1', ['mizu:8081', 'localhost', '10.0.0.1']), [200, 200, 200]);
});

test('one process tells of itself: its health, its Channels and their circuits, and nothing else', async () => {
  await using sick = await fakeUpstream(jsonAnswer(500, { type: 'error', error: { type: 'api_error', message: 'no' } }));
  await using gateway = await testGateway({
    operations: { port: 0 },
    channels: [channel(sick.url, { id: 'sick' }), channel('http://127.0.0.1:1', { id: 'idle', models: ['other'] })],
    models: { ...MODELS, other: MODELS.m },
    health: { failures: 2, cooldown_ms: 60_000 },
  });
  const { store, running } = gateway;
  const ask = async (path: string, init: RequestInit = {}) => {
    const answer = await fetch(`http://127.0.0.1:${running.operationsPort}${path}`, init);
    return { status: answer.status, body: await answer.text() };
  };
  const json = async (path: string) => {
    const { status, body } = await ask(path);
    return { status, body: JSON.parse(body) };
  };
  for (let round = 0; round < 2; round++)
    await gateway.post('/v1/messages', { model: 'm', max_tokens: 1, messages: [{ role: 'user', content: 'hi' }] });
  const { status, body } = await json('/channels?any=query');
  const [circuit] = body.channels[0].circuits;
  assert.ok(circuit.open_for_ms > 50_000 && circuit.open_for_ms <= 60_000);
  assert.deepEqual(
    [status, body],
    [
      200,
      {
        channels: [
          {
            ...{ id: 'sick', type: 'messages', priority: 0, weight: 1, models: ['m'], running: 0 },
            circuits: [{ model: 'm', state: 'open', open_for_ms: circuit.open_for_ms, recent_failures: 2 }],
          },
          { id: 'idle', type: 'messages', priority: 0, weight: 1, models: ['other'], running: 0, circuits: [] },
        ],
      },
    ],
  );
  const well = { status: 'ok', reasons: [], config_revision: 1, store: { healthy: true }, settlements_pending: 0 };
  assert.deepEqual(await json('/healthz'), { status: 200, body: well });
  assert.deepEqual(await ask('/healthz', { method: 'HEAD' }), { status: 200, body: '' });
  const unwell = { healthy: false, reason: 'write_failed', message: 'no space' } as const;
  store.health = () => unwell;
  assert.deepEqual(await json('/healthz'), {
    status: 503,
    body: { ...well, status: 'unready', reasons: ['store'], store: unwell },
  });
  const ready = await fetch(`${gateway.url}/readyz`);
  assert.deepEqual([ready.status, await ready.json()], [503, { status: 'unready', reasons: ['store'] }]);
  store.health = () => {
    throw new Error('nobody foresaw this');
  };
  assert.equal((await ask('/healthz')).status, 503);
  assert.ok(gateway.logLines.some((line) => line.includes('operations request failed')));
  assert.match((await ask('/metrics')).body, /^mizu_circuit_open\{channel="sick"/m);
  assert.equal((await ask('/metrics', { method: 'POST' })).status, 405);
  assert.equal((await ask('/v1/models')).status, 404);
});
