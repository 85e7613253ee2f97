/**
 * `serve --workers N`: the primary process starts N workers that share the port, replaces one that dies, kills one that hangs,
 * and sums their metrics on the operations port. Balances, keys and windows are shared through the store, and the response
 * history by asking the worker that keeps it. Affinity, circuits and reservations are a worker's own.
 */
import cluster, { type Worker } from 'node:cluster';
import type { Logger } from 'pino';
import type { Clock } from '../../streams/clock.ts';
import { type AdminOf, createAdminApi } from '../admin/admin-api.ts';
import type { Config } from '../config/config.ts';
import { routeMessage, type WorkerLink } from '../history/workers-memory.ts';
import type { LimitCounts } from '../../store/limit-counts.ts';
import { LimitBuckets } from '../limits/buckets.ts';
import { LimitExchange, startLimitExchange } from '../limits/limit-exchange.ts';
import { primaryLimits } from '../limits/workers-limits.ts';
import { createOperationsServer, openOperations } from '../operations/operations.ts';
import type { Site } from '../server/site.ts';
import { answerForLost } from './full-worker.ts';
import { passOnWhenGone } from './under-way.ts';
import { Watchdog } from './watchdog.ts';
import { workerReports } from './worker-reports.ts';

export const isWorker = cluster.isWorker;

/** In a worker: its number and its link to the others through the primary. Undefined in any other process. */
export function workerLink(clock: Clock): { readonly worker: number; readonly link: WorkerLink } | undefined {
  const { worker } = cluster;
  if (worker === undefined) return undefined;
  answerForLost(worker, clock);
  return {
    worker: worker.id % 65_536,
    link: {
      send(message) {
        if (worker.isConnected()) worker.send(message);
      },
      onMessage: (listener) => void worker.on('message', listener),
    },
  };
}

/** Called in a worker that has closed everything: the IPC channel to the primary would keep the process alive. */
export function leavePrimary(): void {
  if (cluster.worker?.isConnected() === true) cluster.worker.disconnect();
}

/**
 * In a worker: resolves when the primary has died, and keeps Node from exiting at once. Such an exit can hang on a thread of the
 * store that holds the write lock, and the next gateway would then wait for that lock as well.
 */
export function primaryGone(): Promise<void> {
  const { worker } = cluster;
  // The next message, perhaps one of Node's own, fails before the disconnect is noticed.
  worker?.on('error', () => undefined);
  return new Promise((resolve) => {
    worker?.once('disconnect', () => {
      if (worker.exitedAfterDisconnect) return;
      worker.exitedAfterDisconnect = true;
      resolve();
    });
  });
}

/** `renew`: new workers, one after another, with the code that is on disk now. */
export type Signal = 'reload' | 'stop' | 'renew';

export interface WorkersOptions {
  readonly count: number;
  readonly operations: Config['operations'];
  /** The admin API of the operations port. Absent: none. */
  readonly admin?: AdminOf;
  readonly site?: Site;
  /** The longest that a worker may say nothing. 0: for ever. */
  readonly silenceMs: () => number;
  readonly clock: Clock;
  readonly log: Logger;
  /** Another one for every process that ever counted limits. */
  readonly member: string;
  readonly onSignal: (listener: (signal: Signal) => void) => void;
  /** Called once, when the first worker listens, with the ports of clients and of operators; undefined: operators have none. */
  readonly onServing: (port: number, operationsPort: number | undefined) => void;
  /** Called once, when the group stops after it has served. */
  readonly onStopping: () => void;
}

/** The pause before a dead worker is replaced: what killed it may still be there. */
const RESTART_PAUSE_MS = 1_000;

/** A start may take long, as with a migration. After this much of it an operator is told, and may end it. */
const LATE_MS = 60_000;

const NOT_STARTED = 'a worker could not be started';

/** Resolves with the exit code when every worker has ended after a stop, or when the first ones could not start. */
export async function runWorkers(options: WorkersOptions): Promise<number> {
  const group = new WorkerGroup(options);
  const { operations, count, clock, log } = options;
  const reports = workerReports(group, count, clock);
  const admin = options.admin === undefined ? undefined : createAdminApi(options.admin(reports, () => group.reload()));
  const server = createOperationsServer(reports, log, { tls: operations?.tls, admin, site: options.site });
  const listen = (host: string, port: number): Promise<number> => server.listen(host, port);
  const operationsPort = operations === undefined ? undefined : await openOperations(operations, listen, log);
  try {
    return await group.run(operationsPort);
  } finally {
    if (operations !== undefined) await server.close();
  }
}

class WorkerGroup {
  readonly #options: WorkersOptions;
  readonly #ended = Promise.withResolvers<number>();
  /**
   * `starting`: no worker listens yet. What stops the first ones (a port in use, a store that does not open) would stop any
   * replacement.
   */
  #phase: 'starting' | 'serving' | 'stopping' = 'starting';
  #exitCode = 0;
  #renewing = false;
  /** The hand-over in progress: neither the exit of its successor nor that of its predecessor needs a replacement. */
  #succession: { readonly from: Worker; readonly to: Worker; isLate: boolean } | undefined;
  /** Workers whose successors already serve. */
  readonly #retired = new Set<Worker>();
  /** Workers that have listened: one that is starting has nothing to report. */
  readonly #listening = new WeakSet<Worker>();
  /** Workers that are to read the configuration again once they listen: while Node itself starts, a SIGHUP would end them. */
  readonly #unread = new WeakSet<Worker>();

  constructor(options: WorkersOptions) {
    this.#options = options;
  }

  run(operationsPort: number | undefined): Promise<number> {
    const { count, log, onSignal } = this.#options;
    cluster.on('listening', (worker, { port }) => {
      this.#listening.add(worker);
      if (this.#unread.delete(worker)) worker.process.kill('SIGHUP');
      if (this.#phase !== 'starting') return;
      this.#phase = 'serving';
      this.#options.onServing(port, operationsPort);
    });
    cluster.on('exit', (worker, code, signal) => this.#exited(worker, code, signal));
    const { clock, member } = this.#options;
    const buckets = new LimitBuckets();
    const limits = primaryLimits(buckets, clock, sendTo);
    cluster.on('message', (worker, message: unknown) => {
      routeMessage(message, worker.id, { workers: workerIds, sendTo });
      limits.hear(message, worker.id);
    });
    cluster.on('exit', (worker) => limits.workerGone(worker.id));
    const by: LimitCounts['exchange'] = async (me, counts) => {
      const worker = this.serving()[0]?.id;
      // The last one may be gone a moment before the group is.
      return worker === undefined && this.#phase === 'stopping' ? [] : await limits.exchangeBy(worker, me, counts);
    };
    const exchange = new LimitExchange(buckets, member, by, clock);
    // A worker must be there to be asked.
    cluster.once('listening', () => {
      const running = startLimitExchange(exchange, clock, log);
      void this.#ended.promise.then(() => running.stop());
    });
    this.#watch();
    onSignal((signal) => this.#signalled(signal));
    for (let index = 0; index < count && this.#phase === 'starting'; index++) {
      if (this.#fork() === undefined) this.#failToStart({ code: 1 });
    }
    this.#resolveWhenAllEnded();
    return this.#ended.promise;
  }

  /** Undefined where the system makes no process: there are too many, no memory or descriptor is left, or the program is gone. */
  #fork(): Worker | undefined {
    const { log } = this.#options;
    try {
      const worker = cluster.fork();
      const { pid } = worker.process;
      // Without a pid it is the reason, and nothing else will come of this worker. Otherwise the next message to one that has
      // just died fails before its exit is noticed.
      worker.on('error', (error: unknown) => {
        if (pid === undefined) log.error({ err: error }, NOT_STARTED);
        else log.warn({ pid, err: error }, 'a worker could not be reached');
      });
      if (pid !== undefined) passOnWhenGone(worker, () => this.serving().some((other) => other !== worker));
      return pid === undefined ? undefined : worker;
    } catch (error) {
      log.error({ err: error }, NOT_STARTED);
      return undefined;
    }
  }

  /** Also while the group stops: a worker that hangs hears no signal. */
  #watch(): void {
    const watchdog = new Watchdog(this.#options);
    cluster.on('listening', (worker) => watchdog.begin(worker));
    cluster.on('message', (worker) => watchdog.heard(worker));
    cluster.on('exit', (worker) => watchdog.ended(worker));
    const watching = watchdog.start();
    void this.#ended.promise.then(() => watching.stop());
  }

  /** The cluster lists a dead worker until its channel is closed, and for a while one that never lived. */
  #alive(): Worker[] {
    return Object.values(cluster.workers ?? {})
      .filter((worker) => worker !== undefined)
      .filter((worker) => worker.process.pid !== undefined && !worker.isDead());
  }

  /** The workers that serve, and those that drain. */
  reporting(): Worker[] {
    return this.#alive().filter((worker) => this.#listening.has(worker));
  }

  onFork(listener: (worker: Worker) => void): void {
    cluster.on('fork', listener);
  }

  onExit(listener: (worker: Worker) => void): void {
    cluster.on('exit', listener);
  }

  serving(): Worker[] {
    return this.reporting().filter((worker) => !this.#retired.has(worker));
  }

  /** Every worker reads the configuration again. */
  reload(): void {
    for (const worker of this.#alive()) {
      if (this.#listening.has(worker)) worker.process.kill('SIGHUP');
      else this.#unread.add(worker);
    }
  }

  /** A second stop is the workers' second one as well, and they cut their connections. */
  #signalAll(signal: NodeJS.Signals): void {
    for (const worker of this.#alive()) worker.process.kill(signal);
  }

  #signalled(signal: Signal): void {
    if (signal === 'renew') {
      if (this.#phase === 'stopping') return;
      this.#renew().catch((error: unknown) => this.#options.log.error({ err: error }, 'workers could not be renewed'));
      return;
    }
    if (signal === 'stop') {
      if (this.#phase === 'serving') this.#options.onStopping();
      this.#phase = 'stopping';
    }
    if (signal === 'reload') this.reload();
    else this.#signalAll('SIGTERM');
    this.#resolveWhenAllEnded();
  }

  #exited(worker: Worker, code: number, signal: string): void {
    const isExpected = this.#retired.delete(worker) || this.#succession?.to === worker;
    const facts = { pid: worker.process.pid, code, signal };
    if (!isExpected && this.#phase === 'serving') {
      if (this.#succession?.from === worker) this.#options.log.error(facts, 'a worker exited while its successor was starting');
      else this.#replace(facts);
    }
    if (!isExpected && this.#phase === 'starting') this.#failToStart(facts);
    this.#resolveWhenAllEnded();
  }

  #replace(ended: object): void {
    this.#options.log.error(ended, 'a worker exited; starting another');
    this.#startLater();
  }

  #startLater(): void {
    this.#options.clock.setTimeout(() => {
      if (this.#phase !== 'stopping' && this.#fork() === undefined) this.#startLater();
    }, RESTART_PAUSE_MS);
  }

  #failToStart({ code, ...ended }: { readonly code: number }): void {
    this.#options.log.error({ ...ended, code }, 'no worker could start');
    this.#exitCode = code || 1;
    this.#phase = 'stopping';
    this.#signalAll('SIGTERM');
  }

  #resolveWhenAllEnded(): void {
    if (this.#phase === 'stopping' && this.#alive().length === 0) this.#ended.resolve(this.#exitCode);
  }

  /** Replaces the workers one after another. A renewal that is requested meanwhile only ends a successor that is late. */
  async #renew(): Promise<void> {
    if (this.#renewing) {
      // Its event loop may stand still.
      if (this.#succession?.isLate === true) this.#succession.to.process.kill('SIGKILL');
      return;
    }
    this.#renewing = true;
    try {
      for (const worker of this.#alive()) {
        // It may have died while others were renewed.
        if (worker.isDead()) continue;
        const replaced = await this.#handOver(worker);
        // A stop also ends successors.
        if (this.#phase === 'stopping') return;
        if (replaced) continue;
        // The code or the configuration on disk does not start: the old workers go on.
        this.#options.log.error('a new worker did not start; the old ones stay');
        return;
      }
      this.#options.log.info('workers renewed');
    } finally {
      this.#renewing = false;
    }
  }

  /**
   * Resolves when the successor listens and the worker has exited; with false, and the worker stays, where the successor exited
   * first, or never came to be.
   */
  async #handOver(worker: Worker): Promise<boolean> {
    const successor = this.#fork();
    if (successor === undefined) return false;
    const succession = { from: worker, to: successor, isLate: false };
    this.#succession = succession;
    const { clock, log } = this.#options;
    const late = clock.setTimeout(() => {
      succession.isLate = true;
      log.error(
        { pid: successor.process.pid },
        'a new worker does not listen yet: a further SIGUSR2 ends it, and the old ones stay',
      );
    }, LATE_MS);
    const listens = await Promise.race([
      nextEvent(successor, 'listening').then(() => true),
      nextEvent(successor, 'exit').then(() => false),
    ]);
    late.cancel();
    this.#succession = undefined;
    if (worker.isDead()) {
      if (!listens && this.#phase === 'serving') this.#replace({ pid: successor.process.pid });
      return listens;
    }
    if (!listens) return false;
    this.#retired.add(worker);
    worker.process.kill('SIGTERM');
    await nextEvent(worker, 'exit');
    return true;
  }
}

/** Not `once` of `node:events`, which rejects on the `error` event of a broken channel. */
function nextEvent(worker: Worker, event: 'listening' | 'exit'): Promise<void> {
  return new Promise((resolve) => worker.once(event, () => resolve()));
}

function workerIds(): readonly number[] {
  return Object.keys(cluster.workers ?? {}).map(Number);
}

function sendTo(id: number, message: object): boolean {
  const worker = cluster.workers?.[id];
  if (worker === undefined || !worker.isConnected()) return false;
  worker.send(message);
  return true;
}
