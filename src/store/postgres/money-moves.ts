/** The life of a hold, on PostgreSQL. Called inside a transaction, with the balances and the spend row loaded by these functions. */
import { HOLD, type HoldEvent } from '../ledger.ts';
import { refundTo, walletOf } from '../payer.ts';
import { StoreError } from '../store-error.ts';
import { findKey } from './keys.ts';
import { type HoldRow, holdOf } from './rows.ts';
import type { Statement } from './session.ts';
import type { Work } from './work.ts';

const FIND: Statement = { name: 'hold_by_id', text: 'SELECT * FROM holds WHERE id = $1' };
export const INSERT_HOLD: Statement = {
  name: 'hold_insert',
  text: `INSERT INTO holds (id, account_id, key_id, state, nanos, opened_at_ms, closed_at_ms, from_account)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
};
const CLOSE: Statement = { name: 'hold_close', text: 'UPDATE holds SET state = $2, closed_at_ms = $3 WHERE id = $1' };

export async function openHold(work: Work, hold: Omit<HoldRow, 'state' | 'closedAtMs'>): Promise<void> {
  const { id, from, nanos, accountId, keyId, openedAtMs } = hold;
  await work.load([from, `hold:${id}`], [keyId]);
  work.move({ kind: 'hold', ref: id, from, to: `hold:${id}`, nanos, accountId, keyId, atMs: openedAtMs });
  work.addHeld(keyId, nanos);
  await work.run(INSERT_HOLD, [id, accountId, keyId, 'held', nanos, openedAtMs, undefined, from]);
}

/** What closes or keeps a hold. Throws `corrupt` when the table forbids it: the record above it decides first. */
export async function resolveHold(
  work: Work,
  id: string,
  event: HoldEvent,
  atMs: number,
  by?: { readonly by: string; readonly note?: string },
): Promise<void> {
  const [row] = await work.run(FIND, [id]);
  if (row === undefined) throw new StoreError('corrupt', `no hold ${id}`);
  const hold = holdOf(row);
  const next = HOLD[hold.state][event];
  if (next === null) throw new StoreError('corrupt', `hold ${id} is ${hold.state}: it cannot ${event}`);
  const { accountId, keyId, nanos } = hold;
  const cause = { kind: event, ref: id, accountId, keyId, atMs, ...by };
  if (next === 'held') {
    work.note(cause);
    return;
  }
  const to = next === 'settled' ? 'revenue' : refundTo(hold, await findKey(work, keyId));
  await work.load([`hold:${id}`, to, walletOf(accountId)], [keyId]);
  work.move({ ...cause, from: `hold:${id}`, to, nanos });
  work.addHeld(keyId, -nanos);
  if (next === 'settled') {
    work.addSpend(keyId, nanos, atMs);
    work.addUsage(keyId, atMs, { videos: 1, chargedNanos: nanos });
  }
  await work.run(CLOSE, [id, next, atMs]);
}
