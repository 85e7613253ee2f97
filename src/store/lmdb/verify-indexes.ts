/**
 * Checks the indexes of the LMDB store against the rows that they lead to, both ways: none is missing, and none leads elsewhere.
 */
import type { Recount } from '../recount.ts';
import { storable } from '../storable.ts';
import { filterWords, LOG_FILTERS } from '../log-filters.ts';
import { entryOf, exchangeEntry } from './exchange-index.ts';
import { countPlaces, filtersAfter, hasPlace } from './log-index.ts';
import { otherNames } from './log-rows.ts';
import type { Tables } from './tables.ts';
import { dueKey } from './books.ts';

/** In small pieces: each `yield` stands behind one. */
export function* checkIndexes(tables: Tables, recount: Recount): Generator<void> {
  yield* checkRefs(tables, recount, yield* checkPlaces(tables, recount));
  yield* checkNames(tables, recount);
  yield* checkKeys(tables, recount);
  yield* checkVideos(tables, recount);
  yield* checkLog(tables, recount);
}

function* countKeys(table: Pick<Tables[keyof Tables], 'getKeys'>): Generator<void, number> {
  let count = 0;
  for (const _ of table.getKeys()) {
    count += 1;
    yield;
  }
  return count;
}

/** That the rows of the journal are numbered from 1 the recount checks: so must be their keys. Gives how many there are. */
function* checkPlaces({ journal }: Tables, recount: Recount): Generator<void, number> {
  let rows = 0;
  for (const key of journal.getKeys()) {
    rows += 1;
    recount.expect('chain', `key of journal row ${rows}`, rows, key);
    yield;
  }
  return rows;
}

/** `rows`: of the journal. */
function* checkRefs(tables: Tables, recount: Recount, rows: number): Generator<void> {
  let refs = 0;
  for (const { key, value } of tables.journalRefs.getRange()) {
    refs += 1;
    const row = tables.journal.get(value);
    const found = row === undefined ? 'nothing' : `${row.ref} ${row.kind}`;
    recount.expect('unique', `index of ${key.join(' ')}`, key.join(' '), found);
    yield;
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
    yield;
  }
  recount.expect('unique', 'journal rows with an index', rows, refs);
}

function* checkKeys(tables: Tables, recount: Recount): Generator<void> {
  let keys = 0;
  for (const { key, value } of tables.keys.getRange()) {
    keys += 1;
    recount.expect('key', `digest of ${key}`, key, tables.keyDigests.get(value.digest) ?? 'nothing');
    if (!tables.accounts.doesExist(value.accountId)) recount.expect('key', `account of ${key}`, value.accountId, 'nothing');
    yield;
  }
  recount.expect('key', 'digests', keys, yield* countKeys(tables.keyDigests));
}

function* checkNames(tables: Tables, recount: Recount): Generator<void> {
  let accounts = 0;
  for (const { key, value } of tables.accounts.getRange()) {
    accounts += 1;
    recount.expect('index', `name of ${key}`, key, tables.accountNames.get(value.name) ?? 'nothing');
    yield;
  }
  recount.expect('index', 'names of accounts', accounts, yield* countKeys(tables.accountNames));
}

function* checkVideos(tables: Tables, recount: Recount): Generator<void> {
  let tasks = 0;
  let due = 0;
  for (const { value } of tables.videos.getRange()) {
    yield;
    tasks += 1;
    const { id, accountId, keyId, number } = value;
    recount.expect('index', `owner of ${id}`, id, tables.videoOwners.get([accountId, keyId, number]) ?? 'nothing');
    const key = dueKey(value);
    if (key === undefined) continue;
    due += 1;
    recount.expect('index', `due time of ${id}`, key[1], tables.videoDue.doesExist(key) ? key[1] : 'nothing');
  }
  recount.expect('index', 'owners of tasks', tasks, yield* countKeys(tables.videoOwners));
  recount.expect('index', 'tasks that are due', due, yield* countKeys(tables.videoDue));
}

function* checkLog(tables: Tables, recount: Recount): Generator<void> {
  const indexedAfter = filtersAfter(tables);
  let names = 0;
  let filtered = 0;
  for (const { value } of tables.log.getRange()) {
    yield;
    const { seq, exchangeId } = value;
    recount.expect('exchange', `index of ${exchangeId}`, seq, exchangeEntry(tables, exchangeId)?.logSeq ?? 'nothing');
    if (seq > indexedAfter)
      for (const [at, word] of filterWords(value).entries()) {
        if (word === undefined) continue;
        filtered += 1;
        const filter = LOG_FILTERS[at] ?? '';
        recount.expect('index', `${filter} of ${exchangeId}`, word, hasPlace(tables, filter, word, seq) ? word : 'nothing');
      }
    for (const name of otherNames(value)) {
      names += 1;
      recount.expect('index', `name of ${exchangeId}`, name, tables.logIds.doesExist([name, seq]) ? name : 'nothing');
    }
  }
  recount.expect('index', 'names of exchanges', names, yield* countKeys(tables.logIds));
  recount.expect('index', 'filters of exchanges', filtered, yield* countPlaces(tables));
}
