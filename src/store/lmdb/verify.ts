/** Feeds one snapshot of the LMDB store to the recount, and checks the indexes that only this engine has. */
import { FIRST_HASH, type JournalHead, type Verification } from '../ledger.ts';
import { Recount } from '../recount.ts';
import { filmOf } from '../rollup-recount.ts';
import { controlOf } from './controls.ts';
import { rollupOf } from './rollup-rows.ts';
import { metaOf, type Tables } from './tables.ts';
import { checkIndexes } from './verify-indexes.ts';

/** `kept`: a head that somebody kept. */
export function verify(tables: Tables, kept?: JournalHead): Verification {
  const recount = new Recount(kept);
  let rows = 0;
  for (const { key, value } of tables.journal.getRange()) {
    rows += 1;
    recount.expect('chain', `key of journal row ${value.seq}`, value.seq, key);
    recount.journal(value);
  }
  const head = headOf(tables);
  recount.head(head.seq, head.hash);
  for (const { key, value } of tables.balances.getRange()) recount.balance(key, value);
  for (const { value } of tables.accounts.getRange()) recount.account(value);
  for (const { value } of tables.keys.getRange()) recount.key(value);
  for (const { key, value } of tables.controls.getRange()) recount.control(controlOf(key, value));
  for (const { value } of tables.holds.getRange()) recount.hold(value);
  for (const { value } of tables.videos.getRange()) {
    recount.task(value);
    recount.film(filmOf(value));
  }
  for (const { key, value } of tables.idempotency.getRange())
    recount.idempotency({ taskId: value.taskId, accountId: key[0], keyId: key[1] });
  for (const { key, value } of tables.spend.getRange()) recount.spend(key, value);
  for (const { key, value } of tables.days.getRange()) recount.day(key[0], key[1], value);
  for (const { value } of tables.log.getRange()) recount.logged(value);
  for (const { key, value } of tables.rollupHours.getRange()) recount.rollup('hour', rollupOf(key, value));
  for (const { key, value } of tables.rollupDays.getRange()) recount.rollup('day', rollupOf(key, value));
  const logHead = metaOf(tables, 'logHead') ?? { seq: 0, atMs: 0 };
  recount.rollupLimits({ logHead, after: metaOf(tables, 'rollupsAfter') ?? -1 });
  for (const { key } of tables.openExchanges.getRange()) recount.open(key[1]);
  checkIndexes(tables, recount, rows);
  return recount.finish();
}

export function headOf(tables: Tables): JournalHead {
  return metaOf(tables, 'journalHead') ?? { seq: 0, hash: FIRST_HASH };
}
