/**
 * Recomputes everything that a store keeps beside the journal, from the journal alone, and collects every difference. An engine
 * feeds it one snapshot: all rows of its archive in their order, what stands beside those, then `finish`. Knows no engine.
 */
import type { AccountRecord } from './accounts.ts';
import type { ArchiveRow, ArchiveTable } from './archive.ts';
import type { Control } from './controls.ts';
import type { DayCounts } from './day-usage.ts';
import type { KeyRecord } from './keys.ts';
import {
  type Difference,
  FIRST_HASH,
  HOLD,
  type Hold,
  type HoldState,
  type JournalHead,
  type JournalRow,
  journalHash,
  type LedgerAccount,
  type Verification,
} from './ledger.ts';
import { ControlRecount } from './recount-controls.ts';
import { RecordRecount } from './recount-records.ts';
import { settledVideoOf, type RollupLimits, RollupRecount } from './rollup-recount.ts';
import type { Rollup, SettledVideo } from './rollups.ts';
import { type Expect, SpendRecount } from './recount-spend.ts';
import type { RequestLogRow } from './request-log.ts';
import type { SpendRow } from './spend-windows.ts';
import { storable } from './storable.ts';
import { HOLD_OF_TASK, type VideoTask } from './videos.ts';

interface HoldSum {
  state: HoldState;
  readonly nanos: bigint;
  readonly opened: Pick<JournalRow, 'accountId' | 'keyId' | 'from' | 'atMs'>;
}

/** A hold with the ledger account that it was taken from. */
type StoredHold = Hold & { readonly from: LedgerAccount };

export class Recount {
  readonly #balances = new Map<string, bigint>();
  readonly #holds = new Map<string, HoldSum>();
  readonly #charges = new Map<string, JournalRow>();
  readonly #spend = new SpendRecount();
  readonly #records = new RecordRecount();
  readonly #rollups = new RollupRecount();
  readonly #controls = new ControlRecount();
  readonly #expect: Expect = (what, subject, expected, found) => this.expect(what, subject, expected, found);
  readonly #differences: Difference[] = [];
  #rows = 0;
  #hash = FIRST_HASH;

  readonly #storedBalances = new Map<string, bigint>();
  readonly #storedHolds = new Map<string, StoredHold>();
  readonly #tasks = new Map<string, Pick<VideoTask, 'accountId' | 'keyId'>>();
  readonly #idempotency = new Map<string, Pick<VideoTask, 'accountId' | 'keyId'>>();
  readonly #kept: JournalHead | undefined;
  readonly #logged = new Set<string>();

  /** `kept`: a head that somebody kept. */
  constructor(kept?: JournalHead) {
    this.#kept = kept;
    if (kept?.seq === 0) this.expect('chain', 'the head that was kept', kept.hash, FIRST_HASH);
  }

  expect(what: Difference['what'], subject: string, expected: unknown, found: unknown): void {
    if (expected !== found) this.#differences.push({ what, subject, expected: String(expected), found: String(found) });
  }

  row({ table, row }: ArchiveRow): void {
    // A row stands beside the name of its table, which the compiler cannot see through the table below.
    const feed = FEEDS[table] as (recount: Recount, row: ArchiveRow['row']) => void;
    feed(this, row);
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
    if (this.#kept?.seq === row.seq) this.expect('chain', 'the head that was kept', this.#kept.hash, this.#hash);
    if (row.kind === 'charge') this.#charges.set(row.ref, row);
    if (row.kind === 'hold' || row.kind === 'settle' || row.kind === 'refund' || row.kind === 'keep')
      this.#addHold(row, row.kind);
    this.#spend.journal(row);
    this.#records.journal(row);
    this.#controls.journal(row);
  }

  head(seq: number, hash: string): void {
    this.expect('chain', 'the newest journal row', this.#rows, seq);
    this.expect('chain', 'the newest hash', this.#hash, hash);
  }

  balance(name: string, nanos: bigint): void {
    this.#storedBalances.set(name, nanos);
  }

  account(record: AccountRecord): void {
    this.#records.account(record, this.#expect);
  }

  key(record: KeyRecord): void {
    this.#records.key(record, this.#expect);
  }

  control(control: Control): void {
    this.#controls.control(control, this.#expect);
  }

  hold(hold: StoredHold): void {
    this.#storedHolds.set(hold.id, hold);
    const counted = this.#holds.get(hold.id);
    this.expect('hold', hold.id, counted?.state ?? 'none', hold.state);
    this.expect('hold', `amount of ${hold.id}`, counted?.nanos ?? 0n, hold.nanos);
    if (counted !== undefined) {
      const { accountId, keyId, from, atMs } = counted.opened;
      this.expect('hold', `account of ${hold.id}`, accountId, hold.accountId);
      this.expect('hold', `key of ${hold.id}`, keyId, hold.keyId);
      this.expect('hold', `payer of ${hold.id}`, from, hold.from);
      this.expect('hold', `time of ${hold.id}`, atMs, hold.openedAtMs);
    }
    const inHold = this.#balances.get(`hold:${hold.id}`) ?? 0n;
    this.expect('balance', `hold:${hold.id}`, hold.state === 'held' ? hold.nanos : 0n, inHold);
  }

  /** After all holds. */
  task({
    id,
    state,
    frozenNanos,
    accountId,
    keyId,
  }: Pick<VideoTask, 'id' | 'state' | 'frozenNanos' | 'accountId' | 'keyId'>): void {
    this.#tasks.set(id, { accountId, keyId });
    const hold = this.#storedHolds.get(id);
    this.expect('task', `hold of ${id}, which is ${state}`, HOLD_OF_TASK[state], hold?.state ?? 'none');
    this.expect('task', `frozen price of ${id}`, hold?.nanos, frozenNanos);
    if (hold === undefined) return;
    this.expect('task', `account of ${id}`, hold.accountId, accountId);
    this.expect('task', `key of ${id}`, hold.keyId, keyId);
  }

  /** What keeps a request from making a second task: every task has one such entry, for as long as it lives. */
  idempotency({ taskId, accountId, keyId }: Pick<VideoTask, 'accountId' | 'keyId'> & { readonly taskId: string }): void {
    if (this.#idempotency.has(taskId)) this.expect('index', `idempotency of ${taskId}`, 'one entry', 'two entries');
    this.#idempotency.set(taskId, { accountId, keyId });
  }

  spend(keyId: string, row: SpendRow): void {
    this.#spend.spend(keyId, row);
  }

  day(keyId: string, day: number, counts: DayCounts): void {
    this.#spend.day(keyId, day, counts);
  }

  /**
   * Rows of the log are pruned with age, journal rows never: so each logged charge must be journaled, not the other way round.
   */
  logged(row: RequestLogRow): void {
    const { exchangeId, keyId, charge } = row;
    if (this.#logged.has(exchangeId)) this.expect('exchange', exchangeId, 'one row', 'two rows');
    this.#logged.add(exchangeId);
    const charged = this.#charges.get(storable(exchangeId));
    this.expect('exchange', `charge of ${exchangeId}`, charged?.nanos ?? 0n, charge?.total ?? 0n);
    if (charged !== undefined) this.expect('exchange', `key of ${exchangeId}`, charged.keyId, keyId);
    this.#spend.logged(row);
    this.#rollups.logged(row);
  }

  /** The video of a task. */
  video(video: SettledVideo | undefined): void {
    if (video !== undefined) this.#rollups.video(video);
  }

  rollup(unit: 'hour' | 'day', rollup: Rollup): void {
    this.#rollups.stored(unit, rollup);
  }

  rollupLimits(limits: RollupLimits): void {
    this.#rollups.limits(limits);
  }

  /** After the whole log. */
  open(exchangeId: string): void {
    if (this.#logged.has(exchangeId)) this.expect('exchange', exchangeId, 'open or settled', 'both');
  }

  /** In small pieces: each `yield` stands behind one. */
  *finish(): Generator<void, Verification> {
    yield* this.#checkBalances();
    for (const id of this.#storedHolds.keys()) {
      if (!this.#tasks.has(id)) this.expect('task', id, 'a task', 'nothing');
      yield;
    }
    for (const id of this.#holds.keys()) {
      if (!this.#storedHolds.has(id)) this.expect('hold', id, 'a hold', 'nothing');
      yield;
    }
    yield* this.#checkIdempotency();
    yield* this.#spend.finish(this.#expect);
    yield* this.#records.finish(this.#expect);
    this.#controls.finish(this.#expect);
    yield* this.#rollups.finish(this.#expect);
    const { seq = 0 } = this.#kept ?? {};
    if (seq > this.#rows) this.expect('chain', 'the head that was kept', `row ${seq}`, `${this.#rows} rows`);
    return { rows: this.#rows, differences: this.#differences };
  }

  *#checkIdempotency(): Generator<void> {
    for (const [id, { accountId, keyId }] of this.#tasks) {
      const entry = this.#idempotency.get(id);
      const found = entry === undefined ? 'nothing' : `${entry.accountId} ${entry.keyId}`;
      this.expect('index', `idempotency of ${id}`, `${accountId} ${keyId}`, found);
      yield;
    }
    for (const id of this.#idempotency.keys()) {
      if (!this.#tasks.has(id)) this.expect('index', `idempotency of ${id}`, 'a task', 'nothing');
      yield;
    }
  }

  *#checkBalances(): Generator<void> {
    let sum = 0n;
    for (const [name, nanos] of this.#storedBalances) {
      sum += nanos;
      this.expect('balance', name, this.#balances.get(name) ?? 0n, nanos);
      yield;
    }
    for (const [name, nanos] of this.#balances) {
      if (!this.#storedBalances.has(name)) this.expect('balance', name, nanos, 0n);
      yield;
    }
    this.expect('sum', 'all balances', 0n, sum);
    this.expect('balance', 'transit', 0n, this.#balances.get('transit') ?? 0n);
  }

  #addHold(row: JournalRow, kind: 'hold' | 'settle' | 'refund' | 'keep'): void {
    const hold = this.#holds.get(row.ref);
    if (kind === 'hold') {
      this.expect('hold', `${row.ref} opened`, undefined, hold?.state);
      this.#holds.set(row.ref, { state: 'held', nanos: row.nanos, opened: row });
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
}

type Feeds = { readonly [Table in ArchiveTable]: (recount: Recount, row: Extract<ArchiveRow, { table: Table }>['row']) => void };

const FEEDS: Feeds = {
  journal: (recount, row) => recount.journal(row),
  account: (recount, row) => recount.account(row),
  key: (recount, row) => recount.key(row),
  balance: (recount, { account, nanos }) => recount.balance(account, nanos),
  hold: (recount, row) => recount.hold(row),
  spend: (recount, row) => recount.spend(row.keyId, row),
  day: (recount, row) => recount.day(row.keyId, row.day, row),
  rollup: (recount, row) => recount.rollup('hour', row),
  log: (recount, row) => recount.logged(row),
  video(recount, task) {
    recount.task(task);
    recount.video(settledVideoOf(task));
  },
  idempotency: (recount, row) => recount.idempotency(row),
  control: (recount, row) => recount.control(row),
  heads: (recount, { logSeq, logAtMs, rollupsAfter = -1 }) =>
    recount.rollupLimits({ logHead: { seq: logSeq, atMs: logAtMs }, after: rollupsAfter }),
  // Nothing follows from these two.
  lease: () => undefined,
  secret: () => undefined,
};
