/**
 * Receives a request body: bounded in bytes, time and depth, decompressed by its content-encoding. Knows no endpoint. A refused body is
 * drained by `server/answer-error.ts`, so that the client can read the error.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib';
import { GatewayError } from '../../codecs/canonical/error.ts';
import { isObject, type JsonObject, type JsonValue, parseJson } from '../../codecs/canonical/json.ts';
import { skipSpace, skipString } from '../../codecs/json/text.ts';
import { lastMembers } from '../../codecs/json/last-members.ts';
import type { Clock } from '../../streams/clock.ts';
import { clientGone } from '../errors.ts';

export interface BodyLimits {
  readonly maxBytes: number;
  /** From the first to the last byte. */
  readonly timeoutMs: number;
}

const UTF8 = new TextDecoder('utf-8', { fatal: true });

/** Deeper than any real request, and shallow enough for recursive readers. */
const MAX_DEPTH = 500;

/** Throws `request_too_large`, `request_timeout`, `unsupported_media_type`, `invalid_request`, or `client_closed_request`. */
export async function receiveWhole(
  request: IncomingMessage,
  response: ServerResponse,
  limits: BodyLimits,
  clock: Clock,
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  await receiveBody(request, response, limits, clock, (chunk) => void chunks.push(chunk));
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks);
}

/** Hands a body over in chunks; undefined when all of it had arrived already. An error that `take` throws refuses the body. */
export function receiveBody(
  request: IncomingMessage,
  response: ServerResponse,
  limits: BodyLimits,
  clock: Clock,
  take: (chunk: Buffer) => void,
): Promise<void> | undefined {
  const declared = Number(request.headers['content-length'] ?? 0);
  if (declared > limits.maxBytes) throw tooLarge(limits.maxBytes);
  const decoder = decoderOf(request.headers['content-encoding']);
  if (/^100-continue$/i.test(request.headers.expect ?? '')) response.writeContinue();
  const here = decoder === undefined ? arrived(request, declared) : undefined;
  if (here === undefined) return collect(request, decoder, limits, clock, take);
  if (here.reduce((size, chunk) => size + chunk.length, 0) > limits.maxBytes) throw tooLarge(limits.maxBytes);
  for (const chunk of here) take(chunk);
  return undefined;
}

/** A small body mostly comes in one packet with its head, and is there before the handler runs: then there is nothing to wait for. */
function arrived(request: IncomingMessage, declared: number): readonly Buffer[] | undefined {
  if (!request.complete && (declared === 0 || request.readableLength < declared)) return undefined;
  const chunks: Buffer[] = [];
  // One read() gives one buffer: a packet of the client's, or a chunk.
  for (let chunk: Buffer | null = request.read(); chunk !== null; chunk = request.read()) chunks.push(chunk);
  // The end event itself may still be pending.
  request.resume();
  return chunks;
}

/**
 * The exact text and its value. Of members that share a name only the last is kept, in the text too: an upstream that reads the first would
 * otherwise get a request that was never checked. Throws `invalid_request` for anything but one JSON object in UTF-8.
 */
export function parseJsonBody(bytes: Uint8Array): { readonly text: string; readonly json: JsonObject } {
  let text: string;
  try {
    text = UTF8.decode(bytes);
  } catch (cause) {
    throw new GatewayError('invalid_request', 'The body is not valid UTF-8.', { cause });
  }
  if (text.trim() === '') throw new GatewayError('invalid_request', 'The body is empty; a JSON object is needed.');
  const members = countMembers(text);
  if (members === undefined) throw new GatewayError('invalid_request', `The body is nested deeper than ${MAX_DEPTH} levels.`);
  let json: JsonValue;
  try {
    json = parseJson(text);
  } catch (cause) {
    throw new GatewayError('invalid_request', 'The body is not valid JSON.', { cause });
  }
  if (!isObject(json)) throw new GatewayError('invalid_request', 'The body must be a JSON object.');
  return { text: Object.keys(json).length === members ? text : lastMembers(text), json };
}

function tooLarge(maxBytes: number): GatewayError {
  return new GatewayError('request_too_large', `The body is over ${maxBytes} bytes.`);
}

function decoderOf(encoding: string | undefined): Transform | undefined {
  switch ((encoding ?? 'identity').trim().toLowerCase()) {
    case 'identity':
    case '':
      return undefined;
    case 'gzip':
    case 'x-gzip':
      return createGunzip();
    case 'deflate':
      return createInflate();
    case 'br':
      return createBrotliDecompress();
    case 'zstd':
      return createZstdDecompress();
    default:
      throw new GatewayError('unsupported_media_type', 'The body has a content-encoding that is not supported.');
  }
}

/** The limit counts decompressed bytes, so that a decompression bomb is stopped. */
function collect(
  request: IncomingMessage,
  decoder: Transform | undefined,
  limits: BodyLimits,
  clock: Clock,
  take: (chunk: Buffer) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let size = 0;
    const timer = clock.setTimeout(
      () => settle(new GatewayError('request_timeout', 'The body did not arrive in time.')),
      limits.timeoutMs,
    );

    const onData = (chunk: Buffer): void => {
      size += chunk.length;
      if (size > limits.maxBytes) {
        settle(tooLarge(limits.maxBytes));
        return;
      }
      try {
        take(chunk);
      } catch (refused) {
        settle(
          refused instanceof Error ? refused : new GatewayError('internal_error', 'The gateway failed.', { cause: refused }),
        );
      }
    };
    const onEnd = (): void => settle(undefined);
    const onBroken = (cause?: unknown): void => {
      if (!request.complete) settle(clientGone(cause));
    };
    const onUndecodable = (cause: unknown): void => {
      settle(new GatewayError('invalid_request', 'The body could not be decompressed as its content-encoding says.', { cause }));
    };

    const settle = (error: Error | undefined): void => {
      timer.cancel();
      source.off('data', onData);
      source.off('end', onEnd);
      request.off('error', onBroken);
      request.off('close', onBroken);
      request.on('error', ignore);
      if (decoder !== undefined) {
        request.unpipe(decoder);
        decoder.off('error', onUndecodable);
        decoder.on('error', ignore);
        decoder.destroy();
        // An unpiped request is paused, and its rest would block the next request of the connection.
        request.resume();
      }
      if (error === undefined) resolve();
      else reject(error);
    };

    const source = decoder === undefined ? request : request.pipe(decoder);
    source.on('data', onData);
    source.on('end', onEnd);
    request.on('error', onBroken);
    request.on('close', onBroken);
    decoder?.on('error', onUndecodable);
  });
}

function ignore(): void {
  // The body is settled. A connection that breaks later is noticed by the `close` of the response.
}

/** How many members the top-level object has, repeated ones included; undefined where the text is nested too deep. Not recursive. */
function countMembers(text: string): number | undefined {
  let depth = 0;
  let members = 0;
  STRUCTURE.lastIndex = 0;
  for (let found = STRUCTURE.exec(text); found !== null; found = STRUCTURE.exec(text)) {
    const code = text.charCodeAt(found.index);
    if (code === 0x22) {
      const end = skipString(text, found.index);
      if (depth === 1 && text.charCodeAt(skipSpace(text, end)) === 0x3a) members += 1;
      STRUCTURE.lastIndex = end;
    } else if (code === 0x7b || code === 0x5b) {
      depth += 1;
      if (depth > MAX_DEPTH) return undefined;
    } else {
      depth -= 1;
    }
  }
  return members;
}

const STRUCTURE = /["{}[\]]/g;
