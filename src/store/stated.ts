/**
 * What a key or an account is, by the journal: each row that makes or changes one holds all that it is from then on, so that a
 * change without a row can be found. Rows of older versions hold only what was asked for, and are used as far as they go.
 */
import { hash } from 'node:crypto';
import type { AccountRecord } from './accounts.ts';
import type { KeyRecord } from './keys.ts';
import type { JournalKind, JournalRow } from './ledger.ts';
import type { RateLimits } from './rate-limits.ts';

type Fields = Readonly<Record<string, unknown>>;

/** The digest of a key stands there as a digest of its own: it can be compared and is of no other use. */
function keyFields(key: KeyRecord): Fields {
  const { total, hourly, daily } = key.limits;
  return {
    account: key.accountId,
    name: key.name,
    digest: hash('sha256', key.digest, 'hex'),
    prefix: key.prefix,
    last4: key.last4,
    created: key.createdAtMs,
    expires: key.expiresAtMs,
    disabled: key.disabled,
    deleted: key.deletedAtMs,
    models: key.models,
    ips: key.ips,
    limit_total: total?.toString(),
    limit_hourly: hourly?.toString(),
    limit_daily: daily?.toString(),
    ...rateFields(key.rateLimits),
    sub_account: key.subAccount,
  };
}

function accountFields(account: AccountRecord): Fields {
  return {
    name: account.name,
    class: account.class,
    unlimited: account.unlimited,
    disabled: account.disabled,
    created: account.createdAtMs,
    ...rateFields(account.rateLimits),
  };
}

function rateFields({ requestsPerMinute, tokensPerMinute, maxConcurrency }: RateLimits = {}): Fields {
  return { requests_per_minute: requestsPerMinute, tokens_per_minute: tokensPerMinute, max_concurrency: maxConcurrency };
}

/** For {@link JournalRow.state}. */
export const keyState = (key: KeyRecord): string => JSON.stringify(keyFields(key));
export const accountState = (account: AccountRecord): string => JSON.stringify(accountFields(account));

/** Every field as text, so that they can be compared. */
export function textOfKey(key: KeyRecord): ReadonlyMap<string, string> {
  return textsOf(keyFields(key));
}

export function textOfAccount(account: AccountRecord): ReadonlyMap<string, string> {
  return textsOf(accountFields(account));
}

/** Every field as a record holds it; one that it lacks is absent from the record, too. */
export interface Stated {
  readonly fields: Map<string, string>;
  /** False: only what is in `fields` is known. */
  isWhole: boolean;
}

const CREATED: ReadonlySet<JournalKind> = new Set(['account_created', 'key_created']);
const CHANGED: ReadonlySet<JournalKind> = new Set(['account_changed', 'key_changed']);

/** Whether the row makes or changes a key or an account. */
export function isStating({ kind }: JournalRow): boolean {
  return CREATED.has(kind) || CHANGED.has(kind);
}

/** What is known after the row, from what was known before it. */
export function statedAfter(before: Stated | undefined, row: JournalRow): Stated {
  if (row.state !== undefined) return { fields: new Map(textsOf(objectOf(row.state))), isWhole: true };
  if (CREATED.has(row.kind)) return { fields: new Map([['disabled', 'false']]), isWhole: false };
  // A whole record that an older version changed is known in part again: its row holds only what was asked for.
  const stated: Stated = { fields: before?.fields ?? new Map(), isWhole: false };
  const { limits, models, ips, expiresInMs, expiresAtMs, ...rest } = objectOf(row.note ?? '{}');
  const asked: Fields = { ...rest, models, ips, expires: expiresAtMs, ...limitFields(limits) };
  for (const [name, value] of Object.entries(asked)) if (value !== undefined) stated.fields.set(name, textOf(value));
  // It was counted from the time of the change.
  if (expiresInMs !== undefined) stated.fields.delete('expires');
  return stated;
}

function limitFields(limits: unknown): Fields {
  if (typeof limits !== 'object' || limits === null) return {};
  return Object.fromEntries(Object.entries(limits).map(([window, limit]) => [`limit_${window}`, limit]));
}

function textsOf(fields: Fields): ReadonlyMap<string, string> {
  return new Map(Object.entries(fields).flatMap(([name, value]) => (value === undefined ? [] : [[name, textOf(value)]])));
}

/** A restriction that was taken away is null in what was asked. */
function textOf(value: unknown): string {
  return value === null ? ABSENT : typeof value === 'string' ? value : JSON.stringify(value);
}

/** The text for a field that is not there. */
export const ABSENT = 'none';

function objectOf(json: string): Fields {
  const value: unknown = JSON.parse(json);
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
