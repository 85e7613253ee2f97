/** Feeds one snapshot of the LMDB store to the recount, and checks the indexes that only this engine has. */
import { FIRST_HASH, type Verification } from '../ledger.ts';
import { Recount } from '../recount.ts';
import { storable } from '../storable.ts';
import { entryOf, exchangeEntry } from './exchange-index.ts';
import { metaOf, type Tables } from './tables.ts';

export function verify(tables: Tables): Verification {
  const recount = new Recount();
  let rows = 0;
  for (const { key, value } of tables.journal.getRange()) {
    rows += 1;
    recount.expect('chain', `key of journal row ${value.seq}`, value.seq, key);
    recount.journal(value);
  }
  const head = metaOf(tables, 'journalHead') ?? { seq: 0, hash: FIRST_HASH };
  recount.head(head.seq, head.hash);
  for (const { key, value } of tables.balances.getRange()) recount.balance(key, value);
  for (const { value } of tables.holds.getRange()) recount.hold(value);
  for (const { value } of tables.videos.getRange()) recount.task(value);
  for (const { key, value } of tables.spend.getRange()) recount.spend(key, value);
  for (const { key, value } of tables.days.getRange()) recount.day(key[0], value.chargedNanos);
  for (const { value } of tables.log.getRange()) {
    recount.logged(value.exchangeId, value.charge?.total ?? 0n);
    const place = exchangeEntry(tables, value.exchangeId)?.logSeq;
    recount.expect('exchange', `index of ${value.exchangeId}`, value.seq, place ?? 'nothing');
  }
  for (const { key } of tables.openExchanges.getRange()) recount.open(key[1]);
  checkRefs(tables, recount, rows);
  checkKeys(tables, recount);
  return recount.finish();
}

function checkRefs(tables: Tables, recount: Recount, rows: number): void {
  let refs = 0;
  for (const { key, value } of tables.journalRefs.getRange()) {
    refs += 1;
    const row = tables.journal.get(value);
    const found = row === undefined ? 'nothing' : `${row.ref} ${row.kind}`;
    recount.expect('unique', `index of ${key.join(' ')}`, key.join(' '), found);
  }
  for (const { key, value } of tables.exchanges.getRange()) {
    const { logSeq, journalSeqs } = entryOf(value);
    refs += journalSeqs.length;
    if (logSeq !== undefined)
      recount.expect('exchange', `log row of ${key}`, key, tables.log.get(logSeq)?.exchangeId ?? 'nothing');
    const journaled = journalSeqs.map((seq) => tables.journal.get(seq));
    for (const row of journaled) recount.expect('unique', `index of ${key}`, storable(key), row?.ref ?? 'nothing');
    const kinds = new Set(journaled.map((row) => row?.kind));
    recount.expect('unique', `kinds of journal rows of ${key}`, journalSeqs.length, kinds.size);
  }
  recount.expect('unique', 'journal rows with an index', rows, refs);
}

function checkKeys(tables: Tables, recount: Recount): void {
  let keys = 0;
  for (const { key, value } of tables.keys.getRange()) {
    keys += 1;
    recount.expect('key', `digest of ${key}`, key, tables.keyDigests.get(value.digest) ?? 'nothing');
    if (!tables.accounts.doesExist(value.accountId)) recount.expect('key', `account of ${key}`, value.accountId, 'nothing');
  }
  recount.expect('key', 'digests', keys, tables.keyDigests.getCount());
}
