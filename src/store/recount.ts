/**
 * Recomputes everything that a store keeps beside the journal, from the journal alone, and collects every difference. An engine
 * feeds it one snapshot: the journal first and in order, then the rest in any order, then `finish`. Knows no engine.
 */
import {
  type Difference,
  FIRST_HASH,
  HOLD,
  type Hold,
  type HoldState,
  type JournalRow,
  journalHash,
  type Verification,
} from './ledger.ts';
import { HOLD_OF_TASK, type VideoTask } from './videos.ts';

interface HoldSum {
  state: HoldState;
  readonly nanos: bigint;
}

interface KeySum {
  total: bigint;
  held: bigint;
}

export class Recount {
  readonly #balances = new Map<string, bigint>();
  readonly #holds = new Map<string, HoldSum>();
  readonly #keys = new Map<string, KeySum>();
  readonly #charges = new Map<string, bigint>();
  readonly #differences: Difference[] = [];
  #rows = 0;
  #hash = FIRST_HASH;

  readonly #storedBalances = new Map<string, bigint>();
  readonly #storedHolds = new Map<string, Hold>();
  readonly #spend = new Map<string, { readonly total: bigint; readonly held: bigint }>();
  readonly #days = new Map<string, bigint>();
  readonly #tasks = new Set<string>();
  readonly #logged = new Set<string>();

  expect(what: Difference['what'], subject: string, expected: unknown, found: unknown): void {
    if (expected !== found) this.#differences.push({ what, subject, expected: String(expected), found: String(found) });
  }

  journal(row: JournalRow): void {
    this.#rows += 1;
    this.expect('chain', `journal row ${this.#rows}`, this.#rows, row.seq);
    const { hash, ...content } = row;
    this.#hash = journalHash(this.#hash, content);
    this.expect('chain', `hash of journal row ${row.seq}`, this.#hash, hash);
    if (row.from !== row.to) {
      this.#balances.set(row.from, (this.#balances.get(row.from) ?? 0n) - row.nanos);
      this.#balances.set(row.to, (this.#balances.get(row.to) ?? 0n) + row.nanos);
    }
    if (row.kind === 'charge') this.#charges.set(row.ref, row.nanos);
    if (row.kind === 'hold' || row.kind === 'settle' || row.kind === 'refund' || row.kind === 'keep')
      this.#addHold(row, row.kind);
    if (row.keyId !== undefined) this.#addSpend(row, this.#key(row.keyId));
  }

  head(seq: number, hash: string): void {
    this.expect('chain', 'the newest journal row', this.#rows, seq);
    this.expect('chain', 'the newest hash', this.#hash, hash);
  }

  balance(name: string, nanos: bigint): void {
    this.#storedBalances.set(name, nanos);
  }

  hold(hold: Hold): void {
    this.#storedHolds.set(hold.id, hold);
    const counted = this.#holds.get(hold.id);
    this.expect('hold', hold.id, counted?.state ?? 'none', hold.state);
    this.expect('hold', `amount of ${hold.id}`, counted?.nanos ?? 0n, hold.nanos);
    const inHold = this.#balances.get(`hold:${hold.id}`) ?? 0n;
    this.expect('balance', `hold:${hold.id}`, hold.state === 'held' ? hold.nanos : 0n, inHold);
  }

  /** After all holds. */
  task({ id, state, frozenNanos }: Pick<VideoTask, 'id' | 'state' | 'frozenNanos'>): void {
    this.#tasks.add(id);
    const hold = this.#storedHolds.get(id);
    this.expect('task', `hold of ${id}, which is ${state}`, HOLD_OF_TASK[state], hold?.state ?? 'none');
    this.expect('task', `frozen price of ${id}`, hold?.nanos, frozenNanos);
  }

  spend(keyId: string, row: { readonly total: bigint; readonly held: bigint }): void {
    this.#spend.set(keyId, row);
  }

  day(keyId: string, chargedNanos: bigint): void {
    this.#days.set(keyId, (this.#days.get(keyId) ?? 0n) + chargedNanos);
  }

  /** Rows of the log are pruned with age, journal rows never: so each logged charge must be journaled, not the other way round. */
  logged(exchangeId: string, charged: bigint): void {
    if (this.#logged.has(exchangeId)) this.expect('exchange', exchangeId, 'one row', 'two rows');
    this.#logged.add(exchangeId);
    this.expect('exchange', `charge of ${exchangeId}`, this.#charges.get(exchangeId) ?? 0n, charged);
  }

  /** After the whole log. */
  open(exchangeId: string): void {
    if (this.#logged.has(exchangeId)) this.expect('exchange', exchangeId, 'open or settled', 'both');
  }

  finish(): Verification {
    this.#checkBalances();
    for (const id of this.#storedHolds.keys()) if (!this.#tasks.has(id)) this.expect('task', id, 'a task', 'nothing');
    for (const id of this.#holds.keys()) if (!this.#storedHolds.has(id)) this.expect('hold', id, 'a hold', 'nothing');
    for (const [keyId, sum] of this.#keys) {
      const row = this.#spend.get(keyId);
      this.expect('spend', `total of ${keyId}`, sum.total, row?.total ?? 0n);
      this.expect('spend', `held of ${keyId}`, sum.held, row?.held ?? 0n);
      this.expect('spend', `sum of days of ${keyId}`, sum.total, this.#days.get(keyId) ?? 0n);
    }
    for (const keyId of this.#spend.keys()) if (!this.#keys.has(keyId)) this.expect('spend', keyId, 'nothing', 'a row');
    return { rows: this.#rows, differences: this.#differences };
  }

  #checkBalances(): void {
    let sum = 0n;
    for (const nanos of this.#storedBalances.values()) sum += nanos;
    for (const name of new Set([...this.#storedBalances.keys(), ...this.#balances.keys()])) {
      this.expect('balance', name, this.#balances.get(name) ?? 0n, this.#storedBalances.get(name) ?? 0n);
    }
    this.expect('sum', 'all balances', 0n, sum);
    this.expect('balance', 'transit', 0n, this.#balances.get('transit') ?? 0n);
  }

  #addHold(row: JournalRow, kind: 'hold' | 'settle' | 'refund' | 'keep'): void {
    const hold = this.#holds.get(row.ref);
    if (kind === 'hold') {
      this.expect('hold', `${row.ref} opened`, undefined, hold?.state);
      this.#holds.set(row.ref, { state: 'held', nanos: row.nanos });
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
    const sum = this.#keys.get(keyId) ?? { total: 0n, held: 0n };
    this.#keys.set(keyId, sum);
    return sum;
  }
}
