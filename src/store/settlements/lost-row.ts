/** A row of a settlement queue that cannot be written: whether the row is to blame, and the words in which it is given up. */
import type { RequestLogEntry } from '../request-log.ts';
import { StoreError, type StoreErrorCode } from '../store-error.ts';

const ROW_ERRORS: ReadonlySet<StoreErrorCode> = new Set(['corrupt', 'amount_out_of_range']);

/** True when the engine failed, so that the row may be tried again; every other error is the row's own, and it fails alone. */
export function isEngineFailure(error: unknown): boolean {
  return error instanceof StoreError && !ROW_ERRORS.has(error.code);
}

export function openingLost(exchangeId: string): string {
  return `opening_lost: ${exchangeId}`;
}

/** The whole charge in words, since this line is then the only record of it. */
export function settlementLost({ exchangeId, accountId, keyId, model, status, charge }: RequestLogEntry): string {
  const chargedNanos = (charge?.total ?? 0n).toString();
  return `settlement_lost: ${JSON.stringify({ exchangeId, accountId, keyId, model, status, chargedNanos })}`;
}
