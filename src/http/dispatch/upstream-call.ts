/**
 * One request on a pooled connection, as undici calls its handlers: the head as a promise, then the body. Undici's own `request`
 * makes the same of it with a Node stream between, which costs more than all the rest of a call. Knows no Channel.
 */
import { AssertionError } from 'node:assert';
import { type Dispatcher, errors } from 'undici';
import type { UpstreamAnswer } from '../../codecs/codec.ts';
import type { Framing } from '../../codecs/pipeline.ts';
import type { Clock } from '../../streams/clock.ts';
import { ReceivedBody } from './received-body.ts';

export interface UpstreamHead {
  readonly status: number;
  /** One that was sent twice is a list, whichever it is: undici's own types do not say so. */
  readonly headers: UpstreamAnswer['headers'];
  readonly body: ReceivedBody;
  /** How its events are framed; absent: as the Channel frames them. */
  readonly framing?: Framing;
  /** The credentials that a platform lent to the request. */
  readonly lent?: readonly string[];
}

/** The first value of a header; empty where the upstream sent none. */
export function headerOf(headers: UpstreamHead['headers'], name: string): string {
  const value = headers[name];
  return (typeof value === 'string' ? value : value?.[0]) ?? '';
}

export class UpstreamCall implements Dispatcher.DispatchHandler {
  /** When it was signed and given to its connection, by the monotonic clock; behind a platform alone. */
  signedAt: number | undefined;
  /** The credentials that it was signed with there. */
  lent: readonly string[] | undefined;
  /** Rejects with undici's error, or with the reason of the abort. */
  readonly head: Promise<UpstreamHead>;
  readonly #resolve: (head: UpstreamHead) => void;
  readonly #reject: (error: Error) => void;
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #onSignal = (): void => this.abort(this.#signal.reason);
  #controller: Dispatcher.DispatchController | undefined;
  #body: ReceivedBody | undefined;
  #failure: Error | undefined;
  #abortedFor: Error | undefined;
  /** The upstream has begun to answer, if only with 1xx or half a head: a connection that breaks then was no dead one. */
  #isHeard = false;

  /** `signal` aborts in every phase. */
  constructor(clock: Clock, signal: AbortSignal) {
    const { promise, resolve, reject } = Promise.withResolvers<UpstreamHead>();
    this.head = promise;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#clock = clock;
    this.#signal = signal;
    if (signal.aborted) this.#onSignal();
    else signal.addEventListener('abort', this.#onSignal, { once: true });
  }

  /** Why it was aborted, by the signal or by {@link abort}: whatever failed after that failed because of it. */
  get abortedFor(): Error | undefined {
    return this.#abortedFor;
  }

  /** It was aborted: nobody waits for a request that was not sent yet. */
  get over(): boolean {
    return this.#failure !== undefined;
  }

  /** False as long as there is no connection to write the request to: the upstream cannot have seen any of it. */
  get begun(): boolean {
    return this.#controller !== undefined;
  }

  /** Cuts the connection at once, or the attempt to make one. */
  abort(reason: unknown): void {
    this.#abortedFor ??= reason instanceof Error ? reason : new Error('the call was cancelled', { cause: reason });
    this.#fail(this.#abortedFor);
    this.#controller?.abort(this.#abortedFor);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#failure !== undefined) controller.abort(this.#failure);
  }

  onResponseStarted(): void {
    this.#isHeard = true;
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: UpstreamHead['headers']): void {
    if (status < 200) return;
    // They were parsed, and each would keep the whole packet that the head came in for as long as the body lasts.
    controller.rawHeaders = null;
    this.#body = new ReceivedBody(controller, this.#clock);
    const { lent } = this;
    this.#resolve({ status, headers, body: this.#body, ...(lent === undefined ? {} : { lent }) });
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#body?.feed(chunk);
  }

  onResponseEnd(): void {
    this.#signal.removeEventListener('abort', this.#onSignal);
    this.#body?.end();
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    this.#fail(this.#isHeard && error instanceof errors.SocketError ? new errors.SocketError(error.message) : unasked(error));
  }

  /** The first failure is the one that is told. */
  #fail(error: Error): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.#signal.removeEventListener('abort', this.#onSignal);
    if (this.#body === undefined) this.#reject(error);
    else this.#body.fail(error);
  }
}

/**
 * Undici asserts that no upstream switches protocols unasked, and ends the connection of one that does (101), or that goes on
 * unasked (100): the upstream is at fault, has the request, and answers.
 */
function unasked(error: Error): Error {
  const isUnasked = error instanceof AssertionError || /^bad (response|upgrade)$/.test(error.message);
  return isUnasked ? new errors.HTTPParserError('the upstream answered with what nobody asked for', undefined) : error;
}
