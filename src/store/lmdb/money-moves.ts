/** The movements of money that have rules of their own: who pays for a key, and the life of a hold. Called inside a transaction. */
import { HOLD, type HoldEvent } from '../ledger.ts';
import { refundTo } from '../payer.ts';
import { StoreError } from '../store-error.ts';
import type { HoldRow } from './tables.ts';
import type { Work } from './work.ts';

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
  const to = next === 'settled' ? 'revenue' : refundTo(hold, work.tables.keys.get(keyId));
  work.move({ ...cause, from: `hold:${id}`, to, nanos });
  work.addHeld(keyId, -nanos);
  if (next === 'settled') {
    work.addSpend(keyId, nanos, atMs);
    work.addUsage(keyId, atMs, { videos: 1, chargedNanos: nanos });
  }
  work.put(work.tables.holds, id, { ...hold, state: next, closedAtMs: atMs });
}
