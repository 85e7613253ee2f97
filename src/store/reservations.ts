/**
 * Admission: what this process has let in and not yet settled, per wallet and per key. In memory only.
 *
 * A request is admitted while `balance − reserved > 0` and, for each limited window, `spent + held + reserved < limit`, where
 * `reserved` is what this process admitted before it. So with E the estimate and C the real charge of each request in
 * flight, one process can pass a limit by at most the last admitted request's charge plus Σ max(0, C − E) of those in
 * flight, where for a balance E is at most what the key itself may still spend: a limited key holds up no more of its account.
 * N processes on one store, which do not see each other's reservations, by N times that plus what the others hold
 * in flight. A balance only goes below zero by that much.
 */
import type { LedgerAccount } from './ledger.ts';
import type { KeyRecord, Principal } from './keys.ts';
import { payerOf } from './payer.ts';
import { done, refused, type Result } from './result.ts';
import { isLimited, reachedWindow, roomLeft, type SpendRow, type SpendWindow, spendAt } from './spend-windows.ts';

/** A one-shot handle. It is handed over to the settlement, or released when the request ends without one. */
export interface Reservation {
  /** Does nothing once it is released or handed over. */
  release(): void;
  /**
   * The store takes it with the settlement: the charge replaces the estimate, and from now on only the returned function releases
   * it, when the charge is on disk. Released any earlier, the money would be neither reserved nor gone, and others would be
   * admitted on it.
   */
  handOver(charge: bigint): () => void;
}

export type NotAdmitted =
  | { readonly reason: 'insufficient_balance'; readonly source: 'wallet' | 'sub_account' }
  | { readonly reason: 'spend_limit_reached'; readonly window: SpendWindow };

export interface Admission {
  /**
   * `estimateNanos`: input estimate + output cap × rate. No promise where the engine need not wait; it throws then where it would
   * reject.
   */
  admit(
    principal: Principal,
    estimateNanos: bigint,
    nowMs: number,
  ): Result<Reservation, NotAdmitted> | Promise<Result<Reservation, NotAdmitted>>;
  /** Nano-dollars that this process has in flight, for one key or for all. */
  reserved(keyId?: string): bigint;
}

/** What the store holds about a payer and a key. Each is read only where the decision needs it. */
export interface Standing {
  balance(payer: LedgerAccount): bigint;
  spend(keyId: string): SpendRow;
}

/** Sums of what is in flight, per ledger account that will pay and per key. Reservations change it and nothing else does. */
export class Reservations {
  readonly #byPayer = new Map<string, bigint>();
  readonly #byKey = new Map<string, bigint>();
  /** The same principal comes with request after request, until its key or account changes. */
  readonly #payers = new WeakMap<Principal, LedgerAccount>();

  payerOf(principal: Principal): LedgerAccount {
    const known = this.#payers.get(principal);
    if (known !== undefined) return known;
    const payer = payerOf(principal.key, principal.account.unlimited);
    this.#payers.set(principal, payer);
    return payer;
  }

  /** Synchronous from the decision to the reservation: no other admission comes between. */
  admit(principal: Principal, standing: Standing, estimate: bigint, nowMs: number): Result<Reservation, NotAdmitted> {
    const { key } = principal;
    const payer = this.payerOf(principal);
    const refusal = this.refusal(payer, key, standing, nowMs);
    if (refusal !== undefined) return refused(refusal);
    if (!isLimited(key.limits)) return done(this.reserve(payer, key.id, estimate));
    const room = roomLeft(key.limits, spendAt(standing.spend(key.id), nowMs), this.ofKey(key.id));
    return done(this.reserve(payer, key.id, estimate, room));
  }

  /**
   * Why nothing may be taken beside what is in flight, or undefined. A request may exceed what is left by its own charge. A
   * video's price is known beforehand and must fit whole, where it may exactly fill a balance or a limit: then `more` is that
   * price less one nano-dollar.
   */
  refusal(payer: LedgerAccount, key: KeyRecord, standing: Standing, nowMs: number, more = 0n): NotAdmitted | undefined {
    if (!payer.startsWith('house:') && standing.balance(payer) - this.ofPayer(payer) <= more)
      return { reason: 'insufficient_balance', source: payer.startsWith('sub:') ? 'sub_account' : 'wallet' };
    if (!isLimited(key.limits)) return undefined;
    const window = reachedWindow(key.limits, spendAt(standing.spend(key.id), nowMs), this.ofKey(key.id) + more);
    return window === undefined ? undefined : { reason: 'spend_limit_reached', window };
  }

  ofPayer(payer: LedgerAccount): bigint {
    return this.#byPayer.get(payer) ?? 0n;
  }

  ofKey(keyId: string): bigint {
    return this.#byKey.get(keyId) ?? 0n;
  }

  /** Of one key, or of all of them. */
  reserved(keyId: string | undefined): bigint {
    if (keyId !== undefined) return this.ofKey(keyId);
    return this.#byKey.values().reduce((sum, nanos) => sum + nanos, 0n);
  }

  /** `room`: what the key may still spend; undefined for a key without limits. */
  reserve(payer: LedgerAccount, keyId: string, estimate: bigint, room = estimate): Reservation {
    const ofPayer = estimate < room ? estimate : room;
    return new HeldReservation({ ofPayer, ofKey: estimate }, (more) => {
      addTo(this.#byPayer, payer, more.ofPayer);
      addTo(this.#byKey, keyId, more.ofKey);
    });
  }
}

/**
 * A key reserves the whole estimate of itself, or what it leaves would be given out again and again; of its account it takes no
 * more than it may spend.
 */
interface Amounts {
  readonly ofPayer: bigint;
  readonly ofKey: bigint;
}

const NONE: Amounts = { ofPayer: 0n, ofKey: 0n };

/** Nothing is kept of whom nothing is in flight for. */
function addTo(sums: Map<string, bigint>, name: string, more: bigint): void {
  const sum = (sums.get(name) ?? 0n) + more;
  if (sum === 0n) sums.delete(name);
  else sums.set(name, sum);
}

class HeldReservation implements Reservation {
  #held = NONE;
  #released = false;
  #handedOver = false;
  readonly #add: (more: Amounts) => void;

  constructor(amounts: Amounts, add: (more: Amounts) => void) {
    this.#add = add;
    this.#change(amounts);
  }

  release(): void {
    if (!this.#handedOver) this.#end();
  }

  handOver(charge: bigint): () => void {
    this.#handedOver = true;
    this.#change({ ofPayer: charge, ofKey: charge });
    return () => this.#end();
  }

  #end(): void {
    this.#change(NONE);
    this.#released = true;
  }

  #change(now: Amounts): void {
    if (this.#released) return;
    this.#add({ ofPayer: now.ofPayer - this.#held.ofPayer, ofKey: now.ofKey - this.#held.ofKey });
    this.#held = now;
  }
}
