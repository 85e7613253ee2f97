/**
 * A credential that expires, renewed ahead of its end: whoever finds a valid one is never delayed, whoever finds none waits for
 * the one renewal that is under way, and a source that fails is not asked again at once.
 */
import type { Clock } from '../../streams/clock.ts';
import type { Signed } from './platform.ts';

export interface Fresh<Value> {
  readonly value: Value;
  /** Unix milliseconds; undefined: it does not expire. */
  readonly expiresAtMs: number | undefined;
}

/** The last fifth of a credential's life, at most five minutes, is for its renewal. */
const AHEAD_SHARE = 0.2;
const MOST_AHEAD_MS = 300_000;
/** What expires sooner than this may be refused on its way. */
const MARGIN_MS = 2_000;
/** After a failure the source has this long a rest. */
const REST_MS = 1_000;

/** A value that is refused so soon was not revoked: another one would be refused, too. */
const YOUNG_MS = 10_000;

interface Held<Value> extends Fresh<Value> {
  readonly renewAtMs: number;
  /** By the monotonic clock. */
  readonly fetchedAt: number;
}

export class Renewed<Value> {
  readonly #clock: Clock;
  readonly #obtain: () => Promise<Fresh<Value>>;
  #held: Held<Value> | undefined;
  #renewal: Promise<Value> | undefined;
  #failure: { readonly error: unknown; readonly untilMs: number } | undefined;

  constructor(clock: Clock, obtain: () => Promise<Fresh<Value>>) {
    this.#clock = clock;
    this.#obtain = obtain;
  }

  /** The value itself while it is valid. Rejects with the error of the source. */
  get(): Value | Promise<Value> {
    const now = this.#clock.now();
    const held = this.#held;
    if (held !== undefined && now < (held.expiresAtMs ?? Number.POSITIVE_INFINITY) - MARGIN_MS) {
      // Nobody waits for this one: a failure is told to those who find the old value expired.
      if (now >= held.renewAtMs && !this.#rests()) void this.#renew().catch(() => undefined);
      return held.value;
    }
    if (this.#renewal === undefined && this.#failure !== undefined && this.#rests()) return Promise.reject(this.#failure.error);
    return this.#renew();
  }

  /**
   * The upstream refused a request. True where the same request may go well with another value: one came meanwhile, or this one
   * is old enough to have been revoked and is given up.
   */
  refused({ signedAt }: Signed): boolean {
    const held = this.#held;
    if (signedAt === undefined || held === undefined || held.fetchedAt > signedAt) return true;
    if (this.#clock.monotonic() - held.fetchedAt < YOUNG_MS) return false;
    this.#held = undefined;
    return true;
  }

  #rests(): boolean {
    return this.#failure !== undefined && this.#clock.monotonic() < this.#failure.untilMs;
  }

  #renew(): Promise<Value> {
    this.#renewal ??= this.#renewOnce().finally(() => {
      this.#renewal = undefined;
    });
    return this.#renewal;
  }

  async #renewOnce(): Promise<Value> {
    try {
      const fresh = await this.#obtain();
      const now = this.#clock.now();
      const life = (fresh.expiresAtMs ?? Number.POSITIVE_INFINITY) - now;
      const ahead = Math.min(MOST_AHEAD_MS, life * AHEAD_SHARE);
      this.#held = { ...fresh, renewAtMs: now + life - ahead, fetchedAt: this.#clock.monotonic() };
      this.#failure = undefined;
      return fresh.value;
    } catch (error) {
      this.#failure = { error, untilMs: this.#clock.monotonic() + REST_MS };
      throw error;
    }
  }
}
