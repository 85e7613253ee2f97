/**
 * The operator's listener on a port of its own: `/metrics`, `/healthz` and `/channels`, which ask nobody who he is, so it is
 * never the public port; the admin API, which does; and the pages of the console, which hold no data.
 */
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { isIPv6 } from 'node:net';
import type { Logger } from 'pino';
import { LoopTurns } from '../../streams/loop-turns.ts';
import type { AdminApi } from '../admin/admin-api.ts';
import type { Config } from '../config/config.ts';
import { isLoopback } from '../request/ip-ranges.ts';
import { listenOn } from '../server/listen.ts';
import { RequestLines } from '../server/request-lines.ts';
import { pathOfTarget } from '../server/route-table.ts';
import { SAFE_HEADERS } from '../server/safe-headers.ts';
import type { Site } from '../server/site.ts';
import type { OperatorReports } from './reports.ts';

export interface OperationsServer {
  /** Resolves with the port. */
  listen(host: string, port: number): Promise<number>;
  close(): Promise<void>;
}

/** What stands beside the reports. */
export interface OperationsParts {
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
  readonly admin?: AdminApi | undefined;
  /** The console's pages. */
  readonly site?: Site | undefined;
  /** Those of the clients' requests, where they are served in the same process. */
  readonly turns?: LoopTurns | undefined;
  readonly bounds?: Bounds;
}

/** What strangers may hold of this port: it asks nobody who he is, and takes its descriptors from those of the clients. */
interface Bounds {
  readonly connections: number;
  /** A connection on which nothing is taken and nothing comes for this long is cut; behind half an answer, after twice that. */
  readonly silentMs: number;
}

/** Far more than scrapes, probes and pages need; and more time than any action takes, whose answer comes all at once. */
const BOUNDS: Bounds = { connections: 512, silentMs: 120_000 };
const HEADERS_TIMEOUT_MS = 20_000;
/** Bodies have half of that; this ends what drips on behind the answer. */
const REQUEST_TIMEOUT_MS = 60_000;
const CONNECTIONS_CHECK_MS = 5_000;

/**
 * On a loopback address only requests with a Host of this machine are answered. Otherwise a web page whose host name resolves to
 * 127.0.0.1 (DNS rebinding) could read what no network can.
 */
export function createOperationsServer(
  reports: OperatorReports,
  log: Logger,
  { tls, admin, site, turns = new LoopTurns(), bounds = BOUNDS }: OperationsParts = {},
): OperationsServer {
  const shared = { ...reports, metrics: together(() => reports.metrics()) };
  let hosts: ReadonlySet<string> | undefined;
  const serve: RequestListener = (request, response) => {
    const host = hostOf(request);
    if (hosts !== undefined && host !== undefined && !hosts.has(host)) {
      write(response, 421, JSON_TYPE, `{"error":"answers to these hosts only: ${[...hosts].join(', ')}"}`);
      return;
    }
    const path = pathOfTarget(request.url ?? '/');
    if (admin?.isPath(path) === true) {
      void admin.answer(request, response);
      return;
    }
    const page = site?.isPath(path) === true ? site.respond(request.method ?? 'GET', path, request.headers) : undefined;
    if (page !== undefined) {
      response.writeHead(page.status, page.headers).end(page.body);
      return;
    }
    void answer(shared, request.method ?? 'GET', path, response).catch((error: unknown) => {
      log.error({ err: error }, 'operations request failed');
      write(response, 503, JSON_TYPE, '{"error":"temporarily unavailable"}');
    });
  };
  const lines = new RequestLines(turns);
  const listener: RequestListener = (request, response) => {
    // The rest of a read whose connection was cut.
    if (request.socket.destroyed) return;
    const entered = lines.enter(request.socket);
    if (entered === undefined) serve(request, response);
    else void entered.then((isKept) => (isKept ? serve(request, response) : undefined));
  };
  const times = {
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    handshakeTimeout: HEADERS_TIMEOUT_MS,
    connectionsCheckingInterval: CONNECTIONS_CHECK_MS,
  };
  const server: Server = tls === undefined ? createServer(times, listener) : createTlsServer({ ...times, ...tls }, listener);
  server.maxConnections = bounds.connections;
  // Behind the handshake of TLS, which has its own. A tail that has no rows says that it is alive more often than that.
  server.setTimeout(bounds.silentMs);
  tellOfDrops(server, log);
  return {
    async listen(host, wanted) {
      const { address, port } = await listenOn(server, host, wanted, LISTENER);
      if (isLoopback(address)) hosts = new Set(['localhost', '127.0.0.1', '[::1]', asHost(host), asHost(address)]);
      return port;
    },
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

/**
 * Resolves with the result of `listen`. A port that the operator chose must open; the default one may be in use by another
 * gateway, and this one then runs without: undefined.
 */
export async function openOperations<T>(
  { host, port, chosen }: NonNullable<Config['operations']>,
  listen: (host: string, port: number) => Promise<T>,
  log: Logger,
): Promise<T | undefined> {
  try {
    return await listen(host, port);
  } catch (error) {
    if (chosen) throw error;
    log.warn(
      { host, port, err: error },
      'the default operations port is taken: no metrics; set "operations" in the configuration',
    );
    return undefined;
  }
}

/**
 * One run at a time: whoever asks while one is under way shares the next, which knows all that was counted before it was asked
 * for. Metrics take milliseconds of every process, and who asks for them is not asked who he is.
 */
function together<T>(run: () => Promise<T>): () => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  let next: Promise<T> | undefined;
  const begin = (): Promise<T> => {
    next = undefined;
    const begun = run();
    last = begun;
    return begun;
  };
  return () => {
    next ??= last.then(begin, begin);
    return next;
  };
}

/** Once, until a connection is let in again: whoever comes too many comes many times. */
function tellOfDrops(server: Server, log: Logger): void {
  let isTold = false;
  server.on('drop', () => {
    if (!isTold) log.warn({ connections: server.maxConnections }, 'the operations port has all the connections that it takes');
    isTold = true;
  });
  server.on('connection', () => {
    isTold = false;
  });
}

const LISTENER = { what: 'operators', setting: 'operations.port' };
const JSON_TYPE = 'application/json';

/** The Host header without its port; undefined where there is none (HTTP/1.0, which no browser uses). */
function hostOf({ headers }: IncomingMessage): string | undefined {
  return headers.host?.replace(/:\d*$/, '').toLowerCase();
}

/** An address or name as it is written in a Host header. */
function asHost(address: string): string {
  return isIPv6(address) ? `[${address}]` : address.toLowerCase();
}

async function answer(reports: OperatorReports, method: string, path: string, response: ServerResponse): Promise<void> {
  if (method !== 'GET' && method !== 'HEAD') {
    write(response, 405, JSON_TYPE, '{"error":"method not allowed"}');
    return;
  }
  switch (path) {
    case '/metrics': {
      const { type, text } = await reports.metrics();
      write(response, 200, type, text);
      return;
    }
    case '/healthz': {
      const { ready, report } = await reports.health();
      write(response, ready ? 200 : 503, JSON_TYPE, JSON.stringify(report));
      return;
    }
    case '/channels':
      write(response, 200, JSON_TYPE, JSON.stringify(await reports.channels()));
      return;
    default:
      write(response, 404, JSON_TYPE, '{"error":"not found"}');
  }
}

function write(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, {
    'content-type': type,
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    ...Object.fromEntries(SAFE_HEADERS),
    ...(status === 405 ? { allow: 'GET, HEAD' } : {}),
  });
  response.end(body);
}
