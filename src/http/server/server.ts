/**
 * The public listener on raw `node:http`: its limits, its connections and the drain. One request is `serve-request.ts`, one
 * upgrade is `websocket/`.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Server as Listener, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { GatewayError } from '../../codecs/canonical/error.ts';
import { clientGone, shuttingDown } from '../errors.ts';
import type { Gateway } from '../gateway.ts';
import { listenOn } from './listen.ts';
import { type OpenResponse, OpenResponses } from './open-responses.ts';
import { answerRaw, endLingering } from './raw-answer.ts';
import { RequestLines } from './request-lines.ts';
import { type Handlers, serveRequest } from './serve-request.ts';
import { watchUnread } from './unread-answers.ts';
import { createResponsesSockets, type ResponsesSockets } from '../websocket/responses-sockets.ts';
import { newRequestId } from '../request/request-id.ts';
import { refuseWhenAllAreFull } from '../workers/full-worker.ts';

const LISTENER = { what: 'clients', setting: 'listen.port (or the variable PORT)' };
const HEADER_BYTES = 32 * 1024;
const HEADERS_TIMEOUT_MS = 20_000;
const KEEP_ALIVE_TIMEOUT_MS = 75_000;
const CONNECTIONS_CHECK_MS = 5_000;
const KEEP_ALIVE_PROBE_MS = 30_000;
/** Between aborting what is still open when the drain ends, and cutting its connections. */
const ABORT_GRACE_MS = 2_000;
/** How long a drain leaves an idle connection open: a request may be on its way, and its answer announces `connection: close`. */
const IDLE_GRACE_MS = 1_000;
export class GatewayServer {
  readonly server: Server;
  readonly #gateway: Gateway;
  readonly #handlers: Handlers;
  readonly #sockets: ResponsesSockets;
  readonly #responses = new OpenResponses();
  /** Connections on which something unreadable came, behind requests that are still being answered. */
  readonly #ending = new WeakSet<Socket>();
  readonly #lines: RequestLines;
  #draining = false;

  constructor(gateway: Gateway, handlers: Handlers) {
    this.#gateway = gateway;
    this.#handlers = handlers;
    this.#sockets = createResponsesSockets(gateway);
    this.#lines = new RequestLines(gateway.turns, () => gateway.metrics.connectionDropped());
    this.server = this.#createServer();
    this.#attach();
  }

  /** Resolves with the port. */
  async listen(host: string, port: number): Promise<number> {
    return (await listenOn(this.server, host, port, LISTENER)).port;
  }

  /**
   * Takes no new connections; open exchanges finish. After `drainMs` the rest is aborted with `shutting_down`, then cut. Resolves
   * when all are closed.
   */
  async drain(drainMs: number): Promise<void> {
    const { clock } = this.#gateway;
    this.#draining = true;
    this.#sockets.drain();
    for (const { response } of this.#responses.all()) {
      // Where several are owed, the last one says it: Node ends the connection behind whichever does.
      const isLast = this.#lastOn(response.req.socket) === response;
      if (isLast && !response.headersSent) response.setHeader('connection', 'close');
    }
    // Closes the listener only: the `close` of Node's HTTP server also destroys connections whose first request is still
    // arriving.
    const closed = new Promise<void>((resolve) => Listener.prototype.close.call(this.server, () => resolve()));
    const idle = clock.setTimeout(() => this.server.closeIdleConnections(), IDLE_GRACE_MS);
    let timer = clock.setTimeout(() => {
      timer = clock.setTimeout(() => this.cut(), ABORT_GRACE_MS);
      this.#abortAll(shuttingDown());
    }, drainMs);
    await closed;
    idle.cancel();
    timer.cancel();
  }

  /** Cuts everything at once. */
  cut(): void {
    // Aborted first, so that the log does not record that the client left: that takes one turn of the event loop.
    this.#abortAll(shuttingDown());
    setImmediate(() => {
      this.server.closeAllConnections();
      // Node does not track upgraded connections.
      this.#sockets.cut();
    });
  }

  #createServer(): Server {
    const { limits } = this.#gateway.config.current();
    const server = createServer({
      maxHeaderSize: HEADER_BYTES,
      headersTimeout: HEADERS_TIMEOUT_MS,
      // Handlers bound bodies by `limits.bodyMs`; this only catches requests that never reach a handler.
      requestTimeout: limits.bodyMs + HEADERS_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
      connectionsCheckingInterval: CONNECTIONS_CHECK_MS,
      noDelay: true,
      // TCP keep-alive notices clients that vanished.
      keepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_PROBE_MS,
      shouldUpgradeCallback: (request) => this.#sockets.wants(request),
      // `serve-request.ts` checks it: Node's own refusal has no body and no request id.
      requireHostHeader: false,
    });
    server.maxConnections = limits.connections;
    refuseWhenAllAreFull(server, this.#gateway.clock);
    return server;
  }

  #attach(): void {
    const onRequest = (request: IncomingMessage, response: ServerResponse): void => this.#serve(request, response);
    this.server.on('request', onRequest);
    // The body reader sends `100 Continue` once it has decided to read.
    this.server.on('checkContinue', onRequest);
    // Other expectations may be ignored (RFC 9110, 10.1.1).
    this.server.on('checkExpectation', onRequest);
    this.server.on('connect', (_request, socket: Duplex) => {
      // Node has taken its own listener off: without one a client that resets the connection ends the process.
      socket.on('error', () => socket.destroy());
      if (this.#owesNothing(socket))
        this.#answerUnread(socket, new GatewayError('method_not_allowed', 'This server is not a proxy.'));
    });
    this.server.on('drop', () => this.#gateway.metrics.connectionDropped());
    this.server.on('clientError', (error, socket: Socket) => this.#refuse(error, socket));
    this.server.on('upgrade', (request, socket, head) => {
      // Not `socket`: of a request whose body is still arriving Node gives something else in front of the connection.
      if (this.#owesNothing(request.socket)) void this.#sockets.upgrade(request, socket, head);
    });
  }

  /**
   * A connection that is handed over takes no more answers of HTTP. One that still owes some, to requests that were pipelined in
   * front, is cut.
   */
  #owesNothing(socket: Duplex): boolean {
    const owed = this.#responses.on(socket).some(({ response }) => !response.writableEnded || response.socket === null);
    if (!owed) return true;
    // Node forgets those whose turn to be answered has not come: what they hold would never be given back.
    socket.once('close', () => {
      for (const { response, gone } of [...this.#responses.on(socket)]) {
        gone.abort(clientGone());
        response.emit('close');
      }
    });
    socket.destroy();
    return false;
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    // The rest of a read whose connection was cut, or what arrives while one lingers that has ended.
    if (!request.socket.writable) return;
    const before = this.#lastOn(request.socket);
    if (before?.headersSent === true && before.getHeader('connection') === 'close') {
      // That answer says that it is the last (RFC 9112, 9.6): this one would be asked for, and charged, and never arrive.
      request.resume();
      return;
    }
    const open = { response, gone: new AbortController() };
    const place = this.#responses.add(open);
    watchUnread(response, this.#gateway.clock, () => this.#gateway.config.current());
    response.once('close', () => {
      this.#responses.remove(place);
      if (!response.writableFinished) this.#gateway.leavers.do(() => open.gone.abort(clientGone()));
      // Its headers may have promised to keep the connection before the drain began.
      if (this.#draining) this.#closeIfSilent(request.socket);
    });
    if (this.#draining) {
      if (before?.headersSent === false) before.removeHeader('connection');
      response.setHeader('connection', 'close');
    }
    const serve = (): Promise<void> => serveRequest(this.#gateway, this.#handlers, request, open);
    const entered = this.#lines.enter(request.socket);
    if (entered === undefined) void serve();
    else void entered.then((isKept) => (isKept ? serve() : undefined));
  }

  /** The newest answer that a connection is still owed. */
  #lastOn(socket: Socket): ServerResponse | undefined {
    return this.#responses.on(socket).at(-1)?.response;
  }

  /** What Node could not read as a request, or not in time. */
  #refuse(error: Error, socket: Socket): void {
    // Answered already: what still arrives is discarded.
    if (socket.writableEnded && !socket.destroyed) return;
    if ('code' in error && error.code === 'ECONNRESET') {
      socket.destroy();
      return;
    }
    const open = this.#responses.on(socket);
    const last = open.findLast(({ response }) => response.req.complete && !response.writableFinished);
    if (last !== undefined) {
      this.#endBehind(socket, last);
      return;
    }
    const begun = open.filter(({ response }) => response.headersSent);
    if (begun.length === 0) this.#answerUnread(socket, unreadable(error));
    else if (begun.every(({ response }) => isWholeAnswer(response))) endLingering(socket, this.#gateway.clock);
    // In the middle of a response an error would be read as part of it.
    else socket.destroy();
  }

  /** What was asked in front of something unreadable is answered first. */
  #endBehind(socket: Socket, { response }: OpenResponse): void {
    if (this.#ending.has(socket)) return;
    this.#ending.add(socket);
    response.once('close', () => (socket.destroyed ? undefined : endLingering(socket, this.#gateway.clock)));
  }

  #answerUnread(socket: Duplex, error: GatewayError): void {
    answerRaw(socket, { error, requestId: newRequestId(this.#gateway.mint) }, this.#gateway.clock);
  }

  /** Closes a connection that receives nothing and has no open response. */
  #closeIfSilent(socket: Socket): void {
    if (socket.destroyed) return;
    const { bytesRead } = socket;
    const timer = this.#gateway.clock.setTimeout(() => {
      if (socket.bytesRead === bytesRead && this.#responses.on(socket).length === 0) socket.destroy();
    }, IDLE_GRACE_MS);
    socket.once('close', () => timer.cancel());
  }

  /** Ends every open exchange with an error in its client's dialect. */
  #abortAll(error: GatewayError): void {
    for (const { gone } of this.#responses.all()) gone.abort(error);
    this.#sockets.abortAll(error);
  }
}

/** A response that began before its request was read is an error or a page: all of it was written at once. */
function isWholeAnswer(response: ServerResponse): boolean {
  return response.writableEnded || !response.req.complete;
}

/** A request that no handler saw: not HTTP, too slow, or with too large a head. */
function unreadable(error: Error): GatewayError {
  const code = 'code' in error ? error.code : undefined;
  if (code === 'HPE_HEADER_OVERFLOW')
    return new GatewayError('invalid_request', 'The request headers are too large.', { status: 431 });
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new GatewayError('request_timeout', 'The request did not arrive in time.');
  return new GatewayError('invalid_request', 'The request is not valid HTTP, or ended too early.');
}
