/**
 * A gateway in a process of its own whose memory, and longest turn of the event loop, can be asked for: the child of
 * `memory-law.ts`. Its first message is the configuration.
 */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { testGateway } from './test-gateway.ts';
import { TurnWatch } from './turn-watch.ts';

const SETTLE_ROUNDS = 4;

async function settle(): Promise<void> {
  for (let round = 0; round < SETTLE_ROUNDS; round++) {
    globalThis.gc?.();
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

const watch = new TurnWatch();

/** Begins an answer to each request and never ends it: what Node alone takes for as many connections. */
async function plainServer(): Promise<Server> {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(200).write('.');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return server;
}

let plain: Server | undefined;

// A test that was killed leaves no process that watches its turns.
process.once('disconnect', () => process.exit());
process.once('message', async (file: object) => {
  const gateway = await testGateway(file, { level: 'silent' });
  gateway.store.addKey('sk-mizu-other');
  // However long an attack takes, and so is charged for: nobody is refused for money.
  gateway.store.walletNanos = 10n ** 18n;
  process.on('message', async (asked: { readonly do: string; readonly value?: string }) => {
    if (asked.do === 'memory') {
      await settle();
      const { rss, external, heapUsed } = process.memoryUsage();
      process.send?.({ rss, held: external + heapUsed });
    }
    if (asked.do === 'held') {
      const metrics = await gateway.running.gateway.metrics.registry.metrics();
      process.send?.({ held: Number(new RegExp(`^mizu_held\\{kind="${asked.value}"\\} (\\d+)$`, 'm').exec(metrics)?.[1]) });
    }
    if (asked.do === 'in_flight') {
      const metrics = await gateway.running.gateway.metrics.registry.metrics();
      const counts = [...metrics.matchAll(/^mizu_requests_in_flight(?:\{.*\})? (\d+)$/gm)].map(([, count]) => Number(count));
      process.send?.({ inFlight: counts.reduce((sum, count) => sum + count, 0) });
    }
    if (asked.do === 'plain') {
      plain ??= await plainServer();
      process.send?.({ port: (plain.address() as AddressInfo).port });
    }
    if (asked.do === 'plain_open') {
      plain?.getConnections((_error, open) => process.send?.({ open }));
    }
    if (asked.do === 'watch') {
      watch.start();
      process.send?.({});
    }
    if (asked.do === 'longest') {
      process.send?.({ longestMs: watch.stop() });
    }
    if (asked.do === 'seal') {
      const owner = { channelType: 'messages', scope: 's', model: 'm' } as const;
      process.send?.({ sealed: gateway.running.gateway.envelopes.seal({ owner, value: asked.value ?? '' }, 'acct_1') });
    }
  });
  process.send?.({ url: gateway.url });
});
