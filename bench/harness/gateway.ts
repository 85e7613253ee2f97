/**
 * The subject: the whole gateway as an operator runs it, with an account, a key, prices and logs, in front of the bench upstream.
 */
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { answering, freePort } from './ports.ts';
import { stop } from './processes.ts';

export interface Gateway {
  readonly url: string;
  readonly pid: number;
  readonly key: string;
  /** From the spawn to the first answer of `/readyz`. */
  readonly startMs: number;
  /** Resolves once it has logged a line with this text, or after `atMostMs`. */
  logged(text: string, atMostMs: number): Promise<void>;
  /** The text of its metrics. */
  metrics(): Promise<string>;
  stop(): Promise<void>;
}

/** What is kept of a log to look for its first lines. */
const BEGINNING_CHARS = 1_000_000;
const LOOK_MS = 20;

const ENTRY = join(import.meta.dirname, '../../src/main.ts');
const CHANNELS = [
  ['chat', 'chat_completion'],
  ['responses', 'responses'],
  ['messages', 'messages'],
] as const;
const SHAPES = ['full-flow', 'many-chunks', 'paced', 'paced-2ms', 'whole', 'short', 'slow', 'hold'] as const;

/** The logical model that reaches an upstream dialect and shape. */
export const modelOf = (dialect: string, shape: string): string => `${dialect}-${shape}`;

function configOf(upstreamUrl: string, port: number, operationsPort: number, data: string): object {
  const models: Record<string, object> = {};
  for (const [dialect] of CHANNELS)
    for (const shape of SHAPES) models[modelOf(dialect, shape)] = { price: { input: '1.25', output: '10.00' } };
  return {
    listen: { host: '127.0.0.1', port },
    operations: { host: '127.0.0.1', port: operationsPort },
    store: { path: data },
    websocket: { turns: 100_000, per_key: 10_000 },
    channels: CHANNELS.map(([dialect, type]) => ({
      id: dialect,
      type,
      base_url: `${upstreamUrl}/v1`,
      api_key: 'sk-bench-upstream',
      models: Object.fromEntries(SHAPES.map((shape) => [modelOf(dialect, shape), shape])),
    })),
    models,
  };
}

async function read(url: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  get(url, (answer) => {
    let text = '';
    answer.setEncoding('utf8');
    answer.on('data', (chunk: string) => {
      text += chunk;
    });
    answer.on('end', () => resolve(text));
  }).on('error', reject);
  return await promise;
}

/** `args` go to the gateway, `nodeArgs` to Node (a profiler). */
export async function startGateway(
  upstreamUrl: string,
  args: readonly string[] = [],
  nodeArgs: readonly string[] = [],
): Promise<Gateway> {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-bench-'));
  const [port, operationsPort] = [await freePort(), await freePort()];
  const config = join(folder, 'mizu.config.json');
  writeFileSync(config, JSON.stringify(configOf(upstreamUrl, port, operationsPort, join(folder, 'data'))));
  const verb = (...words: string[]): string =>
    execFileSync(process.execPath, [ENTRY, ...words, '--config', config], { encoding: 'utf8' });
  verb('accounts', 'create', 'bench', '--credit', '1000000');
  const key = /sk-mizu-[\w-]{43}/.exec(verb('keys', 'create', '--account', 'bench', '--name', 'bench'))?.[0];
  if (key === undefined) throw new Error('keys create printed no key');
  const started = performance.now();
  const child = spawn(process.execPath, [...nodeArgs, ENTRY, 'serve', '--config', config, ...args]);
  let printed = '';
  let begun = '';
  child.stderr.on('data', (chunk) => {
    printed = (printed + String(chunk)).slice(-4000);
    if (begun.length < BEGINNING_CHARS) begun += String(chunk);
  });
  child.stdout.resume();
  const url = `http://127.0.0.1:${port}`;
  const gone = (): boolean => child.exitCode !== null;
  await answering(`${url}/readyz`, gone, () => `the gateway did not start: ${printed}`, [200]);
  return {
    url,
    pid: child.pid ?? 0,
    key,
    startMs: performance.now() - started,
    async logged(text, atMostMs) {
      for (const until = performance.now() + atMostMs; performance.now() < until && !begun.includes(text); ) await sleep(LOOK_MS);
    },
    metrics: () => read(`http://127.0.0.1:${operationsPort}/metrics`),
    stop: async () => {
      // A profiler writes what it has when its process ends by itself.
      await stop(child, nodeArgs.some((arg) => /^--(?:cpu|heap)-prof/.test(arg)) ? 'SIGTERM' : 'SIGKILL');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
