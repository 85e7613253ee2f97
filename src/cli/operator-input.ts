/**
 * Reads amounts, times and days that an operator wrote, strictly. An error names the member as it is called where it was written.
 */
import { InputError, RefusedError } from '../http/admin/refusals.ts';
import type { Account } from '../store/accounts.ts';
import { parseUsd } from '../store/money.ts';
import { dayNumber } from '../store/spend-windows.ts';
import type { VerbContext } from './verb.ts';

/** Nano-dollars. Throws InputError. */
export function usd(text: string, member: string, negative = false): bigint {
  const parsed = parseUsd(text, { field: member, negative });
  if (!parsed.ok) throw new InputError((name) => `${name(member)} ${parsed.refusal.message}`);
  return parsed.value;
}

const ISO_TIME = /^(\d{4}-\d{2}-\d{2})(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2}))?$/;
const SPAN_MS = new Map([
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
]);

/**
 * An ISO 8601 date or time (a date is its midnight in UTC), or a span from now: `90s`, `45m`, `12h`, `30d`. Throws InputError.
 */
export function expiry(text: string, member: string): { readonly expiresAtMs: number } | { readonly expiresInMs: number } {
  const span = /^([1-9][0-9]{0,5})([smhd])$/.exec(text);
  if (span !== null) return { expiresInMs: Number(span[1]) * (SPAN_MS.get(span[2] ?? '') ?? 0) };
  const day = ISO_TIME.exec(text)?.[1];
  const at = day !== undefined && dayNumber(day) !== undefined ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(at))
    throw new InputError((name) => `${name(member)} must be a time such as 2027-01-31T00:00:00Z, or 12h, or 30d`);
  return { expiresAtMs: at };
}

/** A moment: an ISO 8601 time, or a span that ends now (`24h`). Milliseconds since the epoch. Throws InputError. */
export function moment(text: string, member: string, nowMs: number): number {
  try {
    const given = expiry(text, member);
    return 'expiresAtMs' in given ? given.expiresAtMs : nowMs - given.expiresInMs;
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    throw new InputError((name) => `${name(member)} must be a time such as 2026-03-01T12:00:00Z, or how long ago, such as 24h`);
  }
}

/** Throws InputError for text that is no day (`YYYY-MM-DD`). */
function checkDay(text: string | undefined, member: string): void {
  if (text !== undefined && dayNumber(text) === undefined)
    throw new InputError((name) => `${name(member)} must be a day such as 2026-03-01`);
}

/** Throws InputError for a day that is none, and for a range that ends before it begins. */
export function checkDays({ from, to }: { readonly from?: string; readonly to?: string }): void {
  checkDay(from, 'from');
  checkDay(to, 'to');
  if (from !== undefined && to !== undefined && from > to)
    throw new InputError((name) => `${name('from')} is after ${name('to')}`);
}

/** The account, by name or id. Throws RefusedError. */
export async function accountNamed(context: Pick<VerbContext, 'store'>, name: string): Promise<Account> {
  const account = await (await context.store()).accounts.find(name);
  if (account === undefined) throw new RefusedError(`there is no account ${name}`, 'unknown', 'unknown_account');
  return account;
}

/** What one answer of the admin API may list: some 30 MB. `narrower`: what there is to name. */
export function tooManyRows(most: number, narrower: string): RefusedError {
  return new RefusedError(`there are more than ${most} rows: name ${narrower}`, 'invalid', 'too_many_rows');
}
