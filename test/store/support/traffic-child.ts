/**
 * A gateway without its HTTP: admits, opens and settles exchanges, creates video tasks and works on them while it holds the
 * lease. What the store refuses or cannot do it leaves and goes on. Says what was acknowledged on standard output; ends when its
 * standard input does. Usage: node traffic-child.ts URL SPOOL TOKEN NAME
 */
import { VIDEO_WORKER } from '../../../src/store/leases.ts';
import { openPostgresStore } from '../../../src/store/postgres/open.ts';
import { StoreError } from '../../../src/store/store-error.ts';
import { alive } from './alive.ts';
import { entry, realClock } from './store.ts';
import { postgresOptions } from './stores.ts';

const [, , url = '', spoolPath = '', token = '', name = ''] = process.argv;
const TTL_MS = 2_000;

const store = await openPostgresStore({
  ...postgresOptions(url, { process: { host: name, pid: process.pid, isAlive: alive } }),
  spoolPath,
  // Long enough for a busy machine to stay within, short enough to be waited for.
  statementTimeoutMs: 2_000,
  lockTimeoutMs: 2_000,
  processTtlMs: 4_000,
});
const say = (...words: unknown[]): void => {
  process.stdout.write(`${words.join(' ')}\n`);
};
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
let stopping = false;
process.stdin.resume().once('end', () => {
  stopping = true;
});

/** Runs on whatever the store does; anything else is a bug of ours and ends the process. */
async function tolerant(step: () => Promise<void>): Promise<void> {
  try {
    await step();
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    say('refused', error.code);
    await pause(20);
  }
}

async function exchanges(lane: number): Promise<void> {
  for (let n = 0; !stopping; n += 1) {
    await tolerant(async () => {
      const found = await store.keys.authenticate(token, realClock.now());
      if (!found.ok) {
        say('unauthorized', found.refusal.reason);
        return;
      }
      const admitted = await store.admission.admit(found.value, 10n, realClock.now());
      if (!admitted.ok) return;
      const id = `${name}-${lane}-${n}`;
      const nanos = BigInt(1 + ((n + lane) % 9));
      await store.settlements.open(entry(found.value, id, nanos));
      say('opened', id);
      await pause(5);
      await store.settlements.settle({ entry: entry(found.value, id, nanos), reservation: admitted.value });
      say('settled', id, nanos);
    });
  }
}

async function videos(): Promise<void> {
  for (let n = 0; !stopping; n += 1) {
    await pause(30);
    await tolerant(async () => {
      const now = realClock.now();
      const found = await store.keys.authenticate(token, now);
      if (!found.ok) return;
      const id = `video-${name}-${n}`;
      const video = { id, principal: found.value, model: 'v', requestJson: '{}', priceNanos: 11n };
      await store.videos.create({ ...video, idempotencyKey: id, bodyHash: 'h', nowMs: now });
      const lease = await store.leases.acquire(VIDEO_WORKER, name, TTL_MS, now);
      if (!lease.ok) return;
      await store.videos.loseAbandoned(lease.value.token, now);
      for (const task of await store.videos.due(now, 5)) {
        const submit = { event: 'submit', channelId: 'c', upstreamModel: 'u' } as const;
        const submitted = await store.videos.change(task.id, submit, lease.value.token, now);
        if (!submitted.ok) continue;
        // The bytes would go to the upstream here: nobody else may ever say this of the same task.
        say('submitted', task.id);
        await store.videos.change(task.id, { event: 'succeed', outputUrl: 'https://x' }, lease.value.token, now);
      }
    });
  }
}

say('ready');
await Promise.all([...[1, 2, 3, 4].map(exchanges), videos()]);
await store.close();
say('closed');
