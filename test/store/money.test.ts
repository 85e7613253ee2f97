/** Decimal text to nano-dollars and back; prices to rates; usage to a charge. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type BillableUsage, chargeFor } from '../../src/store/charge.ts';
import { formatUsd, inRange, MAX_NANOS, parseUsd, USD } from '../../src/store/money.ts';
import { parseMultiplier, productText } from '../../src/store/multiplier.ts';
import { payerOf, refundTo } from '../../src/store/payer.ts';
import { parsePrice, type Rates } from '../../src/store/prices.ts';
import { ok, refusal } from './support/store.ts';

test('plain decimal strings are read exactly', () => {
  assert.equal(ok(parseUsd('12.34')), 12_340_000_000n);
  assert.equal(ok(parseUsd('0.000000001')), 1n);
  assert.equal(ok(parseUsd('0')), 0n);
  assert.equal(ok(parseUsd('-1.5', { negative: true })), -1_500_000_000n);
  assert.equal(ok(parseUsd('9223372036.854775807')), MAX_NANOS);
});

test('everything else is refused', () => {
  const bad = [
    '',
    ' 1',
    '1 ',
    '+1',
    '-1',
    '-0',
    '1e3',
    '1E3',
    '.5',
    '5.',
    '01',
    '1,0',
    '1_0',
    '0x1',
    'NaN',
    'Infinity',
    '1.0000000000',
    '9223372036.854775808',
    '99999999999999999999',
    '１',
    '1\n',
  ];
  for (const text of bad) assert.equal(parseUsd(text).ok, false, JSON.stringify(text));
  assert.equal(parseUsd('-0', { negative: true }).ok, false);
  assert.equal(parseUsd('0', { positive: true }).ok, false);
  assert.equal(refusal(parseUsd('x', { field: 'credit' })).field, 'credit');
});

test('a refusal of an amount names its field and says what is wrong with it', () => {
  const PLAIN = 'must be a plain decimal number of US dollars, such as "12.34"';
  for (const [text, rules, message] of [
    ['1e3', {}, PLAIN],
    // A number is no text, whatever it would read as.
    [5, {}, PLAIN],
    ['1.0000000000', {}, 'has more than 9 digits after the point'],
    ['9223372036.854775808', {}, 'is too large'],
    ['-9223372036.854775808', { negative: true }, 'is too large'],
    ['-1', {}, 'must not be negative'],
    ['-0', { negative: true }, 'must not be negative'],
    ['0', { positive: true }, 'must be greater than zero'],
  ] as const) {
    assert.deepEqual(refusal(parseUsd(text as string, rules)), { reason: 'invalid', field: 'amount', message }, String(text));
  }
});

test('a balance fits where its amount and its negative fit', () => {
  const edges = [MAX_NANOS, MAX_NANOS + 1n, -MAX_NANOS, -MAX_NANOS - 1n];
  assert.deepEqual(edges.map(inRange), [true, false, true, false]);
});

test('an amount is written with as few digits as it takes, and no fewer than are asked for', () => {
  assert.deepEqual([formatUsd(3n * USD, 0), formatUsd(3n * USD, 4), formatUsd(-USD / 2n, 0)], ['3', '3.0000', '-0.5']);
});

test('a product of multipliers is written exactly', () => {
  const product = (...texts: string[]) => productText(texts.map((text) => ok(parseMultiplier(text, 'x'))));
  assert.deepEqual(
    [product('6', '1.1'), product('2', '1.5'), product('0.5'), product('0.0001', '0.0001')],
    ['6.6', '3', '0.5', '0.00000001'],
  );
  for (const text of ['0', '0.0000', '10000', '1.00001', '01', '-1'])
    assert.equal(refusal(parseMultiplier(text, 'x')).field, 'x', text);
});

test('a key pays from its sub-account until it is disabled; what it held goes back to where it came from as long as that is there', () => {
  const key = { id: 'k', accountId: 'a', subAccount: true, disabled: false };
  const disabled = { ...key, disabled: true };
  const plain = { ...key, subAccount: false };
  assert.deepEqual([payerOf(key, true), payerOf(disabled, true), payerOf(disabled, false)], ['sub:k', 'house:a', 'wallet:a']);
  assert.equal(payerOf(plain, false), 'wallet:a');
  const hold = { from: 'sub:k', keyId: 'k', accountId: 'a' } as const;
  assert.deepEqual(
    [key, disabled, plain, undefined].map((now) => refundTo(hold, now)),
    ['sub:k', 'wallet:a', 'wallet:a', 'wallet:a'],
  );
  assert.equal(refundTo({ ...hold, from: 'house:a' }, undefined), 'house:a');
});

test('format and parse are each other’s inverse', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -MAX_NANOS, max: MAX_NANOS }), (nanos) => {
      assert.equal(ok(parseUsd(formatUsd(nanos), { negative: true })), nanos);
    }),
  );
  assert.equal(formatUsd(0n), '0.00');
  assert.equal(formatUsd(-5n), '-0.000000005');
  assert.equal(formatUsd(1_500_000_000n), '1.50');
});

const rates = (price: unknown): Rates => ok(parsePrice(price));
const opus = rates({ input: '5', cached_input: '0.5', cache_write_5m: '6.25', cache_write_1h: '10', output: '25' });

test('U1: 6 input, 159217 cache write and 2745 output are $1.06376125', () => {
  const charge = chargeFor({ input: 6, cacheWrite5m: 159_217, output: 2_745 }, opus);
  assert.equal(formatUsd(charge.total), '1.06376125');
  assert.deepEqual(charge.flags, []);
  assert.deepEqual(
    charge.lines.map(({ item, quantity }) => [item, quantity]),
    [
      ['input', 6],
      ['cache_write_5m', 159_217],
      ['output', 2_745],
    ],
  );
});

test('lines are summed exactly and truncated once', () => {
  // Each line alone is 0.5 nano-dollars: truncated one by one they would be nothing.
  const half = rates({ input: '0.0005', output: '0.0005' });
  assert.equal(chargeFor({ input: 1 }, half).total, 0n);
  assert.equal(chargeFor({ input: 1, output: 1 }, half).total, 1n);
  assert.equal(chargeFor({ input: 1, output: 2 }, half).total, 1n);
  assert.equal(chargeFor({ input: 999_999 }, rates({ input: '0.000000001' })).total, 0n, 'a millionth below one');
});

test('a class without a rate of its own uses the one that stands in for it, and says so', () => {
  const plain = rates({ input: '2', output: '10' });
  const usage = {
    cachedInput: 1_000_000,
    cacheWrite1h: 1_000_000,
    reasoning: 1_000_000,
    imageInput: 1_000_000,
    imageOutput: 1_000_000,
  };
  const charge = chargeFor(usage, plain);
  assert.equal(charge.total, 26_000_000_000n);
  assert.deepEqual(
    charge.lines.map(({ item, billedAs }) => `${item} as ${billedAs}`),
    ['cached_input as input', 'cache_write_1h as input', 'reasoning as output', 'image_input as input', 'image_output as output'],
  );
  const noHour = rates({ input: '5', cache_write_5m: '6.25', output: '25' });
  assert.equal(
    chargeFor({ cacheWrite1h: 1_000_000 }, noHour).lines[0]?.billedAs,
    'input',
    'no cache class stands in for another',
  );
  const unsplit = chargeFor({ cacheWriteUnsplit: 1_000_000 }, opus);
  assert.equal(unsplit.total, 6_250_000_000n);
  assert.deepEqual(unsplit.flags, ['cache_write_unsplit']);
});

test('which rate stands in for which class, and which of them is flagged', () => {
  const standIns = (price: object) =>
    FIELDS.map((field) => {
      const { lines, flags } = chargeFor({ [field]: 1 }, rates(price));
      return [
        field,
        ...lines.map(({ item, billedAs }) => (billedAs === undefined ? item : `${item} as ${billedAs}`)),
        ...flags,
      ].join(', ');
    });
  assert.deepEqual(standIns({ input: '1', output: '2' }), [
    'cacheWrite5m, cache_write_5m as input, no_rate:cache_write_5m',
    'cacheWrite30m, cache_write_30m as input, no_rate:cache_write_30m',
    'cacheWrite1h, cache_write_1h as input, no_rate:cache_write_1h',
    'cacheWrite12h, cache_write_12h as input, no_rate:cache_write_12h',
    'cacheWriteUnsplit, cache_write_5m as input, cache_write_unsplit',
    'audioInput, audio_input as input, no_rate:audio_input',
    'audioOutput, audio_output as output, no_rate:audio_output',
    'cachedInput, cached_input as input',
    'reasoning, reasoning as output',
    'imageInput, image_input as input',
    'imageOutput, image_output as output',
  ]);
  assert.deepEqual(standIns({ input: '1', output: '2', cache_write_5m: '3', cache_write_1h: '4' }).slice(0, 5), [
    'cacheWrite5m, cache_write_5m',
    'cacheWrite30m, cache_write_30m as cache_write_5m, no_rate:cache_write_30m',
    'cacheWrite1h, cache_write_1h',
    'cacheWrite12h, cache_write_12h as cache_write_1h, no_rate:cache_write_12h',
    'cacheWriteUnsplit, cache_write_5m, cache_write_unsplit',
  ]);
});

const FIELDS = [
  ...['cacheWrite5m', 'cacheWrite30m', 'cacheWrite1h', 'cacheWrite12h', 'cacheWriteUnsplit', 'audioInput', 'audioOutput'],
  ...['cachedInput', 'reasoning', 'imageInput', 'imageOutput'],
];

test('every name of the standard tier, speed and region costs the standard price, unflagged', () => {
  const plain = rates({ input: '1', output: '2' });
  const names = {
    serviceTier: ['', 'default', 'standard', 'auto', 'on_demand'],
    speed: ['', 'default', 'standard'],
    geo: ['', 'default', 'global', 'not_available'],
  };
  for (const [field, standard] of Object.entries(names)) {
    for (const name of standard) assert.deepEqual(chargeFor({ input: 1, [field]: name }, plain).flags, [], `${field} ${name}`);
    assert.equal(chargeFor({ input: 1, [field]: 'other' }, plain).flags.length, 1, field);
  }
});

test('long context applies to every class above the threshold, cached input counted', () => {
  const long = rates({ input: '1', cached_input: '0.1', output: '4', long_context: { above: 200_000, input: '2', output: '8' } });
  assert.equal(
    chargeFor({ input: 100_000, cachedInput: 100_000, output: 1000 }, long).total,
    100_000_000n + 10_000_000n + 4_000_000n,
  );
  const above = chargeFor({ input: 100_000, cachedInput: 100_001, output: 1000 }, long);
  assert.equal(above.total, 200_000_000n + 10_000_100n + 8_000_000n);
  assert.deepEqual(above.flags, ['long_context']);
});

test('what counts toward the length of the context is what went in, whatever its class', () => {
  const priced = rates({ input: '1', output: '1', long_context: { above: 10, input: '2' } });
  const flagged = (usage: BillableUsage) => chargeFor(usage, priced).flags.includes('long_context');
  for (const field of ['input', 'cachedInput', 'cacheWrite5m', 'cacheWrite1h', 'cacheWriteUnsplit', 'imageInput'] as const) {
    assert.equal(flagged({ [field]: 11 }), true, field);
    assert.equal(flagged({ [field]: 10 }), false, field);
  }
  for (const field of ['output', 'reasoning', 'imageOutput'] as const) assert.equal(flagged({ [field]: 11 }), false, field);
});

test('a tool that was not called needs no price, and the largest count is still billed', () => {
  const priced = rates({ input: '1', output: '1' });
  assert.deepEqual(chargeFor({ meters: new Map([['web_search', 0]]) }, priced).flags, []);
  assert.deepEqual(chargeFor({ input: 1_000_000_000 }, priced).flags, []);
  assert.deepEqual(chargeFor({ input: 1_000_000_001 }, priced), { lines: [], total: 0n, flags: ['invalid_usage:input'] });
  const none = ['output', 'images', 'videos'].map((field) => chargeFor({ [field]: -1 }, priced));
  assert.deepEqual(
    none.map(({ total, flags }) => [total, ...flags]),
    [
      [0n, 'invalid_usage:output'],
      [0n, 'invalid_usage:images'],
      [0n, 'invalid_usage:videos'],
    ],
  );
});

test('the served tier is billed; an unknown one is billed as default and flagged', () => {
  const tiers = rates({
    input: '1',
    output: '4',
    long_context: { above: 10, input: '3' },
    service_tiers: { priority: { input: '2', output: '8' }, flex: { input: '0.5' } },
  });
  assert.equal(chargeFor({ input: 10, output: 1, serviceTier: 'priority' }, tiers).total, 28_000n);
  assert.equal(chargeFor({ input: 10, output: 1, serviceTier: 'flex' }, tiers).total, 9_000n);
  for (const serviceTier of ['default', 'standard', 'auto', 'on_demand']) {
    const plain = chargeFor({ input: 10, serviceTier }, tiers);
    assert.deepEqual([plain.total, plain.flags], [10_000n, []], serviceTier);
  }
  const unknown = chargeFor({ input: 10, serviceTier: 'scale' }, tiers);
  assert.deepEqual([unknown.total, unknown.flags], [10_000n, ['unknown_service_tier']]);
  // A tier without long-context rates does not undercut them.
  assert.equal(chargeFor({ input: 100, serviceTier: 'flex' }, tiers).total, 300_000n);
});

test('pieces and meters', () => {
  const price = rates({ image: '0.04', video: '0.5', web_search: '10' });
  const charge = chargeFor({ images: 2, videos: 1, meters: new Map([['web_search', 3]]) }, price);
  assert.equal(formatUsd(charge.total), '0.61');
  assert.deepEqual(chargeFor({ images: 2, videos: 1, output: 5, meters: new Map([['x_search', 1]]) }, opus).flags, [
    'unpriced:video',
    'unpriced:x_search',
  ]);
});

test('F12, V9: nonsense from an upstream is flagged and never lowers or explodes a charge', () => {
  for (const bad of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, 1e10]) {
    const charge = chargeFor({ input: bad, output: 1_000_000 }, opus);
    assert.deepEqual([charge.total, charge.flags], [25_000_000_000n, ['invalid_usage:input']]);
  }
  const dear = rates({ image: '9000000000' });
  assert.deepEqual([chargeFor({ images: 2 }, dear).total, chargeFor({ images: 2 }, dear).flags], [MAX_NANOS, ['overflow']]);
});

test('a charge never falls when any count grows', () => {
  const count = fc.integer({ min: 0, max: 400_000 });
  const fields = ['input', 'cachedInput', 'cacheWrite5m', 'cacheWrite1h', 'cacheWriteUnsplit', 'output', 'reasoning'] as const;
  const usageOf = (counts: readonly number[]): BillableUsage =>
    Object.fromEntries(fields.map((field, n) => [field, counts[n] ?? 0]));
  const price = rates({
    input: '1',
    cached_input: '0.3',
    output: '4',
    long_context: { above: 200_000, input: '2', cached_input: '0.6', output: '8' },
  });
  fc.assert(
    fc.property(
      fc.array(count, { minLength: 7, maxLength: 7 }),
      fc.nat(6),
      fc.integer({ min: 1, max: 1000 }),
      (counts, which, more) => {
        const larger = counts.map((value, n) => (n === which ? value + more : value));
        assert.ok(chargeFor(usageOf(larger), price).total >= chargeFor(usageOf(counts), price).total);
      },
    ),
  );
});

test('a price names the field that is wrong', () => {
  const cases: [string, unknown][] = [
    ['price', null],
    ['price', []],
    ['input', { input: 1 }],
    ['input', { input: '1e-6' }],
    ['input', { input: '-1' }],
    ['output', { output: '0.0000000001' }],
    ['Web Search', { 'Web Search': '1' }],
    ['__proto__', JSON.parse('{"__proto__": "1"}')],
    ['long_context', { long_context: 5 }],
    ['long_context.above', { long_context: { input: '1' } }],
    ['long_context.above', { long_context: { above: -1 } }],
    ['long_context.above', { long_context: { above: 0 } }],
    ['long_context.output', { long_context: { above: 1, output: 'x' } }],
    ['service_tiers.flex.input', { service_tiers: { flex: { input: '' } } }],
    ['service_tiers.flex.service_tiers', { service_tiers: { flex: { service_tiers: {} } } }],
    ['service_tiers.flex.long_context.above', { service_tiers: { flex: { long_context: {} } } }],
    ['speeds.fast.inputs_of.speeds', { speeds: { 'fast.inputs_of': { speeds: {} } } }],
    ['speeds.fast.input', { speeds: { fast: { input: 6 } } }],
    ['speeds', { speeds: '6' }],
    ['geos.us', { geos: { us: 1.1 } }],
    ...['0', '0.0', '-1.1', '1.10001', '1e2', '10000', '', '1.', '.5', '٣'].map((text): [string, unknown] => [
      'geos.us',
      { geos: { us: text } },
    ]),
  ];
  for (const [field, price] of cases) assert.equal(refusal(parsePrice(price)).field, field);
  const messages: [string, unknown][] = [
    ['must be an object', 5],
    ['is not a price', { 'Web Search': '1' }],
    ['must be a decimal string, such as "2.50"', { input: 1 }],
    ['must be a number of tokens greater than zero', { long_context: { above: 0 } }],
    ['is not the name of a tier', { service_tiers: { ' ': {} } }],
    ['is not the name of a region', { geos: { ' ': '1' } }],
    [
      'must be a multiplier such as "1.1" (above 0, below 10000, at most 4 digits after the point), or prices',
      { geos: { us: '0' } },
    ],
  ];
  for (const [message, price] of messages) assert.equal(refusal(parsePrice(price)).message, message);
  const missing = refusal(parsePrice({ input: '1' }, { kind: 'image' })).message;
  assert.equal(missing, 'is missing: a model of kind image needs image or image_output or output');
  for (const name of ['image', 'image_output', 'output'])
    assert.equal(parsePrice({ [name]: '1' }, { kind: 'image' }).ok, true, name);
  assert.equal(refusal(parsePrice({ input: '1' }, { kind: 'text', path: 'models.m.price' })).field, 'models.m.price.output');
  assert.equal(refusal(parsePrice({}, { kind: 'video' })).field, 'video');
  assert.equal(parsePrice({ input: '0' }, { kind: 'embedding' }).ok, true);
});

test('what has no price is flagged under its own name, and not billed', () => {
  const pictures = rates({ image: '0.04' });
  const charge = chargeFor(
    { cacheWrite5m: 3, reasoning: 4, images: 1, videos: 2, meters: new Map([['web_search', 5]]) },
    pictures,
  );
  assert.equal(charge.total, 40_000_000n);
  assert.deepEqual(charge.flags, ['unpriced:cache_write_5m', 'unpriced:reasoning', 'unpriced:video', 'unpriced:web_search']);
  const text = chargeFor({ input: 1, images: 1 }, rates({ input: '1' }));
  assert.deepEqual(text.flags, [], 'pictures without a price of their own are paid by their tokens');
});

test('a tier: its rates, its long context above its own threshold, and never less than the long context of all', () => {
  const tiered = rates({
    input: '1',
    output: '4',
    long_context: { above: 100, input: '3', output: '3' },
    service_tiers: { flex: { input: '2', output: '5', long_context: { above: 200, input: '7' } }, default: { input: '9' } },
  });
  const of = (input: number, serviceTier?: string) => {
    const { total, flags } = chargeFor({ input, output: 1000, ...(serviceTier === undefined ? {} : { serviceTier }) }, tiered);
    return [total, ...flags];
  };
  assert.deepEqual(of(100), [100_000n + 4_000_000n]);
  assert.deepEqual(of(101), [303_000n + 3_000_000n, 'long_context']);
  assert.deepEqual(of(100, 'flex'), [200_000n + 5_000_000n, 'service_tier:flex']);
  assert.deepEqual(of(101, 'flex'), [303_000n + 5_000_000n, 'long_context', 'service_tier:flex']);
  assert.deepEqual(of(200, 'flex'), [600_000n + 5_000_000n, 'long_context', 'service_tier:flex']);
  assert.deepEqual(of(201, 'flex'), [1_407_000n + 5_000_000n, 'long_context', 'service_tier:flex']);
  assert.deepEqual(
    of(10, 'default'),
    [90_000n + 4_000_000n, 'service_tier:default'],
    'a tier of that name with a price of its own',
  );
  assert.deepEqual(of(10, 'odd'), [10_000n + 4_000_000n, 'unknown_service_tier']);
  const late = rates({ input: '1', service_tiers: { flex: { input: '2', long_context: { above: 200, input: '7' } } } });
  assert.deepEqual(chargeFor({ input: 201, serviceTier: 'flex' }, late).flags, ['long_context', 'service_tier:flex']);
});

test('speeds and regions: multipliers of every token rate, or rates of their own; what is served without a price is flagged', () => {
  // Anthropic's published arithmetic: fast mode at six times the standard price, inference in the US at 1.1 times.
  const opus = rates({
    input: '5',
    cached_input: '0.5',
    output: '25',
    web_search: '10',
    service_tiers: { priority: { input: '8' } },
    speeds: { fast: '6', turbo: { output: '100', long_context: { above: 100, output: '150' } } },
    geos: { us: '1.1' },
  });
  const of = (more: object) => {
    const { total, flags } = chargeFor(
      { input: 10, cachedInput: 10, output: 10, meters: new Map([['web_search', 1]]), ...more },
      opus,
    );
    return [total, ...flags];
  };
  const search = 10_000_000n;
  assert.deepEqual(of({}), [305_000n + search]);
  assert.deepEqual(of({ speed: 'standard', geo: 'global' }), [305_000n + search]);
  assert.deepEqual(of({ speed: 'fast' }), [1_830_000n + search, 'speed:fast']);
  assert.deepEqual(of({ geo: 'us' }), [335_500n + search, 'geo:us']);
  assert.deepEqual(of({ speed: 'fast', geo: 'us' }), [2_013_000n + search, 'speed:fast', 'geo:us']);
  assert.deepEqual(of({ serviceTier: 'priority', geo: 'us' }), [368_500n + search, 'service_tier:priority', 'geo:us']);
  assert.deepEqual(of({ speed: 'turbo' }), [1_055_000n + search, 'speed:turbo']);
  assert.deepEqual(of({ input: 200, speed: 'turbo' }), [2_505_000n + search, 'long_context', 'speed:turbo']);
  assert.deepEqual(of({ speed: 'warp', geo: 'eu' }), [305_000n + search, 'unknown_speed', 'unknown_geo']);
  const [line] = chargeFor({ input: 1, speed: 'fast', geo: 'us' }, opus).lines;
  assert.deepEqual(line, {
    item: 'input',
    quantity: 1,
    rate: 5_000_000_000n,
    per: 'million',
    multiplier: '6.6',
    amount: 33_000_000_000n,
  });
});

test('a lifetime of the cache without a rate is billed at that of the next shorter one, and flagged', () => {
  const of = (price: object) => {
    const { total, flags } = chargeFor({ cacheWrite30m: 10, cacheWrite12h: 10 }, rates(price));
    return [total, ...flags];
  };
  assert.deepEqual(of({ input: '1', cache_write_30m: '2', cache_write_12h: '4' }), [60_000n]);
  const flags = ['no_rate:cache_write_30m', 'no_rate:cache_write_12h'];
  assert.deepEqual(of({ input: '1', cache_write_5m: '2', cache_write_1h: '3' }), [50_000n, ...flags]);
  assert.deepEqual(of({ input: '1' }), [20_000n, ...flags]);
});

test('another model: its passes and its answers at its own price, flagged where it has none', () => {
  const main = rates({ input: '1', output: '4', geos: { us: '2' } });
  const advisor = rates({ input: '10', output: '40', geos: { us: '3' } });
  const ratesOf = (name: string) => (name === 'advisor' ? advisor : undefined);
  const pass = { type: 'advisor_message', model: 'advisor', input: 100, output: 10 } as const;
  const told = ({ total, flags, lines }: ReturnType<typeof chargeFor>) => [total, flags, lines.map(({ model = '' }) => model)];
  assert.deepEqual(told(chargeFor({ input: 100, passes: [pass] }, main, ratesOf)), [
    100_000n + 1_000_000n + 400_000n,
    [],
    ['', 'advisor', 'advisor'],
  ]);
  assert.deepEqual(told(chargeFor({ input: 100, geo: 'us', speed: 'fast', passes: [pass] }, main, ratesOf)), [
    200_000n + 3_000_000n + 1_200_000n,
    ['unknown_speed', 'geo:us'],
    ['', 'advisor', 'advisor'],
  ]);
  assert.deepEqual(told(chargeFor({ passes: [{ ...pass, model: 'nobody' }] }, main, ratesOf)), [
    100_000n + 40_000n,
    ['unpriced_model:nobody'],
    ['', ''],
  ]);
  // The tier that was served is told of the answer; a pass at a price without it tells nothing, but for a count that is none.
  const tiered = rates({ input: '1', output: '4', service_tiers: { priority: { input: '2' } } });
  const served = { input: 100, serviceTier: 'priority', passes: [{ ...pass, output: -1 }] };
  assert.deepEqual(told(chargeFor(served, tiered, ratesOf)), [
    200_000n + 1_000_000n,
    ['service_tier:priority', 'invalid_usage:output'],
    ['', 'advisor'],
  ]);
  assert.deepEqual(told(chargeFor({ input: 100, model: 'advisor' }, main, ratesOf)), [1_000_000n, [], ['advisor']]);
  assert.deepEqual(told(chargeFor({ input: 100, model: 'nobody' }, main)), [100_000n, ['unpriced_model:nobody'], ['']]);
});

test('sound has a price of its own, or is billed as text and flagged', () => {
  const usage = { input: 10, audioInput: 10, audioOutput: 10 };
  const own = chargeFor(usage, rates({ input: '1', output: '2', audio_input: '10', audio_output: '20' }));
  assert.deepEqual([own.total, own.flags], [10_000n + 100_000n + 200_000n, []]);
  const none = chargeFor(usage, rates({ input: '1', output: '2' }));
  assert.deepEqual([none.total, none.flags], [40_000n, ['no_rate:audio_input', 'no_rate:audio_output']]);
});

test('a line names the class that was billed only where it is another; the largest sum is the largest that can be kept', () => {
  const [line] = chargeFor({ input: 1 }, rates({ input: '1' })).lines;
  assert.deepEqual(line, { item: 'input', quantity: 1, rate: 1_000_000_000n, per: 'million', amount: 1_000_000_000n });
  const whole = { ...rates({ input: '1' }), tokens: new Map([['input', MAX_NANOS] as const]) };
  assert.deepEqual(chargeFor({ input: 1_000_000 }, whole).flags, []);
  const more = chargeFor({ input: 1_000_001 }, whole);
  assert.deepEqual([more.total, more.flags], [MAX_NANOS, ['overflow']]);
});

test('what is asked to be greater than zero is, and no more than nine decimals are ever taken', () => {
  assert.deepEqual(parseUsd('0.000000001', { positive: true }), { ok: true, value: 1n });
  assert.equal(parseUsd('0', { positive: true }).ok, false);
  assert.equal(parseUsd('0.0000000001', { positive: true }).ok, false);
});

test('a refused amount is named: by its field, else as the amount', () => {
  for (const [field, rules] of [
    ['amount', {}],
    ['credit', { field: 'credit' }],
  ] as const) {
    const parsed = parseUsd('1e3', rules);
    assert.equal(!parsed.ok && parsed.refusal.field, field);
  }
});

test('an amount without digits behind the point has no point', () => {
  assert.equal(formatUsd(12n * 10n ** 9n, 0), '12');
  assert.equal(formatUsd(-12_500_000_000n, 0), '-12.5');
});

test('what the store can hold is symmetric: 64 bits with a sign, without the lowest', () => {
  for (const [nanos, holds] of [
    [2n ** 63n - 1n, true],
    [2n ** 63n, false],
    [1n - 2n ** 63n, true],
    [-(2n ** 63n), false],
  ] as const)
    assert.equal(inRange(nanos), holds, String(nanos));
});
