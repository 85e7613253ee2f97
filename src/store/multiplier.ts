/** Factors of prices, exact: a vendor charges a speed or a region as a decimal multiple of its standard price. */
import { done, type Invalid, invalid, type Result } from './result.ts';

export interface Multiplier {
  /** As it was written: `1.1`. */
  readonly text: string;
  /** In ten-thousandths: 11000n. */
  readonly units: bigint;
}

/** Vendors publish one digit after the point; more than four is a mistake, and would make amounts that no integer holds. */
const MULTIPLIER = /^(0|[1-9][0-9]{0,3})(?:\.([0-9]{1,4}))?$/;
export const MULTIPLIER_UNIT = 10_000n;

/** Reads a multiplier above 0 and below 10,000 with at most four digits after the point. A refusal names `field`. */
export function parseMultiplier(text: string, field: string): Result<Multiplier, Invalid> {
  const [, whole, fraction = ''] = MULTIPLIER.exec(text) ?? [];
  const units = whole === undefined ? 0n : BigInt(whole) * MULTIPLIER_UNIT + BigInt(fraction.padEnd(4, '0'));
  if (units > 0n) return done({ text, units });
  return invalid(field, 'must be a multiplier such as "1.1" (above 0, below 10000, at most 4 digits after the point), or prices');
}

/** The product as a plain decimal: at most four digits a factor, so nothing is rounded. */
export function productText(factors: readonly Multiplier[]): string {
  const scale = 4 * factors.length;
  const digits = factors
    .reduce((product, { units }) => product * units, 1n)
    .toString()
    .padStart(scale + 1, '0');
  const at = digits.length - scale;
  const fraction = digits.slice(at).replace(/0+$/, '');
  return fraction === '' ? digits.slice(0, at) : `${digits.slice(0, at)}.${fraction}`;
}
