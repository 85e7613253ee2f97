/** Admission on LMDB: the balance and the spend are read from the store each time, what is in flight comes from this process. */
import type { Principal } from '../keys.ts';
import type { LedgerAccount } from '../ledger.ts';
import type { Admission, NotAdmitted, Reservations } from '../reservations.ts';
import { done, refused } from '../result.ts';
import { isLimited, NOTHING_SPENT, reachedWindow, roomLeft, spendAt } from '../spend-windows.ts';
import { payerOf } from '../payer.ts';
import type { Environment } from './environment.ts';

export function createAdmission(environment: Environment, reservations: Reservations): Admission {
  /** The same principal comes with request after request, until its key or account changes. */
  const payers = new WeakMap<Principal, LedgerAccount>();
  const payerFor = (principal: Principal): LedgerAccount => {
    const known = payers.get(principal);
    if (known !== undefined) return known;
    const payer = payerOf(principal.key, principal.account.unlimited);
    payers.set(principal, payer);
    return payer;
  };

  return {
    admit(principal, estimateNanos, nowMs) {
      const { key } = principal;
      environment.requireHealth();
      return environment.look((tables) => {
        const payer = payerFor(principal);
        if (!payer.startsWith('house:') && (tables.balances.get(payer) ?? 0n) - reservations.ofPayer(payer) <= 0n) {
          const source = payer.startsWith('sub:') ? 'sub_account' : 'wallet';
          return refused<NotAdmitted>({ reason: 'insufficient_balance', source });
        }
        if (!isLimited(key.limits)) return done(reservations.reserve(payer, key.id, estimateNanos));
        const spend = spendAt(tables.spend.get(key.id) ?? NOTHING_SPENT, nowMs);
        const inFlight = reservations.ofKey(key.id);
        const window = reachedWindow(key.limits, spend, inFlight);
        if (window !== undefined) return refused<NotAdmitted>({ reason: 'spend_limit_reached', window });
        return done(reservations.reserve(payer, key.id, estimateNanos, roomLeft(key.limits, spend, inFlight)));
      });
    },

    reserved: (keyId) => reservations.reserved(keyId),
  };
}
