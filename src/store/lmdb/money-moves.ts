/** The movements of money that have rules of their own: who pays for a key, and the life of a hold. Called inside a transaction. */
import type { KeyRecord } from '../keys.ts';
import { HOLD, type HoldEvent, type LedgerAccount } from '../ledger.ts';
import { StoreError } from '../store-error.ts';
import type { HoldRow } from './tables.ts';
import type { Work } from './work.ts';

export const walletOf = (accountId: string): LedgerAccount => `wallet:${accountId}`;
export const subAccountOf = (keyId: string): LedgerAccount => `sub:${keyId}`;

/** A disabled key has no balance of its own any more: it was returned to the wallet, and late charges follow it. */
export function paysFromSubAccount(key: KeyRecord): boolean {
  return key.subAccount && !key.disabled;
}

/** The ledger account that pays for what a key does. An unlimited account's usage is journaled against the house. */
export function payerOf(key: KeyRecord, unlimited: boolean): LedgerAccount {
  if (paysFromSubAccount(key)) return subAccountOf(key.id);
  return unlimited ? `house:${key.accountId}` : walletOf(key.accountId);
}

export function openHold(work: Work, hold: Omit<HoldRow, 'state' | 'closedAtMs'>): void {
  const { id, from, nanos, accountId, keyId, openedAtMs } = hold;
  work.move({ kind: 'hold', ref: id, from, to: `hold:${id}`, nanos, accountId, keyId, atMs: openedAtMs });
  work.addHeld(keyId, nanos);
  work.put(work.tables.holds, id, { ...hold, state: 'held' });
}

/** What closes or keeps a hold. Throws `corrupt` when the table forbids it: the record above it decides first. */
export function resolveHold(
  work: Work,
  id: string,
  event: HoldEvent,
  atMs: number,
  by?: { readonly by: string; readonly note?: string },
): void {
  const hold = work.tables.holds.get(id);
  if (hold === undefined) throw new StoreError('corrupt', `no hold ${id}`);
  const next = HOLD[hold.state][event];
  if (next === null) throw new StoreError('corrupt', `hold ${id} is ${hold.state}: it cannot ${event}`);
  const { accountId, keyId, nanos } = hold;
  const cause = { kind: event, ref: id, accountId, keyId, atMs, ...by };
  if (next === 'held') {
    work.note(cause);
    return;
  }
  const to = next === 'settled' ? 'revenue' : refundTo(work, hold);
  work.move({ ...cause, from: `hold:${id}`, to, nanos });
  work.addHeld(keyId, -nanos);
  if (next === 'settled') {
    work.addSpend(keyId, nanos, atMs);
    work.addUsage(keyId, atMs, { videos: 1, chargedNanos: nanos });
  }
  work.put(work.tables.holds, id, { ...hold, state: next, closedAtMs: atMs });
}

/** Back to where it came from; to the wallet when that was the sub-account of a key that has been disabled since. */
function refundTo(work: Work, hold: HoldRow): LedgerAccount {
  const key = work.tables.keys.get(hold.keyId);
  const gone = hold.from === subAccountOf(hold.keyId) && (key === undefined || !paysFromSubAccount(key));
  return gone ? walletOf(hold.accountId) : hold.from;
}
