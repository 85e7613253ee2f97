/** A gateway on a real port with a store in memory, for tests over sockets. */
import { randomBytes } from 'node:crypto';
import type { CodecSet } from '../../src/codecs/codec-set.ts';
import { codecs } from '../../src/codecs/registry.ts';
import type { Config } from '../../src/http/config/config.ts';
import { parseConfig } from '../../src/http/config/parse.ts';
import type { ConfigSource } from '../../src/http/config/source.ts';
import { createLogger } from '../../src/http/operations/logger.ts';
import type { LoadTokenizer } from '../../src/http/money/tokenizer.ts';
import { type RunningGateway, startGateway } from '../../src/http/start.ts';
import type { ModelKind, Rates, TokenClass } from '../../src/store/prices.ts';
import { type Clock, systemClock } from '../../src/streams/clock.ts';
import { type MemoryStore, memoryCharge, memoryStore } from './memory-store.ts';

export const KEY = 'sk-mizu-test';

export interface TestGateway {
  readonly url: string;
  readonly store: MemoryStore;
  readonly running: RunningGateway;
  readonly logLines: string[];
  /** Replaces the configuration, as a reload would. */
  configure(file: object): void;
  /** A POST with the test key. */
  post(path: string, body: unknown, init?: PostInit): Promise<Response>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface PostInit {
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
}

export interface TestGatewayOptions {
  readonly clock?: Clock;
  readonly codecs?: CodecSet;
  readonly level?: string;
  readonly loadTokenizer?: LoadTokenizer;
}

/** Prices of tests: `input` and `output` as whole dollars per million. */
export function testRates(price: unknown): Rates {
  const entries = Object.entries(price as Record<string, string>);
  const tokens = new Map<TokenClass, bigint>();
  for (const [name, value] of entries) {
    if (name === 'input' || name === 'output') tokens.set(name, BigInt(Math.round(Number(value) * 1e9)));
  }
  return { tokens, pieces: new Map(), meters: new Map(), serviceTiers: new Map() };
}

export function testConfig(file: object, revision = 1): Config {
  return parseConfig(JSON.stringify({ listen: { port: 0 }, operations: null, ...file }), {
    env: {},
    readFile: () => '',
    parsePrice: (price: unknown, _options?: { readonly kind?: ModelKind }) => ({ ok: true, value: testRates(price) }),
    path: '/tmp/mizu.config.json',
    revision,
    nowMs: 1_700_000_000_000,
  });
}

export async function testGateway(file: object, options: TestGatewayOptions = {}): Promise<TestGateway> {
  let config = testConfig(file);
  const listeners = new Set<(config: Config) => void>();
  const source: ConfigSource = {
    current: () => config,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  const store = memoryStore();
  store.addKey(KEY);
  const logLines: string[] = [];
  const running = await startGateway({
    config: source,
    store,
    codecs: options.codecs ?? codecs,
    clock: options.clock ?? systemClock,
    mint: (prefix) => `${prefix}${randomBytes(16).toString('hex')}`,
    random: Math.random,
    chargeFor: memoryCharge,
    log: createLogger(options.level ?? 'debug', { write: (line: string) => void logLines.push(line) }),
    processFigures: false,
    ...(options.loadTokenizer === undefined ? {} : { loadTokenizer: options.loadTokenizer }),
  });
  // A fake clock does not bring about the end of a load that hangs.
  if (options.loadTokenizer === undefined) await running.gateway.tokenizer.firstTry;
  const url = `http://127.0.0.1:${running.port}`;
  return {
    url,
    store,
    running,
    logLines,
    configure(next) {
      config = testConfig(next, config.revision + 1);
      for (const listener of listeners) listener(config);
    },
    post: (path, body, init = {}) =>
      fetch(url + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...init.headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
        ...(init.signal === undefined ? {} : { signal: init.signal }),
      }),
    async [Symbol.asyncDispose]() {
      running.cut();
      await running.stop();
      // A law of every test: whatever clients and upstreams did, nothing of it counts against a key for ever.
      await eventually(() => running.gateway.keySlots.size === 0, 'that what keys held is given back');
    },
  };
}

/** A messages Channel for the model `m`. */
export function channel(url: string, changes: object = {}): object {
  return { id: 'one', type: 'messages', base_url: url, api_key: 'sk-upstream', models: ['m'], ...changes };
}

export const MODELS = { m: { price: { input: '1', output: '2' } } };

export function ask(changes: object = {}): object {
  return { model: 'm', max_tokens: 100, messages: [{ role: 'user', content: 'hi' }], ...changes };
}

/** Longer than any machine is too busy for what takes milliseconds. */
const PATIENCE_MS = 20_000;

/** Polls until `check` holds. */
export async function eventually(check: () => boolean, what = 'the condition'): Promise<void> {
  const started = performance.now();
  while (!check()) {
    if (performance.now() - started > PATIENCE_MS) throw new Error(`${what} did not come true`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
