/**
 * A process of its own that puts load on a store until it is killed: exchanges that are opened and settled, video tasks that are
 * created and worked on. Says each thing on standard output only after the store's promise for it has resolved.
 * Usage: node load-child.ts PATH TOKEN NAME
 */
import type { Principal } from '../../../src/store/keys.ts';
import { VIDEO_WORKER } from '../../../src/store/leases.ts';
import type { VideoChange } from '../../../src/store/videos.ts';
import { entry, ok, realClock } from './store.ts';
import { openPlace } from './stores.ts';
import { alive } from './alive.ts';

const [, , path = '', token = '', name = ''] = process.argv;

const store = await openPlace(path, { process: { host: 'test', pid: process.pid, isAlive: alive } });
const principal: Principal = ok(await store.keys.authenticate(token, Date.now()));
const say = (...words: unknown[]): void => {
  process.stdout.write(`${words.join(' ')}\n`);
};

async function exchanges(lane: number): Promise<void> {
  for (let n = 0; ; n += 1) {
    const exchangeId = `${name}-${lane}-${n}`;
    const nanos = BigInt((n % 7) + lane);
    const row = entry(principal, exchangeId, nanos);
    const opened = store.settlements.open(row);
    if (n % 3 !== 0) {
      await opened;
      say('opened', exchangeId);
    }
    if (n % 5 === 0) await new Promise((resolve) => setTimeout(resolve, 3));
    await store.settlements.settle({ entry: row });
    say('settled', exchangeId, nanos);
  }
}

async function videos(lane: number): Promise<void> {
  const lease = await store.leases.acquire(VIDEO_WORKER, name, 60_000, realClock.now());
  for (let n = 0; ; n += 1) {
    const id = `video_${name}-${lane}-${n}`;
    const now = realClock.now();
    const made = await store.videos.create({
      id,
      principal,
      model: 'v',
      requestJson: '{}',
      priceNanos: 11n,
      idempotencyKey: id,
      bodyHash: 'h',
      nowMs: now,
    });
    ok(made);
    say('task', id, 'queued');
    if (!lease.ok) continue;
    const steps: VideoChange[] = [
      { event: 'submit', channelId: 'c', upstreamModel: 'u' },
      { event: 'accept', upstreamId: 'u1', dueAtMs: now },
      n % 2 === 0 ? { event: 'succeed', outputUrl: 'https://x' } : { event: 'fail', error: { code: 'c', message: 'm' } },
    ];
    for (const step of steps) say('task', id, ok(await store.videos.change(id, step, lease.value.token, now)).state);
  }
}

say('ready');
await Promise.all([exchanges(1), exchanges(2), exchanges(3), exchanges(4), videos(1), videos(2)]);
