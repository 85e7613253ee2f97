/** Decimal numbers as they are spelled, moved by powers of ten without a float in between. */

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
  const rest = padded.slice(at).replace(/0+$/, '');
  return rest === '' ? integer : `${integer}.${rest}`;
}
