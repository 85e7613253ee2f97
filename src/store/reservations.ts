/**
 * Admission: what this process has let in and not yet settled, per wallet and per key. In memory only.
 *
 * A request is admitted while `balance − reserved > 0` and, for each limited window, `spent + held + reserved < limit`, where
 * `reserved` is what this process admitted before it. So with E the estimate and C the real charge of each request in
 * flight, one process can pass a limit by at most the last admitted request's charge plus Σ max(0, C − E) of those in
 * flight; N processes on one store, which do not see each other's reservations, by N times that plus what the others hold
 * in flight. A balance only goes below zero by that much.
 */
import type { Principal } from './keys.ts';
import type { Result } from './result.ts';
import type { SpendWindow } from './spend-windows.ts';

/** A one-shot handle. It is handed to the settlement, or released when the request ends without one. */
export interface Reservation {
  readonly keyId: string;
  readonly nanos: bigint;
  readonly released: boolean;
  /** Replaces the estimate when the charge is known and not yet on disk. */
  adjust(nanos: bigint): void;
  release(): void;
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
