/**
 * Admission: what this process has let in and not yet settled, per wallet and per key. In memory only.
 *
 * A request is admitted while `balance − reserved > 0` and, for each limited window, `spent + held + reserved < limit`, where
 * `reserved` is what this process admitted before it. So with E the estimate and C the real charge of each request in
 * flight, one process can pass a limit by at most the last admitted request's charge plus Σ max(0, C − E) of those in
 * flight; N processes on one store, which do not see each other's reservations, by N times that plus what the others hold
 * in flight. A balance only goes below zero by that much.
 */
import type { LedgerAccount } from './ledger.ts';
import type { Principal } from './keys.ts';
import type { Result } from './result.ts';
import type { SpendWindow } from './spend-windows.ts';

/** A one-shot handle. It is handed over to the settlement, or released when the request ends without one. */
export interface Reservation {
  readonly keyId: string;
  readonly nanos: bigint;
  readonly released: boolean;
  /** Replaces the estimate when the charge is known and not yet on disk. */
  adjust(nanos: bigint): void;
  /** Does nothing once it is released or handed over. */
  release(): void;
  /**
   * The store takes it with the settlement: from now on only the returned function releases it, when the charge is on disk. Released
   * any earlier, the money would be neither reserved nor gone, and others would be admitted on it.
   */
  handOver(): () => void;
}

export type NotAdmitted =
  | { readonly reason: 'insufficient_balance'; readonly source: 'wallet' | 'sub_account' }
  | { readonly reason: 'spend_limit_reached'; readonly window: SpendWindow };

export interface Admission {
  /** `estimateNanos`: input estimate + output cap × rate. */
  admit(principal: Principal, estimateNanos: bigint, nowMs: number): Promise<Result<Reservation, NotAdmitted>>;
  /** Nano-dollars that this process has in flight. */
  reserved(keyId: string): bigint;
}

/** Sums of what is in flight, per ledger account that will pay and per key. Reservations change it and nothing else does. */
export class Reservations {
  readonly #byPayer = new Map<string, Sum>();
  readonly #byKey = new Map<string, Sum>();

  ofPayer(payer: LedgerAccount): bigint {
    return this.#byPayer.get(payer)?.nanos ?? 0n;
  }

  ofKey(keyId: string): bigint {
    return this.#byKey.get(keyId)?.nanos ?? 0n;
  }

  reserve(payer: LedgerAccount, keyId: string, estimate: bigint): Reservation {
    return new HeldReservation(keyId, sumOf(this.#byPayer, payer), sumOf(this.#byKey, keyId), estimate < 0n ? 0n : estimate);
  }
}

/** Stands in its map as long as a reservation is in it. */
class Sum {
  nanos = 0n;
  #holders = 0;
  readonly #leave: () => void;

  constructor(leave: () => void) {
    this.#leave = leave;
  }

  enter(nanos: bigint): void {
    this.nanos += nanos;
    this.#holders += 1;
  }

  leave(nanos: bigint): void {
    this.nanos -= nanos;
    this.#holders -= 1;
    if (this.#holders === 0) this.#leave();
  }
}

function sumOf(sums: Map<string, Sum>, name: string): Sum {
  const known = sums.get(name);
  if (known !== undefined) return known;
  const sum = new Sum(() => sums.delete(name));
  sums.set(name, sum);
  return sum;
}

class HeldReservation implements Reservation {
  readonly keyId: string;
  #nanos: bigint;
  #released = false;
  #handedOver = false;
  readonly #ofPayer: Sum;
  readonly #ofKey: Sum;

  constructor(keyId: string, ofPayer: Sum, ofKey: Sum, nanos: bigint) {
    this.keyId = keyId;
    this.#nanos = nanos;
    this.#ofPayer = ofPayer;
    this.#ofKey = ofKey;
    ofPayer.enter(nanos);
    ofKey.enter(nanos);
  }

  get nanos(): bigint {
    return this.#nanos;
  }

  get released(): boolean {
    return this.#released;
  }

  adjust(nanos: bigint): void {
    if (this.#released || nanos === this.#nanos) return;
    const more = nanos - this.#nanos;
    this.#ofPayer.nanos += more;
    this.#ofKey.nanos += more;
    this.#nanos = nanos;
  }

  release(): void {
    if (!this.#handedOver) this.#end();
  }

  handOver(): () => void {
    this.#handedOver = true;
    return () => this.#end();
  }

  #end(): void {
    if (this.#released) return;
    this.#released = true;
    this.#ofPayer.leave(this.#nanos);
    this.#ofKey.leave(this.#nanos);
  }
}
