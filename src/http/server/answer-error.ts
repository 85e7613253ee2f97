/** Writes an error response in the endpoint's dialect, so that the client can read it even if its request body was not read. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Dialect } from '../../codecs/canonical/dialect.ts';
import type { GatewayError } from '../../codecs/canonical/error.ts';
import { encodeGenericError, isClientGone, retryAfterSeconds } from '../errors.ts';
import { writeAnswer } from '../exchange/reply.ts';
import type { Gateway } from '../gateway.ts';

export interface Refusal {
  readonly error: GatewayError;
  /** What the endpoint's clients read; absent: the shape of OpenAI's API. */
  readonly dialect: Dialect | undefined;
  readonly requestId: string;
}

/** An unread body up to this size is discarded and the connection lives on; a larger one closes the connection. */
const MAX_DUMPED_BYTES = 1024 * 1024;
/**
 * How much of a larger one is discarded, and for how long, so that the client reads the answer before it notices that nobody
 * reads.
 */
const DRAIN = { ms: 2_000, bytes: 128 * 1024 * 1024 };
/** The same for whoever has no money for what is being sent. */
const DRAIN_UNPAID = { ms: 1_000, bytes: 1024 * 1024 };

/** Writes nothing when the client has left or the response has begun. */
export function answerError(gateway: Gateway, request: IncomingMessage, response: ServerResponse, refusal: Refusal): void {
  const { error } = refusal;
  if (response.headersSent || response.destroyed || isClientGone(error)) {
    if (!response.writableEnded) response.destroy();
    return;
  }
  const body = bodyOf(gateway, refusal);
  const retryAfter = retryAfterSeconds(error);
  const headers = retryAfter === undefined ? {} : { 'retry-after': retryAfter };
  const isKept = response.getHeader('connection') !== 'close' && error.code !== 'request_timeout';
  if (request.complete || (isKept && isSmall(request))) {
    writeAnswer(response, { status: error.status, body, headers });
    return;
  }
  const drain = error.code === 'insufficient_balance' ? DRAIN_UNPAID : DRAIN;
  writeBeforeDrain(gateway, request, response, { status: error.status, body, headers }, drain);
}

/** A codec that throws must not leave its client without an answer. */
function bodyOf(gateway: Gateway, { error, dialect, requestId }: Refusal): string {
  try {
    const codec = dialect === undefined ? undefined : gateway.codecs.client(dialect);
    return codec === undefined ? encodeGenericError(error) : codec.encodeError(error, requestId);
  } catch (thrown) {
    gateway.log.error({ request_id: requestId, err: thrown }, 'an error could not be encoded');
    return encodeGenericError(error);
  }
}

/** Node itself discards the rest of such a body and keeps the connection. */
function isSmall(request: IncomingMessage): boolean {
  if (request.headers['transfer-encoding'] !== undefined || request.headers.expect !== undefined) return false;
  return Number(request.headers['content-length'] ?? 0) <= MAX_DUMPED_BYTES;
}

/**
 * The whole response is sent first; then the body is discarded for a while before the connection closes. Closing with unread
 * bytes would reset the connection, and the client might never see the response.
 */
function writeBeforeDrain(
  gateway: Gateway,
  request: IncomingMessage,
  response: ServerResponse,
  answer: { readonly status: number; readonly body: string; readonly headers: Readonly<Record<string, string>> },
  drain: { readonly ms: number; readonly bytes: number },
): void {
  const body = Buffer.from(answer.body);
  response.writeHead(answer.status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': body.length,
    connection: 'close',
    ...answer.headers,
  });
  response.write(body);
  const finish = (): void => {
    timer.cancel();
    request.off('data', count);
    response.end();
  };
  // A body that already timed out is not waited for again.
  const drainMs = answer.status === 408 ? 0 : drain.ms;
  const timer = gateway.clock.setTimeout(() => {
    finish();
    request.destroy();
  }, drainMs);
  let left = drain.bytes;
  const count = (chunk: Buffer): void => {
    left -= chunk.length;
    if (left < 0) request.destroy();
  };
  request.on('data', count);
  request.once('end', finish);
  request.once('close', finish);
  request.resume();
}
