/**
 * How long an upstream may be silent: `first_data_ms` until its first data event, `idle_ms` between bytes after that. One timer
 * an exchange. Bytes without data (comments, pings) keep an upstream alive for no longer than `first_data_ms`, also in
 * mid-stream. Knows nothing of what counts as data: the caller says `data` for an event and `touch` for other bytes.
 */
import type { Clock } from './clock.ts';
import { createDeadline, type Deadline } from './deadline.ts';
import { StreamError } from './stream-error.ts';

export interface IdleTimers {
  /**
   * Bytes arrived, and no data: comments, pings, a part of an event. Re-arms the idle limit; before the first data it does
   * nothing.
   */
  touch(): void;
  /** A data event arrived: the first one ends the first-data limit and starts the idle limit. */
  data(): void;
  /** Nobody reads the upstream now (the client is slow): its silence counts no more. The first-data limit runs on. */
  pause(): void;
  /** The upstream is read again: the idle limit starts anew. */
  resume(): void;
  stop(): void;
}

export interface IdleLimits {
  readonly firstDataMs: number;
  readonly idleMs: number;
}

/** Starts the first-data limit at once. `onExpire` is called at most once, with reason `first_data_timeout` or `idle_timeout`. */
export function createIdleTimers(clock: Clock, limits: IdleLimits, onExpire: (error: StreamError) => void): IdleTimers {
  return new DeadlineIdleTimers(clock, limits, onExpire);
}

class DeadlineIdleTimers implements IdleTimers {
  readonly #clock: Clock;
  readonly #limits: IdleLimits;
  readonly #onExpire: (error: StreamError) => void;
  readonly #deadline: Deadline;
  #phase: 'waiting' | 'flowing' | 'paused' | 'over' = 'waiting';
  /** From the first data on: comments alone do not move this on. */
  #dataDueAt = 0;

  constructor(clock: Clock, limits: IdleLimits, onExpire: (error: StreamError) => void) {
    this.#clock = clock;
    this.#limits = limits;
    this.#onExpire = onExpire;
    this.#deadline = createDeadline(clock, () => this.#expire());
    this.#deadline.in(limits.firstDataMs);
  }

  touch(): void {
    if (this.#phase !== 'flowing') return;
    const now = this.#clock.monotonic();
    this.#deadline.in(Math.min(this.#limits.idleMs, this.#dataDueAt - now), now);
  }

  data(): void {
    if (this.#phase === 'waiting') this.#phase = 'flowing';
    this.#wait();
  }

  pause(): void {
    if (this.#phase !== 'flowing') return;
    this.#phase = 'paused';
    this.#deadline.clear();
  }

  resume(): void {
    if (this.#phase !== 'paused') return;
    this.#phase = 'flowing';
    this.#wait();
  }

  stop(): void {
    this.#phase = 'over';
    this.#deadline.stop();
  }

  /** For the next data. */
  #wait(): void {
    const { firstDataMs, idleMs } = this.#limits;
    const now = this.#clock.monotonic();
    this.#dataDueAt = now + Math.max(firstDataMs, idleMs);
    if (this.#phase === 'flowing') this.#deadline.in(idleMs, now);
  }

  #expire(): void {
    const { firstDataMs, idleMs } = this.#limits;
    const waiting = this.#phase === 'waiting';
    this.#phase = 'over';
    this.#onExpire(
      waiting
        ? new StreamError('first_data_timeout', `no data within ${firstDataMs} ms`)
        : new StreamError('idle_timeout', `silent for ${idleMs} ms`),
    );
  }
}
