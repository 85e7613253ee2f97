/**
 * How many refusals a key causes: what is written of them is thinned, since each row is kept for months and a key without money
 * can cause thousands a second, and whoever does gets 429 before its request is looked at.
 */
import { GatewayError } from '../../codecs/canonical/error.ts';
import type { Clock, Timer } from '../../streams/clock.ts';

/** Rows and lines of one key in a second; then one a minute. */
const WRITTEN_A_SECOND = 10;
/** Refusals of one key in a second; then 429 for the rest of it. */
const ANSWERED_A_SECOND = 100;
const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;

export type WriteRefusal = (unwritten: number) => void;

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
  /** Writes the first of those, with the number of the others. */
  write: WriteRefusal | undefined;
}

export class RefusalRates {
  readonly #clock: Clock;
  /** The least recently refused first: those that have been quiet for a minute are forgotten. */
  readonly #byKey = new Map<string, Refusals>();
  #timer: Timer | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Keys that were refused within the last minute. */
  get size(): number {
    return this.#byKey.size;
  }

  /**
   * Throws `rate_limit_exceeded` for the rest of a second in which the key caused too many refusals. Such a 429 is no refusal of
   * its own.
   */
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
    reset(refusals, now);
    return unwritten;
  }

  /**
   * To be called with each refusal that is not written: where the key falls quiet the first of them is, after a minute, with the
   * number of the others.
   */
  keep(keyId: string, write: WriteRefusal): void {
    const refusals = this.#byKey.get(keyId);
    if (refusals === undefined || refusals.write !== undefined) return;
    refusals.write = write;
    this.#timer ??= this.#clock.setTimeout(() => this.#writeOld(), MINUTE_MS);
  }

  /** At the end of the process: writes what waits. */
  flush(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    for (const refusals of this.#byKey.values()) writeKept(refusals, this.#clock.monotonic());
  }

  #writeOld(): void {
    this.#timer = undefined;
    const now = this.#clock.monotonic();
    let nextMs = Infinity;
    for (const refusals of this.#byKey.values()) {
      if (refusals.write === undefined) continue;
      const leftMs = refusals.writtenAt + MINUTE_MS - now;
      if (leftMs > 0) nextMs = Math.min(nextMs, leftMs);
      else writeKept(refusals, now);
    }
    if (nextMs < Infinity) this.#timer = this.#clock.setTimeout(() => this.#writeOld(), nextMs);
  }

  #of(keyId: string, now: number): Refusals {
    const known = this.#byKey.get(keyId);
    this.#byKey.delete(keyId);
    for (const [id, quiet] of this.#byKey) {
      if (now - Math.max(quiet.writtenAt, quiet.secondAt) < MINUTE_MS) break;
      writeKept(quiet, now);
      this.#byKey.delete(id);
    }
    const refusals = known ?? newRefusals(now);
    this.#byKey.set(keyId, refusals);
    return refusals;
  }
}

function newRefusals(now: number): Refusals {
  return { secondAt: now, inSecond: 0, thinnedAt: undefined, writtenAt: -Infinity, unwritten: 0, write: undefined };
}

function reset(refusals: Refusals, now: number): void {
  refusals.unwritten = 0;
  refusals.writtenAt = now;
  refusals.write = undefined;
}

function writeKept(refusals: Refusals, now: number): void {
  const { write, unwritten } = refusals;
  if (write === undefined) return;
  reset(refusals, now);
  write(unwritten - 1);
}
