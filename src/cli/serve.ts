/**
 * `mizu serve`: runs until SIGTERM or SIGINT, then drains; a second signal cuts. SIGHUP
 * and a changed file reload the configuration.
 */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Logger } from 'pino';
import { Type } from 'typebox';
import type { CodecSet } from '../codecs/codec-set.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../streams/clock.ts';
import type { Config } from '../http/config/config.ts';
import type { ConfigError } from '../http/config/config-error.ts';
import { parseConfig } from '../http/config/parse.ts';
import { changedAtStartOnly } from '../http/config/start-only.ts';
import { FileConfig, fixedConfig, type ConfigSource, type LoadOptions } from '../http/config/source.ts';
import { DEMO_STORE, demoConfig, demoGreeting, fundDemo } from './demonstration.ts';
import type { Gateway } from '../http/gateway.ts';
import { isLoopback } from '../http/request/ip-ranges.ts';
import type { Metrics } from '../http/operations/metrics.ts';
import { createLogger } from '../http/operations/logger.ts';
import { channelReport, healthReport } from '../http/operations/reports.ts';
import { type RunningGateway, startGateway } from '../http/start.ts';
import { beat } from '../http/workers/watchdog.ts';
import { answerPrimary, tellLastMetrics } from '../http/workers/worker-reports.ts';
import { isWorker, leavePrimary, primaryGone, runWorkers, type Signal, workerLink } from '../http/workers/workers.ts';
import type { AdminApiOptions } from '../http/admin/admin-api.ts';
import { type AdminParts, createAdminActions } from './admin.ts';
import { DRAINING, greetingOf, listensOn, placesOf, STOPPED } from './greeting.ts';
import { createConsoleSite, createSite } from './site.ts';
import type { StorePlaces } from './store.ts';
import { UsageError } from './verb.ts';
import { startWarmUp, type WarmUp } from './warm-up/warm-up.ts';

/** What may be typed behind `serve`. */
export const Serve = Type.Object(
  { demo: Type.Optional(Type.Boolean()), workers: Type.Optional(Type.Integer({ minimum: 1, maximum: 256 })) },
  { additionalProperties: false },
);

export interface ServeOptions {
  readonly load: LoadOptions;
  /** Given by `--config` or `MIZU_CONFIG`; absent: `mizu.config.json` where it exists. */
  readonly configPath: string | undefined;
  /** For backups. */
  readonly places: StorePlaces;
  readonly demo: boolean;
  /** 1: this process serves by itself. */
  readonly workers: number;
  readonly cwd: string;
  readonly root: string;
  readonly version: string;
  readonly codecs: CodecSet;
  readonly clock: Clock;
  readonly mint: (prefix: string) => string;
  readonly random: () => number;
  readonly chargeFor: Gateway['chargeFor'];
  readonly openStore: (config: Config, onProblem: StoreProblem) => Promise<Store>;
  readonly print: (text: string) => void;
  /** Calls the listener for every signal. */
  readonly onSignal: (listener: (signal: Signal) => void) => void;
  /** `killAfter` of `kill-after.ts`. */
  readonly killAfter: (ms: number, isStuck: () => boolean) => void;
  /** Calls the listener for every unhandled rejection and uncaught exception. */
  readonly onFault: (listener: (kind: 'rejection' | 'exception', error: unknown) => void) => void;
}

/** Called for a settlement that could not be written, and for every change of the store's health. */
export type StoreProblem = (problem: { readonly what: string; readonly error?: unknown }) => void;

export const DEFAULT_CONFIG = 'mizu.config.json';

/**
 * A process that has drained and is there so much later, and wrote no settlement meanwhile, waits for what never ends: a disk
 * that hangs, a lock whose holder was stopped. What was settled is in the settlement log by then, for the next start. Longer than
 * the tries to reach a database that is away.
 */
const STUCK_MS = 15_000;

/** Resolves with the exit code once everything is closed. */
export async function serve(options: ServeOptions): Promise<number> {
  const path = options.configPath ?? (existsSync(resolve(options.cwd, DEFAULT_CONFIG)) ? DEFAULT_CONFIG : undefined);
  const demo = options.demo || path === undefined;
  if (options.workers > 1 && demo) throw new UsageError('the demonstration runs in one process: --workers needs a configuration');
  if (demo && !options.demo) checkLoopback(options.load.host);
  return demo ? await serveDemo(options) : await serveFile(options, resolve(options.cwd, path ?? DEFAULT_CONFIG));
}

/** A missing configuration file must not open a gateway to a network. */
function checkLoopback(host: string | undefined): void {
  if (host === undefined || host === 'localhost' || isLoopback(host)) return;
  throw new UsageError(
    `there is no configuration, and the host ${host} is not this machine: give --config, or --demo if you mean it`,
  );
}

async function serveFile(options: ServeOptions, path: string): Promise<number> {
  const log = createLogger('info');
  if (options.workers > 1 && !isWorker) return await serveWorkers(options, path, log);
  try {
    return await serveHere(options, path, log);
  } finally {
    // Also where it never came to listen: nobody would replace a worker that stays, or say that none could start.
    leavePrimary();
  }
}

async function serveHere(options: ServeOptions, path: string, log: Logger): Promise<number> {
  const refused = (error: ConfigError): void =>
    log.error({ path, problems: error.problems }, 'the new configuration is refused; the old one stays');
  let metrics: Metrics | undefined;
  let atStart: Config | undefined;
  const source = new FileConfig(path, options.load, {
    onAccepted(config) {
      metrics?.configReload(true);
      log.info({ path, revision: config.revision }, 'configuration reloaded');
      const keys = atStart === undefined ? [] : changedAtStartOnly(atStart, config);
      if (keys.length > 0) log.warn({ keys }, 'these keys are read at start only: restart to apply them');
    },
    onRefused(error) {
      metrics?.configReload(false);
      refused(error);
    },
    onUnwatched: (error) =>
      log.warn({ path, err: error }, 'the configuration file cannot be watched: send SIGHUP after a change'),
  });
  atStart = source.current();
  log.level = atStart.log.level;
  source.startWatching();
  const orphaned = primaryGone();
  const problems = new StoreProblems(log);
  const store = await options.openStore(atStart, problems.tell);
  try {
    const running = await start(options, source, store, log, {
      readConfig: () => source.read(),
      reload: () => source.reload(),
    });
    metrics = running.gateway.metrics;
    problems.countIn(metrics);
    const { gateway } = running;
    if (isWorker) {
      answerPrimary({ registry: metrics.registry, channels: () => channelReport(gateway), health: () => healthReport(gateway) });
      beat();
    }
    const greeting = isWorker ? listensOn(source.current(), running.port) : greetingOf(source.current(), running);
    const openStore = (config: Config): Promise<Store> => options.openStore(config, () => undefined);
    const warmUp = startWarmUp({ ...options, openStore, gateway });
    return await untilStopped(options, { running, store, log, greeting, reload: () => source.reload(), orphaned, warmUp });
  } finally {
    source.close();
    await store.close();
    if (isWorker && metrics !== undefined) await tellLastMetrics(metrics);
  }
}

/** Of a file that somebody else tells about. */
const UNTOLD = { onAccepted: () => undefined, onRefused: () => undefined, onUnwatched: () => undefined };

/**
 * The primary follows the file for what the admin API shows of it, and opens the store only where that needs it. Each worker
 * follows the file itself, and tells about it.
 */
async function serveWorkers(options: ServeOptions, path: string, log: Logger): Promise<number> {
  const { workers: count, clock, mint, onSignal, print } = options;
  const source = new FileConfig(path, options.load, UNTOLD);
  const atStart = source.current();
  log.level = atStart.log.level;
  let opened: Promise<Store> | undefined;
  const store = (): Promise<Store> => {
    opened ??= options.openStore(atStart, new StoreProblems(log).tell).catch((error: unknown) => {
      opened = undefined;
      throw error;
    });
    return opened;
  };
  const parts = { store, config: () => source.current(), readConfig: () => source.read() };
  source.startWatching();
  try {
    const code = await runWorkers({
      ...{ count, operations: atStart.operations, clock, log, member: mint('limits_'), site: createConsoleSite() },
      silenceMs: () => source.current().workerSilenceMs,
      onServing: (port, operationsPort) => print(placesOf(source.current(), port, operationsPort)),
      onStopping: () => print(DRAINING),
      onSignal: (listener) =>
        onSignal((signal) => {
          if (signal === 'reload') source.reload();
          listener(signal);
        }),
      admin: (reports, reloadWorkers) =>
        adminOptions(options, log, {
          ...parts,
          reports,
          reload() {
            source.reload();
            reloadWorkers();
          },
        }),
    });
    if (code === 0) print(STOPPED);
    return code;
  } finally {
    source.close();
    await (await opened)?.close();
  }
}

type Parts = Pick<AdminParts, 'reports' | 'store' | 'config' | 'readConfig' | 'reload'>;

function adminOptions({ codecs, clock, mint, places }: ServeOptions, log: Logger, parts: Parts): AdminApiOptions {
  const actions = createAdminActions({ ...parts, clock, mint, places, textTypes: codecs.textTypes });
  return { actions, store: parts.store, isPrimary: () => parts.config().role === 'primary', clock, log, mint };
}

async function serveDemo(options: ServeOptions): Promise<number> {
  // Imported only here: a gateway with a configuration does not need it.
  const { startSimulator } = await import('../simulator/simulator.ts');
  // No journal: it would keep a thousand requests with their uploads, and nothing reads it.
  const simulator = await startSimulator({ docs: options.root, journal: 0 });
  try {
    const config = parseConfig(demoConfig(simulator.url, resolve(options.cwd, DEMO_STORE)), {
      ...options.load,
      path: resolve(options.cwd, DEFAULT_CONFIG),
      revision: 1,
      nowMs: options.clock.now(),
    });
    const log = createLogger('info');
    const store = await options.openStore(config, new StoreProblems(log).tell);
    try {
      await fundDemo(store);
      const running = await start(options, fixedConfig(config), store, log);
      const greeting = demoGreeting(config.listen.host, running.port);
      return await untilStopped(options, { running, store, log, greeting, reload: () => undefined });
    } finally {
      await store.close();
    }
  } finally {
    await simulator.close();
  }
}

/** What the store complains of is told at error, and lost settlements are counted: also those from before there was a counter. */
class StoreProblems {
  readonly #log: Logger;
  #lost = 0;
  #metrics: Pick<Metrics, 'settlementLost'> | undefined;

  constructor(log: Logger) {
    this.#log = log;
  }

  readonly tell: StoreProblem = ({ what, error }) => {
    this.#log.error({ what, err: error }, 'store');
    if (!what.startsWith('settlement_lost')) return;
    if (this.#metrics === undefined) this.#lost += 1;
    else this.#metrics.settlementLost();
  };

  countIn(metrics: Pick<Metrics, 'settlementLost'>): void {
    this.#metrics = metrics;
    for (; this.#lost > 0; this.#lost -= 1) metrics.settlementLost();
  }
}

async function start(
  options: ServeOptions,
  config: ConfigSource,
  store: Store,
  log: Logger,
  file?: Pick<AdminParts, 'readConfig' | 'reload'>,
): Promise<RunningGateway> {
  const { codecs, clock, mint, random, chargeFor, version } = options;
  const worker = workerLink(clock);
  // Before the gateway listens, so that no request waits for it.
  const site = createSite(config);
  site.prepare();
  return await startGateway({
    config,
    store,
    codecs,
    clock,
    mint,
    random,
    chargeFor,
    log,
    processFigures: true,
    site,
    version,
    operations: !isWorker,
    ...(worker === undefined ? {} : { worker }),
    ...(file === undefined
      ? {}
      : {
          consoleSite: createConsoleSite(),
          admin: (reports) =>
            adminOptions(options, log, { ...file, reports, store: () => Promise.resolve(store), config: () => config.current() }),
        }),
  });
}

function killWhenStuck({ killAfter }: ServeOptions, { settlements }: Store, log: Logger): void {
  let before = settlements.pending;
  killAfter(STUCK_MS, () => {
    const { pending } = settlements;
    const isStuck = pending >= before;
    before = pending;
    if (isStuck) log.fatal({ pending }, 'the store does not close: this process is killed, what waits is in the settlement log');
    return isStuck;
  });
}

interface Serving {
  readonly running: RunningGateway;
  readonly store: Store;
  readonly log: Logger;
  readonly greeting: string;
  readonly reload: () => void;
  /** In a worker: settles when the primary process has died. */
  readonly orphaned?: Promise<void>;
  readonly warmUp?: WarmUp;
}

/**
 * Resolves with the exit code. An unhandled rejection belongs to one request: it is logged and the others go on. An uncaught
 * exception leaves an unknown state: the gateway drains, and a supervisor starts a new process.
 */
async function untilStopped(
  options: ServeOptions,
  { running, store, log, greeting, reload, orphaned, warmUp }: Serving,
): Promise<number> {
  return await new Promise<number>((resolve, reject) => {
    let stopping = false;
    const stop = (code: number): void => {
      if (stopping) return;
      stopping = true;
      if (!isWorker) options.print(DRAINING);
      const drained = (): void => killWhenStuck(options, store, log);
      Promise.all([warmUp?.stop(), running.stop(drained)]).then(() => {
        if (!isWorker) options.print(STOPPED);
        resolve(code);
      }, reject);
    };
    options.onFault((kind, error) => {
      log.error({ err: error, kind }, 'unhandled error');
      if (kind === 'exception') stop(1);
    });
    orphaned?.then(() => {
      log.error('the primary process ended: draining');
      stop(1);
    }, reject);
    options.onSignal((signal) => {
      if (signal === 'renew') log.warn('SIGUSR2 renews workers, and this gateway runs without --workers');
      else if (signal === 'reload') reload();
      else if (stopping) running.cut();
      else stop(0);
    });
    // Printed after the listeners are set: a supervisor that waits for it may send a signal at once.
    options.print(greeting);
  });
}
