/**
 * Receives a request body: bounded in bytes, time and depth, decompressed by its content-encoding. Knows no endpoint. A refused
 * body is drained by `server/answer-error.ts`, so that the client can read the error.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Transform } from 'node:stream';
import { constants, createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib';
import { GatewayError } from '../../codecs/canonical/error.ts';
import { readUtf8, UTF8_STEP } from '../../codecs/bodies/utf8.ts';
import { isObject, type JsonObject, type JsonValue } from '../../codecs/canonical/json.ts';
import { lastMembers } from '../../codecs/json/edit.ts';
import { endsFor, knownEndsInSteps, parseInSteps } from '../../codecs/json/parse-in-steps.ts';
import { MAX_BARE, scanInSteps } from '../../codecs/json/scan.ts';
import type { Ends } from '../../codecs/json/text.ts';
import { atOnce, type Steps } from '../../codecs/steps.ts';
import type { Clock } from '../../streams/clock.ts';
import { SmallChunks } from '../../streams/small-chunks.ts';
import { clientGone } from '../errors.ts';
import type { Limits } from '../config/config.ts';
import type { LargeWork } from './large-work.ts';

export interface BodyLimits {
  readonly maxBytes: number;
  /** From the first to the last byte. */
  readonly timeoutMs: number;
  /** Called with what was received and with what it was decompressed to, as it grows. What it throws refuses the body. */
  readonly weigh?: (bytes: number) => void;
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
  const rest = receiveBody(request, response, limits, clock, (chunk) => void chunks.push(chunk));
  if (rest !== undefined) await rest;
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
  // A client of HTTP/1.0 reads the first head as the answer (RFC 9110, 10.1.1).
  if (/^100-continue$/i.test(request.headers.expect ?? '') && request.httpVersion !== '1.0') response.writeContinue();
  const here = decoder === undefined ? arrived(request, declared) : undefined;
  if (here === undefined) return collect(request, decoder, limits, clock, take);
  checkSize(
    here.reduce((size, chunk) => size + chunk.length, 0),
    limits,
  );
  for (const chunk of here) take(chunk);
  return undefined;
}

/**
 * A small body mostly comes in one packet with its head, and is there before the handler runs: then there is nothing to wait for.
 */
function arrived(request: IncomingMessage, declared: number): readonly Buffer[] | undefined {
  if (!request.complete && (declared === 0 || request.readableLength < declared)) return undefined;
  const chunks: Buffer[] = [];
  // One read() gives one buffer: a packet of the client's, or a chunk.
  for (let chunk: Buffer | null = request.read(); chunk !== null; chunk = request.read()) chunks.push(chunk);
  // The end event itself may still be pending.
  request.resume();
  return chunks;
}

/** What the values of a JSON text are bounded by. */
export interface ValueLimit {
  readonly maxValues: number;
  /** Of one object. */
  readonly maxMembers: number;
  /** Called with their number, and that of the characters, before the text is parsed; may throw. */
  readonly weigh?: (values: number, characters: number) => void;
}

/** What the configuration says of them. */
export function valueLimit(
  limits: Pick<Limits, 'jsonValues' | 'objectMembers'>,
  weigh: Required<ValueLimit>['weigh'],
): ValueLimit {
  return { maxValues: limits.jsonValues, maxMembers: limits.objectMembers, weigh };
}

const UNBOUNDED: ValueLimit = { maxValues: Infinity, maxMembers: Infinity };

/** A JSON object of a request: its exact text and its value, and where the long values of a long text end. */
export interface JsonBody {
  readonly text: string;
  readonly json: JsonObject;
  readonly ends?: Ends | undefined;
}

/**
 * The exact text and its value. Of members that share a name only the last is kept, in the text too: an upstream that reads the
 * first would otherwise get a request that was never checked. Throws `invalid_request` for anything but one JSON object in UTF-8,
 * `request_too_large` for too many values or members, and what `weigh` throws.
 */
export function parseJsonBody(bytes: Uint8Array, limit = UNBOUNDED): JsonBody {
  return atOnce(parseJsonBodyInSteps(bytes, limit));
}

/** {@link parseJsonBody}, with a turn of the event loop for others between its steps where the body is large. */
export function parseJsonBodyInTurns(bytes: Uint8Array, limit: ValueLimit, work: LargeWork): JsonBody | Promise<JsonBody> {
  return work.of(bytes, parseJsonBodyInSteps(bytes, limit));
}

/** {@link parseJsonBody} in steps. */
export function* parseJsonBodyInSteps(bytes: Uint8Array, limit = UNBOUNDED): Steps<JsonBody> {
  const text = yield* readText(bytes);
  yield;
  const members = yield* checkFigures(text, limit);
  yield;
  return yield* parseText(text, members);
}

function* readText(bytes: Uint8Array): Steps<string> {
  let text: string;
  try {
    text = bytes.length > UTF8_STEP ? yield* readUtf8([bytes], new TextDecoder('utf-8', { fatal: true })) : UTF8.decode(bytes);
  } catch (cause) {
    throw new GatewayError('invalid_request', 'The body is not valid UTF-8.', { cause });
  }
  if (text.trim() === '') throw new GatewayError('invalid_request', 'The body is empty; a JSON object is needed.');
  return text;
}

/** `members`: how many the text names at its top. */
function* parseText(text: string, members: number): Steps<JsonBody> {
  const ends = endsFor(text);
  let json: JsonValue;
  try {
    json = yield* parseInSteps(text, ends);
  } catch (cause) {
    throw new GatewayError('invalid_request', 'The body is not valid JSON.', { cause });
  }
  if (!isObject(json)) throw new GatewayError('invalid_request', 'The body must be a JSON object.');
  yield;
  if (Object.keys(json).length === members) return ends === undefined ? { text, json } : { text, json, ends };
  const own = lastMembers(text, ends);
  yield;
  return { text: own, json, ends: yield* knownEndsInSteps(own) };
}

/**
 * Bounds a text that is about to be parsed, and returns how many members its object has, repeated ones included. Throws as {@link
 * parseJsonBody} does.
 */
export function* checkFigures(text: string, { maxValues, maxMembers, weigh }: ValueLimit): Steps<number> {
  const figures = yield* scanInSteps(text, { depth: MAX_DEPTH, values: maxValues, members: maxMembers });
  if (figures === 'depth') throw new GatewayError('invalid_request', `The body is nested deeper than ${MAX_DEPTH} levels.`);
  if (figures === 'values') throw new GatewayError('request_too_large', `The body has more than ${maxValues} JSON values.`);
  if (figures === 'members')
    throw new GatewayError('request_too_large', `An object of the body has more than ${maxMembers} members.`);
  if (figures === 'bare')
    throw new GatewayError(
      'invalid_request',
      `The body has a number or white space of more than ${MAX_BARE} characters in a row.`,
    );
  weigh?.(figures.values, text.length);
  return figures.members;
}

function checkSize(bytes: number, { maxBytes, weigh }: BodyLimits): void {
  if (bytes > maxBytes) throw tooLarge(maxBytes);
  weigh?.(bytes);
}

function tooLarge(maxBytes: number): GatewayError {
  return new GatewayError('request_too_large', `The body is over ${maxBytes} bytes.`);
}

/**
 * 8 MiB: no body on HTTP needs more (RFC 9659). A frame takes its window as soon as its head is read. Of 128 MiB, which the
 * library allows, each had the engine collect garbage: a few hundred bodies of thirty bytes held up everybody for seconds.
 */
const ZSTD_WINDOW_LOG = 23;

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
      return createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG } });
    default:
      throw new GatewayError('unsupported_media_type', 'The body has a content-encoding that is not supported.');
  }
}

/**
 * The limit counts decompressed bytes, so that a decompression bomb is stopped, and received ones, which may decompress to
 * nothing.
 */
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

    const orRefuse = (step: () => void): void => {
      try {
        step();
      } catch (refused) {
        settle(
          refused instanceof Error ? refused : new GatewayError('internal_error', 'The gateway failed.', { cause: refused }),
        );
      }
    };
    const chunks = new SmallChunks<Buffer>(take);
    const onData = (chunk: Buffer): void => {
      size += chunk.length;
      orRefuse(() => {
        checkSize(size, limits);
        chunks.add(chunk);
      });
    };
    let received = 0;
    const onReceived = (chunk: Buffer): void => {
      received += chunk.length;
      orRefuse(() => checkSize(received, limits));
    };
    const onEnd = (): void =>
      orRefuse(() => {
        chunks.flush();
        settle(undefined);
      });
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
        request.off('data', onReceived);
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
    if (decoder !== undefined) request.on('data', onReceived);
  });
}

function ignore(): void {
  // The body is settled. A connection that breaks later is noticed by the `close` of the response.
}
