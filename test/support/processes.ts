/** Gateways as real processes, for tests of signals, reloads, workers and verbs. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { command, type Finished } from './command.ts';

const MAIN = resolve('src/main.ts');

export interface Installation extends AsyncDisposable {
  readonly folder: string;
  readonly configPath: string;
  /** Of an account with credit; made by the verbs. */
  readonly key: string;
  configure(file: object | string): void;
  /** A verb, on the installation's configuration. */
  run(...args: readonly string[]): Promise<Finished>;
  /** Resolves once it listens. `PORT` is any free one. */
  serve(...args: readonly string[]): Promise<Serving>;
  /** The same in another place: with a configuration file of its own, inside a network namespace. */
  serveAt(place: ServingPlace, ...args: readonly string[]): Promise<Serving>;
}

export interface ServingPlace {
  /** Default: the installation's. */
  readonly configPath?: string;
  /** What the program is run by: `ip netns exec NAME`. */
  readonly command?: readonly string[];
}

export interface Serving {
  readonly url: string;
  readonly process: ChildProcess;
  /** What it has logged so far, a line each. */
  readonly log: () => Record<string, unknown>[];
  readonly text: () => string;
  /** Ends it if it still lives; resolves with the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
  /** Resolves when a log line with this message is there; rejects after forty seconds. */
  logged(message: string, count?: number): Promise<void>;
}

/** A folder with a configuration, a store, an account and a key. */
export async function install(file: object, env: Record<string, string> = {}): Promise<Installation> {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-process-'));
  const configPath = join(folder, 'mizu.config.json');
  const configure = (content: object | string): void =>
    writeFileSync(
      configPath,
      typeof content === 'string'
        ? content
        : JSON.stringify({ store: { path: join(folder, 'data') }, warm_up_ms: 0, ...content }),
    );
  const environment = { PATH: process.env['PATH'] ?? '', PORT: '0', ...env };
  const start = (args: readonly string[], place: ServingPlace = {}): ChildProcess => {
    const [program = process.execPath, ...rest] = [
      ...(place.command ?? []),
      ...[process.execPath, MAIN, ...args, '--config', place.configPath ?? configPath],
    ];
    return spawn(program, rest, { cwd: folder, env: environment, stdio: 'pipe' });
  };
  const serving = new Set<Serving>();

  const run = (...args: readonly string[]): Promise<Finished> => command([...args, '--config', configPath], environment);

  const serveAt = async (place: ServingPlace, ...args: readonly string[]): Promise<Serving> => {
    const child = start(['serve', ...args], place);
    const out = collect(child.stdout);
    const err = collect(child.stderr);
    const exited = once(child, 'exit').then(([code]) => (typeof code === 'number' ? code : null));
    const url = await waitFor(
      () => /Mizu listens on (http:\/\/[\d.]+:\d+)/.exec(out())?.[1],
      () => `it never listened: ${err()}`,
    );
    const log = (): Record<string, unknown>[] =>
      err()
        .split('\n')
        .filter((line) => line.startsWith('{') && line.endsWith('}'))
        .map((line): Record<string, unknown> => JSON.parse(line));
    const served: Serving = {
      url,
      process: child,
      log,
      text: () => out() + err(),
      async stop(signal = 'SIGTERM') {
        if (child.exitCode === null && child.signalCode === null) child.kill(signal);
        serving.delete(served);
        return await exited;
      },
      async logged(message, count = 1) {
        await waitFor(
          () => (log().filter(({ msg }) => msg === message).length >= count ? true : undefined),
          () => `never logged ${message}: ${err()}`,
        );
      },
    };
    serving.add(served);
    return served;
  };

  configure(file);
  await expectSuccess(run('accounts', 'create', 'tests', '--credit', '1000'));
  const key = (await expectSuccess(run('keys', 'create', '--account', 'tests'))).out.trim();
  return {
    folder,
    configPath,
    key,
    configure,
    run,
    serve: (...args) => serveAt({}, ...args),
    serveAt,
    async [Symbol.asyncDispose]() {
      await Promise.all([...serving].map((served) => served.stop('SIGKILL')));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/** Polls until there is a value; rejects after forty seconds, which only a bug takes. */
export async function waitFor<T>(look: () => T | undefined | Promise<T | undefined>, what: () => string): Promise<T> {
  for (const deadline = performance.now() + 40_000; ; ) {
    const found = await look();
    if (found !== undefined) return found;
    if (performance.now() > deadline) throw new Error(what());
    await new Promise((wake) => setTimeout(wake, 10));
  }
}

async function expectSuccess(finished: Promise<Finished>): Promise<Finished> {
  const result = await finished;
  if (result.code !== 0) throw new Error(result.err);
  return result;
}

function collect(stream: NodeJS.ReadableStream | null): () => string {
  let text = '';
  stream?.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  return () => text;
}
