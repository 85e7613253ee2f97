/**
 * What a rule of the store reads and writes inside one transaction. A rule stands once, as a generator over these books; an
 * engine keeps them. Where an engine answers at once (LMDB) a rule runs through without a pause; where it promises (PostgreSQL)
 * the rule yields the promise and goes on when that is settled.
 */
import type { AccountRecord } from '../accounts.ts';
import type { ControlKind } from '../controls.ts';
import type { DayCounts } from '../day-usage.ts';
import type { EnvelopeSecret } from '../envelope-secrets.ts';
import type { KeyRecord } from '../keys.ts';
import type { HoldRow, HoldState, JournalKind, JournalRow, LedgerAccount } from '../ledger.ts';
import type { RequestLogEntry, RequestLogRow } from '../request-log.ts';
import type { Rollup, RollupChanges, SettledVideo } from '../rollups.ts';
import type { OpenExchange } from '../settlement.ts';
import type { SpendRow } from '../spend-windows.ts';
import type { StoreOptions } from '../store.ts';
import { StoreError } from '../store-error.ts';
import type { Earlier } from '../video-rules.ts';
import type { NewVideo, VideoTask } from '../videos.ts';

/** What an engine gives: at once, or as a promise. */
export type Answer<T> = T | Promise<T>;

/** A rule under way. It yields whatever its engine must wait for, and catches nothing. */
export type Rule<T> = Generator<Promise<void>, T, void>;

/** A row of the journal before it has its place in it. */
export type Movement = Omit<JournalRow, 'seq' | 'hash'>;

/**
 * Money: balances, spend windows and usage, collected and written at the end of the transaction, and the journal that explains
 * them.
 */
export interface MoneyBooks {
  readonly rollups: RollupChanges;
  /** The row that already explains this cause, if there is one. */
  journaled(ref: string, kind: JournalKind): Answer<JournalRow | undefined>;
  /** To be called before balances and spend of these names are read or changed. */
  load(balances: Iterable<LedgerAccount>, spend?: Iterable<string>): Answer<void>;
  balance(account: LedgerAccount): bigint;
  spend(keyId: string): SpendRow;
  /**
   * Moves money, with its row of the journal. That the cause is new the rule has checked, or entered. Throws `StoreError` out of
   * range.
   */
  move(movement: Movement): void;
  /** A journal row that moves nothing. */
  note(movement: Omit<Movement, 'from' | 'to' | 'nanos'>): void;
  addSpend(keyId: string, nanos: bigint, atMs: number): void;
  addHeld(keyId: string, nanos: bigint): void;
  addUsage(keyId: string, atMs: number, usage: Partial<DayCounts>): void;
}

/** The row of an exchange that was closed as interrupted. */
export interface InterruptedRow {
  readonly seq: number;
  readonly loggedAtMs: number;
  readonly model: string;
}

/** Exchanges: in hand, in the index that makes each settle once, and in the request log. */
export interface ExchangeBooks extends MoneyBooks {
  /** To be called before these exchanges are entered and their keys are charged. */
  loadExchanges(exchanges: readonly Pick<OpenExchange, 'exchangeId' | 'keyId'>[]): Answer<void>;
  /** Who pays for what a key does. Throws `corrupt` where there is no such key. */
  payer(keyId: string): { readonly accountId: string; readonly from: LedgerAccount };
  /**
   * For an exchange that is logged next, and journaled next if `isJournaled`. False, and nothing is entered, where it was seen
   * before.
   */
  enter(exchangeId: string, isJournaled: boolean): boolean;
  /**
   * For one that was seen before and is settled late: its row, undefined where that was pruned. `settled`, and nothing is
   * entered, where it was.
   */
  enterAgain(exchangeId: string, isJournaled: boolean): InterruptedRow | 'settled' | undefined;
  /**
   * A new row of the request log; times never go back along it. Gives when it was logged. `text`: the entry as the engine keeps
   * it.
   */
  appendLog(entry: RequestLogEntry, nowMs: number, text?: string): number;
  /** The row of an exchange that is settled late is replaced, in its old place. */
  replaceLog(row: InterruptedRow, entry: RequestLogEntry, text: string): void;
  /** Whether the hour of a row that is logged already has its sums: an older version made none. */
  isSummedUp(loggedAtMs: number): boolean;
  openExchange(processId: string, exchange: OpenExchange): void;
  /** Does no harm where it never was open. */
  closeExchange(processId: string, exchangeId: string): void;
  openExchanges(processId: string, limit: number): Answer<readonly OpenExchange[]>;
  process(id: string, nowMs: number): Answer<Registration | undefined>;
  removeProcess(id: string): Answer<void>;
}

/** A process that has the store open, as it registered itself. */
export interface Registration {
  readonly host: string;
  readonly pid: number;
  /** Since its last heartbeat, by the clock that the processes share. */
  readonly ageMs: number;
}

export interface VideoReplacement {
  readonly before: VideoTask;
  readonly next: VideoTask;
}

/** What bounds the hours that can be summed up from rows. */
export interface LogLimits {
  /** Of the rows that are left. */
  readonly oldest: Pick<RequestLogRow, 'seq' | 'loggedAtMs'> | undefined;
  /** Of all that ever were. */
  readonly head: { readonly seq: number; readonly atMs: number };
  /** That has sums, since the epoch. */
  readonly firstHour: number | undefined;
}

export interface RollupBooks {
  logLimits(): Answer<LogLimits>;
  /** Rows logged from the one time and before the other, above a seq, in their order. */
  logged(fromMs: number, toMs: number, after: number, limit: number): Answer<readonly RequestLogRow[]>;
  /** Those that were paid for. */
  settledVideos(): Answer<readonly SettledVideo[]>;
  /** The sums by key of these hours. */
  hoursOfKeys(from: number, to: number): Answer<readonly Rollup[]>;
  /** The sums of these hours and of this day, also those of all keys together. */
  removeRollups(hours: { readonly from: number; readonly to: number }, day: number): Answer<void>;
  addRollups(hours: readonly Rollup[], days: readonly Rollup[]): Answer<void>;
  /** No row of the log is without its sums any more. */
  allSummedUp(): Answer<void>;
}

export interface Books extends ExchangeBooks, RollupBooks {
  account(id: string): Answer<AccountRecord | undefined>;
  isNameTaken(name: string): Answer<boolean>;
  addAccount(account: AccountRecord): Answer<void>;
  replaceAccount(account: AccountRecord): Answer<void>;

  key(id: string): Answer<KeyRecord | undefined>;

  isDigestTaken(digest: string): Answer<boolean>;
  addKey(key: KeyRecord): Answer<void>;
  replaceKey(key: KeyRecord): Answer<void>;

  hold(id: string): Answer<HoldRow | undefined>;
  addHold(hold: HoldRow): Answer<void>;
  closeHold(hold: HoldRow, state: HoldState, atMs: number): Answer<void>;

  /** True while `token` is the newest of the lease and was not released. An expired lease that nobody took since still counts. */
  holdsLease(name: string, token: number): Answer<boolean>;
  /** Those of the ids that there are; an id may be one that no task can have. */
  videos(ids: readonly string[]): Answer<readonly VideoTask[]>;
  earlierVideo(request: Pick<NewVideo, 'principal' | 'idempotencyKey'>): Answer<Earlier | undefined>;
  /** Takes the next number. */
  nextVideoNumber(): number;
  /** `request`: what remembers the task under its idempotency key. */
  addVideo(task: VideoTask, request: Pick<NewVideo, 'idempotencyKey' | 'bodyHash'>): Answer<void>;
  replaceVideos(changes: readonly VideoReplacement[]): Answer<void>;
  /** Tasks in submission, read whole. */
  submittingVideos(): Answer<readonly VideoTask[]>;

  /** In the order of their ids. */
  secrets(): Answer<readonly EnvelopeSecret[]>;
  addSecret(secret: EnvelopeSecret): Answer<void>;

  hasControl(kind: ControlKind, id: string): Answer<boolean>;
  addControl(kind: ControlKind, id: string, text: string): Answer<void>;
  removeControl(kind: ControlKind, id: string): Answer<void>;
  /** Forgets the claims that are older. */
  forgetClaims(beforeMs: number): Answer<void>;
  claim(name: string): Answer<{ readonly hash: string } | undefined>;
  addClaim(name: string, hash: string, atMs: number): Answer<void>;
}

/** An engine, as rules are run on it. */
export interface Bookkeeper {
  readonly options: Pick<StoreOptions, 'clock' | 'randomBytes'>;
  /**
   * Runs the rule in one transaction. Rejects with `StoreError`, or with what the rule threw, and then nothing of it was kept.
   */
  follow<T>(rule: (books: Books) => Rule<T>): Promise<T>;
  /** Throws `StoreError` `unhealthy`: for new work, before anything is tried. */
  requireHealth(): void;
}

/** Waits for what an engine gives: `const key = yield* got(books.key(id))`. */
export function* got<T>(answer: Answer<T>): Rule<T> {
  if (!(answer instanceof Promise)) return answer;
  const box: { value?: { readonly it: T } } = {};
  yield answer.then((it) => {
    box.value = { it };
  });
  if (box.value === undefined) throw new StoreError('corrupt', 'a rule went on before its engine had answered');
  return box.value.it;
}

/** Runs a rule on an engine that answers at once. */
export function finished<T>(rule: Rule<T>): T {
  const step = rule.next();
  if (step.done !== true) throw new StoreError('corrupt', 'a rule waits inside a transaction that cannot');
  return step.value;
}

/** Runs a rule on an engine that promises. */
export async function awaited<T>(rule: Rule<T>): Promise<T> {
  for (;;) {
    const step = rule.next();
    if (step.done === true) return step.value;
    await step.value;
  }
}
