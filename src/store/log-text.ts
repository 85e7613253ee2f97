/**
 * A row of the request log as JSON text and back, without loss: amounts (bigint) as decimal strings, meters (a Map) as pairs.
 * Used where an engine has no encoding of its own for them: in PostgreSQL, and in its settlement log.
 */
import type { BillableUsage, Charge, ChargeLine } from './charge.ts';
import type { AttemptEntry, RequestLogEntry } from './request-log.ts';
import { StoreError } from './store-error.ts';

export function logText(entry: RequestLogEntry): string {
  const { charge, attempts } = entry;
  return JSON.stringify(
    {
      ...withUsageText(entry),
      attempts: attempts.map(withUsageText),
      ...(charge === undefined ? {} : { charge: chargeText(charge) }),
    },
    wellFormed,
  );
}

/** Upstreams cut characters in half: what no engine could give back as it came is not written. */
function wellFormed(_: string, value: unknown): unknown {
  return typeof value === 'string' ? value.toWellFormed() : value;
}

interface Used {
  readonly usage?: BillableUsage;
}
interface UsedText {
  readonly usage?: Omit<BillableUsage, 'meters'> & { readonly meters?: readonly [string, number][] };
}

function withUsageText<Part extends Used>(part: Part): Part | (Omit<Part, 'usage'> & UsedText) {
  const meters = part.usage?.meters;
  return meters === undefined ? part : { ...part, usage: { ...part.usage, meters: [...meters] } };
}

function withUsage<Part extends UsedText>(part: Part): Omit<Part, 'usage'> & Used {
  const { usage, ...rest } = part;
  if (usage === undefined) return rest;
  const { meters, ...counts } = usage;
  return { ...rest, usage: meters === undefined ? counts : { ...counts, meters: new Map(meters) } };
}

function chargeText({ lines, total, flags }: Charge) {
  return {
    lines: lines.map((line) => ({ ...line, rate: line.rate.toString(), amount: line.amount.toString() })),
    total: total.toString(),
    flags,
  };
}

type StoredLine = Omit<ChargeLine, 'rate' | 'amount'> & { readonly rate: string; readonly amount: string };
type StoredAttempt = Omit<AttemptEntry, 'usage'> & UsedText;
type StoredEntry = Omit<RequestLogEntry, 'usage' | 'charge' | 'attempts'> &
  UsedText & {
    readonly attempts: readonly StoredAttempt[];
    readonly charge?: { readonly lines: readonly StoredLine[]; readonly total: string; readonly flags: readonly string[] };
  };

/** The inverse of `logText`, for text that `logText` wrote. Throws `StoreError` `corrupt` on anything else. */
export function logEntryOf(text: string): RequestLogEntry {
  const { charge, attempts, ...rest } = storedEntry(text);
  return {
    ...withUsage(rest),
    attempts: attempts.map(withUsage),
    ...(charge === undefined
      ? {}
      : {
          charge: {
            lines: charge.lines.map((line) => ({ ...line, rate: BigInt(line.rate), amount: BigInt(line.amount) })),
            total: BigInt(charge.total),
            flags: charge.flags,
          },
        }),
  };
}

function storedEntry(text: string): StoredEntry {
  try {
    const value: unknown = JSON.parse(text);
    if (isStoredEntry(value)) return value;
  } catch (error) {
    throw new StoreError('corrupt', 'a row of the request log is no JSON', error);
  }
  throw new StoreError('corrupt', 'a row of the request log is not one');
}

/** Only this module writes such text: that it is one is checked, not each of its fields. */
function isStoredEntry(value: unknown): value is StoredEntry {
  return (
    typeof value === 'object' &&
    value !== null &&
    'exchangeId' in value &&
    typeof value.exchangeId === 'string' &&
    'attempts' in value &&
    Array.isArray(value.attempts)
  );
}
