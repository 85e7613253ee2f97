/** The books of a transaction on LMDB: which tables a record of each kind is written to. */
import type { AccountRecord } from '../accounts.ts';
import type { Books, InterruptedRow, LogLimits, Registration, VideoReplacement } from '../books/books.ts';
import type { ControlKind } from '../controls.ts';
import type { EnvelopeSecret } from '../envelope-secrets.ts';
import type { KeyRecord } from '../keys.ts';
import type { HoldRow, HoldState } from '../ledger.ts';
import type { RequestLogEntry, RequestLogRow } from '../request-log.ts';
import { settledVideoOf } from '../rollup-recount.ts';
import { hourOf, type Rollup, type SettledVideo } from '../rollups.ts';
import { type OpenExchange, openFields } from '../settlement.ts';
import { dueAt, type Earlier, isIdempotencyKey, isTaskId, UNDUE } from '../video-rules.ts';
import type { NewVideo, VideoTask } from '../videos.ts';
import { enterExchange, exchangeEntry, isCharged, reenterExchange } from './exchange-index.ts';
import { addAll, keyOf, keyOfAll, rowsBetween } from './rollup-rows.ts';
import { entryText } from './row-shapes.ts';
import { appendLog, firstAt, replaceLog } from './log-rows.ts';
import { metaOf, type Tables } from './tables.ts';
import { Work } from './work.ts';

export class LmdbBooks extends Work implements Books {
  account(id: string): AccountRecord | undefined {
    return this.tables.accounts.get(id);
  }

  isNameTaken(name: string): boolean {
    return this.tables.accountNames.doesExist(name);
  }

  addAccount(account: AccountRecord): void {
    this.replaceAccount(account);
    this.put(this.tables.accountNames, account.name, account.id);
  }

  replaceAccount(account: AccountRecord): void {
    this.putPrincipal(this.tables.accounts, account.id, account);
  }

  key(id: string): KeyRecord | undefined {
    return this.tables.keys.get(id);
  }

  isDigestTaken(digest: string): boolean {
    return this.tables.keyDigests.doesExist(digest);
  }

  addKey(key: KeyRecord): void {
    this.replaceKey(key);
    this.put(this.tables.keyDigests, key.digest, key.id);
  }

  replaceKey(key: KeyRecord): void {
    this.putPrincipal(this.tables.keys, key.id, key);
  }

  hold(id: string): HoldRow | undefined {
    return this.tables.holds.get(id);
  }

  addHold(hold: HoldRow): void {
    this.put(this.tables.holds, hold.id, hold);
  }

  closeHold(hold: HoldRow, state: HoldState, atMs: number): void {
    this.put(this.tables.holds, hold.id, { ...hold, state, closedAtMs: atMs });
  }

  loadExchanges(): void {
    // Each is looked up when it is entered.
  }

  enter(exchangeId: string, isJournaled: boolean): boolean {
    return enterExchange(this, exchangeId, isJournaled);
  }

  enterAgain(exchangeId: string, isJournaled: boolean): RequestLogRow | 'settled' | undefined {
    const entry = exchangeEntry(this.tables, exchangeId);
    if (entry === undefined) return 'settled';
    const row = entry.logSeq === undefined ? undefined : this.tables.log.get(entry.logSeq);
    const isSettled = row === undefined ? isCharged(this.tables, exchangeId, entry) : row.status !== 'interrupted';
    if (isSettled) return 'settled';
    reenterExchange(this, exchangeId, entry, row?.seq ?? this.nextLogSeq, isJournaled);
    return row;
  }

  appendLog(entry: RequestLogEntry, nowMs: number, text = entryText(entry)): number {
    return appendLog(this, entry, text, nowMs);
  }

  replaceLog({ seq }: InterruptedRow, entry: RequestLogEntry, text: string): void {
    const row = this.tables.log.get(seq);
    if (row !== undefined) replaceLog(this, row, entry, text);
  }

  isSummedUp(loggedAtMs: number): boolean {
    return hourOf(loggedAtMs) > (metaOf(this.tables, 'rollupsAfter') ?? -1);
  }

  openExchange(processId: string, exchange: OpenExchange): void {
    this.put(this.tables.openExchanges, [processId, exchange.exchangeId], openFields(exchange));
  }

  closeExchange(processId: string, exchangeId: string): void {
    this.remove(this.tables.openExchanges, [processId, exchangeId]);
  }

  openExchanges(processId: string, limit: number): OpenExchange[] {
    const rows = this.tables.openExchanges.getRange({ start: [processId, ''], end: [processId, '\uffff'], limit });
    return [...rows].map(({ value }) => value);
  }

  process(id: string, nowMs: number): Registration | undefined {
    return registrationOf(this.tables, id, nowMs);
  }

  removeProcess(id: string): void {
    this.remove(this.tables.processes, id);
  }

  logLimits(): LogLimits {
    const { log, rollupHours } = this.tables;
    const [oldest] = log.getRange({ limit: 1 });
    const [first] = rollupHours.getKeys({ start: keyOfAll(0), end: keyOfAll(Number.MAX_SAFE_INTEGER), limit: 1 });
    return { oldest: oldest?.value, head: metaOf(this.tables, 'logHead') ?? { seq: 0, atMs: 0 }, firstHour: first?.[1] };
  }

  logged(fromMs: number, toMs: number, after: number, limit: number): RequestLogRow[] {
    const head = metaOf(this.tables, 'logHead')?.seq ?? 0;
    const start = Math.max(after + 1, firstAt(this.tables, fromMs, head));
    const rows = this.tables.log.getRange({ start, end: firstAt(this.tables, toMs, head), limit });
    return [...rows].map(({ value }) => value);
  }

  settledVideos(): SettledVideo[] {
    return [...this.tables.videos.getRange()].flatMap(({ value }) => settledVideoOf(value) ?? []);
  }

  hoursOfKeys(from: number, to: number): Rollup[] {
    const { keys, rollupHours } = this.tables;
    return [...keys.getKeys()].flatMap((keyId) => [...rowsBetween(rollupHours, keyId, from, to)]);
  }

  removeRollups(hours: { readonly from: number; readonly to: number }, day: number): void {
    const { keys, rollupHours, rollupDays } = this.tables;
    for (const keyId of ['', ...keys.getKeys()]) {
      for (const row of [...rowsBetween(rollupHours, keyId, hours.from, hours.to)]) this.remove(rollupHours, keyOf(row));
      for (const row of [...rowsBetween(rollupDays, keyId, day, day + 1)]) this.remove(rollupDays, keyOf(row));
    }
  }

  addRollups(hours: readonly Rollup[], days: readonly Rollup[]): void {
    addAll(this, this.tables.rollupHours, hours);
    addAll(this, this.tables.rollupDays, days);
  }

  allSummedUp(): void {
    this.remove(this.tables.meta, 'rollupsAfter');
  }

  holdsLease(name: string, token: number): boolean {
    const lease = this.tables.leases.get(name);
    return lease !== undefined && lease.token === token && lease.expiresAtMs > 0;
  }

  videos(ids: readonly string[]): VideoTask[] {
    return videosOf(this.tables, ids);
  }

  earlierVideo(request: Pick<NewVideo, 'principal' | 'idempotencyKey'>): Earlier | undefined {
    return earlierOf(this.tables, request);
  }

  nextVideoNumber(): number {
    const number = (metaOf(this.tables, 'videoNumber') ?? 0) + 1;
    this.put(this.tables.meta, 'videoNumber', number);
    return number;
  }

  addVideo(task: VideoTask, { idempotencyKey, bodyHash }: Pick<NewVideo, 'idempotencyKey' | 'bodyHash'>): void {
    const { id, accountId, keyId, number } = task;
    this.put(this.tables.videoOwners, [accountId, keyId, number], id);
    this.put(this.tables.idempotency, [accountId, keyId, idempotencyKey], { taskId: id, bodyHash });
    this.#putVideo(task);
  }

  replaceVideos(changes: readonly VideoReplacement[]): void {
    for (const { before, next } of changes) {
      const due = dueKey(before);
      if (due !== undefined) this.remove(this.tables.videoDue, due);
      this.#putVideo(next);
    }
  }

  submittingVideos(): VideoTask[] {
    const due = this.tables.videoDue.getKeys({ start: ['submitting', 0, ''], end: ['submitting', UNDUE + 1, ''] });
    return videosOf(
      this.tables,
      [...due].map(([, , id]) => id),
    );
  }

  secrets(): readonly EnvelopeSecret[] {
    return metaOf(this.tables, 'secrets') ?? [];
  }

  addSecret(secret: EnvelopeSecret): void {
    this.put(this.tables.meta, 'secrets', [...this.secrets(), secret]);
  }

  hasControl(kind: ControlKind, id: string): boolean {
    return this.tables.controls.doesExist([kind, id]);
  }

  addControl(kind: ControlKind, id: string, text: string): void {
    this.put(this.tables.controls, [kind, id], text);
  }

  removeControl(kind: ControlKind, id: string): void {
    this.remove(this.tables.controls, [kind, id]);
  }

  forgetClaims(beforeMs: number): void {
    const { claims } = this.tables;
    for (const { key, value } of [...claims.getRange()]) if (value.atMs < beforeMs) this.remove(claims, key);
  }

  claim(name: string): { readonly hash: string } | undefined {
    return this.tables.claims.get(name);
  }

  addClaim(name: string, hash: string, atMs: number): void {
    this.put(this.tables.claims, name, { hash, atMs });
  }

  /** With its place in the index of what the worker should take up. */
  #putVideo(task: VideoTask): void {
    const due = dueKey(task);
    if (due !== undefined) this.put(this.tables.videoDue, due, true);
    this.put(this.tables.videos, task.id, task);
  }
}

export function videosOf(tables: Tables, ids: readonly string[]): VideoTask[] {
  return ids.flatMap((id) => (isTaskId(id) ? (tables.videos.get(id) ?? []) : []));
}

export function earlierOf(
  tables: Tables,
  { principal, idempotencyKey }: Pick<NewVideo, 'principal' | 'idempotencyKey'>,
): Earlier | undefined {
  if (!isIdempotencyKey(idempotencyKey)) return undefined;
  const row = tables.idempotency.get([principal.account.id, principal.key.id, idempotencyKey]);
  return row === undefined ? undefined : { ...row, task: tables.videos.get(row.taskId) };
}

export function dueKey(task: VideoTask): [string, number, string] | undefined {
  const due = dueAt(task);
  return due === undefined ? undefined : [task.state, due, task.id];
}

export function registrationOf({ processes }: Tables, id: string, nowMs: number): Registration | undefined {
  const row = processes.get(id);
  return row && { host: row.host, pid: row.pid, ageMs: nowMs - row.heartbeatAtMs };
}
