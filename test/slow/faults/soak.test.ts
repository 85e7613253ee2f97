/**
 * E4 40: mixed traffic with random faults over every pair of dialects, compressed into seconds. Heap, sockets, timers and event-loop
 * delay are flat, and what was asked is what was settled. `MIZU_SOAK_S` makes it longer.
 */
import assert from 'node:assert/strict';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { eventually } from '../../support/test-gateway.ts';
import { bodyOf, CLIENTS, chunk, endingOf, GOOD, PATHS, rig, STREAM_HEAD, TYPES, WHOLE } from './support/rig.ts';

setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');
const SECONDS = Number(process.env['MIZU_SOAK_S'] ?? 20);
const AT_ONCE = 24;

/** A small generator of our own, so that a run can be repeated. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296;
    return state / 4_294_967_296;
  };
}

test(`F40: ${SECONDS} s of mixed traffic: flat memory, sockets, timers; settled = served`, async (t) => {
  await using r = await rig();
  const next = random(42);
  r.answer = ({ socket, body, path }) => {
    const type = TYPES.find((name) => body.includes(`"${name}"`)) ?? 'gemini';
    const stream = path.includes('stream') || /"stream":\s*true/.test(body);
    const dice = next();
    if (dice < 0.06) socket.resetAndDestroy();
    else if (dice < 0.12) socket.write('HTTP/1.1 500 X\r\ncontent-length: 2\r\n\r\nno');
    else if (dice < 0.18)
      socket.end(
        `${STREAM_HEAD}${GOOD[type]
          .slice(0, 2)
          .map((frame) => chunk(frame).toString())
          .join('')}`,
      );
    else if (stream) socket.write(`${STREAM_HEAD}${GOOD[type].map((frame) => chunk(frame).toString()).join('')}0\r\n\r\n`);
    else
      socket.write(
        `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${WHOLE[type].length}\r\n\r\n${WHOLE[type]}`,
      );
  };
  const count = { asked: 0, success: 0, failure: 0, left: 0 };
  const one = async (): Promise<void> => {
    const client = CLIENTS[Math.floor(next() * CLIENTS.length)] ?? 'chat';
    const type = TYPES[Math.floor(next() * TYPES.length)] ?? 'messages';
    const stream = next() < 0.7;
    const leaves = next() < 0.1;
    const abort = new AbortController();
    count.asked++;
    try {
      const response = await r.gateway.post(PATHS[client], bodyOf(client, type, stream), { signal: abort.signal });
      if (leaves) abort.abort();
      const text = await response.text();
      const streamed = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
      const good = streamed ? endingOf(client, text) === 'success' : response.status === 200;
      if (good) count.success++;
      else count.failure++;
    } catch (thrown) {
      if (!leaves) throw thrown;
      count.left++;
    }
  };
  const heaps: number[] = [];
  const sockets = (): number => process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
  const delay = monitorEventLoopDelay({ resolution: 5 });
  const rounds = 8;
  const opened: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const until = performance.now() + (SECONDS * 1000) / rounds;
    if (round === 1) delay.enable();
    await Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        while (performance.now() < until) await one();
      }),
    );
    delay.disable();
    await eventually(() => r.gateway.store.held.size === 0, 'no reservation is left');
    await eventually(() => r.gateway.store.settled.length === count.asked || count.left > 0, 'all settled');
    // What the test itself keeps is not the gateway's.
    for (const list of [r.upstream.requests, r.gateway.logLines]) list.length = 0;
    collect();
    // Rows stay in the store of the test: about a kilobyte each.
    heaps.push(process.memoryUsage().heapUsed - r.gateway.store.settled.length * 1500);
    opened.push(sockets());
    delay.enable();
  }
  delay.disable();
  const settled = r.gateway.store.settled;
  t.diagnostic(
    `${count.asked} asked, ${settled.length} settled, ${count.success} good, ${count.failure} failed, ${count.left} left`,
  );
  t.diagnostic(
    `heap ${heaps.map((heap) => Math.round(heap / 1e5) / 10).join(' ')} MB; sockets ${opened.join(' ')}; timers ${r.clock.armed}`,
  );
  t.diagnostic(`event loop p50 ${(delay.percentile(50) / 1e6).toFixed(1)} ms, p99 ${(delay.percentile(99) / 1e6).toFixed(1)} ms`);
  // A client that left while its request was on its way may never have been heard.
  assert.ok(settled.length <= count.asked && settled.length >= count.asked - count.left);
  assert.equal(new Set(settled.map(({ exchangeId }) => exchangeId)).size, settled.length);
  const charged = settled.reduce((sum, { charge }) => sum + (charge?.total ?? 0n), 0n);
  assert.equal(10n ** 15n - r.gateway.store.walletNanos, charged, 'what was charged is what the rows say');
  assert.ok(settled.filter(({ status, clientGone }) => status === 'success' && clientGone !== true).length >= count.success);
  const [first = 0, last = 0] = [heaps[1], heaps.at(-1)];
  assert.ok(last - first < 12e6, `the heap grew by ${Math.round((last - first) / 1e6)} MB`);
  assert.ok((opened.at(-1) ?? 0) <= (opened[1] ?? 0) + 40, `sockets: ${opened.join()}`);
  assert.ok(r.clock.armed <= r.resting, `${r.clock.armed} timers`);
});
