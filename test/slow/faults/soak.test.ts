/**
 * E4 40: mixed traffic with random faults over every pair of dialects, and half an hour that passes between two rounds: what the
 * day does to a gateway, in seconds. It runs in a process of its own, beside one that passes bytes through under the same load:
 * what the machine does to both is not ours. Heap, sockets, timers and the event loop stay flat; what was asked is what was
 * settled. `MIZU_SOAK_S` makes it longer.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test, type TestContext } from 'node:test';
import { fakeUpstream } from '../../support/fake-upstream.ts';
import { figure } from '../../support/figures.ts';
import { waitFor } from '../../support/processes.ts';
import { KEY } from '../../support/test-gateway.ts';
import { bodyOf, CLIENTS, type Client, chunk, endingOf, GOOD, PATHS, STREAM_HEAD, TYPES, WHOLE } from './support/rig.ts';
import type { Look } from './support/soak-child.ts';

const SECONDS = Number(process.env['MIZU_SOAK_S'] ?? 20);
const ROUNDS = 8;
const AT_ONCE = 12;
/** History lives for 30 minutes, affinity as long, WebSockets and windows an hour. */
const BETWEEN_ROUNDS_MS = 31 * 60_000;
/** What our own work may hold up the event loop by, in 99 of 100 turns (ecosystem E4 40). */
const MOST_BUSY_MS = 50;

/** A small generator of our own, so that a run can be repeated. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296;
    return state / 4_294_967_296;
  };
}

interface Child {
  readonly url: string;
  look(): Promise<Look>;
  leap(ms: number): Promise<void>;
}

async function child(t: TestContext, role: 'gateway' | 'bare', upstream: string): Promise<Child> {
  const script = join(import.meta.dirname, 'support/soak-child.ts');
  const started = spawn(process.execPath, [script, role, upstream], { stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => started.kill('SIGKILL'));
  const lines = createInterface({ input: started.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<string> => String((await lines.next()).value);
  const say = async (line: string): Promise<string> => {
    started.stdin.write(`${line}\n`);
    return await next();
  };
  return {
    url: await next(),
    look: async (): Promise<Look> => JSON.parse(await say('look')),
    leap: async (ms) => void (await say(`leap ${ms}`)),
  };
}

const post = (url: string, path: string, body: object, signal?: AbortSignal): Promise<Response> =>
  fetch(url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    ...(signal === undefined ? {} : { signal }),
  });

test(`F40: ${SECONDS} s of mixed traffic, ${ROUNDS} times half an hour: flat memory, sockets, timers, event loop; settled = served`, async (t) => {
  const next = random(42);
  let steady = false;
  const upstream = await fakeUpstream(({ socket, body, path }) => {
    const type = TYPES.find((name) => body.includes(`"${name}"`)) ?? 'gemini';
    const stream = path.includes('stream') || /"stream":\s*true/.test(body);
    const dice = steady ? 1 : next();
    const frames = GOOD[type].map((frame) => chunk(frame).toString());
    if (dice < 0.06) socket.resetAndDestroy();
    else if (dice < 0.12) socket.write('HTTP/1.1 500 X\r\ncontent-length: 2\r\n\r\nno');
    else if (dice < 0.18) socket.end(STREAM_HEAD + frames.slice(0, 2).join(''));
    else if (stream) socket.write(`${STREAM_HEAD}${frames.join('')}0\r\n\r\n`);
    else {
      const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${WHOLE[type].length}\r\n\r\n`;
      socket.write(head + WHOLE[type]);
    }
  });
  t.after(() => upstream.close());
  const gateway = await child(t, 'gateway', upstream.url);
  const bare = await child(t, 'bare', upstream.url);
  const count = { asked: 0, success: 0, failure: 0, left: 0 };

  const one = async (): Promise<void> => {
    const client: Client = CLIENTS[Math.floor(next() * CLIENTS.length)] ?? 'chat';
    const type = TYPES[Math.floor(next() * TYPES.length)] ?? 'messages';
    const stream = next() < 0.7;
    const leaves = next() < 0.1;
    const abort = new AbortController();
    count.asked++;
    try {
      const response = await post(gateway.url, PATHS[client], bodyOf(client, type, stream), abort.signal);
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
  const oneBare = async (): Promise<void> => {
    await post(bare.url, '/v1/chat/completions', bodyOf('chat', 'chat_completion', next() < 0.7)).then(
      (response) => response.text().catch(() => ''),
      () => '',
    );
  };
  /** A conversation of this half hour can be continued, one of the half hour before cannot. */
  const remembered = async (old: string | undefined): Promise<string> => {
    steady = true;
    const first = await post(gateway.url, PATHS.responses, bodyOf('responses', 'responses', false));
    const { id } = (await first.json()) as { id: string };
    const again = (previous: string): Promise<Response> =>
      post(gateway.url, PATHS.responses, bodyOf('responses', 'responses', false, { previous_response_id: previous }));
    const continued = await again(id);
    assert.equal(continued.status, 200, await continued.text());
    count.asked += 2;
    count.success += 2;
    if (old !== undefined) {
      const over = await again(old);
      assert.match(await over.text(), /previous_response_not_found/);
      count.asked++;
      count.failure++;
    }
    steady = false;
    return id;
  };

  const looks: Look[] = [];
  const bareLooks: Look[] = [];
  let conversation: string | undefined;
  for (let round = 0; round < ROUNDS; round++) {
    const until = performance.now() + (SECONDS * 1000) / ROUNDS;
    const lane = async (ask: () => Promise<void>): Promise<void> => {
      while (performance.now() < until) await ask();
    };
    await Promise.all([
      ...Array.from({ length: AT_ONCE }, () => lane(one)),
      ...Array.from({ length: AT_ONCE }, () => lane(oneBare)),
    ]);
    conversation = await remembered(conversation);
    const during = await gateway.look();
    const after: Look = await waitFor(
      async () => {
        const now = await gateway.look();
        return now.held === 0 && now.settled >= count.asked - count.left ? now : undefined;
      },
      () => 'not everything was settled',
    );
    looks.push({ ...after, late: during.late, busy: during.busy });
    bareLooks.push(await bare.look());
    upstream.requests.length = 0;
    await gateway.leap(BETWEEN_ROUNDS_MS);
  }

  const last = looks.at(-1);
  const second = looks[1];
  assert.ok(last !== undefined && second !== undefined);
  // A client that left while its request was on its way may never have been heard.
  assert.ok(last.settled <= count.asked && last.settled >= count.asked - count.left, `${last.settled} of ${count.asked}`);
  assert.equal(last.distinct, last.settled, 'each once');
  assert.equal(last.paid, last.charged, 'what was charged is what the rows say');
  assert.ok(last.succeeded >= count.success, `${last.succeeded} rows, ${count.success} answers`);
  const megabytes = looks.map(({ heap }) => Math.round(heap / 1e5) / 10);
  assert.ok(last.heap - second.heap < 12e6, `the heap: ${megabytes.join(' ')} MB`);
  const sockets = looks.map((look) => look.sockets);
  assert.ok(last.sockets <= second.sockets + 20, `sockets: ${sockets.join(' ')}`);
  const timers = looks.map((look) => look.timers);
  assert.ok(last.timers <= second.timers + 2, `timers: ${timers.join(' ')}`);
  const middle = (list: readonly number[]): number => list.toSorted((a, b) => a - b)[list.length >> 1] ?? 0;
  const busy = middle(looks.slice(1).map((look) => look.busy));
  const late = [looks, bareLooks].map((list) => middle(list.slice(1).map((look) => look.late)).toFixed(1));
  assert.ok(busy < MOST_BUSY_MS, `p99 of our own work in a turn of the event loop: ${busy} ms`);
  figure(
    t,
    'soak: asked, settled, good, failed, left',
    [count.asked, last.settled, count.success, count.failure, count.left].join(', '),
  );
  figure(t, `soak: half hours that passed`, String(ROUNDS));
  figure(t, 'soak: heap after each round, MB', megabytes.join(' '));
  figure(t, 'soak: sockets after each round', sockets.join(' '));
  figure(t, 'soak: timers after each round', timers.join(' '));
  figure(t, 'soak: p99 of our own work in a turn of the event loop', `${busy.toFixed(1)} ms`);
  figure(t, 'soak: p99 of how late a timer fires, in the gateway and in a bare process beside it', `${late.join(' ms, ')} ms`);
});
