/**
 * The public listener on raw `node:http`: its limits, its connections and the drain. What becomes of one request is
 * `serve-request.ts`, of one upgrade `websocket/`.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Server as Listener, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { GatewayError } from '../../codecs/canonical/error.ts';
import { clientGone, shuttingDown } from '../errors.ts';
import type { Gateway } from '../gateway.ts';
import { listenOn } from './listen.ts';
import { type OpenResponse, OpenResponses } from './open-responses.ts';
import { answerRaw } from './raw-answer.ts';
import { type Handlers, serveRequest } from './serve-request.ts';
import { createResponsesSockets } from '../websocket/responses-sockets.ts';

export interface GatewayServer {
  readonly server: Server;
  /** Resolves with the port. */
  listen(host: string, port: number): Promise<number>;
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
    void serveRequest(gateway, handlers, request, open);
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
    answerUnread(socket, new GatewayError('method_not_allowed', 'This server is not a proxy.'));
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
  const abortAll = (error: GatewayError): void => {
    for (const { gone } of responses.all()) gone.abort(error);
    sockets.abortAll(error);
  };

  const cut = (): void => {
    // What is cut did not end because its client left: one turn of the event loop for the words that say so.
    abortAll(shuttingDown());
    setImmediate(() => {
      server.closeAllConnections();
      // Node does not count upgraded connections as its own.
      sockets.cut();
    });
  };

  return {
    server,
    listen: async (host, port) => (await listenOn(server, host, port)).port,
    async drain(drainMs) {
      draining = true;
      sockets.drain();
      for (const { response } of responses.all()) if (!response.headersSent) response.setHeader('connection', 'close');
      // The listener alone: the `close` of Node's HTTP server also destroys connections whose first request is still on its way.
      const closed = new Promise<void>((resolve) => Listener.prototype.close.call(server, () => resolve()));
      const idle = gateway.clock.setTimeout(() => server.closeIdleConnections(), IDLE_GRACE_MS);
      let timer = gateway.clock.setTimeout(() => {
        timer = gateway.clock.setTimeout(cut, LAST_WORDS_MS);
        abortAll(shuttingDown());
      }, drainMs);
      await closed;
      idle.cancel();
      timer.cancel();
    },
    cut,
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
