/**
 * Recomputes everything that the store keeps beside the journal, from the journal alone, over one snapshot, and reports every
 * difference: the chain of hashes, balances, holds and their tasks, spend, the log of requests, the indexes.
 */
import { type Difference, FIRST_HASH, HOLD, type HoldState, type JournalRow, journalHash, type Verification } from '../ledger.ts';
import type { VideoState } from '../videos.ts';
import { metaOf, type Tables } from './tables.ts';

const HOLD_OF_TASK: Record<VideoState, HoldState> = {
  queued: 'held',
  submitting: 'held',
  running: 'held',
  unknown: 'held',
  succeeded: 'settled',
  failed: 'refunded',
  cancelled: 'refunded',
};

interface HoldSum {
  state: HoldState;
  readonly nanos: bigint;
}

interface KeySum {
  total: bigint;
  held: bigint;
}

class Recount {
  readonly balances = new Map<string, bigint>();
  readonly holds = new Map<string, HoldSum>();
  readonly keys = new Map<string, KeySum>();
  readonly charges = new Map<string, bigint>();
  readonly differences: Difference[] = [];
  rows = 0;
  hash = FIRST_HASH;

  expect(what: Difference['what'], subject: string, expected: unknown, found: unknown): void {
    if (expected !== found) this.differences.push({ what, subject, expected: String(expected), found: String(found) });
  }

  add(row: JournalRow): void {
    this.rows += 1;
    this.expect('chain', `journal row ${this.rows}`, this.rows, row.seq);
    const { hash, ...content } = row;
    this.hash = journalHash(this.hash, content);
    this.expect('chain', `hash of journal row ${row.seq}`, this.hash, hash);
    if (row.from !== row.to) {
      this.balances.set(row.from, (this.balances.get(row.from) ?? 0n) - row.nanos);
      this.balances.set(row.to, (this.balances.get(row.to) ?? 0n) + row.nanos);
    }
    if (row.kind === 'charge') this.charges.set(row.ref, row.nanos);
    if (row.kind === 'hold' || row.kind === 'settle' || row.kind === 'refund' || row.kind === 'keep')
      this.#addHold(row, row.kind);
    if (row.keyId !== undefined) this.#addSpend(row, this.#key(row.keyId));
  }

  #addHold(row: JournalRow, kind: 'hold' | 'settle' | 'refund' | 'keep'): void {
    const hold = this.holds.get(row.ref);
    if (kind === 'hold') {
      this.expect('hold', `${row.ref} opened`, undefined, hold?.state);
      this.holds.set(row.ref, { state: 'held', nanos: row.nanos });
      return;
    }
    const next = hold === undefined ? null : HOLD[hold.state][kind];
    if (hold === undefined || next === null) {
      this.expect('hold', `${row.ref} at journal row ${row.seq}`, 'held', hold?.state ?? 'none');
      return;
    }
    if (kind !== 'keep') this.expect('hold', `amount of ${kind} of ${row.ref}`, hold.nanos, row.nanos);
    hold.state = next;
  }

  #addSpend(row: JournalRow, key: KeySum): void {
    if (row.kind === 'charge' || row.kind === 'settle') key.total += row.nanos;
    if (row.kind === 'hold') key.held += row.nanos;
    if (row.kind === 'settle' || row.kind === 'refund') key.held -= row.nanos;
  }

  #key(keyId: string): KeySum {
    const sum = this.keys.get(keyId) ?? { total: 0n, held: 0n };
    this.keys.set(keyId, sum);
    return sum;
  }
}

export function verify(tables: Tables): Verification {
  const recount = new Recount();
  for (const { key, value } of tables.journal.getRange()) {
    recount.expect('chain', `key of journal row ${value.seq}`, value.seq, key);
    recount.add(value);
  }
  const head = metaOf(tables, 'journalHead') ?? { seq: 0, hash: FIRST_HASH };
  recount.expect('chain', 'the newest journal row', recount.rows, head.seq);
  recount.expect('chain', 'the newest hash', recount.hash, head.hash);

  checkBalances(tables, recount);
  checkRefs(tables, recount);
  checkHolds(tables, recount);
  checkSpend(tables, recount);
  checkExchanges(tables, recount);
  checkKeys(tables, recount);
  return { rows: recount.rows, differences: recount.differences };
}

function checkBalances(tables: Tables, recount: Recount): void {
  const stored = new Map([...tables.balances.getRange()].map(({ key, value }) => [key, value]));
  for (const name of new Set([...stored.keys(), ...recount.balances.keys()])) {
    recount.expect('balance', name, recount.balances.get(name) ?? 0n, stored.get(name) ?? 0n);
  }
  recount.expect(
    'sum',
    'all balances',
    0n,
    [...stored.values()].reduce((sum, nanos) => sum + nanos, 0n),
  );
  recount.expect('balance', 'transit', 0n, recount.balances.get('transit') ?? 0n);
}

function checkRefs(tables: Tables, recount: Recount): void {
  let refs = 0;
  for (const { key, value } of tables.journalRefs.getRange()) {
    refs += 1;
    const row = tables.journal.get(value);
    recount.expect(
      'unique',
      `index of ${key.join(' ')}`,
      key.join(' '),
      row === undefined ? 'nothing' : `${row.ref} ${row.kind}`,
    );
  }
  recount.expect('unique', 'journal rows with an index', recount.rows, refs);
}

function checkHolds(tables: Tables, recount: Recount): void {
  const seen = new Set<string>();
  for (const { key, value } of tables.holds.getRange()) {
    seen.add(key);
    const hold = recount.holds.get(key);
    recount.expect('hold', key, hold?.state ?? 'none', value.state);
    recount.expect('hold', `amount of ${key}`, hold?.nanos ?? 0n, value.nanos);
    const inHold = recount.balances.get(`hold:${key}`) ?? 0n;
    recount.expect('balance', `hold:${key}`, value.state === 'held' ? value.nanos : 0n, inHold);
    if (!tables.videos.doesExist(key)) recount.expect('task', key, 'a task', 'nothing');
  }
  for (const id of recount.holds.keys()) if (!seen.has(id)) recount.expect('hold', id, 'a hold', 'nothing');
  for (const { key, value } of tables.videos.getRange()) {
    const hold = tables.holds.get(key);
    recount.expect('task', `hold of ${key}, which is ${value.state}`, HOLD_OF_TASK[value.state], hold?.state ?? 'none');
    recount.expect('task', `frozen price of ${key}`, hold?.nanos, value.frozenNanos);
  }
}

function checkSpend(tables: Tables, recount: Recount): void {
  const days = new Map<string, bigint>();
  for (const { key, value } of tables.days.getRange()) days.set(key[0], (days.get(key[0]) ?? 0n) + value.chargedNanos);
  for (const [keyId, sum] of recount.keys) {
    const row = tables.spend.get(keyId);
    recount.expect('spend', `total of ${keyId}`, sum.total, row?.total ?? 0n);
    recount.expect('spend', `held of ${keyId}`, sum.held, row?.held ?? 0n);
    recount.expect('spend', `sum of days of ${keyId}`, sum.total, days.get(keyId) ?? 0n);
  }
  for (const { key } of tables.spend.getRange()) if (!recount.keys.has(key)) recount.expect('spend', key, 'nothing', 'a row');
}

/** Rows of the log are pruned with age, journal rows never: so each logged charge must be journaled, not the other way round. */
function checkExchanges(tables: Tables, recount: Recount): void {
  const settled = new Set<string>();
  for (const { value } of tables.log.getRange()) {
    const { exchangeId } = value;
    if (settled.has(exchangeId)) recount.expect('exchange', exchangeId, 'one row', 'two rows');
    settled.add(exchangeId);
    recount.expect('exchange', `charge of ${exchangeId}`, recount.charges.get(exchangeId) ?? 0n, value.charge?.total ?? 0n);
  }
  for (const { key } of tables.openExchanges.getRange()) {
    if (settled.has(key[1])) recount.expect('exchange', key[1], 'open or settled', 'both');
  }
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
