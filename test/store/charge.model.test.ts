/** Charges against an independent calculation, over all members of a price and of a usage. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type BillableUsage, chargeFor } from '../../src/store/charge.ts';
import { parsePrice, TOKEN_CLASSES } from '../../src/store/prices.ts';
import { billed, costOf, type WrittenPrice } from '../support/invoice.ts';
import { ok } from './support/store.ts';

const amount = fc
  .tuple(fc.nat(2_000), fc.nat(999_999_999), fc.nat(9))
  .map(([whole, fraction, digits]) =>
    digits === 0 ? String(whole) : `${whole}.${String(fraction).padStart(9, '0').slice(0, digits)}`,
  );
const multiplier = fc
  .tuple(fc.integer({ min: 1, max: 40 }), fc.nat(9_999))
  .map(([whole, fraction]) => (fraction === 0 ? String(whole) : `${whole}.${String(fraction).padStart(4, '0')}`));
const KEYS = [...TOKEN_CLASSES, 'image', 'video', 'web_search', 'file_search'];
const rates = fc
  .uniqueArray(fc.tuple(fc.constantFrom(...KEYS), amount), { selector: ([key]) => key })
  .map((list) => Object.fromEntries(list));
const long = fc.tuple(fc.integer({ min: 1, max: 300_000 }), rates).map(([above, set]) => ({ above, ...set }));
const tier = fc
  .tuple(rates, fc.option(long, { nil: undefined }))
  .map(([set, more]) => ({ ...set, ...(more && { long_context: more }) }));
const modifier = fc.oneof(multiplier, tier);
const price = fc
  .record({
    set: tier,
    service_tiers: fc.dictionary(fc.constantFrom('priority', 'flex'), tier),
    speeds: fc.dictionary(fc.constantFrom('fast', 'turbo'), modifier),
    geos: fc.dictionary(fc.constantFrom('us', 'eu'), modifier),
  })
  .map(({ set, ...named }) => ({ ...set, ...named }));

const FIELDS: Readonly<Record<string, string>> = {
  input: 'input',
  cached_input: 'cachedInput',
  cache_write_5m: 'cacheWrite5m',
  cache_write_30m: 'cacheWrite30m',
  cache_write_1h: 'cacheWrite1h',
  cache_write_12h: 'cacheWrite12h',
  output: 'output',
  reasoning: 'reasoning',
  image_input: 'imageInput',
  image_output: 'imageOutput',
  audio_input: 'audioInput',
  audio_output: 'audioOutput',
  image: 'images',
  video: 'videos',
};
const counts = fc.dictionary(fc.constantFrom(...KEYS), fc.oneof(fc.nat(50), fc.nat(400_000), fc.nat(1_000_000_000)));
const served = fc.record(
  {
    tier: fc.constantFrom('priority', 'flex', 'default', 'odd'),
    speed: fc.constantFrom('fast', 'turbo', 'standard', 'odd'),
    geo: fc.constantFrom('us', 'eu', 'global', 'odd'),
  },
  { requiredKeys: [] },
);

function usageOf(
  used: Readonly<Record<string, number>>,
  { tier, speed, geo }: { tier?: string; speed?: string; geo?: string },
): BillableUsage {
  const meters = new Map(Object.entries(used).filter(([key]) => FIELDS[key] === undefined));
  return {
    ...Object.fromEntries(
      Object.entries(used).flatMap(([key, count]) => (FIELDS[key] === undefined ? [] : [[FIELDS[key], count]])),
    ),
    ...(meters.size === 0 ? {} : { meters }),
    ...(tier === undefined ? {} : { serviceTier: tier }),
    ...(speed === undefined ? {} : { speed }),
    ...(geo === undefined ? {} : { geo }),
  };
}

test('every class has a field here', () => {
  assert.deepEqual(
    TOKEN_CLASSES.filter((name) => FIELDS[name] === undefined),
    [],
  );
});

/** The largest amount that the ledger keeps; a larger charge is that, and flagged. */
const MOST = 2n ** 63n - 1n;

test('any price and any usage cost what an independent calculation says, but for the millionths that each line drops', () => {
  fc.assert(
    fc.property(price, counts, served, (written: WrittenPrice, used, how) => {
      const { total, lines, flags } = chargeFor(usageOf(used, how), ok(parsePrice(written)));
      const exact = billed(costOf(written, { counts: used, ...how }));
      if (exact > MOST) return assert.deepEqual([total, flags.includes('overflow')], [MOST, true]);
      assert.ok(total <= exact && exact - total <= 1n, `${total} is not ${exact}`);
      if (lines.every((line) => line.multiplier === undefined)) assert.equal(total, exact);
    }),
    { numRuns: 300 },
  );
});

test('passes of other models are added at their own prices', () => {
  fc.assert(
    fc.property(price, price, counts, counts, served, (mine: WrittenPrice, theirs: WrittenPrice, used, more, how) => {
      const pass = Object.fromEntries(
        ['input', 'cached_input', 'cache_write_5m', 'cache_write_1h', 'output'].flatMap((key) =>
          more[key] === undefined ? [] : [[key, more[key]]],
        ),
      );
      const passes = [{ type: 'advisor_message', model: 'other', ...usageOf(pass, {}) }];
      const { total } = chargeFor({ ...usageOf(used, how), passes }, ok(parsePrice(mine)), () => ok(parsePrice(theirs)));
      const exact = billed(costOf(mine, { counts: used, ...how }), costOf(theirs, { counts: pass, ...how }));
      if (exact > MOST) return assert.equal(total, MOST);
      assert.ok(total <= exact && exact - total <= 1n, `${total} is not ${exact}`);
    }),
    { numRuns: 100 },
  );
});
