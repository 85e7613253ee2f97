/** Rows as the driver gives them and records as the store means them. Whatever has not the expected type is `corrupt`. */
import type { Account, AccountRecord } from '../accounts.ts';
import type { Registration } from '../books/books.ts';
import type { DayCounts } from '../day-usage.ts';
import { logEntryOf } from '../log-text.ts';
import { JOURNAL_KINDS, type HoldRow, type JournalKind, type JournalRow, type LedgerAccount } from '../ledger.ts';
import type { KeyRecord, SpendLimits } from '../keys.ts';
import type { RateLimits } from '../rate-limits.ts';
import type { RequestLogRow } from '../request-log.ts';
import type { SpendRow } from '../spend-windows.ts';
import { defined } from '../defined.ts';
import { StoreError } from '../store-error.ts';
import { VIDEO, type VideoTask } from '../videos.ts';

export type Row = Readonly<Record<string, unknown>>;

export function text(row: Row, column: string): string {
  const value = row[column];
  if (typeof value !== 'string') throw unexpected(column, value);
  return value;
}

export function maybeText(row: Row, column: string): string | undefined {
  return row[column] === null || row[column] === undefined ? undefined : text(row, column);
}

/** An exact integer, from a bigint column or from text. */
export function big(row: Row, column: string): bigint {
  const value = row[column];
  if (typeof value === 'bigint') return value;
  if (typeof value === 'string' && /^-?[0-9]{1,20}$/.test(value)) return BigInt(value);
  throw unexpected(column, value);
}

export function maybeBig(row: Row, column: string): bigint | undefined {
  return row[column] === null || row[column] === undefined ? undefined : big(row, column);
}

/** A time, a count, a sequence: refuses what a number cannot hold exactly. */
export function int(row: Row, column: string): number {
  const value = typeof row[column] === 'number' ? row[column] : Number(big(row, column));
  if (!Number.isSafeInteger(value)) throw unexpected(column, value);
  return value;
}

export function maybeInt(row: Row, column: string): number | undefined {
  return row[column] === null || row[column] === undefined ? undefined : int(row, column);
}

export function flag(row: Row, column: string): boolean {
  const value = row[column];
  if (typeof value !== 'boolean') throw unexpected(column, value);
  return value;
}

function maybeTexts(row: Row, column: string): readonly string[] | undefined {
  const value: unknown = row[column];
  if (value === null || value === undefined) return undefined;
  if (!Array.isArray(value) || !value.every((item): item is string => typeof item === 'string')) throw unexpected(column, value);
  return value;
}

export function bytes(row: Row, column: string): Uint8Array {
  const value = row[column];
  if (!(value instanceof Uint8Array)) throw unexpected(column, value);
  return value;
}

function unexpected(column: string, value: unknown): StoreError {
  return new StoreError('corrupt', `column ${column} holds ${value === null ? 'null' : typeof value}`);
}

/** The object inside a JSON text. */
export function object(json: string): Row {
  const value: unknown = JSON.parse(json);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new StoreError('corrupt', 'a row is no object');
  return Object.fromEntries(Object.entries(value));
}

export function accountOf(row: Row): AccountRecord {
  return {
    id: text(row, 'id'),
    name: text(row, 'name'),
    class: text(row, 'class'),
    unlimited: flag(row, 'unlimited'),
    disabled: flag(row, 'disabled'),
    createdAtMs: int(row, 'created_at_ms'),
    ...defined({ rateLimits: rateLimitsOf(row) }),
  };
}

export function accountWithWallet(row: Row): Account {
  return { ...accountOf(row), walletNanos: maybeBig(row, 'nanos') ?? 0n };
}

export function keyOf(row: Row): KeyRecord {
  const [expiresAtMs, models, ips] = [maybeInt(row, 'expires_at_ms'), maybeTexts(row, 'models'), maybeTexts(row, 'ips')];
  return {
    id: text(row, 'id'),
    accountId: text(row, 'account_id'),
    name: text(row, 'name'),
    digest: text(row, 'digest'),
    prefix: text(row, 'prefix'),
    last4: text(row, 'last4'),
    createdAtMs: int(row, 'created_at_ms'),
    ...(expiresAtMs === undefined ? {} : { expiresAtMs }),
    disabled: flag(row, 'disabled'),
    ...defined({ deletedAtMs: maybeInt(row, 'deleted_at_ms'), models, ips }),
    limits: limitsOf(row),
    ...defined({ rateLimits: rateLimitsOf(row) }),
    subAccount: flag(row, 'sub_account'),
  };
}

function limitsOf(row: Row): SpendLimits {
  return defined({
    total: maybeBig(row, 'limit_total'),
    hourly: maybeBig(row, 'limit_hourly'),
    daily: maybeBig(row, 'limit_daily'),
  });
}

/** Undefined where there is none. */
function rateLimitsOf(row: Row): RateLimits | undefined {
  const limits = defined({
    requestsPerMinute: maybeInt(row, 'requests_per_minute'),
    tokensPerMinute: maybeInt(row, 'tokens_per_minute'),
    maxConcurrency: maybeInt(row, 'max_concurrency'),
  });
  return Object.keys(limits).length === 0 ? undefined : limits;
}

export function spendOf(row: Row): SpendRow {
  return {
    total: big(row, 'total'),
    hour: int(row, 'hour'),
    hourly: big(row, 'hourly'),
    day: int(row, 'day'),
    daily: big(row, 'daily'),
    held: big(row, 'held'),
  };
}

/** The counts of a day, or of an hour. */
export function countsOf(row: Row): DayCounts {
  return {
    requests: int(row, 'requests'),
    inputTokens: int(row, 'input_tokens'),
    cachedInputTokens: int(row, 'cached_input_tokens'),
    cacheWriteTokens: int(row, 'cache_write_tokens'),
    outputTokens: int(row, 'output_tokens'),
    reasoningTokens: int(row, 'reasoning_tokens'),
    images: int(row, 'images'),
    videos: int(row, 'videos'),
    chargedNanos: big(row, 'charged_nanos'),
  };
}

export function journalOf(row: Row): JournalRow {
  const [accountId, keyId] = [maybeText(row, 'account_id'), maybeText(row, 'key_id')];
  const [by, note, state] = [maybeText(row, 'by_whom'), maybeText(row, 'note'), maybeText(row, 'state')];
  return {
    seq: int(row, 'seq'),
    atMs: int(row, 'at_ms'),
    kind: kindOf(text(row, 'kind')),
    ref: text(row, 'ref'),
    from: ledgerAccountOf(text(row, 'from_account')),
    to: ledgerAccountOf(text(row, 'to_account')),
    nanos: big(row, 'nanos'),
    ...defined({ accountId, keyId, by, note, state }),
    hash: text(row, 'hash'),
  };
}

function kindOf(name: string): JournalKind {
  const kind = JOURNAL_KINDS.find((known) => known === name);
  if (kind === undefined) throw new StoreError('corrupt', `there is no journal kind ${name}`);
  return kind;
}

function ledgerAccountOf(name: string): LedgerAccount {
  if (isLedgerAccount(name)) return name;
  throw new StoreError('corrupt', `there is no ledger account ${name}`);
}

function isLedgerAccount(name: string): name is LedgerAccount {
  return /^(external|revenue|transit|(wallet|sub|house|hold):.+)$/s.test(name);
}

/** Columns of `owners`: the clock of the database is the one that all machines share. */
export const REGISTRATION = 'host, pid, (extract(epoch FROM clock_timestamp() - heartbeat) * 1000)::bigint AS age_ms';

export function registrationOf(row: Row): Registration {
  return { host: text(row, 'host'), pid: int(row, 'pid'), ageMs: int(row, 'age_ms') };
}

export function holdOf(row: Row): HoldRow {
  const closedAtMs = maybeInt(row, 'closed_at_ms');
  return {
    id: text(row, 'id'),
    accountId: text(row, 'account_id'),
    keyId: text(row, 'key_id'),
    state: holdStateOf(text(row, 'state')),
    nanos: big(row, 'nanos'),
    openedAtMs: int(row, 'opened_at_ms'),
    ...(closedAtMs === undefined ? {} : { closedAtMs }),
    from: ledgerAccountOf(text(row, 'from_account')),
  };
}

function holdStateOf(name: string): HoldRow['state'] {
  if (name === 'held' || name === 'settled' || name === 'refunded') return name;
  throw new StoreError('corrupt', `there is no hold state ${name}`);
}

export function taskText(task: VideoTask): string {
  return JSON.stringify({ ...task, frozenNanos: task.frozenNanos.toString() });
}

type StoredTask = VideoTask extends infer Task ? (Task extends VideoTask ? Omit<Task, 'frozenNanos'> & Amount : never) : never;
interface Amount {
  readonly frozenNanos: string;
}

export function taskOf(row: Row): VideoTask {
  const stored: unknown = JSON.parse(text(row, 'task'));
  if (!isStoredTask(stored)) throw new StoreError('corrupt', 'a video task is not one');
  return { ...stored, frozenNanos: BigInt(stored.frozenNanos) };
}

/** Only this module writes such text: that it is one is checked, not each of its fields. */
function isStoredTask(value: unknown): value is StoredTask {
  return (
    typeof value === 'object' &&
    value !== null &&
    'id' in value &&
    'frozenNanos' in value &&
    typeof value.frozenNanos === 'string' &&
    'state' in value &&
    typeof value.state === 'string' &&
    Object.hasOwn(VIDEO, value.state)
  );
}

export function logRowOf(row: Row): RequestLogRow {
  return { ...logEntryOf(text(row, 'entry')), seq: int(row, 'seq'), loggedAtMs: int(row, 'logged_at_ms') };
}
