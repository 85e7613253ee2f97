/** Admission on LMDB: the balance and the spend are read from the store each time, what is in flight comes from this process. */
import type { LedgerAccount } from '../ledger.ts';
import type { Admission, Reservations, Standing } from '../reservations.ts';
import { NOTHING_SPENT, type SpendRow } from '../spend-windows.ts';
import type { Environment } from './environment.ts';
import type { Tables } from './tables.ts';

export function createAdmission(environment: Environment, reservations: Reservations): Admission {
  return {
    admit(principal, estimateNanos, nowMs) {
      environment.requireHealth();
      return environment.look((tables) => reservations.admit(principal, new Stored(tables), estimateNanos, nowMs));
    },

    reserved: (keyId) => reservations.reserved(keyId),
  };
}

class Stored implements Standing {
  readonly #tables: Tables;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  balance(payer: LedgerAccount): bigint {
    return this.#tables.balances.get(payer) ?? 0n;
  }

  spend(keyId: string): SpendRow {
    return this.#tables.spend.get(keyId) ?? NOTHING_SPENT;
  }
}
