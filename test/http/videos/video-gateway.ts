/** A gateway with a real store on disk and simulated video upstreams; it can be stopped and started again on the same store. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { codecs } from '../../../src/codecs/registry.ts';
import { parseConfig } from '../../../src/http/config/parse.ts';
import { type ConfigSource, fixedConfig } from '../../../src/http/config/source.ts';
import { createLogger } from '../../../src/http/operations/logger.ts';
import { type Simulator, type SimulatorOptions, startSimulator } from '../../../src/simulator/simulator.ts';
import { type RunningGateway, startGateway } from '../../../src/http/start.ts';
import { VIDEOS } from '../../../src/cli/videos.ts';
import { typed } from '../../support/verbs.ts';
import { chargeFor } from '../../../src/store/charge.ts';
import { openLmdbStore } from '../../../src/store/lmdb/open.ts';
import { USD } from '../../../src/store/money.ts';
import { parsePrice } from '../../../src/store/prices.ts';
import type { Principal } from '../../../src/store/keys.ts';
import type { Store } from '../../../src/store/store.ts';
import { systemClock } from '../../../src/streams/clock.ts';

export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests read what they expect
  readonly body: any;
}

export class VideoGateway {
  readonly simulator: Simulator;
  readonly #folder: string;
  readonly #role: 'primary' | 'replica';
  readonly #changes: FileChanges;
  #running: RunningGateway | undefined;
  store!: Store;
  /** Lines of the log, parsed. */
  readonly logLines: Record<string, unknown>[] = [];
  config!: ConfigSource;

  private constructor(simulator: Simulator, folder: string, role: 'primary' | 'replica', changes: FileChanges) {
    this.#changes = changes;
    this.simulator = simulator;
    this.#folder = folder;
    this.#role = role;
  }

  static async start(
    t: Pick<TestContext, 'after'>,
    options: SimulatorOptions = {},
    role: 'primary' | 'replica' = 'primary',
    changes: FileChanges = {},
  ): Promise<VideoGateway> {
    const simulator = await startSimulator({ video: { queueMs: 5, runMs: 10 }, ...options });
    const folder = mkdtempSync(join(tmpdir(), 'mizu-videos-'));
    const gateway = new VideoGateway(simulator, folder, role, changes);
    t.after(async () => {
      await gateway.stop();
      await simulator.close();
      rmSync(folder, { recursive: true, force: true });
    });
    await gateway.begin();
    await gateway.addAccount('alice', '5', 'sk-mizu-alice');
    await gateway.addAccount('bob', '5', 'sk-mizu-bob');
    return gateway;
  }

  async begin(): Promise<void> {
    this.store = await openLmdbStore({
      path: join(this.#folder, 'data'),
      clock: { now: () => Date.now(), after: (ms, callback) => clearTimeoutOf(setTimeout(callback, ms).unref()) },
      randomBytes: (size) => randomBytes(size),
      process: { host: hostname(), pid: process.pid, isAlive: () => true },
      ballastBytes: 0,
    });
    const config = parseConfig(JSON.stringify(configFile(this.simulator.url, this.#folder, this.#role, this.#changes)), {
      env: {},
      readFile: () => '',
      parsePrice,
      path: join(this.#folder, 'mizu.config.json'),
      revision: 1,
      nowMs: Date.now(),
    });
    this.config = fixedConfig(config);
    this.#running = await startGateway({
      config: this.config,
      store: this.store,
      codecs,
      clock: systemClock,
      mint: (prefix) => `${prefix}${randomBytes(16).toString('hex')}`,
      random: Math.random,
      chargeFor,
      log: createLogger('info', { write: (line: string) => void this.logLines.push(JSON.parse(line)) }),
      processFigures: false,
    });
  }

  get running(): RunningGateway {
    if (this.#running === undefined) throw new Error('the gateway is stopped');
    return this.#running;
  }

  async stop(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    if (running === undefined) return;
    running.cut();
    await running.stop();
    await this.store.close();
  }

  async addAccount(name: string, usd: string, secret: string): Promise<void> {
    const made = await this.store.accounts.create({ name, creditNanos: BigInt(usd) * USD }, { id: `test-${name}`, by: 'test' });
    if (!made.ok) throw new Error(made.refusal.reason);
    const key = await this.store.keys.create({ accountId: made.value.id, name, secret }, { id: `test-key-${name}`, by: 'test' });
    if (!key.ok) throw new Error(key.refusal.reason);
  }

  async ask(
    method: string,
    path: string,
    options: { body?: unknown; key?: string; headers?: Record<string, string> } = {},
  ): Promise<Answered> {
    const { body, key = 'sk-mizu-alice', headers = {} } = options;
    const answer = await fetch(`http://127.0.0.1:${this.#running?.port}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await answer.text();
    return { status: answer.status, headers: answer.headers, body: text === '' ? undefined : JSON.parse(text) };
  }

  create(body: object, idempotencyKey: string, key = 'sk-mizu-alice'): Promise<Answered> {
    return this.ask('POST', '/v1/videos', { body, key, headers: { 'idempotency-key': idempotencyKey } });
  }

  /** Polls until the task has one of the states. */
  async until(id: string, ...states: string[]): Promise<Answered> {
    for (let attempt = 0; attempt < 400; attempt++) {
      const answer = await this.ask('GET', `/v1/videos/${id}`);
      if (states.includes(answer.body.status)) return answer;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    throw new Error(`the task never became ${states.join(' or ')}`);
  }

  /** Runs a verb of the command line on the open store. */
  verb(
    words: readonly string[],
    options: Record<string, string> = {},
    print: (text: string) => void = () => undefined,
  ): Promise<number> {
    return typed(VIDEOS, ['videos', ...words], { ...options, json: true }, { store: () => Promise.resolve(this.store) }, print);
  }

  async principal(secret: string): Promise<{ readonly principal: Principal }> {
    const found = await this.store.keys.authenticate(secret, Date.now());
    if (!found.ok) throw new Error('there is no such key');
    return { principal: found.value };
  }

  async balance(name: string): Promise<bigint> {
    return (await this.store.accounts.find(name))?.walletNanos ?? 0n;
  }

  /** Creations that reached the upstream. */
  submissions(): number {
    return this.simulator.requests.filter(({ method }) => method === 'POST').length;
  }
}

function clearTimeoutOf(timer: NodeJS.Timeout): () => void {
  return () => clearTimeout(timer);
}

/** Beside the file that every test has: top-level keys, and by Channel its own. */
interface FileChanges {
  readonly top?: object;
  readonly channels?: Readonly<Record<string, object>>;
}

function configFile(simulator: string, folder: string, role: string, { top = {}, channels = {} }: FileChanges): object {
  const polled = { poll_interval_ms: 20 };
  const channel = (id: string, type: string, base_url: string, options: object = {}) => ({
    id,
    type,
    base_url,
    api_key: 'sk-simulated',
    models: [id],
    options: { ...polled, ...options },
    ...channels[id],
  });
  return {
    listen: { host: '127.0.0.1', port: 0 },
    operations: null,
    node: { role },
    store: { path: join(folder, 'data') },
    ...top,
    channels: [
      channel('ark', 'ark_video', `${simulator}/api/v3`),
      channel('hailuo', 'minimax_video', simulator, { api_version: 'v1' }),
      channel('h3', 'minimax_video', simulator, { api_version: 'v2' }),
      channel('unpriced', 'ark_video', `${simulator}/api/v3`),
      { id: 'text', type: 'chat_completion', base_url: simulator, api_key: 'sk-simulated', models: ['talk'] },
      { id: 'off', type: 'ark_video', base_url: simulator, api_key: 'sk-simulated', models: ['resting'], disabled: true },
      { id: 'gone', type: 'ark_video', base_url: 'http://127.0.0.1:9/api/v3', api_key: 'sk-simulated', models: ['unreachable'] },
    ],
    models: {
      ark: { kind: 'video', price: { video: '0.50' } },
      hailuo: { kind: 'video', price: { video: '0.25' } },
      h3: { kind: 'video', price: { video: '0.75' } },
      unreachable: { kind: 'video', price: { video: '1.00' } },
      talk: { price: { input: '1', output: '2' } },
      resting: { kind: 'video', price: { video: '0.50' } },
      unpriced: { kind: 'video' },
    },
  };
}
