/** Time as an argument. The system clock lives here and nowhere else in this room; the entry passes it in. */

export interface Timer {
  /** Never throws; nothing happens when it fired or was cancelled already. */
  cancel(): void;
}

export interface Clock {
  /** Milliseconds since 1970, for what is written down. May jump. */
  now(): number;
  /** Milliseconds from an arbitrary start, for what is measured. Never goes back. */
  monotonic(): number;
  /** Calls `fire` once after at least `ms` milliseconds. */
  setTimeout(fire: () => void, ms: number): Timer;
  /**
   * The machine's own, where `now` is the time of a store. What others judge by their clocks (signatures, ends of credentials,
   * dates in their answers) goes by it: a database whose clock is wrong would have each of them refused.
   */
  readonly own?: Clock;
}

/** The longest delay that a Node timer can hold; a longer one would fire at once. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

class NodeTimer implements Timer {
  #handle: NodeJS.Timeout | undefined;

  constructor(handle: NodeJS.Timeout) {
    this.#handle = handle;
  }

  cancel(): void {
    clearTimeout(this.#handle);
    // A cancelled timer would keep what it was to call.
    this.#handle = undefined;
  }
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimeout(fire, ms) {
    return new NodeTimer(setTimeout(fire, Math.min(ms, LONGEST_TIMEOUT_MS)));
  },
};

/** A clock whose time of day can be put right: several machines that share a database go by its time. */
export interface AdjustableClock extends Clock {
  readonly own: Clock;
  /** Adds `byMs` to what `now` says, also where it has been adjusted before. */
  adjust(byMs: number): void;
}

/**
 * `own` as long as nobody adjusts it, even by nothing. From then on it goes on from there by what is measured: when the clock of
 * the machine jumps, what is compared with the times of others (ends of leases and keys, windows of spend) must not.
 */
export function adjustable(own: Clock): AdjustableClock {
  let steady: { readonly ms: number; readonly at: number } | undefined;
  const now = (): number => (steady === undefined ? own.now() : Math.floor(steady.ms + own.monotonic() - steady.at));
  return {
    own,
    now,
    monotonic: () => own.monotonic(),
    setTimeout: (fire, ms) => own.setTimeout(fire, ms),
    adjust(byMs) {
      if (steady !== undefined && byMs === 0) return;
      steady = { ms: now() + byMs, at: own.monotonic() };
    },
  };
}

/** Resolves after `ms`, and as soon as the signal is aborted. */
export function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const over = (): void => {
      timer.cancel();
      signal.removeEventListener('abort', over);
      resolve();
    };
    const timer = clock.setTimeout(over, ms);
    signal.addEventListener('abort', over);
  });
}

/** What the promise comes to, or a rejection with `late()` after `ms`; what it comes to later is ignored. */
export function within<T>(clock: Clock, ms: number, promise: PromiseLike<T>, late: () => Error): Promise<T> {
  return new Promise((resolve, reject) => {
    let timer: Timer | undefined;
    promise.then(
      (value) => {
        timer?.cancel();
        resolve(value);
      },
      (reason: unknown) => {
        timer?.cancel();
        reject(reason);
      },
    );
    timer = clock.setTimeout(() => reject(late()), ms);
  });
}
