/** Writes an HTTP error to a bare socket, whose upgrade is refused or whose request could not be parsed, and closes it. */
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { GatewayError } from '../../codecs/canonical/error.ts';
import type { Clock } from '../../streams/clock.ts';
import { encodeGenericError, retryAfterSeconds } from '../errors.ts';
import { SAFE_HEADERS } from './safe-headers.ts';

/** Closing with unread bytes would reset the connection, and the client might never see the answer. */
const LINGER_MS = 1_000;

export interface RawAnswer {
  readonly error: GatewayError;
  readonly requestId: string;
  /** Further header lines. */
  readonly more?: readonly string[];
}

export function answerRaw(socket: Duplex, { error, requestId, more = [] }: RawAnswer, clock: Clock): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const body = encodeGenericError(error);
  const retryAfter = retryAfterSeconds(error);
  const headers = [
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status] ?? 'Error'}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${requestId}`,
    ...SAFE_HEADERS.map(([name, value]) => `${name}: ${value}`),
    ...(retryAfter === undefined ? [] : [`retry-after: ${retryAfter}`]),
    ...more,
    'connection: close',
  ];
  socket.write(`${headers.join('\r\n')}\r\n\r\n${body}`);
  endLingering(socket, clock);
}

/** Sends what was written, and discards what still arrives until the peer has read it. */
export function endLingering(socket: Duplex, clock: Clock): void {
  const linger = clock.setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => linger.cancel());
  socket.resume();
  socket.end();
}
