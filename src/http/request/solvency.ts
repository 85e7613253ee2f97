/**
 * Whether a key has money at all, asked before a large body is read for it: without money nobody's memory and time are spent on
 * more than a small request. Whether the money is enough is decided at admission.
 */
import { LRUCache } from 'lru-cache';
import { GatewayError } from '../../codecs/canonical/error.ts';
import type { Keys } from '../../store/keys.ts';
import type { Clock } from '../../streams/clock.ts';
import { fromStore } from '../from-store.ts';
import { atMost } from '../lru.ts';

/** What a body of a key without money may have: a small one is read, so that its other mistakes are told first. */
export const FREE_BODY_BYTES = 64 * 1024;

/** A key that had money is not asked again for this long. One that had none always is, so that a credit counts at once. */
const REMEMBERED_MS = 1_000;
const MAX_REMEMBERED = 10_000;

export class Solvency {
  readonly #keys: Keys;
  readonly #clock: Clock;
  /** When a key was last seen with money. */
  readonly #seen = new LRUCache<string, number>(atMost(MAX_REMEMBERED));

  constructor(keys: Keys, clock: Clock) {
    this.#keys = keys;
    this.#clock = clock;
  }

  /**
   * False for a balance of zero or less, of the sub-account where the key has one. Rejects as the store does, and where it does
   * not answer in time.
   */
  async hasMoney(keyId: string): Promise<boolean> {
    const now = this.#clock.monotonic();
    if (now - (this.#seen.get(keyId) ?? -Infinity) < REMEMBERED_MS) return true;
    const balance = await fromStore(this.#clock, this.#keys.balance(keyId));
    if (balance === undefined || (!balance.unlimited && balance.nanos <= 0n)) return false;
    this.#seen.set(keyId, now);
    return true;
  }
}

/** Throws `insufficient_balance` for a message of this size if its key has no money. */
export async function checkSolvent(solvency: Solvency, keyId: string, bytes: number): Promise<void> {
  if (bytes > FREE_BODY_BYTES && !(await solvency.hasMoney(keyId))) throw noMoney();
}

export function noMoney(): GatewayError {
  return new GatewayError('insufficient_balance', 'The balance is too low.');
}
