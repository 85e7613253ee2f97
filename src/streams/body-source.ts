/**
 * Reads a Node or undici body without losing what had already arrived. `Readable.toWeb` and the body of `fetch` drop delivered
 * chunks when the connection dies while the reader is slow; here the body's error is raised only when nothing is left to deliver.
 * For Node bodies and pipes: a connection that is read without a Node stream keeps the same contract, {@link BodyReader}.
 */
import type { Readable } from 'node:stream';
import type { Clock } from './clock.ts';
import { StreamError } from './stream-error.ts';

/** A batch is closed once it holds this much. */
export const BATCH_BYTES = 64 * 1024;

export interface BodyReader {
  /**
   * What has arrived (up to about 64 KiB); undefined: nothing yet; null: the end. Throws when the body failed and nothing is left
   * to deliver.
   */
  take(): readonly Uint8Array[] | undefined | null;
  /** Calls `wake` once, soon after `take` may have something new; never before this call has returned. */
  ready(wake: () => void): void;
  /** {@link ready} as a promise. Never rejects. */
  wait(): Promise<void>;
  /** Releases the body and what is buffered, at once (but see {@link Drain}): `take` then returns the end. Never throws. */
  cancel(reason?: unknown): void;
  /** Ends the body after what has arrived: once that is taken, `take` returns the end. The body is destroyed. */
  finish(): void;
  /** Who is told where its sender is kept waiting for something else than `take`. Absent where that cannot be. */
  watchHolds?(watcher: HoldWatcher): void;
}

/** Calls come in pairs, and pairs may overlap. */
export interface HoldWatcher {
  /** From here to `resume` the sender is not read, and its silence is not its own. */
  pause(): void;
  resume(): void;
}

/**
 * How long a body may take to end by itself after a cancel with reason `ended`. Destroying a body costs its connection, and the
 * end of a stream mostly comes just after its last event. At most 64 KiB are thrown away; then the body is destroyed.
 */
export interface Drain {
  readonly clock: Clock;
  readonly ms: number;
}

/** Attaches to a body that nobody reads yet, and swallows its later `error` events: `take` reports them. */
export function readBody(body: Readable, drain?: Drain): BodyReader {
  let wake: (() => void) | undefined;
  let finished = body.readableEnded;
  let cancelled = false;
  const rouse = (): void => {
    const woken = wake;
    wake = undefined;
    woken?.();
  };
  const ready = (listener: () => void): void => {
    wake = listener;
  };
  body.on('readable', rouse);
  body.on('error', rouse);
  body.on('close', rouse);
  body.on('end', () => {
    finished = true;
    rouse();
  });

  return {
    take() {
      if (cancelled) return null;
      const batch: Uint8Array[] = [];
      for (let size = 0; size < BATCH_BYTES; ) {
        // One read() gives one buffer, so without the loop a hundred HTTP chunks of one packet would be a hundred batches.
        const chunk: Uint8Array | null = body.read();
        if (chunk === null) break;
        batch.push(chunk);
        size += chunk.length;
      }
      if (batch.length > 0) return batch;
      if (finished) return null;
      if (body.errored) throw body.errored;
      if (body.destroyed) throw new StreamError('source_closed', 'the body closed before its end');
      return undefined;
    },
    ready,
    wait: () => new Promise<void>(ready),
    cancel(reason) {
      if (cancelled) return;
      cancelled = true;
      body.off('readable', rouse);
      if (drain !== undefined && reason instanceof StreamError && reason.reason === 'ended') letEnd(body, drain);
      else body.destroy(reason instanceof Error ? reason : undefined);
      rouse();
    },
    finish() {
      finished = true;
      // What is buffered stays readable after a destroy.
      body.destroy();
      rouse();
    },
  };
}

function letEnd(body: Readable, drain: Drain): void {
  if (body.destroyed || body.readableEnded) return;
  let left = BATCH_BYTES;
  const timer = drain.clock.setTimeout(() => body.destroy(), drain.ms);
  body.once('close', () => timer.cancel());
  body.on('data', (chunk: Uint8Array) => {
    left -= chunk.length;
    if (left < 0) body.destroy();
  });
  body.resume();
}
