/** Decimal dollars as text and back, exact to the billionth. */
const NANOS = 1_000_000_000n;

/** @param {string} text such as `-12.5` */
export function nanosOf(text) {
  const isNegative = text.startsWith('-');
  const [whole, fraction = ''] = (isNegative ? text.slice(1) : text).split('.');
  const nanos = BigInt(whole) * NANOS + BigInt(fraction.padEnd(9, '0').slice(0, 9));
  return isNegative ? -nanos : nanos;
}

/** At least two decimals, and no zeros behind those. @param {bigint} nanos */
export function usd(nanos) {
  const size = nanos < 0n ? -nanos : nanos;
  const fraction = String(size % NANOS)
    .padStart(9, '0')
    .replace(/0{0,7}$/, '');
  return `${nanos < 0n ? '−' : ''}${(size / NANOS).toLocaleString('en-US')}.${fraction}`;
}
