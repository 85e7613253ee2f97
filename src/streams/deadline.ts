/**
 * A deadline that moves often and expires rarely: moving it is one subtraction, and the timer behind it is armed again only when
 * it wakes too early. One of these serves a whole stream, so no event ever costs a timer.
 */
import type { Clock, Timer } from './clock.ts';

export interface Deadline {
  /** Expires `ms` from now, whatever was set before. `now` is for those who have just asked the clock. */
  in(ms: number, now?: number): void;
  /** Does not expire until it is set again. */
  clear(): void;
  /** Clears it and lets go of its timer; for the end of the stream. */
  stop(): void;
}

/** Calls `onExpire` each time that a set deadline passes; it is then clear, and may be set again from inside the call. */
export function createDeadline(clock: Clock, onExpire: () => void): Deadline {
  return new TimerDeadline(clock, onExpire);
}

/** A class, since every open stream has some: closures would cost each of them several times as much. */
class TimerDeadline implements Deadline {
  readonly #clock: Clock;
  readonly #onExpire: () => void;
  #dueAt = Number.POSITIVE_INFINITY;
  #timer: Timer | undefined;
  #wakesAt = Number.POSITIVE_INFINITY;

  constructor(clock: Clock, onExpire: () => void) {
    this.#clock = clock;
    this.#onExpire = onExpire;
  }

  in(ms: number, now = this.#clock.monotonic()): void {
    this.#dueAt = now + ms;
    if (this.#wakesAt > this.#dueAt) this.#arm(now);
  }

  clear(): void {
    this.#dueAt = Number.POSITIVE_INFINITY;
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#wakesAt = Number.POSITIVE_INFINITY;
  }

  #arm(now: number): void {
    this.#timer?.cancel();
    this.#wakesAt = this.#dueAt;
    this.#timer = this.#clock.setTimeout(() => this.#wake(), Math.max(0, this.#dueAt - now));
  }

  #wake(): void {
    this.#timer = undefined;
    this.#wakesAt = Number.POSITIVE_INFINITY;
    if (this.#dueAt === Number.POSITIVE_INFINITY) return;
    const now = this.#clock.monotonic();
    if (now < this.#dueAt) {
      this.#arm(now);
      return;
    }
    this.#onExpire();
  }
}
