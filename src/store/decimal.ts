/** Decimal numbers as they are spelled, moved by powers of ten without a float in between. */

/** In time that is linear, as the pattern for it would not be. */
export function withoutLastZeros(digits: string): string {
  let end = digits.length;
  while (digits[end - 1] === '0') end -= 1;
  return digits.slice(0, end);
}

/** The plain decimal spelling of `text` × 10^shift, or undefined when it is no finite non-negative number. */
export function shiftDecimal(text: string, shift: number): string | undefined {
  const match = /^([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]{1,3}))?$/.exec(text);
  if (match === null) return undefined;
  const [, whole = '', fraction = '', exponent = '0'] = match;
  const digits = whole + fraction;
  const point = whole.length + Number(exponent) + shift;
  const padded = point <= 0 ? digits.padStart(digits.length - point + 1, '0') : digits.padEnd(point, '0');
  const at = Math.max(point, 1);
  const integer = padded.slice(0, at).replace(/^0+(?=[0-9])/, '');
  const rest = withoutLastZeros(padded.slice(at));
  return rest === '' ? integer : `${integer}.${rest}`;
}
