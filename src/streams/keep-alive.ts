/**
 * Writes a keep-alive after a time of silence, so that proxies and clients do not give up on a slow answer. Knows no frame
 * format.
 */
import type { Clock } from './clock.ts';
import { createDeadline, type Deadline } from './deadline.ts';

const KEEP_ALIVE_INTERVAL_MS = 15_000;

export interface KeepAlive {
  /** Something was written: the interval starts anew. Also ends a pause. */
  touch(): void;
  /** The reader is behind: no keep-alive until `touch`. */
  pause(): void;
  stop(): void;
}

/**
 * Calls `send` after each `intervalMs` of silence, for the first time `intervalMs` from now. Each call starts the interval anew.
 */
export function createKeepAlive(clock: Clock, send: () => void, intervalMs: number = KEEP_ALIVE_INTERVAL_MS): KeepAlive {
  return new DeadlineKeepAlive(clock, send, intervalMs);
}

class DeadlineKeepAlive implements KeepAlive {
  readonly #deadline: Deadline;
  readonly #intervalMs: number;
  #stopped = false;

  constructor(clock: Clock, send: () => void, intervalMs: number) {
    this.#intervalMs = intervalMs;
    this.#deadline = createDeadline(clock, () => {
      this.#deadline.in(intervalMs);
      send();
    });
    this.#deadline.in(intervalMs);
  }

  touch(): void {
    if (!this.#stopped) this.#deadline.in(this.#intervalMs);
  }

  pause(): void {
    this.#deadline.clear();
  }

  stop(): void {
    this.#stopped = true;
    this.#deadline.stop();
  }
}
