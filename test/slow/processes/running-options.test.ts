/**
 * Options that say when and how often a Channel is asked, each with and without, on every type that has it: between the gateway
 * and a simulated upstream stands a gate that delays, refuses and counts, and what the client or the gate sees must differ.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { CHANNEL_TYPES, type ChannelType } from '../../../src/codecs/canonical/dialect.ts';
import { CHANNEL_SCHEMAS } from '../../../src/http/config/channel-schema.ts';
import { startSimulator } from '../../../src/simulator/simulator.ts';
import { optionsOf } from '../../support/print-options.ts';
import { testGateway } from '../../support/test-gateway.ts';
import { VideoGateway } from '../../http/videos/video-gateway.ts';

/** What the gate does to each request. Milliseconds. */
interface Behaviour {
  readonly headMs?: number;
  /** Between the first bytes of an answer and the rest. */
  readonly pauseMs?: number;
  /** The first of them are refused with 429. */
  readonly refused?: number;
}

interface Trial {
  readonly changes: object;
  readonly without?: object;
  readonly gate?: Behaviour;
  /** Requests at once. */
  readonly requests?: number;
  /**
   * What differs: the statuses of the answers or what became of the tasks; how many requests the gate had, and at once; with
   * which keys.
   */
  readonly sees: 'answers' | 'requests' | 'most at once' | 'keys';
}

const one = { max_concurrency: 1 };
const TRIALS: Readonly<Record<string, Trial>> = {
  disabled: { changes: { disabled: true }, sees: 'answers' },
  classes: { changes: { classes: ['gold'] }, sees: 'answers' },
  'timeouts.first_data_ms': { changes: { timeouts: { first_data_ms: 50 } }, gate: { headMs: 500 }, sees: 'answers' },
  'timeouts.idle_ms': { changes: { timeouts: { idle_ms: 50 } }, gate: { pauseMs: 500 }, sees: 'answers' },
  'options.proxy': { changes: { options: { proxy: 'http://127.0.0.1:9' } }, sees: 'requests' },
  'options.max_concurrency': { changes: { options: one }, gate: { headMs: 100 }, requests: 3, sees: 'most at once' },
  // Who may not wait goes to the next Channel.
  'options.max_queue': {
    ...{ changes: { options: { ...one, max_queue: 0 } }, without: { options: one } },
    ...{ gate: { headMs: 100 }, requests: 3, sees: 'keys' },
  },
  'options.queue_ms': {
    ...{ changes: { options: { ...one, queue_ms: 20 } }, without: { options: one } },
    ...{ gate: { headMs: 300 }, requests: 3, sees: 'keys' },
  },
  'options.retries': { changes: { options: { retries: 1 } }, gate: { refused: 1 }, sees: 'requests' },
};

interface Gate extends AsyncDisposable {
  readonly url: string;
  readonly seen: { requests: number; open: number; most: number; readonly keys: Set<string> };
}

const PARTIAL =
  'event: image_generation.partial_image\ndata: {"type":"image_generation.partial_image","b64_json":"aGk=","partial_image_index":0}\n\n';

async function startGate(upstream: string, { headMs = 0, pauseMs = 0, refused = 0 }: Behaviour): Promise<Gate> {
  const seen = { requests: 0, open: 0, most: 0, keys: new Set<string>() };
  const after = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms).unref());
  const server = createServer(async (asked, answer) => {
    // Polls of a task are no requests of a client.
    const isRequest = asked.method === 'POST';
    answer.on('error', () => undefined);
    if (isRequest) {
      seen.requests += 1;
      seen.keys.add(/sk-\w+/.exec(JSON.stringify(asked.headers))?.[0] ?? '');
      seen.open += 1;
      seen.most = Math.max(seen.most, seen.open);
      answer.on('close', () => {
        seen.open -= 1;
      });
      if (seen.requests <= refused) {
        answer.writeHead(429).end('{"error":{"message":"not now"}}');
        return;
      }
      await after(headMs);
    }
    const inner = request(`${upstream}${asked.url}`, { method: asked.method, headers: asked.headers });
    inner.on('error', () => answer.destroy());
    inner.on('response', async (response) => {
      const bytes: Buffer[] = [];
      for await (const piece of response) bytes.push(piece);
      const body = Buffer.concat(bytes);
      const { 'transfer-encoding': _chunked, 'content-length': _length, ...headers } = response.headers;
      answer.writeHead(response.statusCode ?? 500, headers);
      // The one event of a picture is not data before it is whole.
      if (pauseMs > 0 && asked.url?.includes('/images') === true) answer.write(PARTIAL);
      answer.write(body.subarray(0, body.length * 0.9));
      if (isRequest) await after(pauseMs);
      answer.end(body.subarray(body.length * 0.9));
    });
    asked.pipe(inner);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const KINDS: Partial<Record<ChannelType, string>> = { openai_image: 'image', openrouter_image: 'image' };
const VIDEOS: Partial<Record<ChannelType, string>> = { ark_video: 'ark', minimax_video: 'hailuo' };

async function seenOf(
  t: TestContext,
  type: ChannelType,
  { gate = {}, requests = 1, sees }: Trial,
  changes: object,
): Promise<unknown> {
  const simulator = await startSimulator({ video: { queueMs: 5, runMs: 10 } });
  await using door = await startGate(simulator.url, gate);
  const video = VIDEOS[type];
  const asking: Asking = { type, url: door.url, changes, requests, second: sees === 'keys', stream: gate.pauseMs !== undefined };
  const answers = await (video === undefined ? textOrImage(asking) : videoTasks(t, video, asking));
  await simulator.close();
  const { requests: count, most, keys } = door.seen;
  return { answers: answers.sort(), requests: count, 'most at once': most, keys: [...keys].sort() }[sees];
}

interface Asking {
  readonly type: ChannelType;
  readonly url: string;
  readonly changes: object;
  readonly requests: number;
  /** There is another Channel behind the one that is tried. */
  readonly second: boolean;
  readonly stream: boolean;
}

async function textOrImage({ type, url, changes, requests, second, stream }: Asking): Promise<string[]> {
  const kind = KINDS[type];
  const prices = { price: { input: '1', output: '2' } };
  await using gateway = await testGateway({
    health: { failures: 1000 },
    channels: [
      { id: 'first', type, base_url: url, api_key: 'sk-first', models: ['m'], ...changes },
      ...(second ? [{ id: 'second', type, base_url: url, api_key: 'sk-second', models: ['m'], priority: 9 }] : []),
    ],
    models: { m: kind === undefined ? prices : { kind, ...prices } },
  });
  const [path, body] =
    kind === undefined
      ? ['/v1/chat/completions', { model: 'm', messages: [{ role: 'user', content: 'hi' }], stream }]
      : ['/v1/images/generations', { model: 'm', prompt: 'a cat', stream }];
  const answers = Array.from({ length: requests }, () => gateway.post(String(path), body));
  // The gateway lives until they are all there.
  return await Promise.all(
    answers.map(async (answer) => {
      const { status } = await answer;
      return `${status} ${/"error":\s*[{"]/.test(await (await answer).text())}`;
    }),
  );
}

async function videoTasks(t: TestContext, id: string, { type, url, changes, requests, second }: Asking): Promise<string[]> {
  const base_url = type === 'ark_video' ? `${url}/api/v3` : url;
  const options = { poll_interval_ms: 20, ...('options' in changes ? (changes.options as object) : {}) };
  // The Channel of another model of that type.
  const other = { ark: 'unpriced', hailuo: 'h3' }[id] ?? '';
  const behind = {
    models: [id],
    api_key: 'sk-second',
    base_url,
    priority: 9,
    options: type === 'ark_video' ? {} : { api_version: 'v1' },
  };
  const channels = { [id]: { base_url, api_key: 'sk-first', ...changes, options }, ...(second && { [other]: behind }) };
  const gateway = await VideoGateway.start(t, {}, 'primary', { channels });
  const made = await Promise.all(
    Array.from({ length: requests }, (_, index) => gateway.create({ model: id, prompt: 'a cat', duration: 6 }, `task ${index}`)),
  );
  const states = await Promise.all(
    made.map(async ({ status, body }) => {
      if (status >= 400) return String(status);
      let state = '';
      for (let tried = 0; tried < 150 && !/completed|failed|unknown/.test(state); tried += 1) {
        state = (await gateway.ask('GET', `/v1/videos/${body.id}`)).body.status;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      return state;
    }),
  );
  await gateway.stop();
  return states;
}

for (const [path, trial] of Object.entries(TRIALS)) {
  const types = CHANNEL_TYPES.filter((type) => optionsOf(CHANNEL_SCHEMAS[type]).some((option) => option.path === path));
  for (const type of types)
    test(`${path} of ${type} changes ${trial.sees}`, async (t) => {
      const plain = await seenOf(t, type, trial, trial.without ?? {});
      const changed = await seenOf(t, type, trial, trial.changes);
      t.diagnostic(`${JSON.stringify(plain)} becomes ${JSON.stringify(changed)}`);
      assert.notDeepEqual(changed, plain);
    });
}
