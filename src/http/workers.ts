/**
 * `serve --workers N`: the primary process starts N workers that share the port, replaces one that dies, and sums their metrics on the
 * operations port. Balances, keys and windows are shared through the store, the response history by asking its owner; affinity, circuits and reservations are a worker's own.
 */
import cluster, { type Worker } from 'node:cluster';
import { createServer } from 'node:http';
import type { Logger } from 'pino';
import { AggregatorRegistry, type Registry } from 'prom-client';
import type { JsonObject } from '../codecs/canonical/json.ts';
import type { Clock } from '../streams/clock.ts';
import type { Config } from './config/config.ts';
import { passOn, type Post } from './history/workers.ts';
import { openOperations } from './operations.ts';
import { pathOfTarget } from './route-table.ts';

export const isWorker = cluster.isWorker;

/** In a worker: answers the primary's questions for metrics, and for the state of its Channels. */
export function answerPrimary(registry: Registry, channels: () => readonly object[]): void {
  AggregatorRegistry.setRegistries([registry]);
  new AggregatorRegistry();
  process.on('message', (message: unknown) => {
    const ask = askOf(message);
    if (ask !== undefined) process.send?.({ [ANSWER]: ask, channels: channels() });
  });
}

const ASK = 'mizu:ask-channels';
const ANSWER = 'mizu:channels';
const ASK_MS = 2_000;

function askOf(message: unknown): number | undefined {
  const ask = typeof message === 'object' && message !== null && ASK in message ? message[ASK] : undefined;
  return typeof ask === 'number' ? ask : undefined;
}

/** In a worker: its number, and its way to the others through the primary. Undefined in a process of its own. */
export function workerPost(): { readonly worker: number; readonly post: Post } | undefined {
  const { worker } = cluster;
  if (worker === undefined) return undefined;
  return {
    worker: worker.id % 65_536,
    post: {
      send(message) {
        if (worker.isConnected()) worker.send(message);
      },
      onMessage: (listener) => void worker.on('message', listener),
    },
  };
}

/** In a worker that has closed everything: lets go of the primary, whose channel would keep the process alive. */
export function leavePrimary(): void {
  if (cluster.worker?.isConnected() === true) cluster.worker.disconnect();
}

/**
 * In a worker: resolves when the primary died, and takes the ending over. Node would exit on the spot, and that can wait for ever for a
 * thread of the store that holds its write lock, which the next gateway would then wait for as well.
 */
export function primaryGone(): Promise<void> {
  const { worker } = cluster;
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
  readonly clock: Clock;
  readonly log: Logger;
  readonly onSignal: (listener: (signal: Signal) => void) => void;
}

/** A worker that dies sooner than this is not replaced at once: its reason will not have gone. */
const RESTART_PAUSE_MS = 1_000;

/** Resolves with the exit code when every worker has ended after a stop, or when the first ones could not start. */
export async function runWorkers(options: WorkersOptions): Promise<number> {
  const stopOperations = await serveOperations(options, () => Object.keys(cluster.workers ?? {}).length);
  try {
    return await new WorkerGroup(options).run();
  } finally {
    stopOperations();
  }
}

class WorkerGroup {
  readonly #options: WorkersOptions;
  readonly #ended = Promise.withResolvers<number>();
  /**
   * `starting`: none has listened yet. What keeps the first ones from it (a port that is taken, a store that does not open) would keep all
   * others.
   */
  #phase: 'starting' | 'serving' | 'stopping' = 'starting';
  #exitCode = 0;
  #renewing = false;
  /** A successor that does not listen yet: it is nobody's loss when it ends. */
  #candidate: Worker | undefined;
  /** Workers whose successors are there already. */
  readonly #retired = new Set<Worker>();

  constructor(options: WorkersOptions) {
    this.#options = options;
  }

  run(): Promise<number> {
    const { count, log, onSignal } = this.#options;
    cluster.on('listening', () => {
      if (this.#phase === 'starting') this.#phase = 'serving';
    });
    cluster.on('exit', (worker, code, signal) => this.#exited(worker, code, signal));
    cluster.on('message', (worker, message: unknown) => passOn(message, worker.id, { workers: workerIds, sendTo }));
    // The channel of a worker that has just died breaks under the next word to it, before its end is noticed.
    cluster.on('fork', (worker) =>
      worker.on('error', (error: unknown) => log.warn({ pid: worker.process.pid, err: error }, 'a worker could not be reached')),
    );
    onSignal((signal) => this.#signalled(signal));
    for (let index = 0; index < count; index++) cluster.fork();
    return this.#ended.promise;
  }

  /** One that has ended is on the cluster's list until its channel is closed, too. */
  #alive(): Worker[] {
    return Object.values(cluster.workers ?? {})
      .filter((worker) => worker !== undefined)
      .filter((worker) => !worker.isDead());
  }

  /** A second stop reaches the workers as their second one, and they cut. */
  #tell(signal: NodeJS.Signals): void {
    for (const worker of this.#alive()) worker.process.kill(signal);
  }

  #signalled(signal: Signal): void {
    if (signal === 'renew') {
      this.#renew().catch((error: unknown) => this.#options.log.error({ err: error }, 'workers could not be renewed'));
      return;
    }
    if (signal === 'stop') this.#phase = 'stopping';
    this.#tell(signal === 'reload' ? 'SIGHUP' : 'SIGTERM');
    this.#endWithLast();
  }

  #exited(worker: Worker, code: number, signal: string): void {
    const isExpected = this.#retired.delete(worker) || this.#candidate === worker;
    const facts = { pid: worker.process.pid, code, signal };
    if (!isExpected && this.#phase === 'serving') this.#replace(facts);
    if (!isExpected && this.#phase === 'starting') this.#giveUp(facts);
    this.#endWithLast();
  }

  #replace(ended: object): void {
    const { log, clock } = this.#options;
    log.error(ended, 'a worker ended; another one starts');
    clock.setTimeout(() => {
      if (this.#phase !== 'stopping') cluster.fork();
    }, RESTART_PAUSE_MS);
  }

  #giveUp({ code, ...ended }: { readonly code: number }): void {
    this.#options.log.error({ ...ended, code }, 'no worker could start');
    this.#exitCode = code || 1;
    this.#phase = 'stopping';
    this.#tell('SIGTERM');
  }

  #endWithLast(): void {
    if (this.#phase === 'stopping' && this.#alive().length === 0) this.#ended.resolve(this.#exitCode);
  }

  /** One after another; a renewal that is asked for meanwhile is this one. */
  async #renew(): Promise<void> {
    if (this.#renewing) return;
    this.#renewing = true;
    try {
      for (const worker of this.#alive()) {
        if (this.#phase === 'stopping' || worker.isDead()) continue;
        if (await this.#succeed(worker)) continue;
        // The code or the configuration on disk does not start: those that serve go on serving.
        this.#options.log.error('a new worker did not start; the old ones stay');
        return;
      }
      this.#options.log.info('workers renewed');
    } finally {
      this.#renewing = false;
    }
  }

  /** Resolves when the successor listens and the worker has ended; with false, and the worker stays, where the successor ended first. */
  async #succeed(worker: Worker): Promise<boolean> {
    const successor = cluster.fork();
    this.#candidate = successor;
    const listens = await Promise.race([
      heard(successor, 'listening').then(() => true),
      heard(successor, 'exit').then(() => false),
    ]);
    this.#candidate = undefined;
    if (!listens) return false;
    this.#retired.add(worker);
    worker.process.kill('SIGTERM');
    if (!worker.isDead()) await heard(worker, 'exit');
    return true;
  }
}

/** Not the `once` of Node's events, which a broken channel would end. */
function heard(worker: Worker, event: 'listening' | 'exit'): Promise<void> {
  return new Promise((resolve) => worker.once(event, () => resolve()));
}

function workerIds(): readonly number[] {
  return Object.keys(cluster.workers ?? {}).map(Number);
}

function sendTo(id: number, message: JsonObject): boolean {
  const worker = cluster.workers?.[id];
  if (worker === undefined || !worker.isConnected()) return false;
  worker.send(message);
  return true;
}

let asked = 0;

/** What each worker says of its Channels: circuits are a worker's own. One that says nothing in time is left out. */
async function askChannels(clock: Clock): Promise<object[]> {
  const ask = ++asked;
  const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
  const reports = workers.map(
    (worker) =>
      new Promise<object | undefined>((resolve) => {
        const finish = (report?: object): void => {
          worker.off('message', onMessage);
          timer.cancel();
          resolve(report);
        };
        const onMessage = (message: unknown): void => {
          if (typeof message !== 'object' || message === null || !(ANSWER in message) || message[ANSWER] !== ask) return;
          finish({ pid: worker.process.pid, ...('channels' in message ? { channels: message.channels } : {}) });
        };
        const timer = clock.setTimeout(() => finish(), ASK_MS);
        worker.on('message', onMessage);
        worker.send({ [ASK]: ask }, (error) => {
          if (error !== null) finish();
        });
      }),
  );
  return (await Promise.all(reports)).filter((report) => report !== undefined);
}

async function serveOperations(options: WorkersOptions, workers: () => number): Promise<() => void> {
  const { operations } = options;
  if (operations === undefined) return () => undefined;
  const aggregator = new AggregatorRegistry();
  const server = createServer((request, response) => {
    const path = pathOfTarget(request.url ?? '/');
    if (path === '/healthz') {
      const ready = workers() >= options.count;
      response.writeHead(ready ? 200 : 503, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ status: ready ? 'ok' : 'unready', workers: workers() }));
    } else if (path === '/channels') {
      void askChannels(options.clock).then((reports) => {
        response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-store' });
        response.end(JSON.stringify({ workers: reports }));
      });
    } else if (path === '/metrics') {
      aggregator.clusterMetrics().then(
        (text) => response.writeHead(200, { 'content-type': aggregator.contentType }).end(text),
        (error: unknown) => {
          options.log.error({ err: error }, 'metrics could not be summed');
          response.writeHead(503).end();
        },
      );
    } else {
      response.writeHead(404).end();
    }
  });
  const listen = (host: string, port: number): Promise<void> =>
    new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, host, resolve);
    });
  await openOperations(operations, listen, options.log);
  return () => {
    server.close();
    server.closeAllConnections();
  };
}
