/** A gateway with a real store, its operations port and the admin API on it; what it asks is asked over sockets. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { createAdminActions } from '../../src/cli/admin.ts';
import { createConsoleSite } from '../../src/cli/site.ts';
import { codecs } from '../../src/codecs/registry.ts';
import type { Config } from '../../src/http/config/config.ts';
import { parseConfig } from '../../src/http/config/parse.ts';
import type { ConfigSource } from '../../src/http/config/source.ts';
import { createLogger } from '../../src/http/operations/logger.ts';
import { type RunningGateway, startGateway } from '../../src/http/start.ts';
import type { AdminRole } from '../../src/store/admin-tokens.ts';
import { chargeFor } from '../../src/store/charge.ts';
import { openLmdbArchive } from '../../src/store/lmdb/archive.ts';
import { openLmdbStore } from '../../src/store/lmdb/open.ts';
import { isStoreFolder } from '../../src/store/open-store.ts';
import { parsePrice } from '../../src/store/prices.ts';
import type { Store } from '../../src/store/store.ts';
import { type Clock, systemClock } from '../../src/streams/clock.ts';
import { cause, ok, openStore, options as storeOptions, realClock } from '../store/support/store.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests read what they expect
export type Json = any;

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  readonly json: Json;
}

export interface Asked {
  readonly method?: string;
  readonly token?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON, or a text as it is. */
  readonly body?: unknown;
}

export interface AdminGateway {
  readonly store: Store;
  readonly running: RunningGateway;
  readonly port: number;
  readonly logLines: Record<string, unknown>[];
  /** Secrets of a token of each role. */
  readonly tokens: Readonly<Record<AdminRole, string>>;
  readonly reloads: () => number;
  /** The file that `config/check` reads. */
  file: object;
  /** A request of the token `write`, unless another is given; `path` is behind `/admin/v1/` unless it begins with a slash. */
  ask(path: string, asked?: Asked): Promise<Answer>;
}

export interface AdminGatewayOptions {
  readonly file?: object;
  readonly store?: Store;
  readonly clock?: Clock;
  /** The folder of `store.backups`. */
  readonly backups?: string;
  /** Of another gateway on the same store. */
  readonly tokens?: AdminGateway['tokens'];
}

/** A gateway opens the store that it serves once: a second time in one process can make LMDB wait for ever. */
function placesBeside(served: string) {
  const beside = (place: string) => {
    assert.notEqual(place, served, 'the served store is opened a second time');
    return storeOptions(place);
  };
  return {
    isVacant: (folder: string) => !existsSync(folder),
    exists: isStoreFolder,
    open: async (place: string) => await openLmdbStore(beside(place)),
    openArchive: async (place: string) => await openLmdbArchive(beside(place)),
    migrate: () => Promise.reject(new Error('nothing is migrated here')),
  };
}

const FILE = {
  listen: { port: 0 },
  operations: { port: 0 },
  channels: [{ id: 'a', type: 'messages', base_url: 'http://127.0.0.1:1', api_key: 'sk-canary', models: ['fast'] }],
  models: { fast: { price: { input: '1', output: '5' } }, free: {} },
};

export async function adminGateway(t: Pick<TestContext, 'after'>, options: AdminGatewayOptions = {}): Promise<AdminGateway> {
  const path = mkdtempSync(join(tmpdir(), 'mizu-admin-'));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  const store = options.store ?? (await openStore(t, { clock: realClock, path }));
  const clock = options.clock ?? systemClock;
  const parsed = (file: object): Config =>
    parseConfig(
      JSON.stringify({
        ...FILE,
        store: { path, ...(options.backups === undefined ? {} : { backups: options.backups }) },
        ...file,
      }),
      {
        ...{ env: {}, readFile: () => '', parsePrice, path: '/tmp/mizu.config.json', revision: 1, nowMs: 0 },
      },
    );
  const config = parsed(options.file ?? {});
  const source: ConfigSource = { current: () => config, onChange: () => () => undefined };
  const logLines: Record<string, unknown>[] = [];
  const log = createLogger('info', { write: (line: string) => void logLines.push(JSON.parse(line)) });
  const mint = (prefix: string): string => `${prefix}${randomBytes(16).toString('hex')}`;
  let reloads = 0;
  const running = await startGateway({
    config: source,
    store,
    codecs,
    clock,
    mint,
    random: Math.random,
    chargeFor,
    log,
    processFigures: false,
    consoleSite: createConsoleSite(),
    admin: (reports) => ({
      actions: createAdminActions({
        places: placesBeside(path),
        reports,
        config: () => config,
        readConfig: () => parsed(gateway.file),
        reload: () => {
          reloads += 1;
        },
        store: () => Promise.resolve(store),
        textTypes: codecs.textTypes,
        clock,
        mint,
      }),
      store: () => Promise.resolve(store),
      isPrimary: () => config.role === 'primary',
      ...{ clock, log, mint },
    }),
  });
  t.after(async () => {
    running.cut();
    await running.stop();
  });
  const token = async (name: string, role: AdminRole) => ok(await store.adminTokens.create({ name, role }, cause())).secret;
  const tokens = options.tokens ?? { read: await token('reader', 'read'), write: await token('writer', 'write') };
  const port = running.operationsPort ?? 0;
  const gateway: AdminGateway = {
    ...{ store, running, port, logLines, tokens, reloads: () => reloads, file: options.file ?? {} },
    ask(path, asked = {}) {
      const { token: secret = tokens.write } = asked;
      const headers = { ...(secret === null ? {} : { authorization: `Bearer ${secret}` }), ...asked.headers };
      return send(port, path.startsWith('/') ? path : `/admin/v1/${path}`, { ...asked, headers });
    },
  };
  return gateway;
}

/** Over a connection of its own, so that any header may be sent. */
export function send(port: number, path: string, { method, headers = {}, body }: Omit<Asked, 'token'>): Promise<Answer> {
  const text = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const asked = request(
      {
        ...{ host: '127.0.0.1', port, path, method: method ?? (body === undefined ? 'GET' : 'POST'), agent: false },
        headers: { ...(text === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      },
      (response) => {
        let received = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          received += chunk;
        });
        response.on('end', () => {
          const json: Json = /json/.test(response.headers['content-type'] ?? '') && received !== '' ? JSON.parse(received) : {};
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text: received, json });
        });
      },
    );
    asked.on('error', reject);
    asked.end(text);
  });
}
