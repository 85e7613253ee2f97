/**
 * A gateway whose every dependency is wrapped by an injector, over a real store, with a clock that moves only while nothing
 * happens.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { hostname, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { AddressInfo } from 'node:net';
import { WebSocketServer } from 'ws';
import { codecs } from '../../src/codecs/registry.ts';
import { parseConfig } from '../../src/http/config/parse.ts';
import { fixedConfig } from '../../src/http/config/source.ts';
import { createLogger } from '../../src/http/operations/logger.ts';
import { startGateway } from '../../src/http/start.ts';
import { chargeFor } from '../../src/store/charge.ts';
import type { KeyRecord } from '../../src/store/keys.ts';
import { openStoreAt } from '../../src/store/open-store.ts';
import { parsePrice } from '../../src/store/prices.ts';
import type { Result } from '../../src/store/result.ts';
import type { Store } from '../../src/store/store.ts';
import type { EngineName } from './engines.ts';
import { createFakeClock } from './fake-clock.ts';
import { Injector } from './injector.ts';
import { server } from './postgres.ts';

/** What the real work of one exchange may take on a busy machine. */
const PATIENCE_MS = 20_000;

export interface Rig {
  readonly url: string;
  readonly store: Store;
  readonly injector: Injector;
  readonly gateway: Awaited<ReturnType<typeof startGateway>>['gateway'];
  /** Requests that reached the upstream, by their paths. */
  readonly asked: readonly string[];
  /** Lines of the log since the last call. */
  takeLines(): readonly LogLine[];
  newKey(): Promise<{ readonly key: KeyRecord; readonly secret: string }>;
  /** Sets the wall clock back to where it was before it jumped. */
  jumpBack(): void;
  /**
   * Moves the clock while `busy`, a second at a time, whenever nothing is under way. Resolves with the seconds; rejects after
   * `limit`.
   */
  pass(busy: () => boolean, limit: number): Promise<number>;
  close(): Promise<void>;
}

export interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly request_id?: string;
}

const MONTH_MS = 30 * 24 * 3_600_000;

/** Steps of an answer: what the upstream sends one after the other. */
const ANSWERS: Readonly<Record<string, { readonly type: string; readonly steps: readonly string[] }>> = {
  '/v1/embeddings': {
    type: 'application/json',
    steps: ['{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5]}],"model":"e"}'],
  },
  '/v1/images/generations': { type: 'application/json', steps: ['{"created":1,"data":[', '{"b64_json":"aGk="}]}'] },
  '/v1/responses/compact': {
    type: 'application/json',
    steps: ['{"id":"resp_1","object":"response.compaction","output":[', '{"type":"compaction","encrypted_content":"x"}]}'],
  },
  '/v1/contents/generations/tasks': { type: 'application/json', steps: ['{"id":', '"cgt-1"}'] },
  '/v1/contents/generations/tasks/cgt-1': {
    type: 'application/json',
    steps: ['{"id":"cgt-1","status":"succeeded",', '"content":{"video_url":"https://example.com/a.mp4"}}'],
  },
};
const chunk = (choice: string) =>
  `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,${choice}}]}\n\n`;
/** Without usage, so that it is counted here. */
const CHAT_STREAM = [
  chunk('"delta":{"role":"assistant","content":"hello "},"finish_reason":null'),
  chunk('"delta":{"content":"there, how are you"},"finish_reason":null'),
  `${chunk('"delta":{},"finish_reason":"stop"')}data: [DONE]\n\n`,
];
const CHAT_WHOLE = [
  '{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[',
  '{"index":0,"message":{"role":"assistant","content":"hello there"},"finish_reason":"stop"}]}',
];

const RESPONSE = { id: 'resp_1', object: 'response', created_at: 1, model: 's', output: [] };
const ITEM = { type: 'message', id: 'msg_1', role: 'assistant' };
const PART = { type: 'output_text', text: '', annotations: [] };
const SAID = { ...PART, text: 'hello there, how are you' };
const AT = { output_index: 0, content_index: 0, item_id: 'msg_1' };
/** Without usage, so that it is counted here. */
const SOCKET_STEPS = [
  { type: 'response.created', response: { ...RESPONSE, status: 'in_progress' } },
  { type: 'response.output_item.added', output_index: 0, item: { ...ITEM, status: 'in_progress', content: [] } },
  { type: 'response.content_part.added', ...AT, part: PART },
  { type: 'response.output_text.delta', ...AT, delta: SAID.text },
  { type: 'response.output_text.done', ...AT, text: SAID.text },
  { type: 'response.content_part.done', ...AT, part: SAID },
  { type: 'response.output_item.done', output_index: 0, item: { ...ITEM, status: 'completed', content: [SAID] } },
  {
    type: 'response.completed',
    response: { ...RESPONSE, status: 'completed', output: [{ ...ITEM, status: 'completed', content: [SAID] }] },
  },
].map((event) => JSON.stringify(event));

async function startUpstream(injector: Injector): Promise<{ readonly url: string; readonly asked: string[]; close(): void }> {
  const asked: string[] = [];
  const upstream = createServer((request, response) => {
    let body = '';
    request.on('data', (bytes: Buffer) => {
      body += bytes.toString();
    });
    request.on('end', () => {
      asked.push(request.url ?? '');
      void answer();
    });
    response.on('error', () => undefined);
    const answer = async (): Promise<void> => {
      const isStream = /"stream":\s*true/.test(body);
      const chat = { type: isStream ? 'text/event-stream' : 'application/json', steps: isStream ? CHAT_STREAM : CHAT_WHOLE };
      const { type, steps } = ANSWERS[request.url ?? ''] ?? chat;
      if (!goesOn('head')) return;
      response.writeHead(200, { 'content-type': type });
      response.flushHeaders();
      for (const step of steps) {
        if (!goesOn('write')) return;
        response.write(step);
        await new Promise((resolve) => setImmediate(resolve));
      }
      response.end();
    };
    const goesOn = (step: string): boolean => {
      const fate = injector.step(`upstream.${step}`);
      if (fate === 'cut') response.destroy();
      return fate === 'go';
    };
  });
  const sockets = new WebSocketServer({ server: upstream });
  sockets.on('connection', (ws) => {
    ws.on('error', () => undefined);
    ws.on('message', () => {
      for (const event of SOCKET_STEPS) {
        const fate = injector.step('upstream.message');
        if (fate === 'cut') ws.terminate();
        if (fate !== 'go') return;
        ws.send(event);
      }
    });
  });
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  const { port } = upstream.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    asked,
    close: () => {
      for (const ws of sockets.clients) ws.terminate();
      upstream.closeAllConnections();
      upstream.close();
    },
  };
}

function value<T>(result: Result<T, unknown>): T {
  if (!result.ok) throw new Error(JSON.stringify(result.refusal));
  return result.value;
}

/** Where a store is: its folder or database, and the folder of what its process keeps beside it. */
export interface Place {
  readonly store: string;
  readonly local: string;
}

export async function newPlace(engine: EngineName, disk = tmpdir()): Promise<Place> {
  const folder = mkdtempSync(join(disk, 'mizu-law-'));
  return {
    store: engine === 'lmdb' ? join(folder, 'data') : await (await server()).createDatabase(),
    local: join(folder, 'local'),
  };
}

/**
 * `more`: further members of the store that are wrapped. `place`: a store that is left where it is, instead of one of the rig's
 * own.
 */
export async function exchangeRig(
  engine: EngineName,
  durability: 'batched' | 'strict',
  more: readonly (keyof Store)[] = [],
  place?: Place,
): Promise<Rig> {
  const injector = new Injector();
  const upstream = await startUpstream(injector);
  const { store: location, local } = place ?? (await newPlace(engine));
  const store = await openStoreAt(location, {
    clock: {
      now: () => Date.now(),
      after(ms, callback) {
        const timer = setTimeout(callback, ms).unref();
        return () => clearTimeout(timer);
      },
    },
    randomBytes: (size) => randomBytes(size),
    process: { host: hostname(), pid: process.pid, isAlive: (pid) => pid === process.pid },
    localPath: local,
  });
  const account = value(await store.accounts.create({ name: 'law', creditNanos: 10n ** 15n }, { id: 'law', by: 'test' }));
  const clock = createFakeClock(Date.now());
  let jumped = 0;
  injector.onJump = () => {
    jumped += MONTH_MS;
    clock.jump(MONTH_MS);
  };
  let lines: LogLine[] = [];
  const price = { input: '5', output: '25' };
  const channel = (id: string, type: string, model: string) => ({
    ...{ id, type, base_url: upstream.url, api_key: 'k', models: [model], timeouts: { first_data_ms: 20_000, idle_ms: 20_000 } },
  });
  const running = await startGateway({
    config: fixedConfig(
      parseConfig(
        JSON.stringify({
          listen: { port: 0 },
          operations: null,
          ledger: { durability },
          // What one run does to a Channel must not be felt by the next.
          health: { failures: 1_000_000 },
          channels: [
            channel('text', 'chat_completion', 'm'),
            channel('vectors', 'chat_completion', 'e'),
            channel('pictures', 'openai_image', 'i'),
            channel('compaction', 'responses', 'c'),
            { ...channel('socket', 'responses', 's'), options: { websocket: true } },
            { ...channel('videos', 'ark_video', 'v'), timeouts: { first_data_ms: 20_000 }, options: { poll_interval_ms: 1000 } },
          ],
          models: {
            ...{ m: { price }, e: { kind: 'embedding', price }, c: { price }, s: { price } },
            ...{ i: { kind: 'image', price: { image: '1' } }, v: { kind: 'video', price: { video: '1' } } },
          },
        }),
        {
          env: {},
          readFile: () => '',
          parsePrice,
          path: join(dirname(local), 'mizu.config.json'),
          revision: 1,
          nowMs: Date.now(),
        },
      ),
    ),
    store: injector.wrap('store', store, ['keys', 'admission', 'settlements', ...more]),
    codecs: injector.wrap('codecs', codecs, ['client', 'upstream', 'encodeEvents', 'decodeEvents']),
    clock,
    mint: (prefix) => `${prefix}${randomBytes(16).toString('hex')}`,
    random: () => 0.5,
    chargeFor: injector.wrap('charge', { chargeFor }).chargeFor,
    log: createLogger('info', { write: (line: string) => void lines.push(JSON.parse(line)) }),
    processFigures: false,
  });
  const { gateway } = running;
  await gateway.tokenizer.firstTry;
  const { memory } = gateway;
  Object.assign(gateway, {
    tokenizer: injector.wrap('tokenizer', gateway.tokenizer),
    envelopes: injector.wrap('envelopes', gateway.envelopes),
    upstreams: injector.wrap('upstreams', gateway.upstreams),
    // As where workers share it.
    memory: injector.wrap('memory', {
      responseId: (previous: string | undefined) => memory.responseId(previous),
      find: async (id: string, owner: string) => memory.find(id, owner),
      turnsOf: async (named: Parameters<typeof memory.turnsOf>[0]) => memory.turnsOf(named),
      save: async (turn: Parameters<typeof memory.save>[0]) => memory.save(turn),
      close: () => memory.close(),
    }),
  });
  let keys = 0;
  return {
    url: `http://127.0.0.1:${running.port}`,
    store,
    injector,
    gateway,
    asked: upstream.asked,
    takeLines() {
      const taken = lines;
      lines = [];
      return taken;
    },
    async newKey() {
      keys += 1;
      const name = `key ${process.pid} ${keys}`;
      return value(await store.keys.create({ accountId: account.id, name }, { id: name, by: 'test' }));
    },
    jumpBack() {
      clock.jump(-jumped);
      jumped = 0;
    },
    async pass(busy, limit) {
      let seconds = 0;
      for (;;) {
        // What is ready runs, and what is on its way through a socket arrives; only then does time pass.
        for (let calm = 0; calm < 3; calm++) {
          await new Promise((resolve) => setTimeout(resolve, 1));
          if (!busy()) return seconds;
          if (injector.outstanding > 0) calm = 0;
        }
        if (seconds >= limit) {
          // A disk or a core that others keep busy is no fault of the exchange: it gets time of the real clock, and none of its
          // own.
          for (let patience = 0; patience < PATIENCE_MS && busy(); patience += 10)
            await new Promise((resolve) => setTimeout(resolve, 10));
          if (busy()) throw new Error(`not over after ${limit} s`);
          return seconds;
        }
        clock.advance(1000);
        seconds += 1;
      }
    },
    async close() {
      running.cut();
      const stopped = running.stop();
      let over = false;
      void stopped.finally(() => {
        over = true;
      });
      while (!over) {
        await new Promise((resolve) => setTimeout(resolve, 1));
        clock.advance(1000);
      }
      await stopped;
      const { differences } = await store.ledger.verify();
      await store.close();
      upstream.close();
      if (place === undefined) rmSync(dirname(local), { recursive: true, force: true });
      if (differences.length > 0) throw new Error(`the ledger does not add up: ${JSON.stringify(differences)}`);
    },
  };
}
