/**
 * How an exchange answers its client, as a linear handle: Waiting until the response begins, Committed once the 200 of a stream
 * is decided, then ended. After the commit there is no method that sets a status.
 */
import type { ServerResponse } from 'node:http';
import type { OutFrame } from '../../codecs/codec.ts';
import { advance, illegal as no, type Transitions } from '../../streams/lifecycle.ts';
import {
  createResponseWriter,
  type ResponseWriter,
  type ResponseWriterOptions,
  type Wire,
} from '../../streams/response-writer.ts';
import { createSseFramer } from '../../streams/sse-encode.ts';
import { StallWatch, unsentBytes } from '../../streams/stall-watch.ts';
import { LONG_CHARS, textPieces } from '../../streams/text-pieces.ts';
import type { Call } from '../gateway.ts';
import { ignoreRejection } from './settlement.ts';

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
  /** How long the client may take nothing of it: that of the Channel that answered. Default: `timeouts.write_stall_ms`. */
  readonly writeStallMs?: number;
}

const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
} as const;

/** Smaller bodies nearly always fit the socket's send buffer at once. */
const LARGE_BYTES = 64 * 1024;

/** Where an exchange is answered, before anything was sent. */
export interface Reply {
  /** A promise where the body is so long that it is written in pieces: it settles when the client has it, or has left. */
  answer(answer: Answer): Promise<void> | undefined;
  commit(options: ResponseWriterOptions, headers?: Readonly<Record<string, string>>): Committed;
}

/** Nothing has been sent to the client. */
export class Waiting implements Reply {
  readonly #response: ServerResponse;
  readonly #call: Pick<Call, 'gateway' | 'config'>;
  #state: keyof typeof EXCHANGE = 'waiting';

  constructor(call: Pick<Call, 'response' | 'gateway' | 'config'>) {
    this.#response = call.response;
    this.#call = call;
  }

  /** A whole answer: a body with its status, or an error. */
  answer(answer: Answer): Promise<void> | undefined {
    this.#state = advance('exchange', EXCHANGE, this.#state, 'answer');
    const { body } = answer;
    if (typeof body === 'string' && body.length > LONG_CHARS) return this.#answerInPieces(answer, body);
    writeAnswer(this.#response, answer);
    if (this.#response.writableLength >= LARGE_BYTES) this.#watchReader(answer.writeStallMs);
    return undefined;
  }

  async #answerInPieces(answer: Answer, body: string): Promise<void> {
    const response = this.#response;
    const { gateway, config } = this.#call;
    const { clock, streamTurns: turns } = gateway;
    let bytes = 0;
    for (const piece of textPieces(body)) {
      const entered = turns.enter();
      if (entered !== undefined) await entered;
      bytes += Buffer.byteLength(piece);
    }
    if (response.headersSent || response.destroyed) return;
    writeHead(response, answer, bytes);
    const writer = createResponseWriter(response, { clock, turns, writeStallMs: answer.writeStallMs ?? config.writeStallMs });
    // It was answered, also where the client has left since, as with a short body.
    await ignoreRejection(writer.end([body]));
  }

  /** A client that does not read a large answer must not hold its memory and its key's slot for ever. */
  #watchReader(stallMs: number | undefined): void {
    const response = this.#response;
    const { gateway, config } = this.#call;
    const watch = new StallWatch(
      gateway.clock,
      stallMs ?? config.writeStallMs,
      () => unsentBytes(response, response.socket),
      () => response.destroy(),
    );
    watch.start();
    response.once('close', () => watch.stop());
  }

  /**
   * The 200 of a stream. It is sent with the first event, or at once by {@link Committed.flushHead}, so that keep-alives can
   * flow.
   */
  commit(options: ResponseWriterOptions, headers: Readonly<Record<string, string>> = {}): Committed {
    this.#state = advance('exchange', EXCHANGE, this.#state, 'commit');
    this.#response.writeHead(200, { ...STREAM_HEADERS, ...headers });
    // The head decides whether the body is chunked (HTTP/1.0 has no chunks). Our writer writes the chunks itself; the bytes are
    // the same.
    const chunked = this.#response.chunkedEncoding;
    this.#response.chunkedEncoding = false;
    const response = this.#response;
    const wire: Wire = { chunked, socket: () => response.socket ?? undefined };
    const frame = createSseFramer();
    const writer = createResponseWriter(response, { ...options, wire });
    return new Committed(
      writer,
      (frames) => frames.map(frame),
      () => response.flushHeaders(),
    );
  }
}

/** The client reads a stream: from here on a failure is an event of its dialect. */
export class Committed {
  readonly writer: ResponseWriter;
  /** Events in the framing of this stream. */
  readonly framed: (frames: readonly OutFrame[]) => readonly string[];
  readonly #flush: () => void;

  constructor(writer: ResponseWriter, framed: Committed['framed'], flush: () => void = () => undefined) {
    this.writer = writer;
    this.framed = framed;
    this.#flush = flush;
  }

  /** Sends the head of an HTTP answer, unless an event has taken it along. */
  flushHead(): void {
    this.#flush();
  }
}

/** Writes one whole answer; nothing when the client has left or the headers are out. */
export function writeAnswer(response: ServerResponse, answer: Answer): void {
  if (response.headersSent || response.destroyed) return;
  writeHead(response, answer);
  // A string is sent in one packet with the head; a buffer would be a second write.
  response.end(answer.body);
}

function writeHead(
  response: ServerResponse,
  { status, body, contentType, headers }: Answer,
  bytes = Buffer.byteLength(body),
): void {
  response.writeHead(status, {
    'content-type': contentType ?? 'application/json; charset=utf-8',
    'content-length': bytes,
    ...headers,
  });
}
