/** Feeds one snapshot of the LMDB store to the recount, and checks the indexes that only this engine has. */
import { FIRST_HASH, type JournalHead, type Verification } from '../ledger.ts';
import { Recount } from '../recount.ts';
import { rowsUnsorted } from './all-rows.ts';
import { rollupOf } from './rollup-rows.ts';
import { metaOf, type Tables } from './tables.ts';
import { checkIndexes } from './verify-indexes.ts';

/** In small pieces: each `yield` stands behind one. `kept`: a head that somebody kept. */
export function* verify(tables: Tables, kept?: JournalHead): Generator<void, Verification> {
  const recount = new Recount(kept);
  for (const row of rowsUnsorted(tables)) {
    recount.row(row);
    yield;
  }
  const head = headOf(tables);
  recount.head(head.seq, head.hash);
  for (const { key, value } of tables.rollupHours.getRange()) {
    if (key[0] !== '') break;
    recount.rollup('hour', rollupOf(key, value));
    yield;
  }
  for (const { key, value } of tables.rollupDays.getRange()) {
    recount.rollup('day', rollupOf(key, value));
    yield;
  }
  for (const { key } of tables.openExchanges.getRange()) recount.open(key[1]);
  yield* checkIndexes(tables, recount);
  return yield* recount.finish();
}

export function headOf(tables: Tables): JournalHead {
  return metaOf(tables, 'journalHead') ?? { seq: 0, hash: FIRST_HASH };
}
