/**
 * A gateway over real sockets with the real LMDB store, real prices and the simulated upstream: for tests that follow the money.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { codecs } from '../../src/codecs/registry.ts';
import { parseConfig } from '../../src/http/config/parse.ts';
import { fixedConfig } from '../../src/http/config/source.ts';
import { createLogger } from '../../src/http/operations/logger.ts';
import type { Simulator } from '../../src/simulator/simulator.ts';
import { type RunningGateway, startGateway } from '../../src/http/start.ts';
import type { Account } from '../../src/store/accounts.ts';
import { chargeFor } from '../../src/store/charge.ts';
import type { KeyRecord, NewKey } from '../../src/store/keys.ts';
import { openLmdbStore } from '../../src/store/lmdb/open.ts';
import { parsePrice } from '../../src/store/prices.ts';
import type { RequestLogRow } from '../../src/store/request-log.ts';
import type { Result } from '../../src/store/result.ts';
import type { Store } from '../../src/store/store.ts';
import { systemClock } from '../../src/streams/clock.ts';
import { formChannel, startVendors, upstreamForms } from './upstream-forms.ts';

export const UPSTREAM_TYPES = ['chat_completion', 'responses', 'messages', 'gemini'] as const;
/** What a money gateway has Channels for, unless its test names others. */
export const FORMS = upstreamForms(import.meta.filename);

/** The prices of known-failures U1, in dollars a million. */
export const PRICE = { input: '5', cached_input: '0.5', cache_write_5m: '6.25', cache_write_1h: '10', output: '25' };

export interface Owner {
  readonly account: Account;
  readonly key: KeyRecord;
  readonly secret: string;
}

export interface MoneyGateway {
  readonly url: string;
  readonly simulator: Simulator;
  readonly store: Store;
  /** A new account with a key of its own. */
  owner(creditNanos: bigint, key?: Partial<NewKey>, account?: { readonly unlimited?: boolean }): Promise<Owner>;
  post(owner: Owner | string, path: string, body: unknown, init?: Pick<RequestInit, 'signal' | 'headers'>): Promise<Response>;
  get(owner: Owner | string, path: string): Promise<Response>;
  /** The log of a key once it has `count` rows, oldest first, with everything flushed. Fails when there are more. */
  settled(owner: Owner, count: number): Promise<RequestLogRow[]>;
  wallet(owner: Owner): Promise<bigint>;
}

let made = 0;

function value<T>(result: Result<T, unknown>): T {
  if (!result.ok) throw new Error(JSON.stringify(result.refusal));
  return result.value;
}

function ownStore(path: string, now: () => number): Promise<Store> {
  return openLmdbStore({
    path,
    clock: {
      now,
      after(ms, callback) {
        const timer = setTimeout(callback, ms).unref();
        return () => clearTimeout(timer);
      },
    },
    randomBytes: (size) => randomBytes(size),
    process: { host: hostname(), pid: process.pid, isAlive: () => true },
    ballastBytes: 0,
  });
}

/**
 * Models are named as the forms of their Channels are. `file` replaces members of the configuration; a `given` store is closed
 * with the gateway, as its own would be. `now` is the time of the gateway and of the store that it makes.
 */
export async function moneyGateway(
  t: TestContext,
  file: object = {},
  given?: Store,
  now: () => number = Date.now,
): Promise<MoneyGateway> {
  const simulator = await startVendors({ video: { queueMs: 5, runMs: 10 } });
  const folder = mkdtempSync(join(tmpdir(), 'mizu-money-'));
  const store = given ?? (await ownStore(join(folder, 'data'), now));
  const all = Object.fromEntries(FORMS.map(({ name }) => [name, { price: PRICE }]));
  const { models } = { models: all, ...file };
  const config = parseConfig(
    JSON.stringify({
      listen: { port: 0 },
      operations: null,
      channels: FORMS.filter(({ name }) => Object.hasOwn(models, name)).map((form) => formChannel(form, simulator.url)),
      ...file,
      models,
    }).replaceAll('SIMULATOR', simulator.url),
    { env: {}, readFile: () => '', parsePrice, path: join(folder, 'mizu.config.json'), revision: 1, nowMs: Date.now() },
  );
  const running: RunningGateway = await startGateway({
    config: fixedConfig(config),
    store,
    codecs,
    clock: now === Date.now ? systemClock : { ...systemClock, now },
    mint: (prefix) => `${prefix}${randomBytes(16).toString('hex')}`,
    random: Math.random,
    chargeFor,
    log: createLogger('silent', { write: () => undefined }),
    processFigures: false,
  });
  await running.gateway.tokenizer.firstTry;
  t.after(async () => {
    running.cut();
    await running.stop();
    const { differences } = await store.ledger.verify();
    await store.close();
    await simulator.close();
    rmSync(folder, { recursive: true, force: true });
    if (differences.length > 0) throw new Error(`the ledger does not add up: ${JSON.stringify(differences)}`);
  });
  const url = `http://127.0.0.1:${running.port}`;
  const bearer = (owner: Owner | string) => ({ authorization: `Bearer ${typeof owner === 'string' ? owner : owner.secret}` });
  return {
    url,
    simulator,
    store,
    async owner(creditNanos, key = {}, account = {}) {
      made += 1;
      const cause = { id: `test-${made}`, by: 'test' };
      const created = value(await store.accounts.create({ name: `account ${made}`, creditNanos, ...account }, cause));
      const one = value(await store.keys.create({ accountId: created.id, name: 'key', ...key }, cause));
      return { account: created, ...one };
    },
    post: (owner, path, body, init = {}) =>
      fetch(url + path, {
        method: 'POST',
        ...init,
        headers: { ...bearer(owner), 'content-type': 'application/json', ...init.headers },
        body: JSON.stringify(body),
      }),
    get: (owner, path) => fetch(url + path, { headers: bearer(owner) }),
    async settled(owner, count) {
      for (let tries = 0; tries < 1000; tries++) {
        await store.settlements.flush();
        // Refused requests are logged too, without an attempt: they settle nothing.
        const rows = (await store.requestLog.list({ keyId: owner.key.id, limit: 1000 })).filter(
          ({ attempts }) => attempts.length > 0,
        );
        if (rows.length > count) throw new Error(`${rows.length} settlements, not ${count}`);
        if (rows.length === count) return rows.reverse();
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      throw new Error(`there never were ${count} settlements`);
    },
    async wallet(owner) {
      return (await store.accounts.find(owner.account.id))?.walletNanos ?? 0n;
    },
  };
}

interface ClientDialect {
  readonly path: string;
  ask(model: string, stream: boolean, text?: string): object;
}

/** One request in each dialect of a client. */
export const CLIENTS = {
  chat: {
    path: '/v1/chat/completions',
    ask: (model, stream, text = 'hi') => ({
      model,
      stream,
      ...(stream ? { stream_options: { include_usage: true } } : {}),
      messages: [{ role: 'user', content: text }],
    }),
  },
  completions: { path: '/v1/completions', ask: (model, stream, text = 'hi') => ({ model, stream, prompt: text }) },
  responses: { path: '/v1/responses', ask: (model, stream, text = 'hi') => ({ model, stream, input: text }) },
  messages: {
    path: '/v1/messages',
    ask: (model, stream, text = 'hi') => ({ model, stream, max_tokens: 50, messages: [{ role: 'user', content: text }] }),
  },
} as const satisfies Record<string, ClientDialect>;

/** The body of an SSE answer from its events, for scripts that say exactly what is on the wire. */
export function sse(...events: (object | string)[]): string {
  return events
    .map((event) => {
      if (typeof event === 'string') return `data: ${event}\n\n`;
      const name = 'type' in event ? `event: ${String(event.type)}\n` : '';
      return `${name}data: ${JSON.stringify(event)}\n\n`;
    })
    .join('');
}
