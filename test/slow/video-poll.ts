/**
 * `npm run test:poll`: what 10,000 open video tasks, polled by the process that serves, do to the latency of its API. Measures the same
 * requests before the tasks fall due and while they are polled, and prints both. Figures of a shared machine: read, not asserted.
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { VIDEO_WORKER } from '../../src/store/leases.ts';
import { openLmdbStore } from '../../src/store/lmdb/open.ts';
import { alive } from '../store/support/alive.ts';
import { ok, realClock } from '../store/support/store.ts';
import { GatewayProcess } from './crash/gateway-process.ts';

const TASKS = 10_000;
const QUIET_MS = 8_000;
const POLL_MS = 5_000;
const PAUSE_MS = 2;

/** An upstream in a process of its own, so that its work is not measured: every task is under way. */
const upstream = spawn(
  process.execPath,
  [
    '-e',
    `require('node:http').createServer((request, response) => {
      response.setHeader('content-type', 'application/json');
      response.end('{"id":"u","model":"m","status":"running"}');
    }).listen(0, '127.0.0.1', function () { console.log(this.address().port); });`,
  ],
  { stdio: ['ignore', 'pipe', 'inherit'] },
);
const [port] = await once(upstream.stdout, 'data');
const upstreamUrl = `http://127.0.0.1:${String(port).trim()}`;
const folder = mkdtempSync(join(tmpdir(), 'mizu-poll-'));
const config = join(folder, 'mizu.config.json');
writeFileSync(
  config,
  JSON.stringify({
    listen: { host: '127.0.0.1', port: 0 },
    operations: null,
    store: { path: './data' },
    log: { level: 'error' },
    channels: [
      {
        id: 'ark',
        type: 'ark_video',
        base_url: `${upstreamUrl}/api/v3`,
        api_key: 'k',
        models: ['film'],
        options: { poll_interval_ms: POLL_MS },
      },
    ],
    models: { film: { kind: 'video', price: { video: '0.000001' } } },
  }),
);
const store = await openLmdbStore({
  path: join(folder, 'data'),
  clock: realClock,
  randomBytes: (size) => randomBytes(size),
  process: { host: hostname(), pid: process.pid, isAlive: alive },
  freeSpaceFloor: 0,
});
const account = ok(await store.accounts.create({ name: 'a', creditNanos: 10n ** 12n }, { id: 'a', by: 'test' }));
const { key, secret } = ok(await store.keys.create({ accountId: account.id, name: 'k' }, { id: 'k', by: 'test' }));
const { token } = ok(await store.leases.acquire(VIDEO_WORKER, 'maker', 60_000, Date.now()));
const gateway = new GatewayProcess(config, join(folder, 'cache'));
try {
  const url = await gateway.listening();
  const dueFrom = Date.now() + 15_000 + QUIET_MS;
  await Promise.all(
    Array.from({ length: TASKS }, async (_, n) => {
      const id = `video_${n}`;
      const nowMs = Date.now();
      const video = {
        principal: { key, account },
        model: 'film',
        requestJson: '{"model":"film","prompt":"p"}',
        priceNanos: 1_000n,
      };
      ok(await store.videos.create({ id, ...video, idempotencyKey: id, bodyHash: 'h', nowMs, dueAtMs: dueFrom }));
      ok(await store.videos.change(id, { event: 'submit', channelId: 'ark', upstreamModel: 'film' }, token, nowMs));
      ok(await store.videos.change(id, { event: 'accept', upstreamId: `u${n}`, dueAtMs: dueFrom + (n % POLL_MS) }, token, nowMs));
    }),
  );
  await store.leases.release(VIDEO_WORKER, token);
  await measure(url, 1_000);
  const quiet = await measure(url, QUIET_MS);
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, dueFrom + 1_000 - Date.now())));
  const polled = await measure(url, QUIET_MS);
  const polls = (await store.videos.all({ state: 'running', limit: TASKS })).filter((task) => 'polls' in task && task.polls > 0);
  const words = ({ p50, p99, count }: Latency): string =>
    `p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms (${count} requests)`;
  console.log(`${TASKS} open tasks, none due: ${words(quiet)}\n${TASKS} open tasks, polled:   ${words(polled)}
p99 rises by ${(polled.p99 - quiet.p99).toFixed(2)} ms; ${polls.length} tasks had been polled`);
} finally {
  await store.close();
  await gateway.kill();
  upstream.kill();
  rmSync(folder, { recursive: true, force: true });
}

interface Latency {
  readonly p50: number;
  readonly p99: number;
  readonly count: number;
}

/** One client that asks for its balance every few milliseconds. */
async function measure(url: string, forMs: number): Promise<Latency> {
  const took: number[] = [];
  const until = performance.now() + forMs;
  while (performance.now() < until) {
    const started = performance.now();
    await (await fetch(`${url}/user/balance`, { headers: { authorization: `Bearer ${secret}` } })).text();
    took.push(performance.now() - started);
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  took.sort((a, b) => a - b);
  const at = (share: number): number => took[Math.floor(took.length * share)] ?? 0;
  return { p50: at(0.5), p99: at(0.99), count: took.length };
}
