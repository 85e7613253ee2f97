/**
 * A second gateway inside this process, of the same code and with nothing of the first one's state: its own store in a temporary
 * folder, metrics, log, circuits and connections. Its client and its upstream are in this process, too, and reach it over sockets
 * that only this user may open.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, createServer, request, type RequestOptions, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ChannelType } from '../../codecs/canonical/dialect.ts';
import type { Config } from '../../http/config/config.ts';
import { parseConfig, type ParseOptions } from '../../http/config/parse.ts';
import { fixedConfig } from '../../http/config/source.ts';
import { createLogger } from '../../http/operations/logger.ts';
import { HANDLERS } from '../../http/routes/handlers.ts';
import { GatewayServer } from '../../http/server/server.ts';
import { closeGateway, createGateway, type StartOptions } from '../../http/start.ts';
import { USD } from '../../store/money.ts';
import type { Store } from '../../store/store.ts';
import { ANSWERS } from './answers.ts';
import { modelOf, requestsTo, type WarmUpRequest } from './requests.ts';

export interface RigOptions extends Pick<StartOptions, 'codecs' | 'clock' | 'mint' | 'random' | 'chargeFor'> {
  /** Those of the Channels that are to be warmed. */
  readonly types: readonly ChannelType[];
  readonly load: Omit<ParseOptions, 'path' | 'revision' | 'nowMs'>;
  readonly level: string;
  readonly openStore: (config: Config) => Promise<Store>;
  /** Cuts the exchange that is under way. */
  readonly signal: AbortSignal;
}

export interface Rig extends AsyncDisposable {
  /** The next exchange, of all clients, types and shapes by turns. Rejects where it was not answered as it should be. */
  exchange(): Promise<void>;
}

/** Rejects where its folder, its store or its sockets cannot be made; nothing is left behind then. */
export async function createRig(options: RigOptions): Promise<Rig> {
  await using made = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), 'mizu-warm-'));
  made.defer(() => rmSync(folder, { recursive: true, force: true }));
  const upstream = createUpstream();
  await listen(upstream, join(folder, 'upstream'));
  made.defer(() => cut(upstream));
  const config = configOf(options, folder);
  const store = await options.openStore(config);
  made.defer(() => store.close());
  const key = await keyIn(store);
  const { codecs, clock, mint, random, chargeFor, level } = options;
  const log = createLogger(level, { write: () => undefined });
  const gateway = createGateway({
    ...{ config: fixedConfig(config), store, codecs, clock, mint, random, chargeFor, log },
    processFigures: false,
    loadTokenizer: () => Promise.resolve((text) => text.length),
    upstreamSocket: join(folder, 'upstream'),
  });
  made.defer(() => closeGateway(gateway));
  const { server } = new GatewayServer(gateway, HANDLERS);
  await listen(server, join(folder, 'gateway'));
  made.defer(() => cut(server));
  const agent = new Agent({ keepAlive: true });
  made.defer(() => agent.destroy());
  const requests = requestsTo(options.types);
  let turn = 0;
  const kept = made.move();
  return {
    async exchange() {
      const next = requests[turn++ % requests.length];
      if (next !== undefined) await ask(next, { agent, socketPath: join(folder, 'gateway'), signal: options.signal }, key);
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

function configOf({ types, load, clock }: RigOptions, folder: string): Config {
  const file = {
    operations: null,
    store: { path: join(folder, 'data') },
    channels: types.map((type) => ({
      ...{ id: type, type, api_key: 'sk-warm' },
      base_url: 'http://127.0.0.1:9/v1',
      models: [modelOf(type)],
    })),
    models: Object.fromEntries(types.map((type) => [modelOf(type), { price: { input: '1.00', output: '4.00' } }])),
  };
  return parseConfig(JSON.stringify(file), { ...load, path: join(folder, 'config.json'), revision: 1, nowMs: clock.now() });
}

async function keyIn(store: Store): Promise<string> {
  const cause = { id: 'warm-up', by: 'warm-up' };
  const account = await store.accounts.create({ name: 'warm-up', creditNanos: 1_000_000n * USD }, cause);
  if (!account.ok) throw new Error(`the account of the warm-up was refused: ${account.refusal.reason}`);
  const key = await store.keys.create({ accountId: account.value.id, name: 'warm-up' }, { ...cause, id: 'warm-up-key' });
  if (!key.ok) throw new Error(`the key of the warm-up was refused: ${key.refusal.reason}`);
  return key.value.secret;
}

/** Says what its path and the body's `stream` ask for. */
function createUpstream(): Server {
  return createServer((incoming, response) => {
    let body = '';
    incoming.setEncoding('latin1');
    incoming.on('data', (chunk: string) => {
      body += chunk;
    });
    incoming.on('end', () => {
      const path = incoming.url ?? '';
      const answer = ANSWERS[typeOfPath(path)];
      const isStream = path.includes(':stream') || body.includes('"stream":true');
      response.setHeader('content-type', isStream ? 'text/event-stream' : 'application/json');
      response.end(isStream ? answer?.stream : answer?.whole);
    });
  });
}

function typeOfPath(path: string): ChannelType {
  if (path.includes('/chat/completions')) return 'chat_completion';
  if (path.includes('/responses')) return 'responses';
  return path.includes('/messages') ? 'messages' : 'gemini';
}

function ask({ path, body }: WarmUpRequest, way: RequestOptions, key: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { host: 'warm-up', authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const outgoing = request({ ...way, path, method: 'POST', headers }, (answer) => {
      answer.on('error', reject);
      answer.on('end', () => {
        if (answer.statusCode === 200) resolve();
        else reject(new Error(`${path} was answered with ${answer.statusCode}`));
      });
      answer.resume();
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, resolve);
  });
}

function cut(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
