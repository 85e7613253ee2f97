/**
 * How many refusals a key causes: what is written of them is thinned, since each row is kept for months and a key without money can cause
 * thousands a second, and whoever does gets 429 before its request is looked at.
 */
import { GatewayError } from '../../codecs/canonical/error.ts';
import type { Clock } from '../../streams/clock.ts';

/** Rows and lines of one key in a second; then one a minute. */
const WRITTEN_A_SECOND = 10;
/** Refusals of one key in a second; then 429 for the rest of it. */
const ANSWERED_A_SECOND = 100;
const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;

interface Refusals {
  /** When the current second began. */
  secondAt: number;
  inSecond: number;
  /** When a second last had more than are written; undefined while all are. */
  thinnedAt: number | undefined;
  /** When something was last written. */
  writtenAt: number;
  /** Refusals since then that were not. */
  unwritten: number;
}

export class RefusalRates {
  readonly #clock: Clock;
  /** The least recently refused first: those that have been quiet for a minute are forgotten. */
  readonly #byKey = new Map<string, Refusals>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Keys that were refused within the last minute. */
  get size(): number {
    return this.#byKey.size;
  }

  /** Throws `rate_limit_exceeded` for the rest of a second in which the key caused too many refusals. Such a 429 is no refusal of its own. */
  check(keyId: string): void {
    const refusals = this.#byKey.get(keyId);
    if (refusals === undefined || refusals.inSecond < ANSWERED_A_SECOND) return;
    const left = refusals.secondAt + SECOND_MS - this.#clock.monotonic();
    if (left <= 0) return;
    throw new GatewayError('rate_limit_exceeded', 'This API key causes too many refusals.', { retryAfterMs: SECOND_MS });
  }

  /** Counts a refusal. Undefined where nothing is to be written of it; otherwise how many refusals before it were not. */
  count(keyId: string): number | undefined {
    const now = this.#clock.monotonic();
    const refusals = this.#of(keyId, now);
    if (now - refusals.secondAt >= SECOND_MS) {
      refusals.secondAt = now;
      refusals.inSecond = 0;
    }
    refusals.inSecond += 1;
    if (refusals.inSecond > WRITTEN_A_SECOND) refusals.thinnedAt = now;
    const isThinned = refusals.thinnedAt !== undefined && now - refusals.thinnedAt < MINUTE_MS;
    if (isThinned && now - refusals.writtenAt < MINUTE_MS) {
      refusals.unwritten += 1;
      return undefined;
    }
    const { unwritten } = refusals;
    refusals.unwritten = 0;
    refusals.writtenAt = now;
    return unwritten;
  }

  #of(keyId: string, now: number): Refusals {
    const known = this.#byKey.get(keyId);
    this.#byKey.delete(keyId);
    for (const [id, { writtenAt, secondAt }] of this.#byKey) {
      if (now - Math.max(writtenAt, secondAt) < MINUTE_MS) break;
      this.#byKey.delete(id);
    }
    const refusals = known ?? { secondAt: now, inSecond: 0, thinnedAt: undefined, writtenAt: -Infinity, unwritten: 0 };
    this.#byKey.set(keyId, refusals);
    return refusals;
  }
}
