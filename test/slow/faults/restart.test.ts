/**
 * E4 39: a restart under load as docs/operating.md describes it: a new process beside the old one on the same store, the proxy
 * switches when it is ready, the old one gets its SIGTERM. No request is lost, and each has its row.
 */
import assert from 'node:assert/strict';
import { connect, createServer, type Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import { Agent, request } from 'undici';
import { startSimulator } from '../../../src/simulator/simulator.ts';
import { figure } from '../../support/figures.ts';
import { type Installation, install, type Serving, waitFor } from '../../support/processes.ts';

const simulator = await startSimulator();
test.after(() => simulator.close());

const CLIENTS = 8;
const RESTARTS = 2;

/** What stands before a gateway: new connections go to where it points now, old ones stay where they are. */
async function proxy(t: TestContext): Promise<{ readonly url: string; pointTo(serving: Serving): void }> {
  let port = 0;
  const open = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1');
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on('close', () => open.delete(socket));
    }
    client.pipe(upstream);
    upstream.pipe(client);
    client.on('error', () => upstream.destroy());
    upstream.on('error', () => client.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.close();
    for (const socket of open) socket.destroy();
  });
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`,
    pointTo(serving) {
      port = Number(new URL(serving.url).port);
    },
  };
}

async function ready(serving: Serving): Promise<void> {
  await waitFor(
    async () => ((await fetch(`${serving.url}/readyz`).catch(() => undefined))?.status === 200 ? true : undefined),
    () => `never ready: ${serving.text()}`,
  );
}

async function askOnce(url: string, place: Installation, stream: boolean): Promise<string> {
  const { statusCode, headers, body } = await request(`${url}/v1/chat/completions`, {
    method: 'POST',
    // A connection of its own each time: one that is kept may be closed just as it is used again, whatever a server does.
    dispatcher: new Agent({ pipelining: 0 }),
    headers: { authorization: `Bearer ${place.key}` },
    body: JSON.stringify({ model: 'm', stream, messages: [{ role: 'user', content: 'hi' }] }),
  });
  const text = await body.text();
  assert.equal(statusCode, 200, text);
  assert.match(text, stream ? /data: \[DONE\]\n\n$/ : /"finish_reason": ?"stop"/);
  return String(headers['x-request-id']);
}

for (const workers of [[], ['--workers', '2']]) {
  const what = workers.length === 0 ? 'one process' : 'two workers';
  test(`F39: ${RESTARTS} restarts of ${what} under load: every request is answered whole, and has one row`, async (t) => {
    simulator.reset();
    const reply = { pieces: [{ type: 'text' as const, text: 'a stream that lasts' }], usage: { input: 3, output: 2 } };
    simulator.enqueue({ reply, pace: { ms: 15 }, times: 1_000_000 });
    await using place = await install({
      operations: null,
      channels: [{ id: 'one', type: 'chat_completion', base_url: simulator.url, api_key: 'k', models: ['m'] }],
      models: { m: { price: { input: '1', output: '2' } } },
    });
    const front = await proxy(t);
    let serving = await place.serve(...workers);
    await ready(serving);
    front.pointTo(serving);
    const answered: string[] = [];
    let over = false;
    const clients = Array.from({ length: CLIENTS }, async (_, index) => {
      while (!over) answered.push(await askOnce(front.url, place, index % 2 === 0));
    });
    const load = Promise.all(clients);
    for (let restart = 0; restart < RESTARTS; restart++) {
      const next = await place.serve(...workers);
      await ready(next);
      front.pointTo(next);
      const before = answered.length;
      // A connection that was made just before the switch has been accepted by the time others have come through.
      await waitFor(
        () => (answered.length >= before + CLIENTS ? true : undefined),
        () => 'the load stands still',
      );
      assert.equal(await serving.stop(), 0, serving.text());
      serving = next;
    }
    over = true;
    await load;
    assert.equal(await serving.stop(), 0);
    const { out } = await place.run('logs', '--json', '--limit', '1000000');
    const rows = out
      .trim()
      .split('\n')
      .map((line): { requestId: string; status: string } => JSON.parse(line));
    assert.ok(rows.every(({ status }) => status === 'success'));
    assert.deepEqual(rows.map(({ requestId }) => requestId).toSorted(), answered.toSorted());
    assert.equal((await place.run('ledger', 'verify')).code, 0);
    figure(
      t,
      `restarts under load ${workers.join(' ')}`.trim(),
      `${answered.length} requests over ${RESTARTS} restarts, none lost`,
    );
  });
}
