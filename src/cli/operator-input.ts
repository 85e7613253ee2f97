/**
 * Reads amounts, dates and lists from the command line, strictly. An error names the option as the operator typed it. Knows no verb.
 */
import type { Cause } from '../store/accounts.ts';
import { parseUsd } from '../store/money.ts';
import type { Account } from '../store/accounts.ts';
import { dayNumber } from '../store/spend-windows.ts';
import { RefusedError, textOption, UsageError, type VerbContext } from './verb.ts';

/** Nano-dollars. Throws UsageError naming `field`. */
export function usd(text: string, field: string, negative = false): bigint {
  const parsed = parseUsd(text, { field, negative });
  if (!parsed.ok) throw new UsageError(`${parsed.refusal.field} ${parsed.refusal.message}`);
  return parsed.value;
}

const ISO_TIME = /^(\d{4}-\d{2}-\d{2})(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2}))?$/;
const SPAN_MS = new Map([
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
]);

/** An ISO 8601 date or time (a date is its midnight in UTC), or a span from now: `90s`, `45m`, `12h`, `30d`. */
export function expiry(text: string, field: string): { readonly expiresAtMs: number } | { readonly expiresInMs: number } {
  const span = /^([1-9][0-9]{0,5})([smhd])$/.exec(text);
  if (span !== null) return { expiresInMs: Number(span[1]) * (SPAN_MS.get(span[2] ?? '') ?? 0) };
  const day = ISO_TIME.exec(text)?.[1];
  const at = day !== undefined && dayNumber(day) !== undefined ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(at)) throw new UsageError(`${field} must be a time such as 2027-01-31T00:00:00Z, or 12h, or 30d`);
  return { expiresAtMs: at };
}

/** `YYYY-MM-DD`, or undefined where the option is absent. */
export function dayOption(context: VerbContext, name: string): string | undefined {
  const text = textOption(context, name);
  if (text === undefined) return undefined;
  if (dayNumber(text) === undefined) throw new UsageError(`--${name} must be a day such as 2026-03-01`);
  return text;
}

/** A whole number from `least` to `most`, or undefined where the option is absent. */
export function countOption(context: VerbContext, name: string, least: number, most: number): number | undefined {
  const text = textOption(context, name);
  if (text === undefined) return undefined;
  const count = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (!(count >= least && count <= most)) throw new UsageError(`--${name} must be ${least} to ${most}`);
  return count;
}

/** Comma-separated entries; undefined where the option is absent. An empty entry is refused: a forgotten value must not lift a restriction. */
export function listOption(context: VerbContext, name: string): string[] | undefined {
  const text = textOption(context, name);
  if (text === undefined) return undefined;
  const entries = text.split(',').map((entry) => entry.trim());
  const empty = entries.indexOf('');
  if (empty >= 0) throw new UsageError(entries.length === 1 ? `--${name} is empty` : `--${name}[${empty}] is empty`);
  return entries;
}

/** The options of {@link causeOf}. */
export const CAUSE = ['cause', 'note'] as const;

/** Why a change is made, for the journal. `--cause ID` makes a command safe to repeat: the same change is done once. */
export function causeOf(context: VerbContext): Cause {
  const note = textOption(context, 'note');
  const id = textOption(context, 'cause');
  if (id !== undefined && !/^[\x21-\x7e]{1,128}$/.test(id))
    throw new UsageError('--cause must be 1 to 128 visible ASCII characters');
  return { id: id ?? context.mint('op_'), by: 'cli', ...(note === undefined ? {} : { note }) };
}

/** The account, by name or id. Throws RefusedError. */
export async function accountNamed(context: VerbContext, name: string): Promise<Account> {
  const account = await (await context.store()).accounts.find(name);
  if (account === undefined) throw new RefusedError(`there is no account ${name}`);
  return account;
}

/** The store's field names, and the options that operators know them by. */
const OPTIONS: ReadonlyMap<string, string> = new Map([
  ['name', '--name'],
  ['class', '--class'],
  ['credit', '--credit'],
  ['amount', 'USD'],
  ['models', '--models'],
  ['ips', '--ips'],
  ['expiresAtMs', '--expires'],
  ['limits.total', '--limit-total'],
  ['limits.hourly', '--limit-hourly'],
  ['limits.daily', '--limit-daily'],
  ['rateLimits.requestsPerMinute', '--requests-per-minute'],
  ['rateLimits.tokensPerMinute', '--tokens-per-minute'],
  ['rateLimits.maxConcurrency', '--max-concurrency'],
]);

/** The text of a store's refusal, beginning with the field as the operator knows it; `words` names fields that have no option. */
export function reasonOf(refusal: { readonly reason: string }, words: Readonly<Record<string, string>> = {}): string {
  if (!('field' in refusal && 'message' in refusal)) return refusal.reason.replaceAll('_', ' ');
  const field = String(refusal.field);
  const [, base = field, index = ''] = /^(.*?)(\[\d+\])?$/.exec(field) ?? [];
  return `${words[base] ?? OPTIONS.get(base) ?? base}${index} ${String(refusal.message)}`;
}
