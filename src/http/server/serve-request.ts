/**
 * One request on the public listener: the headers that every response carries, the handler by the raw path, and an error response
 * for whatever it throws.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../../codecs/canonical/error.ts';
import { answerError } from './answer-error.ts';
import { clientIp } from '../request/client-ip.ts';
import { toGatewayError } from '../errors.ts';
import type { Call, Gateway, Handler } from '../gateway.ts';
import { LIMIT_HEADERS } from '../limits/headers.ts';
import { headerValues } from '../request/header-values.ts';
import type { OpenResponse } from './open-responses.ts';
import { refuseCall } from '../exchange/refusal.ts';
import { clientRequestId, newRequestId } from '../request/request-id.ts';
import { matchRoute, pathOfTarget, type Route, type RouteMatch, type RouteName } from './route-table.ts';
import { SAFE_HEADERS } from './safe-headers.ts';

export type Handlers = Readonly<Record<RouteName, Handler>>;

const EXPOSED_HEADERS = ['x-request-id, request-id, x-mizu-channel, x-mizu-model, retry-after, location', ...LIMIT_HEADERS].join(
  ', ',
);

/** Never rejects: what the handler throws becomes the response. */
export async function serveRequest(
  gateway: Gateway,
  handlers: Handlers,
  request: IncomingMessage,
  open: OpenResponse,
): Promise<void> {
  const { response } = open;
  const startedAt = gateway.clock.monotonic();
  const path = pathOfTarget(request.url ?? '/');
  const ownId = clientRequestId(request);
  const requestId = ownId ?? newRequestId(gateway.mint);
  response.setHeader('x-request-id', requestId);
  for (const [name, value] of SAFE_HEADERS) response.setHeader(name, value);
  // A broken connection is noticed by the response's `close`; an error without a listener would end the process.
  request.on('error', () => undefined);
  const match = matchRoute(request.method ?? 'GET', path);
  const route = match.kind === 'route' ? match.route.name : 'unknown';
  const dialect = dialectOf(match);
  if (dialect === 'messages') response.setHeader('request-id', requestId);
  gateway.metrics.requestStarted(route);
  gateway.inFlight.begin();
  let code = '';
  /** The status of an error response, also where the client left before it could be sent. */
  let refused: number | undefined;
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
    if (call !== undefined) refuseCall(call, error);
    if (!response.headersSent) refused = error.status;
    answerError(gateway, request, response, { error, dialect, requestId });
  } finally {
    const status = refused ?? response.statusCode;
    call?.notes.limit?.release();
    call?.trace?.end({ method: request.method ?? '', route: path, status, code });
    gateway.metrics.requestEnded(route, status, code, (gateway.clock.monotonic() - startedAt) / 1000);
    gateway.inFlight.end();
  }
}

/** RFC 9112, 3.2: exactly one Host; HTTP/1.0 may have none. */
function checkHost(request: IncomingMessage, response: ServerResponse): void {
  const hosts = headerValues(request, 'host').length;
  if (hosts === 1 || (hosts === 0 && request.httpVersion === '1.0')) return;
  // A client that breaks this rule may be smuggling requests: the connection ends.
  response.setHeader('connection', 'close');
  throw new GatewayError(
    'invalid_request',
    hosts === 0 ? 'The Host header is missing.' : 'The request has more than one Host header.',
  );
}

/** The web pages: public, made in advance, and independent of every header but those of caching and compression. */
function answerPage(gateway: Gateway, request: IncomingMessage, response: ServerResponse, path: string): boolean {
  if (!gateway.site.isPath(path)) return false;
  const page = gateway.site.respond(request.method ?? 'GET', path, request.headers);
  if (page === undefined) return false;
  response.writeHead(page.status, page.headers);
  response.end(page.body);
  return true;
}

/** What the client of a path reads, errors of unlisted paths beneath a listed one included. */
function dialectOf(match: RouteMatch): Route['dialect'] {
  return match.kind === 'not_found' ? match.above?.dialect : match.route.dialect;
}

/** The handler, or undefined when the answer is already out. Throws 404 and 405. */
function handlerOf(match: RouteMatch, handlers: Handlers, response: ServerResponse): Handler | undefined {
  if (match.kind === 'not_found') throw new GatewayError('not_found', 'There is no such endpoint.');
  response.setHeader('access-control-allow-origin', '*');
  response.setHeader('access-control-expose-headers', EXPOSED_HEADERS);
  if (match.kind === 'options') {
    response.writeHead(204, {
      allow: match.route.allow,
      'access-control-allow-methods': match.route.allow,
      'access-control-allow-headers': '*, authorization',
      'access-control-max-age': '86400',
    });
    response.end();
    return undefined;
  }
  if (match.kind === 'method_not_allowed') {
    response.setHeader('allow', match.route.allow);
    throw new GatewayError('method_not_allowed', 'This endpoint does not take this method.');
  }
  return handlers[match.route.name];
}

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
  const { name, operation } = match.route;
  const trace = operation === undefined ? undefined : gateway.tracer.start(request.headers, operation);
  return {
    gateway,
    config,
    request,
    response,
    path: facts.path,
    route: name,
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
