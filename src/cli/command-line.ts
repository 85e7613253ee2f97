/**
 * `serve` and the operator's verbs: reads the command line and passes in what the gateway needs of the outside world (time, randomness,
 * files, signals).
 */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import manifest from '../../package.json' with { type: 'json' };
import { codecs } from '../codecs/registry.ts';
import type { Config } from '../http/config/config.ts';
import { ConfigError } from '../http/config/config-error.ts';
import { type LoadOptions, loadConfig } from '../http/config/source.ts';
import { ACCOUNTS_USAGE, accounts } from './accounts.ts';
import { channels } from './channels.ts';
import { checkVerb } from './check.ts';
import { CONVERT_USAGE, convert } from './convert.ts';
import { KEYS_USAGE, keys } from './keys.ts';
import { balance, LEDGER_USAGE, ledger } from './ledger.ts';
import { logs } from './logs.ts';
import { PRICES_USAGE, prices } from './prices.ts';
import { DEFAULT_CONFIG, type ServeOptions, type StoreProblem, serve } from './serve.ts';
import { storeVerb } from './store.ts';
import { SPEND_USAGE, spend } from './spend.ts';
import { RefusedError, allowOnly, UsageError, type Verb } from './verb.ts';
import { videos } from './videos.ts';
import { createMint } from '../http/mint.ts';
import { isWorker } from '../http/workers/workers.ts';
import { chargeFor } from '../store/charge.ts';
import {
  isDatabaseUrl,
  isStoreFolder,
  migrateAt,
  openArchiveAt,
  openStoreAt,
  type StoreEnvironment,
} from '../store/open-store.ts';
import { parsePrice } from '../store/prices.ts';
import type { Store } from '../store/store.ts';
import { StoreError } from '../store/store-error.ts';
import { systemClock } from '../streams/clock.ts';

/** The folder in which settlements wait for a database. A copy writes none, so nothing is ever put there. */
const COPY_FOLDER = './data';

const VERBS: Readonly<Record<string, Verb>> = {
  accounts,
  keys,
  balance,
  spend,
  prices,
  ledger,
  logs,
  videos,
  check: checkVerb(codecs.textTypes),
  channels,
  store: storeVerb({
    exists: (place) => isDatabaseUrl(place) || isStoreFolder(place),
    open: (place) => openStoreAt(place, environmentOf(COPY_FOLDER)),
    openArchive: (place) => openArchiveAt(place, environmentOf(COPY_FOLDER)),
    migrate: (url) => migrateAt(url, environmentOf(COPY_FOLDER)),
  }),
};

const USAGE = `usage: mizu VERB [--config FILE] [--json]     changes of money: [--cause ID] [--note TEXT]
  serve [--demo] [--workers N]                  run the gateway
  check                                         validate the configuration
  ${ACCOUNTS_USAGE}
  ${KEYS_USAGE}
  balance [NAME]
  ${SPEND_USAGE}
  ${PRICES_USAGE}
  ${LEDGER_USAGE}
  logs [--limit N | --follow | --request ID]
  videos [list] [--state S] [--limit N] | show ID | resolve ID --succeeded URL | --failed MESSAGE
  channels test [ID]
  ${CONVERT_USAGE}
  store migrate | copy --from PLACE --to PLACE   a place is a folder or postgres://…
  --version`;

const OPTIONS = {
  config: { type: 'string' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean' },
  demo: { type: 'boolean' },
  workers: { type: 'string' },
  class: { type: 'string' },
  credit: { type: 'string' },
  unlimited: { type: 'boolean' },
  limited: { type: 'boolean' },
  cause: { type: 'string' },
  note: { type: 'string' },
  key: { type: 'string' },
  from: { type: 'string' },
  to: { type: 'string' },
  ref: { type: 'string' },
  head: { type: 'string' },
  after: { type: 'string' },
  account: { type: 'string' },
  name: { type: 'string' },
  expires: { type: 'string' },
  models: { type: 'string' },
  ips: { type: 'string' },
  'limit-total': { type: 'string' },
  'limit-hourly': { type: 'string' },
  'limit-daily': { type: 'string' },
  'requests-per-minute': { type: 'string' },
  'tokens-per-minute': { type: 'string' },
  'max-concurrency': { type: 'string' },
  'sub-account': { type: 'boolean' },
  follow: { type: 'boolean' },
  request: { type: 'string' },
  chunk: { type: 'string' },
  whole: { type: 'boolean' },
  limit: { type: 'string' },
  state: { type: 'string' },
  succeeded: { type: 'string' },
  failed: { type: 'string' },
} as const;

type Options = ReturnType<typeof readArguments>['values'];

const mint = createMint(systemClock.now, randomBytes);

/** Where a command prints: whole lines, without their line ends. */
export interface Terminal {
  out(text: string): void;
  err(text: string): void;
  /** Text without a line end of its own. Settles when more may be written. */
  write(text: string): Promise<void>;
  /** Standard input. */
  readonly input: AsyncIterable<Uint8Array>;
  /** Aborted when standard output cannot be written; its reason is the system's error. */
  readonly unread: AbortSignal;
  /** Resolves when all output is written, or lost. */
  written(): Promise<void>;
}

function standardTerminal(): Terminal {
  const { stdout, stderr } = process;
  const unread = new AbortController();
  stdout.on('error', (error) => unread.abort(error));
  // Where standard error fails there is no place left to report it.
  stderr.on('error', () => undefined);
  return {
    out: (text) => void stdout.write(`${text}\n`),
    err: (text) => void stderr.write(`${text}\n`),
    write: (text) => new Promise((resolve) => void stdout.write(text, () => resolve())),
    input: process.stdin,
    unread: unread.signal,
    written: () => new Promise((resolve) => void stdout.write('', () => resolve())),
  };
}

/** Resolves with the exit code. Never rejects: errors are printed on standard error. */
export async function run(argv: readonly string[], env: NodeJS.ProcessEnv, terminal = standardTerminal()): Promise<number> {
  try {
    return await runCommand(argv, env, terminal);
  } catch (error) {
    // `mizu logs | head` closes the pipe on purpose.
    if (!isClosedPipe(error)) terminal.err(`mizu: ${errorText(error)}`);
    return error instanceof UsageError ? 2 : 1;
  }
}

function isClosedPipe(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EPIPE';
}

/** A store error begins with its code, so that a supervisor can tell one from another. */
function errorText(error: unknown): string {
  if (error instanceof StoreError) return `${error.code}: ${error.message}`;
  if (error instanceof UsageError || error instanceof ConfigError || error instanceof RefusedError) return error.message;
  if (!(error instanceof Error)) return String(error);
  // An error of the operating system (a port in use, a folder without write permission) is no bug: no stack trace.
  return 'syscall' in error ? error.message : (error.stack ?? error.message);
}

async function runCommand(argv: readonly string[], env: NodeJS.ProcessEnv, terminal: Terminal): Promise<number> {
  const { positionals, values } = readArguments(argv);
  const [name, ...args] = positionals;
  const wantsHelp = values.help === true || name === 'help';
  if (name === undefined && values.version === true && !wantsHelp) {
    terminal.out(manifest.version);
    return 0;
  }
  if (name === undefined || wantsHelp) {
    terminal.out(USAGE);
    return wantsHelp ? 0 : 2;
  }
  const load = loadOptions(env);
  if (values.config === '') throw new UsageError('--config is empty');
  const configPath = values.config ?? (env['MIZU_CONFIG'] || undefined);
  if (name === 'serve') return await runServe(args, values, { load, configPath, print: terminal.out });
  if (name === 'convert') {
    const { input, write } = terminal;
    return await convert({ args, options: values, readFile: readNamedFile, input, write });
  }
  const verb = Object.hasOwn(VERBS, name) ? VERBS[name] : undefined;
  if (verb === undefined) throw new UsageError(`there is no verb ${name}\n${USAGE}`);
  return await runVerb(verb, args, values, terminal, () => loadConfig(resolve(configPath ?? DEFAULT_CONFIG), load));
}

/** `serve`, with what it gets of the outside world. */
function runServe(
  args: readonly string[],
  options: Options,
  { load, configPath, print }: Pick<ServeOptions, 'load' | 'configPath' | 'print'>,
): Promise<number> {
  allowOnly({ args, options }, 'serve', 0, 'demo', 'workers');
  return serve({
    load,
    configPath,
    demo: options.demo === true,
    workers: workersOf(options.workers),
    cwd: process.cwd(),
    root: resolve(dirname(fileURLToPath(import.meta.url)), '../..'),
    codecs,
    clock: systemClock,
    mint,
    random: Math.random,
    chargeFor,
    openStore,
    print,
    onSignal(listener) {
      process.on('SIGHUP', () => listener('reload'));
      process.on('SIGTERM', () => listener('stop'));
      process.on('SIGUSR2', () => listener('renew'));
      process.on('SIGINT', () => {
        // Ctrl-C reaches the whole process group. A worker is stopped by its primary, and a second stop would cut its connections.
        if (!isWorker) listener('stop');
      });
    },
    onFault(listener) {
      process.on('unhandledRejection', (error) => listener('rejection', error));
      process.on('uncaughtException', (error) => listener('exception', error));
    },
  });
}

async function runVerb(
  verb: Verb,
  args: readonly string[],
  options: Options,
  terminal: Terminal,
  config: () => Config,
): Promise<number> {
  const interruption = new AbortController();
  const interrupt = (): void => interruption.abort();
  let opened: Store | undefined;
  try {
    const code = await verb({
      args,
      options,
      json: options.json === true,
      clock: systemClock,
      mint,
      print: terminal.out,
      readFile: readNamedFile,
      config,
      async store() {
        opened ??= await openStore(config());
        return opened;
      },
      interrupted() {
        process.once('SIGINT', interrupt);
        return AbortSignal.any([interruption.signal, terminal.unread]);
      },
    });
    await terminal.written();
    // Output that could not be written (a new key, on a full disk) is a failure.
    terminal.unread.throwIfAborted();
    return code;
  } finally {
    await opened?.close();
    process.off('SIGINT', interrupt);
  }
}

/** `-5` is an amount and no option: a prefix hides it from the parser, and is removed afterwards. */
const HIDDEN = '\u0000';

function readArguments(argv: readonly string[]) {
  const args = argv.map((arg) => (/^-[0-9.]/.test(arg) ? HIDDEN + arg : arg));
  try {
    const { positionals, values, tokens } = parseArgs({ args, options: OPTIONS, allowPositionals: true, tokens: true });
    const given = tokens.flatMap((token) => (token.kind === 'option' ? [token.name] : []));
    const twice = given.find((name, index) => given.indexOf(name) < index);
    if (twice !== undefined) throw new Error(`--${twice} is given twice`);
    for (const [name, value] of Object.entries(values)) {
      if (typeof value === 'string' && value.startsWith(HIDDEN)) Object.assign(values, { [name]: value.slice(1) });
    }
    return { positionals: positionals.map((text) => (text.startsWith(HIDDEN) ? text.slice(1) : text)), values };
  } catch (error) {
    throw new UsageError(`${error instanceof Error ? error.message : String(error)}\n${USAGE}`);
  }
}

function workersOf(text: string | undefined): number {
  const count = Number(text ?? 1);
  if (!Number.isInteger(count) || count < 1 || count > 256) throw new UsageError('--workers must be 1 to 256');
  return count;
}

function loadOptions(env: NodeJS.ProcessEnv): LoadOptions {
  const { HOST: host, PORT: port } = env;
  if (port !== undefined && port !== '' && !(/^\d{1,5}$/.test(port) && Number(port) <= 65535)) {
    throw new UsageError(`PORT must be a number from 0 to 65535, not ${port}`);
  }
  return {
    env,
    readFile: (path) => readFileSync(path, 'utf8'),
    parsePrice,
    now: systemClock.now,
    ...(host === undefined || host === '' ? {} : { host }),
    ...(port === undefined || port === '' ? {} : { port: Number(port) }),
  };
}

function openStore(config: Config, onProblem?: StoreProblem): Promise<Store> {
  return openStoreAt(config.storeUrl ?? config.storePath, environmentOf(config.storePath, onProblem));
}

function environmentOf(localPath: string, onProblem?: StoreProblem): StoreEnvironment {
  return {
    ...(onProblem === undefined ? {} : { onProblem }),
    localPath,
    clock: {
      now: systemClock.now,
      after(ms, callback) {
        const timer = setTimeout(callback, ms).unref();
        return () => clearTimeout(timer);
      },
    },
    randomBytes,
    process: { host: hostname(), pid: process.pid, isAlive },
  };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

function readNamedFile(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new RefusedError(`${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}
