/**
 * The one writer to a client's HTTP response: whole frames, one `write` a batch, back-pressure, keep-alive, and a reader that
 * left or takes nothing. Knows no dialect and never looks into a frame.
 */
import type { Writable } from 'node:stream';
import type { Clock } from './clock.ts';
import { createKeepAlive, type KeepAlive } from './keep-alive.ts';
import { SSE_KEEP_ALIVE } from './sse-encode.ts';
import { StallWatch, unsentBytes } from './stall-watch.ts';
import { StreamError } from './stream-error.ts';
import { LONG_CHARS, textPieces } from './text-pieces.ts';
import type { LoopTurns } from './loop-turns.ts';

export interface ResponseWriterOptions {
  readonly clock: Clock;
  /** A response that must take bytes and takes none for this long is destroyed with reason `write_stall`. */
  readonly writeStallMs: number;
  /**
   * Absent: none. `frame` (default an SSE comment) is written after each `intervalMs` (default 15 000) without a batch, and at
   * once with `immediately`.
   */
  readonly keepAlive?: { readonly frame?: string; readonly intervalMs?: number; readonly immediately?: boolean };
  /** Absent: `response` is all there is. */
  readonly wire?: Wire;
  /**
   * Each piece of a long text waits for its turn of the event loop, as one of `party`, and so does who waited for a reader that
   * left: a thousand may leave at once. Absent: it waits for the reader alone.
   */
  readonly turns?: Pick<LoopTurns, 'enter' | 'do'>;
  readonly party?: string;
  /** The client left or was ended (`client_gone`, `write_stall`), whether or not a write was waiting. Called at most once. */
  readonly onGone?: (reason: StreamError) => void;
}

/**
 * The connection beneath an HTTP response. The head goes out with the first frames; later ones are written to the connection
 * itself, since node:http would cork it, queue them and wait a tick each time. The frames of HTTP/1.1 chunks are the writer's,
 * one string and one write a batch, and `response` must make none.
 */
export interface Wire {
  readonly chunked: boolean;
  /** Undefined while it belongs to an earlier response, and when it is gone. */
  socket(): Writable | undefined;
}

export interface ResponseWriter {
  /** Why the client is gone, once it is. */
  gone(): StreamError | undefined;
  /**
   * Writes the frames at once; undefined when more may follow, otherwise settles at `drain`. Throws or rejects once the client is
   * gone.
   */
  write(frames: readonly string[]): Promise<void> | undefined;
  /**
   * The last frames and the end, at once; settles when the operating system has taken everything. Rejects when the client went
   * first.
   */
  end(frames?: readonly string[]): Promise<void>;
  /** Another patience with a reader that takes nothing than `writeStallMs`, from now on. */
  waitAtMost(stallMs: number): void;
  /** Cuts the connection, so that the client sees a broken stream and no ending. */
  destroy(reason: unknown): void;
}

/** Longer texts are not copied into one string with their frame. */
const JOINED_CHARS = 4096;
const LAST_CHUNK = '0\r\n\r\n';

/** Made once: an error costs its stack, and where a thousand clients leave at once each would tell of the same few calls. */
const CLOSED = new StreamError('client_gone', 'the client closed the connection');

/** One HTTP/1.1 chunk; false when no more is wanted for now. */
function writeChunk(to: Writable, text: string): boolean {
  if (text.length <= JOINED_CHARS) return to.write(chunk(text));
  to.cork();
  to.write(`${size(text)}\r\n`);
  to.write(text);
  const more = to.write('\r\n');
  to.uncork();
  return more;
}

/**
 * The last frames and the end are one write of the operating system, however long: an `uncork` between them would make two of it.
 */
function endChunks(response: Writable, text: string): void {
  if (text === '') response.end(LAST_CHUNK);
  else if (text.length <= JOINED_CHARS) response.end(chunk(text) + LAST_CHUNK);
  else {
    response.write(`${size(text)}\r\n`);
    response.write(text);
    response.end(`\r\n${LAST_CHUNK}`);
  }
}

function chunk(text: string): string {
  return `${size(text)}\r\n${text}\r\n`;
}

function size(text: string): string {
  return Buffer.byteLength(text).toString(16);
}

function joined(frames: readonly string[]): string {
  return frames.length === 1 ? (frames[0] ?? '') : frames.join('');
}

/** Together: many frames in one read are long, too. */
function isLong(frames: readonly string[]): boolean {
  let chars = 0;
  for (const { length } of frames) chars += length;
  return chars > LONG_CHARS;
}

export function createResponseWriter(response: Writable, options: ResponseWriterOptions): ResponseWriter {
  const writer = new WireWriter(response, options);
  writer.start();
  return writer;
}

/** A class, since every open stream has one: closures would cost it several times as much. */
class WireWriter implements ResponseWriter {
  readonly #response: Writable;
  readonly #options: ResponseWriterOptions;
  readonly #keepAlive: KeepAlive | undefined;
  /** Made for the first reader that is behind. */
  #stall: StallWatch | undefined;
  #gone: StreamError | undefined;
  #cause: unknown;
  #waiter: { readonly resolve: () => void; readonly reject: (reason: StreamError) => void } | undefined;
  #headOut = false;
  /** The reader is behind: a `drain` will come. */
  #full = false;
  /** The pieces of a long text follow each other: nothing else may stand between them. */
  #isInPieces = false;
  #stallMs: number;

  constructor(response: Writable, options: ResponseWriterOptions) {
    this.#response = response;
    this.#options = options;
    this.#stallMs = options.writeStallMs;
    const { clock, keepAlive } = options;
    this.#keepAlive = keepAlive && createKeepAlive(clock, () => this.#sayAlive(), keepAlive.intervalMs);
  }

  start(): void {
    const response = this.#response;
    response.on('drain', this.#onDrain);
    response.on('error', (error) => {
      this.#cause = error;
    });
    response.on('close', () => this.#closed());
    response.on('finish', () => {
      this.#stopTimers();
      this.#release();
    });
    if (response.destroyed) this.#leave(new StreamError('client_gone', 'the client had left before the first byte'));
    else if (this.#options.keepAlive?.immediately) this.#sayAlive();
  }

  gone(): StreamError | undefined {
    return this.#gone;
  }

  write(frames: readonly string[]): Promise<void> | undefined {
    if (this.#gone !== undefined) throw this.#gone;
    if (isLong(frames)) return this.#putPieces(frames);
    const text = joined(frames);
    // Nothing written is still silence: an upstream's comments must not silence our own.
    if (text === '') return this.#full ? this.#settled() : undefined;
    if (this.#put(text)) return this.#settled();
    this.#keepAlive?.touch();
    return undefined;
  }

  end(frames: readonly string[] = []): Promise<void> {
    if (this.#gone !== undefined) return Promise.reject(this.#gone);
    this.#keepAlive?.stop();
    return isLong(frames) ? this.#putPieces(frames).then(() => this.#finish('')) : this.#finish(joined(frames));
  }

  #finish(text: string): Promise<void> {
    if (this.#gone !== undefined) return Promise.reject(this.#gone);
    const done = this.#settled();
    if (this.#isChunked) endChunks(this.#response, text);
    else this.#response.end(text);
    this.#watchStall();
    return done;
  }

  waitAtMost(stallMs: number): void {
    this.#stallMs = stallMs;
    this.#stall?.waitAtMost(stallMs);
    if (this.#full) this.#watchStall();
  }

  destroy(reason: unknown): void {
    this.#leave(reason instanceof StreamError ? reason : new StreamError('cancelled', 'the stream was cut', { cause: reason }));
  }

  get #isChunked(): boolean {
    return this.#options.wire?.chunked === true;
  }

  /** True when the reader wants no more for now. */
  #put(text: string): boolean {
    const to = (this.#headOut ? this.#options.wire?.socket() : undefined) ?? this.#response;
    this.#headOut = true;
    // Its close is on the way, and ends the wait: a write would only make an error of its own.
    if (!to.destroyed) {
      if (this.#isChunked ? writeChunk(to, text) : to.write(text)) return false;
      if (to !== this.#response) to.once('drain', this.#onDrain);
    }
    this.#full = true;
    this.#keepAlive?.pause();
    this.#watchStall();
    return true;
  }

  /** Settles when more may follow. Rejects once the client is gone. */
  async #putPieces(frames: readonly string[]): Promise<void> {
    const { turns, party } = this.#options;
    this.#isInPieces = true;
    this.#keepAlive?.pause();
    for (const frame of frames) {
      const pieces = textPieces(frame);
      for (;;) {
        // The first piece of a text that was put together copies all of it: it is made in its own turn, too.
        const entered = turns?.enter(party);
        if (entered !== undefined) await entered;
        if (this.#gone !== undefined) throw this.#gone;
        const { value: piece, done } = pieces.next();
        if (done === true) break;
        if (this.#put(piece)) await this.#settled();
      }
    }
    this.#isInPieces = false;
    this.#keepAlive?.touch();
  }

  #sayAlive(): void {
    this.#put(this.#options.keepAlive?.frame ?? SSE_KEEP_ALIVE);
  }

  #settled(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject };
    });
  }

  #release(): void {
    this.#waiter?.resolve();
    this.#waiter = undefined;
  }

  readonly #onDrain = (): void => {
    this.#full = false;
    this.#stall?.clear();
    if (!this.#isInPieces) this.#keepAlive?.touch();
    this.#release();
  };

  #watchStall(): void {
    const { clock, wire } = this.#options;
    this.#stall ??= new StallWatch(
      clock,
      this.#stallMs,
      () => unsentBytes(this.#response, wire === undefined ? this.#response : wire.socket()),
      () => this.#leave(new StreamError('write_stall', `the reader took nothing for ${this.#stallMs} ms`)),
    );
    this.#stall.start();
  }

  #closed(): void {
    if (this.#response.writableFinished) return;
    const cause = this.#cause;
    this.#leave(cause === undefined ? CLOSED : new StreamError('client_gone', CLOSED.message, { cause }));
  }

  #leave(reason: StreamError): void {
    if (this.#gone !== undefined) return;
    this.#gone = reason;
    this.#stopTimers();
    this.#response.destroy();
    this.#options.onGone?.(reason);
    const waiter = this.#waiter;
    if (waiter === undefined) return;
    this.#waiter = undefined;
    const { turns, party } = this.#options;
    if (turns === undefined) waiter.reject(reason);
    else turns.do(party, () => waiter.reject(reason));
  }

  #stopTimers(): void {
    this.#stall?.stop();
    this.#keepAlive?.stop();
  }
}
