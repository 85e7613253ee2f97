/**
 * The public listener on raw `node:http`: its limits, what every answer carries, and the drain. Finds the handler by the raw path and
 * turns whatever it throws into the client's own error. Knows no dialect beyond which one writes the error.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Server as Listener, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { GatewayError } from '../codecs/canonical/error.ts';
import { answerError } from './answer-error.ts';
import { clientIp } from './client-ip.ts';
import { clientGone, shuttingDown, toGatewayError } from './errors.ts';
import type { Call, Gateway, Handler } from './gateway.ts';
import { headerValues } from './header-values.ts';
import { createResponsesSockets } from './websocket/responses-sockets.ts';
import { logRefusal } from './refusal-log.ts';
import { type OpenResponse, OpenResponses } from './open-responses.ts';
import { isPagePath } from './pages/create-pages.ts';
import { answerRaw } from './raw-answer.ts';
import { clientRequestId } from './request-id.ts';
import { matchRoute, pathOfTarget, type RouteMatch, type RouteName } from './route-table.ts';

export type Handlers = { readonly [Name in RouteName]?: Handler };

export interface GatewayServer {
  readonly server: Server;
  /** Resolves with the port. */
  listen(host: string, port: number): Promise<number>;
  /** Exchanges that are open. */
  readonly open: number;
  /** No new connections; open exchanges finish. What is left after `drainMs` is told that the gateway goes away, and cut. Resolves when all are done. */
  drain(drainMs: number): Promise<void>;
  /** Cuts everything at once. */
  cut(): void;
}

const HEADER_BYTES = 32 * 1024;
const HEADERS_TIMEOUT_MS = 20_000;
const KEEP_ALIVE_TIMEOUT_MS = 75_000;
const CONNECTIONS_CHECK_MS = 5_000;
const KEEP_ALIVE_PROBE_MS = 30_000;
/** What is still open when the drain is over is told so; then it is cut. */
const LAST_WORDS_MS = 2_000;
/** How long a drain leaves a silent connection open: a request may be on its way, and its answer is what says that it is the last. */
const IDLE_GRACE_MS = 1_000;

const EXPOSED_HEADERS = 'x-request-id, request-id, x-mizu-channel, retry-after, location';

export function createGatewayServer(gateway: Gateway, handlers: Handlers): GatewayServer {
  const { limits } = gateway.config.current();
  const responses = new OpenResponses();
  let draining = false;

  const sockets = createResponsesSockets(gateway);
  const server = createServer({
    maxHeaderSize: HEADER_BYTES,
    headersTimeout: HEADERS_TIMEOUT_MS,
    // A body is bounded by `limits.bodyMs`; this only catches what never reached a handler.
    requestTimeout: limits.bodyMs + HEADERS_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    connectionsCheckingInterval: CONNECTIONS_CHECK_MS,
    noDelay: true,
    // A client that vanished without a word is noticed by the kernel's own probes.
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_PROBE_MS,
    shouldUpgradeCallback: (request) => sockets.wants(request),
    // Node's own refusal has no words and no request id.
    requireHostHeader: false,
  });
  server.maxConnections = limits.connections;

  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    const open = { response, gone: new AbortController() };
    const place = responses.add(open);
    response.on('close', () => {
      responses.remove(place);
      if (!response.writableFinished) open.gone.abort(clientGone());
      // Its headers may have promised to keep the connection before the drain began.
      if (draining) closeIfSilent(request.socket);
    });
    if (draining) response.setHeader('connection', 'close');
    void serve(gateway, handlers, request, open);
  };
  const openOn = (socket: Socket): OpenResponse[] => responses.all().filter(({ response }) => response.req.socket === socket);
  /** Closes a connection on which nothing comes any more and nothing is owed. */
  const closeIfSilent = (socket: Socket): void => {
    if (socket.destroyed) return;
    const { bytesRead } = socket;
    const timer = gateway.clock.setTimeout(() => {
      if (socket.bytesRead === bytesRead && openOn(socket).length === 0) socket.destroy();
    }, IDLE_GRACE_MS);
    socket.once('close', () => timer.cancel());
  };
  const answerUnread = (socket: Duplex, error: GatewayError): void => {
    answerRaw(socket, { error, requestId: gateway.mint('req_') }, gateway.clock);
  };
  server.on('request', onRequest);
  // The body reader says `100 Continue`, once it has decided to read.
  server.on('checkContinue', onRequest);
  // Nobody has to know what else a client expects (RFC 9110, 10.1.1).
  server.on('checkExpectation', onRequest);
  server.on('connect', (_request, socket: Duplex) => {
    answerUnread(socket, new GatewayError('method_not_allowed', 'This is no proxy.'));
  });
  server.on('clientError', (error, socket: Socket) => {
    // Answered already: what still comes is read away.
    if (socket.writableEnded && !socket.destroyed) return;
    // In the middle of an answer our words would be read as part of it.
    const speaking = openOn(socket).some(({ response }) => response.headersSent);
    if (speaking || ('code' in error && error.code === 'ECONNRESET')) socket.destroy();
    else answerUnread(socket, unreadable(error));
  });
  server.on('upgrade', (request, socket, head) => void sockets.upgrade(request, socket, head));

  /** Ends every open exchange in its client's own words. */
  const tell = (error: GatewayError): void => {
    for (const { gone } of responses.all()) gone.abort(error);
    sockets.tell(error);
  };

  const cut = (): void => {
    server.closeAllConnections();
    // Node does not count upgraded connections as its own.
    sockets.cut();
  };

  return {
    server,
    get open() {
      return responses.size;
    },
    listen(host, port) {
      return new Promise((resolve, reject) => {
        server.once('error', reject);
        server.listen(port, host, () => {
          server.off('error', reject);
          const address = server.address();
          resolve(typeof address === 'object' && address !== null ? address.port : port);
        });
      });
    },
    async drain(drainMs) {
      draining = true;
      sockets.drain();
      for (const { response } of responses.all()) if (!response.headersSent) response.setHeader('connection', 'close');
      // The listener alone: the `close` of Node's HTTP server also destroys connections whose first request is still on its way.
      const closed = new Promise<void>((resolve) => Listener.prototype.close.call(server, () => resolve()));
      const idle = gateway.clock.setTimeout(() => server.closeIdleConnections(), IDLE_GRACE_MS);
      let timer = gateway.clock.setTimeout(() => {
        timer = gateway.clock.setTimeout(cut, LAST_WORDS_MS);
        tell(shuttingDown());
      }, drainMs);
      await closed;
      idle.cancel();
      timer.cancel();
    },
    cut,
  };
}

async function serve(gateway: Gateway, handlers: Handlers, request: IncomingMessage, open: OpenResponse): Promise<void> {
  const { response } = open;
  const startedAt = gateway.clock.monotonic();
  const path = pathOfTarget(request.url ?? '/');
  const ownId = clientRequestId(request);
  const requestId = ownId ?? gateway.mint('req_');
  response.setHeader('x-request-id', requestId);
  response.setHeader('x-content-type-options', 'nosniff');
  // A connection that breaks is noticed by the response's `close`; without a listener it would end the process.
  request.on('error', () => undefined);
  const match = matchRoute(request.method ?? 'GET', path);
  const route = match.kind === 'route' ? match.name : 'unknown';
  if (route === 'messages') response.setHeader('request-id', requestId);
  gateway.metrics.requestStarted(route);
  let code = '';
  let call: Call | undefined;
  try {
    checkHost(request, response);
    if (match.kind === 'not_found' && answerPage(gateway, request, response, path)) return;
    const handler = handlerOf(match, handlers, response);
    if (handler !== undefined && match.kind === 'route') {
      call = createCall(gateway, match, request, open, { path, requestId, clientRequestId: ownId });
      await handler(call);
      code = call.notes.failure ?? '';
    }
  } catch (thrown) {
    const error = toGatewayError(thrown);
    code = error.code;
    if (error.code === 'internal_error')
      gateway.log.error({ request_id: requestId, route, err: error.details.cause }, 'handler failed');
    if (call !== undefined) logRefusal(call, error);
    answerError(gateway, request, response, { error, path, route, requestId });
  } finally {
    call?.trace?.end({ method: request.method ?? '', route: path, status: response.statusCode, code });
    gateway.metrics.requestEnded(route, response.statusCode, code, (gateway.clock.monotonic() - startedAt) / 1000);
  }
}

/** RFC 9112, 3.2: one Host, which HTTP/1.0 did not know. */
function checkHost(request: IncomingMessage, response: ServerResponse): void {
  const hosts = headerValues(request, 'host').length;
  if (hosts === 1 || (hosts === 0 && request.httpVersion === '1.0')) return;
  // Whoever cannot say whom it means is not listened to any longer.
  response.setHeader('connection', 'close');
  throw new GatewayError('invalid_request', hosts === 0 ? 'The request names no Host.' : 'The request names more than one Host.');
}

/** The web pages: public, made in advance, and deaf to every header but those of caching and compression. */
function answerPage(gateway: Gateway, request: IncomingMessage, response: ServerResponse, path: string): boolean {
  if (!isPagePath(path)) return false;
  const page = gateway.pages().respond(request.method ?? 'GET', path, request.headers);
  if (page === undefined) return false;
  response.writeHead(page.status, page.headers);
  response.end(page.body);
  return true;
}

/** The handler, or undefined when the answer is already out. Throws 404 and 405. */
function handlerOf(match: RouteMatch, handlers: Handlers, response: ServerResponse): Handler | undefined {
  if (match.kind === 'not_found') throw new GatewayError('not_found', 'There is no such endpoint.');
  response.setHeader('access-control-allow-origin', '*');
  response.setHeader('access-control-expose-headers', EXPOSED_HEADERS);
  if (match.kind === 'options') {
    response.writeHead(204, {
      allow: match.allow,
      'access-control-allow-methods': match.allow,
      'access-control-allow-headers': '*, authorization',
      'access-control-max-age': '86400',
    });
    response.end();
    return undefined;
  }
  if (match.kind === 'method_not_allowed') {
    response.setHeader('allow', match.allow);
    throw new GatewayError('method_not_allowed', 'This endpoint does not take this method.');
  }
  const handler = handlers[match.name];
  if (handler === undefined) throw new GatewayError('not_found', 'There is no such endpoint.');
  return handler;
}

/** The routes whose calls are exchanges with an upstream: these are traced. */
const EXCHANGES: ReadonlySet<RouteName> = new Set([
  'chat_completions',
  'responses',
  'responses_compact',
  'messages',
  'completions',
  'embeddings',
  'image_generations',
  'image_edits',
]);

interface CallFacts {
  readonly path: string;
  readonly requestId: string;
  readonly clientRequestId: string | undefined;
}

function createCall(
  gateway: Gateway,
  match: RouteMatch & { readonly kind: 'route' },
  request: IncomingMessage,
  { response, gone }: OpenResponse,
  facts: CallFacts,
): Call {
  const config = gateway.config.current();
  const trace = EXCHANGES.has(match.name) ? gateway.tracer.start(request.headers) : undefined;
  return {
    gateway,
    config,
    request,
    response,
    path: facts.path,
    route: match.name,
    method: match.method,
    ...(match.id === undefined ? {} : { id: match.id }),
    requestId: facts.requestId,
    ...(facts.clientRequestId === undefined ? {} : { clientRequestId: facts.clientRequestId }),
    startedAtMs: gateway.clock.now(),
    ip: clientIp(request.socket.remoteAddress, request.headers, config.trustedProxies),
    gone: gone.signal,
    notes: {},
    ...(trace === undefined ? {} : { trace }),
  };
}

/** What is no HTTP at all, or came too slowly, or is too large, before any handler could see it. */
function unreadable(error: Error): GatewayError {
  const code = 'code' in error ? error.code : undefined;
  if (code === 'HPE_HEADER_OVERFLOW')
    return new GatewayError('invalid_request', 'The request headers are too large.', { status: 431 });
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new GatewayError('request_timeout', 'The request did not arrive in time.');
  return new GatewayError('invalid_request', 'The request is not valid HTTP, or ended too early.');
}
