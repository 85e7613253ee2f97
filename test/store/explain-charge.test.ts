/** A charge explained: what stands in a row, in words and exact amounts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { chargeFor } from '../../src/store/charge.ts';
import { chargeLines, exactUsd, explainCharge } from '../../src/store/explain-charge.ts';
import { formatUsd } from '../../src/store/money.ts';
import { parsePrice } from '../../src/store/prices.ts';
import type { AttemptEntry } from '../../src/store/request-log.ts';
import { ok } from './support/store.ts';

const attempt = (channelId: string, more: Partial<AttemptEntry> = {}): AttemptEntry => ({
  ...{ channelId, channelType: 'messages', upstreamModel: `up-${channelId}`, startedAtMs: 0, durationMs: 1 },
  ...more,
});
const rates = ok(
  parsePrice({ input: '5', cached_input: '0.5', output: '25', web_search: '10', speeds: { fast: '6' }, geos: { us: '1.1' } }),
);

test('each line is count times rate; flags are in words; the attempt and the model are named', () => {
  const usage = {
    input: 10_000,
    cacheWrite1h: 7,
    output: 3,
    speed: 'fast',
    geo: 'us',
    meters: new Map([
      ['web_search', 2],
      ['x_search', 1],
    ]),
  };
  const charge = chargeFor(usage, rates);
  const row = {
    model: 'asked',
    servedModel: 'served',
    channelId: 'b',
    charge,
    attempts: [attempt('a', { errorCode: 'x' }), attempt('b')],
  };
  assert.deepEqual(chargeLines(explainCharge(row)), [
    'charge $0.350726 at the price of served, as the upstream reported, attempt 2 of 2 (b up-b)',
    '  input: 10000 × $5.00 a million × 6.6 = $0.33',
    '  cache_write_1h (as input): 7 × $5.00 a million × 6.6 = $0.000231',
    '  output: 3 × $25.00 a million × 6.6 = $0.000495',
    '  web_search: 2 × $10.00 a thousand = $0.02',
    '  speed:fast: served at the speed fast, at its price',
    '  geo:us: served in the region us, at its price',
    '  no_rate:cache_write_1h: cache_write_1h has no price: billed at the rate of another class',
    '  unpriced:x_search: x_search has no price: not billed',
  ]);
});

test('a line at the rates of another model names it', () => {
  const charge = chargeFor({ input: 10, model: 'fallback' }, rates, () => rates);
  const explained = explainCharge({ model: 'm', channelId: 'a', charge, attempts: [] });
  assert.deepEqual(explained.lines, [
    { item: 'input', quantity: 10, rate: '5.00', per: 'million', amount: '0.00005', model: 'fallback' },
  ]);
  assert.equal(chargeLines(explained)[1], '  input: 10 × $5.00 a million = $0.00005 (fallback)');
});

test('an estimate says so, what nobody could count is the estimate of its admission, and nothing is nothing', () => {
  const estimated = { ...chargeFor({ output: 1 }, rates), flags: ['estimated'] };
  assert.equal(explainCharge({ model: 'm', channelId: 'a', charge: estimated, attempts: [attempt('a')] }).basis, 'estimated');
  const admission = explainCharge({
    model: 'm',
    channelId: 'a',
    charge: { lines: [], total: 5n, flags: ['estimated'] },
    attempts: [],
  });
  assert.deepEqual([admission.basis, admission.total, admission.attempt], ['admission', '0.000000005', undefined]);
  const nothing = explainCharge({ model: 'm', attempts: [attempt('a')] });
  assert.deepEqual([nothing.basis, nothing.total, nothing.lines, nothing.attempt], ['none', '0.00', [], undefined]);
});

test('where none was answered, the attempt is the last one that reported, at the price of its model', () => {
  const failed = [attempt('a', { usage: { input: 1 } }), attempt('b', { usage: { input: 2 }, model: 'fallback' }), attempt('c')];
  const { attempt: whose, model } = explainCharge({ model: 'm', charge: chargeFor({ input: 2 }, rates), attempts: failed });
  assert.deepEqual([whose?.number, whose?.channelId, model], [2, 'b', 'fallback']);
});

test('lines are exact: their sum, rounded down to billionths, is the total', () => {
  const count = fc.nat(1_000_000_000);
  fc.assert(
    fc.property(count, count, count, fc.boolean(), (input, cachedInput, output, isFast) => {
      const charge = chargeFor({ input, cachedInput, output, ...(isFast ? { speed: 'fast', geo: 'us' } : {}) }, rates);
      const { lines, total } = explainCharge({ model: 'm', channelId: 'a', charge, attempts: [] });
      const sum = lines.reduce((all, { amount }) => {
        const [whole = '', fraction = ''] = amount.split('.');
        return all + BigInt(whole + fraction.padEnd(15, '0'));
      }, 0n);
      assert.equal(formatUsd(sum / 1_000_000n), total);
    }),
  );
  assert.equal(exactUsd(0n), '0.00');
  assert.equal(exactUsd(1n), '0.000000000000001');
  assert.equal(exactUsd(1_234_500_000_000_000n), '1.2345');
});

test('every flag that a charge may carry is explained in words', () => {
  const words: Readonly<Record<string, string>> = {
    cache_write_unsplit: 'the upstream did not say how long the cache lives: billed as five minutes',
    long_context: 'the input is longer than the threshold of the long-context price',
    estimated: 'at least one count is the gateway’s own: the upstream did not report it',
    overflow: 'the sum is larger than the largest amount that can be kept',
    unknown_service_tier: 'served in a tier without a price: billed as standard',
    unknown_speed: 'served at a speed without a price: billed as standard',
    unknown_geo: 'served in a region without a price: billed as standard',
    contradictory_usage: 'the report has more cached tokens than input: each count is billed as it was reported',
    fallback_credit: 'the vendor charged less: a credit for a refused request was redeemed',
    'service_tier:x': 'served in the tier x, at its price',
    'speed:x': 'served at the speed x, at its price',
    'geo:x': 'served in the region x, at its price',
    'unpriced:x': 'x has no price: not billed',
    'no_rate:x': 'x has no price: billed at the rate of another class',
    'unpriced_model:x': 'the model x has no price: billed as the model that was asked',
    'unpriced_pass:x': 'the answer had a pass of the kind x, which no price of ours knows: not billed',
    'invalid_usage:x': 'the count of x is none: not billed',
    'unseen:x': 'the request had x, which changes the vendor’s price, and no answer tells by how much',
    // Of a version to come.
    'new:one': 'new:one',
    newer: 'newer',
  };
  const charge = { lines: [], total: 0n, flags: Object.keys(words) };
  const explained = explainCharge({ model: 'm', channelId: 'a', charge, attempts: [] });
  assert.deepEqual(Object.fromEntries(explained.flags.map(({ flag, meaning }) => [flag, meaning])), words);
  // It has no lines because nothing was used, and not because nobody could count it.
  assert.equal(explained.basis, 'estimated');
});

test('a line has no member that says nothing; without a charge no attempt is named', () => {
  const charge = chargeFor({ input: 10, images: 2 }, ok(parsePrice({ input: '5', image: '0.04' })));
  const row = { model: '', channelId: 'a', charge, attempts: [] };
  assert.deepEqual(explainCharge(row).lines, [
    { item: 'input', quantity: 10, rate: '5.00', per: 'million', amount: '0.00005' },
    { item: 'image', quantity: 2, rate: '0.04', per: 'piece', amount: '0.08' },
  ]);
  assert.deepEqual(chargeLines(explainCharge(row)), [
    'charge $0.08005 at the price of -, as the upstream reported',
    '  input: 10 × $5.00 a million = $0.00005',
    '  image: 2 × $0.04 each = $0.08',
  ]);
  const head = (some: Parameters<typeof explainCharge>[0]): string | undefined => chargeLines(explainCharge(some))[0];
  assert.equal(
    head({ model: 'm', channelId: 'a', attempts: [attempt('a')] }),
    'charge $0.00 at the price of m, nothing was used',
  );
  const guessed = { ...chargeFor({ input: 10 }, rates), flags: ['estimated'] };
  assert.equal(head({ ...row, model: 'm', charge: guessed }), 'charge $0.00005 at the price of m, estimated');
  const admission = { lines: [], total: 5n, flags: ['estimated'] };
  assert.equal(
    head({ ...row, model: 'm', charge: admission }),
    'charge $0.000000005 at the price of m, nobody could count it: the estimate of its admission',
  );
});
