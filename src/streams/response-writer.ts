/**
 * The one writer to a client's HTTP response: whole frames, one `write` a batch, back-pressure, keep-alive, and a reader that left or
 * takes nothing. Knows no dialect and never looks into a frame.
 */
import type { Writable } from 'node:stream';
import type { Clock } from './clock.ts';
import { createDeadline } from './deadline.ts';
import { createKeepAlive } from './keep-alive.ts';
import { SSE_KEEP_ALIVE } from './sse-encode.ts';
import { StreamError } from './stream-error.ts';

export interface ResponseWriterOptions {
  readonly clock: Clock;
  /** A response that must take bytes and takes none for this long is destroyed with reason `write_stall`. */
  readonly writeStallMs: number;
  /** Absent: none. `frame` (default an SSE comment) is said after each `intervalMs` (default 15 000) without a batch, and at once with `immediately`. */
  readonly keepAlive?: { readonly frame?: string; readonly intervalMs?: number; readonly immediately?: boolean };
  /** Absent: `response` is all there is. */
  readonly wire?: Wire;
  /** The client left or was ended (`client_gone`, `write_stall`), whether or not a write was waiting. Called at most once. */
  readonly onGone?: (reason: StreamError) => void;
}

/**
 * The connection beneath an HTTP response. The head goes out with the first words; later ones are written to the connection itself, since
 * node:http would cork it, queue them and wait a tick each time. The frames of HTTP/1.1 chunks are the writer's, one string and one write
 * a batch, and `response` must make none.
 */
export interface Wire {
  readonly chunked: boolean;
  /** Undefined while it belongs to an earlier response, and when it is gone. */
  socket(): Writable | undefined;
}

export interface ResponseWriter {
  /** Why the client is gone, once it is. */
  gone(): StreamError | undefined;
  /** Writes the frames at once; undefined when more may follow, otherwise settles at `drain`. Throws or rejects once the client is gone. */
  write(frames: readonly string[]): Promise<void> | undefined;
  /** The last frames and the end, at once; settles when the operating system has taken everything. Rejects when the client went first. */
  end(frames?: readonly string[]): Promise<void>;
  /** Cuts the connection, so that the client sees a broken stream and no ending. */
  destroy(reason: unknown): void;
}

/** Longer texts are not copied into one string with their frame. */
const JOINED_CHARS = 4096;
const LAST_CHUNK = '0\r\n\r\n';

/** One HTTP/1.1 chunk; false when no more is wanted for now. */
function writeChunk(to: Writable, text: string): boolean {
  const size = Buffer.byteLength(text).toString(16);
  if (text.length <= JOINED_CHARS) return to.write(`${size}\r\n${text}\r\n`);
  to.cork();
  to.write(`${size}\r\n`);
  to.write(text);
  const more = to.write('\r\n');
  to.uncork();
  return more;
}

function endChunks(response: Writable, text: string): void {
  if (text === '') response.end(LAST_CHUNK);
  else if (text.length <= JOINED_CHARS) response.end(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n${LAST_CHUNK}`);
  else {
    response.write(`${Buffer.byteLength(text).toString(16)}\r\n`);
    response.write(text);
    response.end(`\r\n${LAST_CHUNK}`);
  }
}

function joined(frames: readonly string[]): string {
  return frames.length === 1 ? (frames[0] ?? '') : frames.join('');
}

export function createResponseWriter(response: Writable, options: ResponseWriterOptions): ResponseWriter {
  let gone: StreamError | undefined;
  let cause: unknown;
  let waiter: { readonly resolve: () => void; readonly reject: (reason: StreamError) => void } | undefined;
  let unsent = 0;
  let headOut = false;
  /** The reader is behind: a `drain` will come. */
  let full = false;

  const stall = createDeadline(options.clock, () => {
    // A batch that shrinks is a slow reader and no dead one.
    if (response.writableLength < unsent) watchStall();
    else leave(new StreamError('write_stall', `the reader took nothing for ${options.writeStallMs} ms`));
  });

  const watchStall = (): void => {
    unsent = response.writableLength;
    stall.in(options.writeStallMs);
  };

  const stopTimers = (): void => {
    stall.stop();
    keepAlive?.stop();
  };

  const leave = (reason: StreamError): void => {
    if (gone !== undefined) return;
    gone = reason;
    stopTimers();
    response.destroy();
    waiter?.reject(reason);
    waiter = undefined;
    options.onGone?.(reason);
  };

  const settle = (): Promise<void> =>
    new Promise((resolve, reject) => {
      waiter = { resolve, reject };
    });

  const { wire } = options;
  const chunked = wire?.chunked === true;

  /** True when the reader wants no more for now. */
  const put = (text: string): boolean => {
    const to = (headOut ? wire?.socket() : undefined) ?? response;
    headOut = true;
    if (chunked ? writeChunk(to, text) : to.write(text)) return false;
    if (to !== response) to.once('drain', onDrain);
    full = true;
    keepAlive?.pause();
    watchStall();
    return true;
  };

  const keepAliveFrame = options.keepAlive?.frame ?? SSE_KEEP_ALIVE;
  const keepAlive = options.keepAlive && createKeepAlive(options.clock, () => put(keepAliveFrame), options.keepAlive.intervalMs);

  const onDrain = (): void => {
    if (response.writableEnded) {
      watchStall();
      return;
    }
    full = false;
    stall.clear();
    keepAlive?.touch();
    waiter?.resolve();
    waiter = undefined;
  };
  response.on('drain', onDrain);
  response.on('error', (error) => {
    cause = error;
  });
  response.on('close', () => {
    if (response.writableFinished) stopTimers();
    else leave(new StreamError('client_gone', 'the client closed the connection', { cause }));
  });
  response.on('finish', () => {
    stopTimers();
    waiter?.resolve();
    waiter = undefined;
  });

  if (response.destroyed) leave(new StreamError('client_gone', 'the client had left before the first byte'));
  else if (options.keepAlive?.immediately) put(keepAliveFrame);

  return {
    gone: () => gone,
    write(frames) {
      if (gone !== undefined) throw gone;
      const text = joined(frames);
      // Nothing said is still silence: an upstream's comments must not silence our own.
      if (text === '') return full ? settle() : undefined;
      if (put(text)) return settle();
      keepAlive?.touch();
      return undefined;
    },
    end(frames = []) {
      if (gone !== undefined) return Promise.reject(gone);
      keepAlive?.stop();
      const done = settle();
      const text = joined(frames);
      if (chunked) endChunks(response, text);
      else response.end(text === '' ? undefined : text);
      watchStall();
      return done;
    },
    destroy(reason) {
      leave(reason instanceof StreamError ? reason : new StreamError('cancelled', 'the stream was cut', { cause: reason }));
    },
  };
}
