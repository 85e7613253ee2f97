/**
 * `serve` and the operator's verbs: reads the command line and passes in what the gateway needs of the outside world (time,
 * randomness, files, signals).
 */
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createInterface } from 'node:readline/promises';
import { parseArgs } from 'node:util';
import type { Static } from 'typebox';
import manifest from '../../package.json' with { type: 'json' };
import { codecs } from '../codecs/registry.ts';
import type { Config } from '../http/config/config.ts';
import { ConfigError } from '../http/config/config-error.ts';
import { changeConfig, type LoadOptions, loadConfig } from '../http/config/source.ts';
import { RefusedError } from '../http/admin/refusals.ts';
import { ACCOUNTS } from './accounts.ts';
import { ADMIN_TOKENS } from './admin-tokens.ts';
import { CHANNEL_SERVICE } from './channel-service.ts';
import { CHANNELS } from './channels.ts';
import { checkVerb } from './check.ts';
import { CONVERT } from './convert.ts';
import { KEYS } from './keys.ts';
import { killAfter } from './kill-after.ts';
import { BALANCE, LEDGER } from './ledger.ts';
import { LOGS } from './logs.ts';
import { familyOf, helpOf, find, optionsOfAll, perform, type Typed } from './perform.ts';
import { PRICES } from './prices.ts';
import { processSpace } from './process-space.ts';
import { RECONCILE } from './reconcile.ts';
import { DEFAULT_CONFIG, Serve, type ServeOptions, type StoreProblem, serve } from './serve.ts';
import { type StorePlaces, storeVerbs } from './store.ts';
import { SECRETS } from './secrets.ts';
import { SPEND } from './spend.ts';
import { SPEND_USERS } from './spend-users.ts';
import { oneLine, UsageError, type Verb, type VerbContext, verb } from './verb.ts';
import { VIDEOS } from './videos.ts';
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
import { adjustable, systemClock } from '../streams/clock.ts';
import { storeClock } from './store-clock.ts';

/** The folder in which settlements wait for a database where no configuration names one: its own default. */
const LOCAL_FOLDER = './data';

const PLACES: StorePlaces = {
  isVacant: (folder) => !existsSync(folder) || readdirSync(folder).length === 0,
  exists: (place) => isDatabaseUrl(place) || isStoreFolder(place),
  open: (place, local = LOCAL_FOLDER) => openStoreAt(place, environmentOf(local)),
  openArchive: (place, local = LOCAL_FOLDER) => openArchiveAt(place, environmentOf(local)),
  migrate: (url) => migrateAt(url, environmentOf(LOCAL_FOLDER)),
};

/** Every verb, in the order of the help. `outside` is what `serve` gets of the outside world. */
export function verbsOf(outside: () => Pick<ServeOptions, 'load' | 'configPath' | 'print'>): readonly Verb[] {
  return [
    verb({
      name: 'serve',
      usage: '[--demo] [--workers N]',
      does: 'Runs the gateway. `--demo`: with the built-in demonstration, without a configuration.',
      options: Serve,
      run: (_context, options) => runServe(options, outside()),
      code: (code) => code,
    }),
    checkVerb(codecs.textTypes),
    ...ACCOUNTS,
    ...KEYS,
    BALANCE,
    SPEND,
    SPEND_USERS,
    ...PRICES,
    ...LEDGER,
    RECONCILE,
    LOGS,
    ...VIDEOS,
    ...SECRETS,
    ...CHANNELS,
    ...CHANNEL_SERVICE,
    ...ADMIN_TOKENS,
    CONVERT,
    ...storeVerbs(PLACES),
  ];
}

/** A store that several machines share puts it right. */
const clock = adjustable(systemClock);
const mint = createMint(clock.now, randomBytes);

/** Where a command prints: whole lines, without their line ends. */
export interface Terminal {
  out(text: string): void;
  err(text: string): void;
  /** Text without a line end of its own. Settles when more may be written. */
  write(text: string): Promise<void>;
  /** Standard input. */
  readonly input: AsyncIterable<Uint8Array>;
  /** Asks a question that is answered with y or n. Undefined: nobody sits there. */
  readonly ask?: ((question: string) => Promise<boolean>) | undefined;
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
    ask: process.stdin.isTTY && stderr.isTTY ? askHere : undefined,
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
    // It may quote a file that others wrote.
    if (!isClosedPipe(error)) terminal.err(`mizu: ${errorText(error).split('\n').map(oneLine).join('\n')}`);
    return error instanceof UsageError ? 2 : 1;
  }
}

async function askHere(question: string): Promise<boolean> {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await lines.question(question)).trim());
  } finally {
    lines.close();
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
  let configPath: string | undefined;
  const verbs = verbsOf(() => ({ load: loadOptions(env), configPath, print: terminal.out }));
  const { words, values: given } = readArguments(argv, verbs);
  const { help: asked, version, ...values } = given;
  const [name] = words;
  const wantsHelp = asked === true || name === 'help';
  if (name === undefined && version === true && !wantsHelp) {
    terminal.out(manifest.version);
    return 0;
  }
  if (name === undefined || wantsHelp) {
    const family = name === 'help' ? words[1] : name;
    if (family !== undefined && family !== 'help' && !verbs.some((one) => familyOf(one) === family))
      throw unknownVerb(family, verbs);
    terminal.out(helpOf(verbs, family));
    return wantsHelp ? 0 : 2;
  }
  const load = loadOptions(env);
  if (values['config'] === '') throw new UsageError('--config is empty');
  const named = values['config'];
  configPath = typeof named === 'string' ? named : env['MIZU_CONFIG'] || undefined;
  const found = find(verbs, words);
  if (found === undefined) throw unknownVerb(name, verbs);
  const path = resolve(configPath ?? DEFAULT_CONFIG);
  return await runVerb(found, { ...values, version }, terminal, {
    config: () => loadConfig(path, load),
    changeConfig: (edit) => changeConfig(path, load, edit),
  });
}

const unknownVerb = (name: string, verbs: readonly Verb[]): UsageError =>
  new UsageError(`there is no verb ${name}: it is one of ${[...new Set(verbs.map(familyOf))].join(', ')}`);

/** `serve`, with what it gets of the outside world. */
function runServe(
  { demo = false, workers = 1 }: Static<typeof Serve>,
  outside: Pick<ServeOptions, 'load' | 'configPath' | 'print'>,
): Promise<number> {
  return serve({
    ...outside,
    demo,
    workers,
    cwd: process.cwd(),
    root: resolve(dirname(fileURLToPath(import.meta.url)), '../..'),
    version: manifest.version,
    codecs,
    clock,
    mint,
    random: Math.random,
    chargeFor,
    places: PLACES,
    openStore,
    onSignal(listener) {
      process.on('SIGHUP', () => listener('reload'));
      process.on('SIGTERM', () => listener('stop'));
      process.on('SIGUSR2', () => listener('renew'));
      process.on('SIGINT', () => {
        // Ctrl-C reaches the whole process group. A worker is stopped by its primary, and a second stop would cut its
        // connections.
        if (!isWorker) listener('stop');
      });
    },
    killAfter,
    onFault(listener) {
      process.on('unhandledRejection', (error) => listener('rejection', error));
      process.on('uncaughtException', (error) => listener('exception', error));
    },
  });
}

async function runVerb(
  found: { readonly verb: Verb; readonly args: readonly string[] },
  values: Typed['values'],
  terminal: Terminal,
  file: Pick<VerbContext, 'config' | 'changeConfig'>,
): Promise<number> {
  const interruption = new AbortController();
  const interrupt = (): void => interruption.abort(new RefusedError('interrupted'));
  let opened: Store | undefined;
  const { input, write, unread, out } = terminal;
  try {
    const context = {
      clock,
      mint,
      readFile: readNamedFile,
      ...file,
      async store() {
        opened ??= await openStore(file.config());
        return opened;
      },
      async confirm(sentence: string) {
        if (terminal.ask === undefined) throw new UsageError(`${sentence}: nobody can be asked here, so repeat it with --yes`);
        if (!(await terminal.ask(`${sentence}. Go on? [y/N] `))) throw new RefusedError('nothing was changed');
      },
      interrupted() {
        process.once('SIGINT', interrupt);
        return AbortSignal.any([interruption.signal, unread]);
      },
      input,
      write,
    };
    let isPrinted = false;
    const code = await perform(found, values, context, (text) => {
      isPrinted = true;
      out(text);
    });
    if (!isPrinted) return code;
    await terminal.written();
    // A result that could not be written (a new key, on a full disk) is a failure.
    unread.throwIfAborted();
    return code;
  } finally {
    await opened?.close();
    process.off('SIGINT', interrupt);
  }
}

/** `-5` is an amount and no option: a prefix hides it from the parser, and is removed afterwards. */
const HIDDEN = '\u0000';

function readArguments(argv: readonly string[], verbs: readonly Verb[]): Typed {
  const args = argv.map((arg) => (/^-[0-9.]/.test(arg) ? HIDDEN + arg : arg));
  const options = { ...optionsOfAll(verbs), help: { type: 'boolean', short: 'h' }, version: { type: 'boolean' } } as const;
  try {
    const { positionals, values, tokens } = parseArgs({ args, options, allowPositionals: true, tokens: true });
    const given = tokens.flatMap((token) => (token.kind === 'option' ? [token.name] : []));
    const twice = given.find((name, index) => given.indexOf(name) < index);
    if (twice !== undefined) throw new Error(`--${twice} is given twice`);
    const shown = (text: string): string => (text.startsWith(HIDDEN) ? text.slice(1) : text);
    return {
      words: positionals.map(shown),
      values: Object.fromEntries(
        Object.entries(values).flatMap(([name, value]): [string, string | boolean][] => {
          if (typeof value === 'string') return [[name, shown(value)]];
          return typeof value === 'boolean' ? [[name, value]] : [];
        }),
      ),
    };
  } catch (error) {
    throw new UsageError(`${error instanceof Error ? error.message : String(error)}\n\`mizu help VERB\` says what a verb takes`);
  }
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
    now: clock.now,
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
    clock: storeClock(clock),
    randomBytes,
    process: { host: processSpace(), pid: process.pid, isAlive },
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

/** Without a byte order mark, which editors and downloads on Windows put in front of JSON. */
function readNamedFile(path: string): string {
  try {
    return readFileSync(path, 'utf8').replace(/^\uFEFF/, '');
  } catch (error) {
    throw new RefusedError(`${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}
