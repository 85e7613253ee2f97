/**
 * One answer on a WebSocket of an upstream, read like the answer to a request of its own: a head, then events. Knows no order of
 * turns.
 */
import { isAscii } from 'node:buffer';
import { readUtf8 } from '../../codecs/bodies/utf8.ts';
import { GatewayError } from '../../codecs/canonical/error.ts';
import { isObject, type JsonObject, tryJson } from '../../codecs/canonical/json.ts';
import { readTextInSteps } from '../../codecs/json/parse-in-steps.ts';
import type { Ends } from '../../codecs/json/text.ts';
import type { Framing } from '../../codecs/pipeline.ts';
import type { Steps } from '../../codecs/steps.ts';
import type { Clock } from '../../streams/clock.ts';
import type { SseDecodeOptions, SseEvent } from '../../streams/sse-decode.ts';
import type { Stage } from '../../streams/stage.ts';
import type { OpenCall } from '../dispatch/call-upstream.ts';
import { type Flow, ReceivedBody } from '../dispatch/received-body.ts';
import type { UpstreamHead } from '../dispatch/upstream-call.ts';

/** A message is an event without any framing. */
class Messages implements Stage<Uint8Array, SseEvent> {
  readonly ended = false;
  readonly #undecodedBytes: number;

  constructor({ undecodedBytes = Number.POSITIVE_INFINITY }: SseDecodeOptions) {
    this.#undecodedBytes = undecodedBytes;
  }

  push(bytes: Uint8Array, out: SseEvent[]): void {
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (buffer.length < this.#undecodedBytes) out.push({ event: undefined, data: buffer.toString() });
    else if (isAscii(buffer)) out.push({ event: undefined, data: buffer.toString('latin1') });
    else out.push({ event: undefined, data: buffer.toString('latin1'), isUndecoded: true });
  }

  end(): void {
    // A message is whole.
  }
}

const messageFraming: Framing = (options) => new Messages(options);

export class SocketTurn {
  readonly head: Promise<UpstreamHead>;
  readonly #resolve: (head: UpstreamHead) => void;
  readonly #reject: (error: Error) => void;
  readonly #body: ReceivedBody;
  readonly #requestId: string;
  #begun = false;

  constructor(flow: Flow, clock: Clock, requestId: string) {
    const { promise, resolve, reject } = Promise.withResolvers<UpstreamHead>();
    // Nobody may have begun to wait for it when it fails.
    promise.catch(() => undefined);
    this.head = promise;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#body = new ReceivedBody(flow, clock);
    this.#requestId = requestId;
  }

  /** The upstream has said something. */
  get begun(): boolean {
    return this.#begun;
  }

  /**
   * `refused`: the error that the turn is answered with in place of an answer, in the status and headers that HTTP would have
   * had.
   */
  feed(bytes: Buffer, refused: JsonObject | undefined): void {
    if (!this.#begun) this.#answer(refused === undefined ? undefined : refusalOf(refused));
    this.#begun = true;
    this.#body.feed(refused === undefined ? bytes : Buffer.from(JSON.stringify({ error: refused['error'] })));
  }

  #answer(refusal: Pick<UpstreamHead, 'status' | 'headers'> = { status: 200, headers: {} }): void {
    const { status, headers } = refusal;
    const own = { 'x-request-id': this.#requestId, 'content-type': status === 200 ? 'text/event-stream' : 'application/json' };
    this.#resolve({ status, headers: { ...own, ...headers }, body: this.#body, framing: messageFraming });
  }

  /** The upstream is not read until then, so its silence is not its own. */
  hold(until: Promise<void>): void {
    this.#body.hold(until);
  }

  end(): void {
    this.#body.end();
  }

  fail(error: Error): void {
    this.#reject(error);
    this.#body.fail(error);
  }
}

/** The message of an error that stands in the place of an answer. Undefined where it names no status, and is read as an event. */
export function refusalIn(event: JsonObject): JsonObject | undefined {
  const status = statusOf(event);
  return event['type'] === 'error' && status !== undefined && status >= 400 && isObject(event['error']) ? event : undefined;
}

function statusOf(event: JsonObject): number | undefined {
  const status = event['status'] ?? event['status_code'];
  return typeof status === 'number' && Number.isInteger(status) && status <= 599 ? status : undefined;
}

function refusalOf(event: JsonObject): Pick<UpstreamHead, 'status' | 'headers'> {
  const { headers } = event;
  const entries = isObject(headers) ? Object.entries(headers) : [];
  return {
    status: statusOf(event) ?? 500,
    headers: Object.fromEntries(entries.map(([name, value]) => [name.toLowerCase(), String(value)])),
  };
}

/** What the caller holds while a connection is made, and then while the turn is answered, whichever way that is. */
export class LinkedCall implements OpenCall {
  /** No request is signed on a connection that is open already. */
  readonly signedAt = undefined;
  readonly head: Promise<UpstreamHead>;
  readonly #resolve: (head: UpstreamHead) => void;
  readonly #reject: (error: Error) => void;
  readonly #aborting = new AbortController();
  readonly #signal: AbortSignal;
  readonly #onSignal = (): void => this.abort(this.#signal.reason);

  constructor(signal: AbortSignal) {
    const { promise, resolve, reject } = Promise.withResolvers<UpstreamHead>();
    // As above: it may be aborted before anybody waits for it.
    promise.catch(() => undefined);
    this.head = promise;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#signal = signal;
    if (signal.aborted) this.#onSignal();
    else signal.addEventListener('abort', this.#onSignal, { once: true });
  }

  get abortedFor(): Error | undefined {
    return this.signal.aborted ? this.signal.reason : undefined;
  }

  /** Aborted with an error. */
  get signal(): AbortSignal {
    return this.#aborting.signal;
  }

  abort(reason: unknown): void {
    if (this.signal.aborted) return;
    const error = reason instanceof Error ? reason : new Error('the call was cancelled', { cause: reason });
    this.#aborting.abort(error);
    this.fail(error);
  }

  /** The first head that comes is the answer: a turn that is asked again has none. */
  follow(head: Promise<UpstreamHead>): void {
    head.then(this.#resolve, (error: Error) => this.fail(error));
  }

  fail(error: Error): void {
    this.#signal.removeEventListener('abort', this.#onSignal);
    this.#reject(error);
  }
}

/** The event of a message, where its type may be one of these: found without parsing every delta. */
const TYPES = /"(response\.(?:created|completed|done|incomplete|failed|cancelled|steer\.[a-z]+)|error)"/;
/** Where the vendor writes the type first. */
const TYPE_FIRST = /^\s*\{\s*"type"\s*:\s*("[^"\\]*")/;
/** More than a type and what is before it take. */
const FIRST_BYTES = 256;

/** An event with its text, and where long values of that end. */
export interface NotableEvent {
  readonly text: string;
  readonly json: JsonObject;
  readonly ends?: Ends | undefined;
}

export function notable(bytes: Buffer): NotableEvent | undefined {
  if (!TYPES.test(bytes.toString('latin1'))) return undefined;
  const text = bytes.toString();
  const json = tryJson(text);
  return isObject(json) ? { text, json } : undefined;
}

/** {@link notable}, of a large message. */
export function* notableInSteps(bytes: Buffer): Steps<NotableEvent | undefined> {
  const [, type] = TYPE_FIRST.exec(bytes.toString('latin1', 0, FIRST_BYTES)) ?? [];
  if (type !== undefined && !TYPES.test(type)) return undefined;
  const text = yield* readUtf8([bytes], new TextDecoder('utf-8', { ignoreBOM: true }));
  yield;
  try {
    const { json, ends } = yield* readTextInSteps(text);
    return isObject(json) ? { text, json, ends } : undefined;
  } catch (error) {
    // Too much for an answer: it goes on as any other event does, and is refused where it is decoded.
    if (error instanceof GatewayError) return undefined;
    throw error;
  }
}
