/**
 * `serve --workers N`: the primary process starts N workers that share the port, replaces one that dies, and sums their metrics on the
 * operations port. Balances, keys and windows are shared through the store, the response history by asking its owner; affinity, circuits and reservations are a worker's own.
 */
import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
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
  const { count, log, clock } = options;
  let stopping = false;
  let exitCode = 0;
  /** Set once a worker has listened: what keeps the first ones from it (a port that is taken, a store that does not open) would keep all others. */
  let served = false;
  let renewing = false;
  /** A successor that does not listen yet: it is nobody's loss when it ends. */
  let candidate: Worker | undefined;
  /** Workers whose successors are there already. */
  const retired = new Set<Worker>();
  const renew = async (): Promise<void> => {
    if (renewing) return;
    renewing = true;
    const old = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
    for (const worker of old) {
      if (stopping || worker.isDead()) continue;
      const successor = cluster.fork();
      candidate = successor;
      const listens = await Promise.race([
        once(successor, 'listening').then(() => true),
        once(successor, 'exit').then(() => false),
      ]);
      candidate = undefined;
      if (!listens) {
        // The code or the configuration on disk does not start: those that serve go on serving.
        log.error('a new worker did not start; the old ones stay');
        renewing = false;
        return;
      }
      retired.add(worker);
      worker.process.kill('SIGTERM');
      if (!worker.isDead()) await once(worker, 'exit');
    }
    renewing = false;
    log.info('workers renewed');
  };
  const stopOperations = await serveOperations(options, () => Object.keys(cluster.workers ?? {}).length);
  return await new Promise<number>((resolve) => {
    // One that has ended is on the list until its channel is closed, too.
    const alive = (): Worker[] =>
      Object.values(cluster.workers ?? {}).flatMap((worker) => (worker === undefined || worker.isDead() ? [] : [worker]));
    const endWithLast = (): void => {
      if (!stopping || alive().length > 0) return;
      stopOperations();
      resolve(exitCode);
    };
    // A second stop reaches the workers as their second one, and they cut.
    const tell = (signal: NodeJS.Signals): void => {
      for (const worker of alive()) worker.process.kill(signal);
    };
    cluster.on('listening', () => {
      served = true;
    });
    cluster.on('exit', (worker, code, signal) => {
      const expected = retired.delete(worker) || candidate === worker;
      if (stopping) return endWithLast();
      if (expected) return;
      if (served) {
        log.error({ pid: worker.process.pid, code, signal }, 'a worker ended; another one starts');
        clock.setTimeout(() => {
          if (!stopping) cluster.fork();
        }, RESTART_PAUSE_MS);
        return;
      }
      log.error({ pid: worker.process.pid, code, signal }, 'no worker could start');
      exitCode = code || 1;
      stopping = true;
      tell('SIGTERM');
      endWithLast();
    });
    options.onSignal((signal) => {
      if (signal === 'renew') {
        renew().catch((error: unknown) => log.error({ err: error }, 'workers could not be renewed'));
        return;
      }
      if (signal === 'stop') stopping = true;
      tell(signal === 'reload' ? 'SIGHUP' : 'SIGTERM');
      endWithLast();
    });
    cluster.on('message', (worker, message: unknown) => passOn(message, worker.id, sendTo));
    // The channel of a worker that has just died breaks under the next word to it, before its end is noticed.
    cluster.on('fork', (worker) =>
      worker.on('error', (error: unknown) => log.warn({ pid: worker.process.pid, err: error }, 'a worker could not be reached')),
    );
    for (let index = 0; index < count; index++) cluster.fork();
  });
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
