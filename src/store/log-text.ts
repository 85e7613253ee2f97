/**
 * A row of the request log as JSON text and back, without loss: amounts (bigint) as decimal strings, meters (a Map) as pairs. Used
 * where an engine has no encoding of its own for them: in PostgreSQL, in the local spool, in a copy.
 */
import type { Charge, ChargeLine } from './charge.ts';
import type { RequestLogEntry } from './request-log.ts';
import { StoreError } from './store-error.ts';

export function logText(entry: RequestLogEntry): string {
  const { usage, charge } = entry;
  const meters = usage?.meters;
  return JSON.stringify(
    {
      ...entry,
      ...(usage === undefined ? {} : { usage: meters === undefined ? usage : { ...usage, meters: [...meters] } }),
      ...(charge === undefined ? {} : { charge: chargeText(charge) }),
    },
    wellFormed,
  );
}

/** Upstreams cut characters in half: what no engine could give back as it came is not written. */
function wellFormed(_: string, value: unknown): unknown {
  return typeof value === 'string' ? value.toWellFormed() : value;
}

function chargeText({ lines, total, flags }: Charge) {
  return {
    lines: lines.map((line) => ({ ...line, rate: line.rate.toString(), amount: line.amount.toString() })),
    total: total.toString(),
    flags,
  };
}

type StoredLine = Omit<ChargeLine, 'rate' | 'amount'> & { readonly rate: string; readonly amount: string };
type StoredUsage = Omit<NonNullable<RequestLogEntry['usage']>, 'meters'> & { readonly meters?: readonly [string, number][] };
type StoredEntry = Omit<RequestLogEntry, 'usage' | 'charge'> & {
  readonly usage?: StoredUsage;
  readonly charge?: { readonly lines: readonly StoredLine[]; readonly total: string; readonly flags: readonly string[] };
};

/** The inverse of `logText`, for text that `logText` wrote. Throws `StoreError` `corrupt` on anything else. */
export function logEntryOf(text: string): RequestLogEntry {
  const stored = storedEntry(text);
  const { usage, charge, ...rest } = stored;
  const { meters, ...counts } = usage ?? {};
  return {
    ...rest,
    ...(usage === undefined ? {} : { usage: meters === undefined ? counts : { ...counts, meters: new Map(meters) } }),
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
