/**
 * The door of the WebSocket endpoint: checks who knocks before the upgrade, with plain HTTP errors, and knows every open session. Knows
 * nothing of what is said in them.
 */
import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';
import { GatewayError } from '../../codecs/canonical/error.ts';
import type { Timer } from '../../streams/clock.ts';
import { authenticate } from '../authenticate.ts';
import { clientIp } from '../client-ip.ts';
import { clientGone, shuttingDown, toGatewayError } from '../errors.ts';
import type { Gateway } from '../gateway.ts';
import { answerRaw } from '../raw-answer.ts';
import { clientRequestId } from '../request-id.ts';
import { matchRoute, pathOfTarget } from '../route-table.ts';
import { ClientSocket } from './client-socket.ts';
import { Session } from './session.ts';

export interface ResponsesSockets {
  /** Whether an `Upgrade` header means a WebSocket of this endpoint; any other is ignored, as HTTP allows. */
  wants(request: IncomingMessage): boolean;
  /** Never rejects. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void>;
  readonly open: number;
  /** No new sessions, no new turns; idle sessions close at once, others after their turn. */
  drain(): void;
  /** Ends every running turn in words. */
  tell(error: GatewayError): void;
  cut(): void;
}

const PING_INTERVAL_MS = 30_000;
const CLOSE_TIMEOUT_MS = 5_000;
const VERSION = 13;
/** A message in thousands of pieces is an attack; real clients send one. */
const MAX_FRAGMENTS = 1_024;

export function createResponsesSockets(gateway: Gateway): ResponsesSockets {
  const { messageBytes } = gateway.config.current().websocket;
  const options = {
    noServer: true,
    clientTracking: false,
    maxPayload: messageBytes,
    maxFragments: MAX_FRAGMENTS,
    autoPong: false,
    closeTimeout: CLOSE_TIMEOUT_MS,
    // It costs more processor time and memory than the bytes are worth on a connection that talks JSON for an hour.
    perMessageDeflate: false,
    WebSocket: ClientSocket,
  };
  const server = new WebSocketServer(options);
  server.on('wsClientError', ({ message }, socket, request) => {
    const error = new GatewayError('invalid_request', `This is no WebSocket handshake: ${message}.`);
    turnAway(socket, error, requestIdOf(request), [`sec-websocket-version: ${VERSION}`]);
  });
  const sessions = new Set<Session>();
  const perKey = new Map<string, number>();
  let draining = false;
  let timer: Timer | undefined;

  const beat = (): void => {
    timer = undefined;
    const now = gateway.clock.monotonic();
    for (const session of sessions) session.beat(now);
    if (sessions.size > 0) timer = gateway.clock.setTimeout(beat, PING_INTERVAL_MS);
  };

  const requestIdOf = (request: IncomingMessage): string => clientRequestId(request) ?? gateway.mint('req_');

  const turnAway = (socket: Duplex, error: GatewayError, requestId: string, more: readonly string[] = []): void => {
    gateway.metrics.requestStarted('responses');
    gateway.metrics.requestEnded('responses', error.status, error.code, 0);
    gateway.log.debug({ request_id: requestId, route: 'responses', code: error.code, message: error.message }, 'refused');
    answerRaw(socket, { error, requestId, more }, gateway.clock);
  };

  const admit = async (request: IncomingMessage, ip: string): Promise<string> => {
    refuseWhileDraining();
    const { key } = await authenticate(request, ip, gateway.store.keys, gateway.clock.now());
    return key.id;
  };

  /** What others did while this key was looked up counts: nothing waits between here and the session. */
  const checkRoom = (keyId: string): void => {
    refuseWhileDraining();
    const most = gateway.config.current().websocket.perKey;
    if (most !== undefined && (perKey.get(keyId) ?? 0) >= most) {
      throw new GatewayError('rate_limited', 'Too many open connections of this API key.', { retryAfterMs: 1000 });
    }
  };

  const refuseWhileDraining = (): void => {
    if (draining) throw shuttingDown();
  };

  const open = (request: IncomingMessage, socket: Socket, head: Buffer, keyId: string, ip: string): void => {
    const codec = gateway.codecs.client('responses');
    if (codec === undefined) throw new GatewayError('not_found', 'There is no such endpoint.');
    server.handleUpgrade(request, socket, head, (ws) => {
      perKey.set(keyId, (perKey.get(keyId) ?? 0) + 1);
      const session: Session = new Session({
        gateway,
        codec,
        ws,
        socket,
        request,
        path: pathOfTarget(request.url ?? '/'),
        ip,
        clientRequestId: clientRequestId(request),
        onClosed() {
          sessions.delete(session);
          const left = (perKey.get(keyId) ?? 1) - 1;
          if (left > 0) perKey.set(keyId, left);
          else perKey.delete(keyId);
          if (sessions.size > 0) return;
          timer?.cancel();
          timer = undefined;
        },
      });
      sessions.add(session);
      timer ??= gateway.clock.setTimeout(beat, PING_INTERVAL_MS);
    });
  };

  return {
    wants(request) {
      if (!/^websocket$/i.test(request.headers.upgrade?.trim() ?? '')) return false;
      const match = matchRoute(request.method ?? 'GET', pathOfTarget(request.url ?? '/'));
      return request.method === 'GET' && match.kind === 'route' && match.name === 'responses';
    },
    async upgrade(request, socket, head) {
      const requestId = requestIdOf(request);
      const onBroken = (): void => void socket.destroy();
      socket.on('error', onBroken);
      try {
        const { trustedProxies } = gateway.config.current();
        const ip = clientIp(request.socket.remoteAddress, request.headers, trustedProxies);
        const keyId = await admit(request, ip);
        if (!(socket instanceof Socket) || socket.destroyed) throw clientGone();
        checkRoom(keyId);
        socket.off('error', onBroken);
        open(request, socket, head, keyId, ip);
      } catch (thrown) {
        const error = toGatewayError(thrown);
        if (error.code === 'internal_error') gateway.log.error({ request_id: requestId, err: thrown }, 'upgrade failed');
        turnAway(socket, error, requestId);
      }
    },
    get open() {
      return sessions.size;
    },
    drain() {
      draining = true;
      for (const session of sessions) session.leave();
    },
    tell(error) {
      for (const session of sessions) session.tell(error);
    },
    cut() {
      draining = true;
      for (const session of sessions) session.cut();
    },
  };
}
