/**
 * The upgrade to the WebSocket endpoint: authenticates before it, with plain HTTP errors, and then opens a session. Knows nothing
 * of turns.
 */
import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';
import { GatewayError } from '../../codecs/canonical/error.ts';
import { principalOf } from '../request/authenticate.ts';
import { clientIp } from '../request/client-ip.ts';
import { clientGone, shuttingDown, toGatewayError } from '../errors.ts';
import type { Gateway } from '../gateway.ts';
import { answerRaw } from '../server/raw-answer.ts';
import { clientRequestId, newRequestId } from '../request/request-id.ts';
import { matchRoute, pathOfTarget } from '../server/route-table.ts';
import { ClientSocket } from './client-socket.ts';
import { OpenSessions } from './open-sessions.ts';
import { Session } from './session.ts';

export interface ResponsesSockets {
  /** Whether an `Upgrade` header means a WebSocket of this endpoint; any other is ignored, as HTTP allows. */
  wants(request: IncomingMessage): boolean;
  /** Never rejects. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void>;
  /** No new sessions, no new turns; idle sessions close at once, others after their turn. */
  drain(): void;
  /** Ends every running turn with this error. */
  abortAll(error: GatewayError): void;
  /** Ends every connection at once. */
  cut(): void;
}

const CLOSE_TIMEOUT_MS = 5_000;
const VERSION = 13;
/** Real clients send a message in one fragment; one in thousands of them is an attack. */
const MAX_FRAGMENTS = 1_024;
/** A message that arrives packet by packet: 32 MiB are 25,000 pieces of a common network. */
const MAX_PIECES = 64 * 1_024;

export function createResponsesSockets(gateway: Gateway): ResponsesSockets {
  const sessions = new OpenSessions(gateway.clock, () => gateway.config.current().websocket.idleMs);
  const { unfinished } = gateway;
  let draining = false;
  // Not written into the call: the library's types do not know `closeTimeout`.
  const options = {
    noServer: true,
    clientTracking: false,
    maxFragments: MAX_FRAGMENTS,
    maxBufferedChunks: MAX_PIECES,
    autoPong: false,
    // A client may put thousands of messages into one packet: others come to their turn between any two of them.
    allowSynchronousEvents: false,
    closeTimeout: CLOSE_TIMEOUT_MS,
    // Compression costs more CPU time and memory than the saved bytes are worth.
    perMessageDeflate: false,
    WebSocket: ClientSocket,
  };
  const server = new WebSocketServer(options);
  server.on('wsClientError', ({ message }, socket, request) => {
    const error = new GatewayError('invalid_request', `The WebSocket handshake is not valid: ${message}.`);
    turnAway(gateway, socket, error, requestIdOf(gateway, request), [`sec-websocket-version: ${VERSION}`]);
  });

  server.on('headers', (lines, request) => {
    lines.push(`x-request-id: ${requestIdOf(gateway, request)}`);
  });

  const refuseWhileDraining = (): void => {
    if (draining) throw shuttingDown();
  };

  /** Checked after the key was looked up, and with no await before the session opens, so that parallel upgrades are counted. */
  const checkRoom = (keyId: string): void => {
    refuseWhileDraining();
    const { perKey } = gateway.config.current().websocket;
    if (sessions.ofKey(keyId) >= perKey)
      throw new GatewayError('rate_limited', 'This API key has too many open connections.', { retryAfterMs: 1000 });
  };

  const open = (request: IncomingMessage, socket: Socket, head: Buffer, keyId: string, ip: string): void => {
    const codec = gateway.codecs.client('responses');
    // Read at every upgrade: a reload may have changed it.
    server.options.maxPayload = gateway.config.current().websocket.messageBytes;
    server.handleUpgrade(request, socket, head, (ws) => {
      const session: Session = new Session({
        gateway,
        codec,
        ws,
        socket,
        keyId,
        unfinished,
        request,
        path: pathOfTarget(request.url ?? '/'),
        ip,
        clientRequestId: clientRequestId(request),
        onClosed: () => sessions.remove(session, keyId),
      });
      sessions.add(session, keyId);
    });
  };

  return {
    wants(request) {
      if (!/^websocket$/i.test(request.headers.upgrade?.trim() ?? '')) return false;
      const match = matchRoute(request.method ?? 'GET', pathOfTarget(request.url ?? '/'));
      return request.method === 'GET' && match.kind === 'route' && match.route.name === 'responses';
    },
    async upgrade(request, socket, head) {
      const requestId = requestIdOf(gateway, request);
      const onBroken = (): void => void socket.destroy();
      socket.on('error', onBroken);
      try {
        const { trustedProxies } = gateway.config.current();
        const ip = clientIp(request.socket.remoteAddress, request.headers, trustedProxies);
        refuseWhileDraining();
        const { key } = await principalOf({ gateway, request, ip });
        if (socket.destroyed) throw clientGone();
        // What Node gives in front of a connection on which the body of the request is still arriving.
        if (!(socket instanceof Socket)) throw new GatewayError('invalid_request', 'A WebSocket handshake has no body.');
        checkRoom(key.id);
        socket.off('error', onBroken);
        open(request, socket, head, key.id, ip);
      } catch (thrown) {
        const error = toGatewayError(thrown);
        if (error.code === 'internal_error') gateway.log.error({ request_id: requestId, err: thrown }, 'upgrade failed');
        turnAway(gateway, socket, error, requestId);
      }
    },
    drain() {
      draining = true;
      sessions.drain();
    },
    abortAll: (error) => sessions.abortAll(error),
    cut() {
      draining = true;
      sessions.cut();
    },
  };
}

function requestIdOf(gateway: Gateway, request: IncomingMessage): string {
  return clientRequestId(request) ?? newRequestId(gateway.mint);
}

/** `more` are further header lines. */
function turnAway(gateway: Gateway, socket: Duplex, error: GatewayError, requestId: string, more: readonly string[] = []): void {
  gateway.metrics.requestRefused('responses', error);
  gateway.log.debug({ request_id: requestId, route: 'responses', code: error.code, message: error.message }, 'refused');
  answerRaw(socket, { error, requestId, more }, gateway.clock);
}
