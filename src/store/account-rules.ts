/** The checks of an account's fields. Pure; shared by every engine. */
import { type AccountChanges, type AccountRecord, type Cause, DEFAULT_CLASS, type NewAccount } from './accounts.ts';
import { checkName } from './key-rules.ts';
import { inRange } from './money.ts';
import { changedRateLimits, sameRateLimits, withRateLimits } from './rate-limits.ts';
import { done, type Invalid, invalid, type Result } from './result.ts';

const CLASS = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;

export function checkNewAccount(account: NewAccount): Result<true, Invalid> {
  const name = checkName('name', account.name);
  if (!name.ok) return name;
  if (account.name.startsWith('acct_')) return invalid('name', 'must not begin like an account id');
  const checked = checkClass(account.class);
  if (!checked.ok) return checked;
  const { creditNanos = 0n } = account;
  if (creditNanos < 0n || !inRange(creditNanos)) return invalid('credit', 'must not be negative and must be in range');
  const limits = changedRateLimits(undefined, account.rateLimits);
  return limits.ok ? done(true) : limits;
}

/** The record of an account that has passed {@link checkNewAccount}. */
export function newAccountRecord(
  { name, class: of, unlimited, rateLimits }: NewAccount,
  id: string,
  createdAtMs: number,
): AccountRecord {
  const record = { id, name, class: of ?? DEFAULT_CLASS, unlimited: unlimited ?? false, disabled: false, createdAtMs };
  const limits = changedRateLimits(undefined, rateLimits);
  return withRateLimits<AccountRecord>(record, limits.ok ? limits.value : undefined);
}

/** The account with the changes, when every one of them is acceptable. */
export function changedAccount(record: AccountRecord, changes: AccountChanges): Result<AccountRecord, Invalid> {
  const checked = checkClass(changes.class);
  if (!checked.ok) return checked;
  const limits = changedRateLimits(record.rateLimits, changes.rateLimits);
  if (!limits.ok) return limits;
  const { class: name = record.class, unlimited = record.unlimited, disabled = record.disabled } = changes;
  return done(withRateLimits({ ...record, class: name, unlimited, disabled }, limits.value));
}

/**
 * Whether the account that was made before, with this opening credit, is the one that is asked for now: then asking is a
 * repetition.
 */
export function isSameAccount(asked: NewAccount, made: AccountRecord, creditNanos: bigint): boolean {
  const { name, class: of = DEFAULT_CLASS, unlimited = false } = asked;
  const isSame = name === made.name && of === made.class && unlimited === made.unlimited;
  return isSame && sameRateLimits(asked.rateLimits, made.rateLimits) && (asked.creditNanos ?? 0n) === creditNanos;
}

function checkClass(name: string | undefined): Result<true, Invalid> {
  return name === undefined || CLASS.test(name) ? done(true) : invalid('class', 'is not a class name');
}

/** What was asked and why, as text: for the journal, and to tell a repetition from another change under the same cause. */
export function describeAccountChanges(
  { class: name, unlimited, disabled, rateLimits }: AccountChanges,
  { note: reason }: Cause,
): string {
  return JSON.stringify({ class: name, unlimited, disabled, rateLimits, reason });
}

/** Who asked, and why, as members of a journal row. */
export function who(cause: Cause): { readonly by: string; readonly note?: string } {
  return { by: cause.by, ...(cause.note === undefined ? {} : { note: cause.note }) };
}
