/** The table of docs/money.md: what a vendor publishes as the sum of a usage is what we charge for it. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { type BillableUsage, chargeFor } from '../../src/store/charge.ts';
import { formatUsd } from '../../src/store/money.ts';
import { parsePrice } from '../../src/store/prices.ts';
import { ok } from './support/store.ts';

const DOCUMENT = readFileSync(new URL('../../docs/money.md', import.meta.url), 'utf8');
const ROW = /^\| `(\{.*?\})` \| `(\{.*?\})` \| ([^|]+) \| ([0-9.]+) \|$/gm;

/** Billionths, exactly, of a sum such as `10 × $5/M × 1.1 + 3 × $10/K`. */
function computed(sum: string): bigint {
  const PER: Readonly<Record<string, bigint>> = { M: 1_000_000n, K: 1_000n };
  // Every decimal of the table has at most four digits after its point.
  const scaled = (text: string): bigint => {
    const [whole = '', fraction = ''] = text.split('.');
    return BigInt(whole + fraction.padEnd(4, '0'));
  };
  return sum.split(' + ').reduce((total, term) => {
    const factors = term.trim().split(' × ');
    let numerator = 1_000_000_000n;
    let denominator = 1n;
    for (const factor of factors) {
      const [, price, per] = /^\$([0-9.]+)\/([MK])$/.exec(factor) ?? [];
      numerator *= scaled(price ?? factor);
      denominator *= 10_000n * (PER[per ?? ''] ?? 1n);
    }
    assert.equal(numerator % denominator, 0n, term);
    return total + numerator / denominator;
  }, 0n);
}

function usageOf(text: string): BillableUsage {
  const { meters, ...counts } = JSON.parse(text) as BillableUsage & { readonly meters?: Readonly<Record<string, number>> };
  return { ...counts, ...(meters === undefined ? {} : { meters: new Map(Object.entries(meters)) }) };
}

const rows = [...DOCUMENT.matchAll(ROW)];

test('the table is read whole', () => assert.equal(rows.length, 11));

for (const [, usage = '', price = '', arithmetic = '', usd = ''] of rows) {
  test(`${arithmetic} = $${usd}`, () => {
    const { total, flags } = chargeFor(usageOf(usage), ok(parsePrice(JSON.parse(price), { kind: 'text' })));
    assert.equal(formatUsd(computed(arithmetic)), usd);
    assert.equal(formatUsd(total), usd);
    assert.deepEqual(
      flags.filter((flag) => /^(unknown|unpriced|no_rate|invalid)/.test(flag)),
      [],
    );
  });
}
