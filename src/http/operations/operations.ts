/** The operator's listener on a port of its own: `/metrics`, `/healthz`, `/channels`. It has no authentication, so it is never the public port. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { isIPv6 } from 'node:net';
import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import type { Gateway } from '../gateway.ts';
import { isLoopback } from '../request/ip-ranges.ts';
import { listenOn } from '../server/listen.ts';
import { pathOfTarget } from '../server/route-table.ts';
import { SAFE_HEADERS } from '../server/safe-headers.ts';

export interface OperationsServer {
  /** Resolves with the port. */
  listen(host: string, port: number): Promise<number>;
  close(): Promise<void>;
}

/** The reports of one process, or of all the workers of a gateway. */
export interface OperatorReports {
  /** In the text form of Prometheus. */
  metrics(): Promise<{ readonly type: string; readonly text: string }>;
  health(): Promise<{ readonly ready: boolean; readonly report: object }>;
  channels(): Promise<object>;
}

/**
 * On a loopback address only requests with a Host of this machine are answered. Otherwise a web page whose host name resolves to 127.0.0.1 (DNS
 * rebinding) could read what no network can.
 */
export function createOperationsServer(reports: OperatorReports, log: Logger): OperationsServer {
  let hosts: ReadonlySet<string> | undefined;
  const server: Server = createServer((request, response) => {
    const host = hostOf(request);
    if (hosts !== undefined && host !== undefined && !hosts.has(host)) {
      write(response, 421, JSON_TYPE, `{"error":"answers to these hosts only: ${[...hosts].join(', ')}"}`);
      return;
    }
    void answer(reports, request.method ?? 'GET', pathOfTarget(request.url ?? '/'), response).catch((error: unknown) => {
      log.error({ err: error }, 'operations request failed');
      write(response, 503, JSON_TYPE, '{"error":"temporarily unavailable"}');
    });
  });
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
 * Resolves with the result of `listen`. A port that the operator chose must open; the default one may be in use by another gateway, and this
 * one then runs without: undefined.
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

/** The reports of this process. */
export function reportsOf(gateway: Gateway): OperatorReports {
  const { registry } = gateway.metrics;
  return {
    metrics: async () => ({ type: registry.contentType, text: await registry.metrics() }),
    async health() {
      const report = healthReport(gateway);
      return { ready: report.reasons.length === 0, report };
    },
    channels: async () => ({ channels: channelReport(gateway) }),
  };
}

export function healthReport(gateway: Gateway) {
  const reasons = gateway.unready();
  return {
    status: reasons.length === 0 ? 'ok' : 'unready',
    reasons,
    config_revision: gateway.config.current().revision,
    store: gateway.store.health(),
    settlements_pending: gateway.store.settlements.pending,
  };
}

/** Every Channel with its circuits that are not closed. Keys and URLs stay out. */
export function channelReport(gateway: Gateway): object[] {
  const circuits = gateway.dispatcher.health.report();
  return gateway.config.current().channels.map(({ id, type, priority, weight, models }) => ({
    id,
    type,
    priority,
    weight,
    models: [...models.keys()],
    running: gateway.dispatcher.concurrency.running(id),
    circuits: circuits
      .filter(({ channelId, state, recentFailures }) => channelId === id && (state !== 'closed' || recentFailures > 0))
      .map(({ model, state, openForMs, recentFailures }) => ({
        ...(model === undefined ? {} : { model }),
        state,
        open_for_ms: openForMs,
        recent_failures: recentFailures,
      })),
  }));
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
