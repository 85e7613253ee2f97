/**
 * The client's side of one exchange as a linear handle: Waiting until something is said, Committed once the 200 of a stream is out,
 * then ended. No method exists for a status after the commit, or for a body before it.
 */
import type { ServerResponse } from 'node:http';
import type { Frame } from '../../codecs/codec.ts';
import { advance, illegal as no, type Transitions } from '../../streams/lifecycle.ts';
import {
  createResponseWriter,
  type ResponseWriter,
  type ResponseWriterOptions,
  type Wire,
} from '../../streams/response-writer.ts';
import { createSseFramer } from '../../streams/sse-encode.ts';
import { StallWatch, unsentBytes } from '../../streams/stall-watch.ts';
import type { Call } from '../gateway.ts';

export const EXCHANGE = {
  waiting: { commit: 'committed', answer: 'ended', end: no },
  committed: { commit: no, answer: no, end: 'ended' },
  ended: { commit: no, answer: no, end: no },
} as const satisfies Transitions<'waiting' | 'committed' | 'ended', 'commit' | 'answer' | 'end'>;

export interface Answer {
  readonly status: number;
  readonly body: string | Uint8Array;
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
} as const;

/** An answer of less is in the hands of the operating system at once, nearly always. */
const LARGE_BYTES = 64 * 1024;

/** Where the words of an exchange go, before any was said. */
export interface Reply {
  answer(answer: Answer): void;
  commit(options: ResponseWriterOptions, headers?: Readonly<Record<string, string>>): Committed;
}

/** Nothing has been said to the client. */
export class Waiting implements Reply {
  readonly #response: ServerResponse;
  readonly #call: Pick<Call, 'gateway' | 'config'>;
  #state: keyof typeof EXCHANGE = 'waiting';

  constructor(call: Pick<Call, 'response' | 'gateway' | 'config'>) {
    this.#response = call.response;
    this.#call = call;
  }

  /** A whole answer: a body with its status, or an error. */
  answer(answer: Answer): void {
    this.#state = advance('exchange', EXCHANGE, this.#state, 'answer');
    writeAnswer(this.#response, answer);
    if (this.#response.writableLength >= LARGE_BYTES) this.#watchReader();
  }

  /** A reader that takes nothing of a large answer must not keep it, and its key's place, for ever. */
  #watchReader(): void {
    const response = this.#response;
    const { gateway, config } = this.#call;
    const watch = new StallWatch(
      gateway.clock,
      config.writeStallMs,
      () => unsentBytes(response, response.socket),
      () => response.destroy(),
    );
    watch.start();
    response.once('close', () => watch.stop());
  }

  /** The 200 of a stream: it goes out with the first words, or at once with {@link Committed.flushHead}, so that keep-alives can flow. */
  commit(options: ResponseWriterOptions, headers: Readonly<Record<string, string>> = {}): Committed {
    this.#state = advance('exchange', EXCHANGE, this.#state, 'commit');
    this.#response.writeHead(200, { ...STREAM_HEADERS, ...headers });
    // The head decides whether the body is chunked (HTTP/1.0 has no chunks); who writes the chunks does not change a byte.
    const chunked = this.#response.chunkedEncoding;
    this.#response.chunkedEncoding = false;
    const response = this.#response;
    const wire: Wire = { chunked, socket: () => response.socket ?? undefined };
    return new Committed(createResponseWriter(response, { ...options, wire }), createSseFramer(), () => response.flushHeaders());
  }
}

/** The client reads a stream: from here on a failure is words of its dialect. */
export class Committed {
  readonly writer: ResponseWriter;
  /** One event in the framing of this stream. */
  readonly frame: (frame: Frame) => string;
  readonly #flush: () => void;

  constructor(writer: ResponseWriter, frame: (frame: Frame) => string, flush: () => void = () => undefined) {
    this.writer = writer;
    this.frame = frame;
    this.#flush = flush;
  }

  /** Sends the head of an HTTP answer, unless words have taken it along. */
  flushHead(): void {
    this.#flush();
  }
}

/** Writes one whole answer. Says nothing when the client has left or the headers are out. */
export function writeAnswer(response: ServerResponse, answer: Answer): void {
  if (response.headersSent || response.destroyed) return;
  const { body } = answer;
  response.writeHead(answer.status, {
    'content-type': answer.contentType ?? 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    ...answer.headers,
  });
  // A text leaves in one piece with the head; bytes would be a second one.
  response.end(body);
}
