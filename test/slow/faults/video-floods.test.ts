/** Floods of video tasks: made, listed, looked at, fetched and deleted by one key on a store on disk, while they are polled. */
import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { after, test } from 'node:test';
import { figure } from '../../support/figures.ts';
import { flood, leastTurn, request } from './support/flood.ts';

const STALL_MS = 50;
const child: ChildProcess = fork('test/slow/faults/support/video-child.ts', { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
const [url] = await once(child, 'message');
after(async () => {
  child.send('close');
  await once(child, 'exit');
});

async function told(asked: 'watch' | 'longest'): Promise<number> {
  const answered = once(child, 'message');
  child.send(asked);
  return (await answered)[0];
}

const rig = {
  url,
  async longestTurn(run: () => Promise<void>): Promise<number> {
    await told('watch');
    await run();
    return await told('longest');
  },
};

let made = 0;
/** With a key of its own, each is a task. */
const create = (): string => {
  const body = JSON.stringify({ model: 'ark', prompt: `ship ${++made}` });
  return request('POST /v1/videos', body).replace('content-type', `idempotency-key: k${made}\r\ncontent-type`);
};
const list = <T>(count: number, of: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => of(at));

/** What each connection sends in one packet, and what may be answered. */
const FLOODS: Readonly<Record<string, readonly [connections: number, sent: () => string[], statuses: RegExp]>> = {
  'two thousand tasks that are made at once': [100, () => list(20, create), /^(200|201|202|429)$/],
  'two hundred lists of tasks': [20, () => list(10, () => request('GET /v1/videos?limit=100')), /^200$/],
  'three thousand looks at a task that is not there': [
    100,
    () => list(30, () => request('GET /v1/videos/video_x')),
    /^(404|429)$/,
  ],
  'three thousand films that are not there': [
    100,
    () => list(30, () => request('GET /v1/videos/video_x/content')),
    /^(404|429)$/,
  ],
  'three thousand deletions of nothing': [100, () => list(30, () => request('DELETE /v1/videos/video_x')), /^(404|405|429)$/],
  'three thousand tasks that make no sense': [
    100,
    () => list(30, () => request('POST /v1/videos', '{"model":"ark"}')),
    /^(400|429)$/,
  ],
};

for (const [name, [connections, sentBy, statuses]] of Object.entries(FLOODS)) {
  test(`F47: ${name}: another key's stream is stalled for no longer than ${STALL_MS} ms`, async (t) => {
    const least = await leastTurn(rig, STALL_MS, async () => {
      const packets = list(connections, sentBy);
      for (const status of await flood(
        rig,
        packets.map((packet) => packet.join('')),
        packets[0]?.length ?? 0,
      ))
        assert.match(status, statuses);
    });
    figure(t, `${name}: the longest turn of the event loop`, `${Math.round(least)} ms`);
    assert.ok(least <= STALL_MS, `a turn took ${least.toFixed(1)} ms`);
  });
}
