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

test('every flag that a charge may carry has words of its own', () => {
  const flags = [
    ...['cache_write_unsplit', 'long_context', 'estimated', 'overflow', 'unknown_service_tier', 'unknown_speed', 'unknown_geo'],
    ...[
      'fallback_credit',
      'contradictory_usage',
      'service_tier:x',
      'speed:x',
      'geo:x',
      'unpriced:x',
      'no_rate:x',
      'unpriced_model:x',
      'unpriced_pass:x',
      'invalid_usage:x',
      'unseen:x',
    ],
  ];
  const explained = explainCharge({
    model: 'm',
    channelId: 'a',
    charge: { lines: [], total: 0n, flags: [...flags, 'new:one', 'newer'] },
    attempts: [],
  });
  for (const { flag, meaning } of explained.flags) assert.equal(meaning !== flag, !flag.startsWith('new'), flag);
});
