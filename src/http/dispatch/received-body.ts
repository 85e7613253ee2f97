/**
 * The body of an upstream's answer, straight from the connection's parser: what has arrived waits here until it is taken, and at
 * 64 KiB the connection is held back. Knows no dialect and no status.
 */
import { BATCH_BYTES, type BodyReader, type HoldWatcher } from '../../streams/body-source.ts';
import type { Clock, Timer } from '../../streams/clock.ts';
import { StreamError } from '../../streams/stream-error.ts';

/** How long a finished upstream may take to end its response, so that its connection can be used again. */
const DRAIN_MS = 250;

/** The connection that the body comes from. Nothing more is fed after `abort`. */
export interface Flow {
  pause(): void;
  resume(): void;
  abort(reason: Error): void;
}

const SOON = Promise.resolve();
/** Never pushed to. */
const NONE: Uint8Array[] = [];

export class ReceivedBody implements BodyReader {
  readonly #flow: Flow;
  readonly #clock: Clock;
  #chunks: Uint8Array[] = NONE;
  #bytes = 0;
  #begun = false;
  #ended = false;
  #failure: Error | undefined;
  /** Nobody reads any more; what comes is thrown away. */
  #left = false;
  #drain: Timer | undefined;
  #wake: (() => void) | undefined;
  #watcher: HoldWatcher | undefined;

  constructor(flow: Flow, clock: Clock) {
    this.#flow = flow;
    this.#clock = clock;
  }

  /** Whether any of it has arrived. */
  get begun(): boolean {
    return this.#begun;
  }

  feed(chunk: Uint8Array): void {
    this.#begun = true;
    this.#bytes += chunk.length;
    if (this.#left) {
      if (this.#bytes > BATCH_BYTES) this.#cut();
      return;
    }
    if (this.#ended) return;
    // A read mostly brings one: `push` would make room for seventeen.
    if (this.#chunks.length === 0) this.#chunks = [chunk];
    else this.#chunks.push(chunk);
    if (this.#bytes >= BATCH_BYTES) this.#flow.pause();
    this.#rouse();
  }

  end(): void {
    this.#ended = true;
    this.#drain?.cancel();
    this.#rouse();
  }

  /** Told to the reader once it has taken what came before. */
  fail(failure: Error): void {
    this.#failure ??= failure;
    this.#drain?.cancel();
    this.#rouse();
  }

  take(): readonly Uint8Array[] | undefined | null {
    if (this.#left) return null;
    if (this.#chunks.length > 0) {
      const batch = this.#chunks;
      this.#chunks = NONE;
      const wasHeld = this.#bytes >= BATCH_BYTES;
      this.#bytes = 0;
      if (wasHeld) this.#flow.resume();
      return batch;
    }
    if (this.#ended) return null;
    if (this.#failure !== undefined) throw this.#failure;
    return undefined;
  }

  ready(wake: () => void): void {
    this.#wake = wake;
    if (this.#chunks.length > 0 || this.#ended || this.#left || this.#failure !== undefined) this.#rouse();
  }

  wait(): Promise<void> {
    return new Promise((resolve) => this.ready(resolve));
  }

  watchHolds(watcher: HoldWatcher): void {
    this.#watcher = watcher;
  }

  /** Its connection is not read until then: what else came on it has to go somewhere first. `until` never rejects. */
  hold(until: Promise<void>): void {
    const watcher = this.#watcher;
    watcher?.pause();
    void until.then(() => watcher?.resume());
  }

  /** A reader that has all it wants (reason `ended`) lets a short rest come in; any other reason cuts the connection at once. */
  cancel(reason?: unknown): void {
    if (this.#left) return;
    this.#left = true;
    this.#chunks = NONE;
    this.#bytes = 0;
    if (!this.#ended && this.#failure === undefined) {
      if (reason instanceof StreamError && reason.reason === 'ended') {
        this.#drain = this.#clock.setTimeout(() => this.#cut(), DRAIN_MS);
        this.#flow.resume();
      } else this.#cut(reason);
    }
    this.#rouse();
  }

  finish(): void {
    if (!this.#ended && this.#failure === undefined) this.#cut();
    this.#ended = true;
    this.#rouse();
  }

  #cut(reason?: unknown): void {
    this.#drain?.cancel();
    this.#flow.abort(reason instanceof Error ? reason : new StreamError('cancelled', 'nobody reads the answer any more'));
  }

  /** The reader is called when the connection's parser is done with what it read: a hundred small chunks are one batch. */
  #rouse(): void {
    const wake = this.#wake;
    if (wake === undefined) return;
    this.#wake = undefined;
    void SOON.then(wake);
  }
}
