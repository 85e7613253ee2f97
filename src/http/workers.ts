/**
 * `serve --workers N`: the primary process starts N workers that share the port, replaces one that dies, and sums their metrics on the
 * operations port. Balances, keys and windows are shared through the store; history, affinity, circuits and reservations are a worker's own.
 */
import cluster, { type Worker } from 'node:cluster';
import { createServer } from 'node:http';
import type { Logger } from 'pino';
import { AggregatorRegistry, type Registry } from 'prom-client';
import type { Clock } from '../streams/clock.ts';
import { pathOfTarget } from './route-table.ts';

export const isWorker = cluster.isWorker;

/** In a worker: answers the primary's question for metrics. */
export function shareMetrics(registry: Registry): void {
  AggregatorRegistry.setRegistries([registry]);
  new AggregatorRegistry();
}

/** In a worker that has closed everything: lets go of the primary, whose channel would keep the process alive. */
export function leavePrimary(): void {
  cluster.worker?.disconnect();
}

export interface WorkersOptions {
  readonly count: number;
  readonly operations: { readonly host: string; readonly port: number } | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  readonly onSignal: (listener: (signal: 'reload' | 'stop') => void) => void;
}

/** A worker that dies sooner than this is not replaced at once: its reason will not have gone. */
const RESTART_PAUSE_MS = 1_000;

/** Resolves with the exit code when every worker has ended after a stop. */
export async function runWorkers(options: WorkersOptions): Promise<number> {
  const { count, log, clock } = options;
  let stopping = false;
  const stopOperations = await serveOperations(options, () => Object.keys(cluster.workers ?? {}).length);
  return await new Promise<number>((resolve) => {
    const alive = (): Worker[] => Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
    cluster.on('exit', (worker, code, signal) => {
      if (!stopping) {
        log.error({ pid: worker.process.pid, code, signal }, 'a worker ended; another one starts');
        clock.setTimeout(() => {
          if (!stopping) cluster.fork();
        }, RESTART_PAUSE_MS);
      } else if (alive().length === 0) {
        stopOperations();
        resolve(0);
      }
    });
    options.onSignal((signal) => {
      if (signal === 'stop') stopping = true;
      // A second stop reaches the workers as their second one, and they cut.
      for (const worker of alive()) worker.process.kill(signal === 'reload' ? 'SIGHUP' : 'SIGTERM');
      if (stopping && alive().length === 0) resolve(0);
    });
    for (let index = 0; index < count; index++) cluster.fork();
  });
}

async function serveOperations(options: WorkersOptions, workers: () => number): Promise<() => void> {
  const { operations } = options;
  if (operations === undefined) return () => undefined;
  const aggregator = new AggregatorRegistry();
  const server = createServer((request, response) => {
    const path = pathOfTarget(request.url ?? '/');
    if (path === '/healthz') {
      const ready = workers() === options.count;
      response.writeHead(ready ? 200 : 503, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ status: ready ? 'ok' : 'unready', workers: workers() }));
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
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(operations.port, operations.host, resolve);
  });
  return () => {
    server.close();
    server.closeAllConnections();
  };
}
