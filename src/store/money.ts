/**
 * Money is integer nano-dollars in a bigint: no float ever touches it. Knows decimal text and the 64-bit range of the store.
 * Prices are finer than a nano-dollar a token, so charges are summed in `NANO / 1e6` units and truncated once (`charge.ts`).
 */
import { done, invalid, type Invalid, type Result } from './result.ts';

/** Digits after the point of a dollar. */
const DECIMALS = 9;
/** 1 USD in nano-dollars. */
export const USD = 10n ** BigInt(DECIMALS);

/** The largest amount that a row may hold; the store encodes amounts as signed 64-bit integers. */
export const MAX_NANOS = 2n ** 63n - 1n;

export interface UsdRules {
  /** Accept a leading minus. Default false. Zero may not carry a sign. */
  readonly negative?: boolean;
  /** Refuse zero. Default false. */
  readonly positive?: boolean;
  /** The path named in a refusal. Default `amount`. */
  readonly field?: string;
}

const DECIMAL = /^(-?)(0|[1-9][0-9]{0,18})(?:\.([0-9]{1,30}))?$/;

/**
 * Nano-dollars of a plain decimal string such as `12.34`. Refuses exponents, signs (unless `negative`), spaces, leading zeros,
 * a bare point, more than nine digits after the point (zeros too: nothing is rounded), and |amount| ≥ 2^63 nano-dollars.
 */
export function parseUsd(text: string, rules: UsdRules = {}): Result<bigint, Invalid> {
  const field = rules.field ?? 'amount';
  const match = typeof text === 'string' ? DECIMAL.exec(text) : null;
  if (match === null) return invalid(field, 'must be a plain decimal number of US dollars, such as "12.34"');
  const [, sign = '', whole = '0', fraction = ''] = match;
  if (fraction.length > DECIMALS) return invalid(field, `has more than ${DECIMALS} digits after the point`);
  const nanos = BigInt(whole) * USD + BigInt(fraction.padEnd(DECIMALS, '0'));
  if (nanos > MAX_NANOS) return invalid(field, 'is too large');
  if (sign === '-' && (rules.negative !== true || nanos === 0n)) return invalid(field, 'must not be negative');
  if (rules.positive === true && nanos <= 0n) return invalid(field, 'must be greater than zero');
  return done(sign === '-' ? -nanos : nanos);
}

/** The shortest exact decimal string, with at least `minDecimals` digits after the point (default 2): `12.34`, `0.000000001`. */
export function formatUsd(nanos: bigint, minDecimals = 2): string {
  const sign = nanos < 0n ? '-' : '';
  const size = nanos < 0n ? -nanos : nanos;
  const fraction = (size % USD).toString().padStart(DECIMALS, '0').replace(/0+$/, '').padEnd(minDecimals, '0');
  return `${sign}${size / USD}${fraction === '' ? '' : `.${fraction}`}`;
}

/** True when the store can hold this balance: a signed 64-bit integer. */
export function inRange(nanos: bigint): boolean {
  return nanos <= MAX_NANOS && nanos >= -MAX_NANOS;
}
