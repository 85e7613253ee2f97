/** The life of a hold: money that leaves its account when a task is made, and is settled or goes back when that ends. */
import { HOLD, type HoldEvent, type HoldRow } from '../ledger.ts';
import { refundTo, walletOf } from '../payer.ts';
import { StoreError } from '../store-error.ts';
import { type Books, got, type Rule } from './books.ts';

export function* openHold(books: Books, hold: Omit<HoldRow, 'state' | 'closedAtMs'>): Rule<void> {
  const { id, from, nanos, accountId, keyId, openedAtMs } = hold;
  yield* got(books.load([from, `hold:${id}`], [keyId]));
  books.move({ kind: 'hold', ref: id, from, to: `hold:${id}`, nanos, accountId, keyId, atMs: openedAtMs });
  books.addHeld(keyId, nanos);
  yield* got(books.addHold({ ...hold, state: 'held' }));
}

/** What closes or keeps a hold. Throws `corrupt` when the table forbids it: the record above it decides first. */
export function* resolveHold(
  books: Books,
  id: string,
  event: HoldEvent,
  atMs: number,
  by?: { readonly by: string; readonly note?: string },
): Rule<void> {
  const hold = yield* got(books.hold(id));
  if (hold === undefined) throw new StoreError('corrupt', `no hold ${id}`);
  const next = HOLD[hold.state][event];
  if (next === null) throw new StoreError('corrupt', `hold ${id} is ${hold.state}: it cannot ${event}`);
  const { accountId, keyId, nanos } = hold;
  const cause = { kind: event, ref: id, accountId, keyId, atMs, ...by };
  if (next === 'held') {
    books.note(cause);
    return;
  }
  const to = next === 'settled' ? 'revenue' : refundTo(hold, yield* got(books.key(keyId)));
  yield* got(books.load([`hold:${id}`, to, walletOf(accountId)], [keyId]));
  books.move({ ...cause, from: `hold:${id}`, to, nanos });
  books.addHeld(keyId, -nanos);
  if (next === 'settled') {
    books.addSpend(keyId, nanos, atMs);
    books.addUsage(keyId, atMs, { videos: 1, chargedNanos: nanos });
  }
  yield* got(books.closeHold(hold, next, atMs));
}
