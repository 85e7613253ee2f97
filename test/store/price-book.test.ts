/** Public catalogues become our price records without a float in between. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type BillableUsage, chargeFor } from '../../src/store/charge.ts';
import { readLiteLlm } from '../../src/store/litellm-prices.ts';
import { readModelsDev } from '../../src/store/models-dev-prices.ts';
import { shiftDecimal } from '../../src/store/decimal.ts';
import { isModelsDev } from '../../src/store/price-book.ts';

test('a number is shifted as it is spelled', () => {
  assert.equal(shiftDecimal('1.5e-07', 6), '0.15');
  assert.equal(shiftDecimal('0.000003', 6), '3');
  assert.equal(shiftDecimal('3e-06', 6), '3');
  assert.equal(shiftDecimal('0', 6), '0');
  assert.equal(shiftDecimal('0.0', 6), '0');
  assert.equal(shiftDecimal('12', 0), '12');
  assert.equal(shiftDecimal('1.25E1', 3), '12500');
  for (const bad of ['-1', 'NaN', '', '1e', 'Infinity']) assert.equal(shiftDecimal(bad, 6), undefined);
});

test('shifting agrees with integers', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 10n ** 12n }), fc.integer({ min: 0, max: 12 }), (digits, places) => {
      const text = `${digits}e-${places}`;
      const [whole = '', fraction = ''] = (shiftDecimal(text, 0) ?? '').split('.');
      assert.equal(BigInt(whole + fraction.padEnd(12, '0')), digits * 10n ** BigInt(12 - places));
    }),
  );
});

test('a LiteLLM catalogue that has the price of a picture beside that of its tokens: it is not paid twice', () => {
  const book = readLiteLlm(`{
    "both": {"mode": "image_generation", "input_cost_per_image": 0.0011, "input_cost_per_token": 2e-06, "output_cost_per_image": 0.134,
             "output_cost_per_image_priority": 0.2, "output_cost_per_image_token": 0.00012, "output_cost_per_token": 1.2e-05},
    "text": {"mode": "image_generation", "input_cost_per_token": 3e-07, "output_cost_per_image": 0.039, "output_cost_per_token": 2.5e-06},
    "given": {"mode": "image_generation", "output_cost_per_image": 0.134, "input_cost_per_image": 0.0011},
    "chat": {"mode": "chat", "input_cost_per_token": 3e-07, "output_cost_per_token": 2.5e-06, "output_cost_per_image": 0.039,
             "output_cost_per_image_token": 3e-05}
  }`);
  const price = (name: string) => book.prices.get(name)?.price;
  assert.deepEqual(price('both'), { input: '2', image_output: '120', output: '12' });
  assert.deepEqual(price('text'), { input: '0.3', image: '0.039', output: '2.5', image_output: '0' });
  assert.deepEqual(price('given'), { image: '0.134' });
  assert.deepEqual(price('chat'), { input: '0.3', output: '2.5', image_output: '30' });
  const ignored = book.ignored.filter(({ model }) => model === 'both' || model === 'chat');
  assert.deepEqual(
    ignored.map(({ model, field }) => [model, field]),
    [
      ['both', 'input_cost_per_image'],
      ['both', 'output_cost_per_image'],
      ['chat', 'output_cost_per_image'],
    ],
  );
});

test('a LiteLLM catalogue', () => {
  const book = readLiteLlm(`{
    "sample_spec": {"input_cost_per_token": 0, "mode": "one of chat, embedding"},
    "m": {"mode": "chat", "input_cost_per_token": 1.25e-06, "output_cost_per_token": 1e-05, "cache_read_input_token_cost": 1.25e-07,
          "cache_creation_input_token_cost": 0.0000015625, "cache_creation_input_token_cost_above_1hr": 2.5e-06,
          "input_cost_per_token_above_200k_tokens": 2.5e-06, "output_cost_per_token_above_200k_tokens": 1.5e-05,
          "input_cost_per_token_priority": 2.5e-06, "output_cost_per_token_flex": 5e-06, "input_cost_per_audio_token": 1e-06,
          "search_context_cost_per_query": {"search_context_size_low": 0.03, "search_context_size_medium": 0.035, "search_context_size_high": 0.035},
          "max_tokens": 5},
    "e": {"mode": "embedding", "input_cost_per_token": 2e-08, "output_cost_per_token": 0.0},
    "i": {"mode": "image_generation", "input_cost_per_image": 0.04},
    "fine": {"mode": "chat", "input_cost_per_token": 1e-16, "output_cost_per_token": 0},
    "free": {"mode": "chat", "input_cost_per_token": -1, "output_cost_per_token": 1e-6},
    "rerank": {"mode": "rerank"},
    "__proto__": {"mode": "embedding", "input_cost_per_token": 1e-6}
  }`);
  assert.deepEqual(book.prices.get('m')?.price, {
    input: '1.25',
    output: '10',
    cached_input: '0.125',
    cache_write_5m: '1.5625',
    cache_write_1h: '2.5',
    audio_input: '1',
    web_search: '35',
    long_context: { above: 200_000, input: '2.5', output: '15' },
    service_tiers: { priority: { input: '2.5' }, flex: { output: '5' } },
  });
  assert.deepEqual(
    ['m', 'e', 'i'].map((name) => book.prices.get(name)?.kind),
    ['text', 'embedding', 'image'],
  );
  assert.deepEqual(book.prices.get('e')?.price, { input: '0.02', output: '0' });
  assert.deepEqual(book.prices.get('i')?.price, { image: '0.04' });
  assert.deepEqual(book.prices.get('__proto__')?.price, { input: '1' });
  assert.deepEqual(book.skipped.map(({ model }) => model).sort(), ['fine', 'free', 'rerank']);
  assert.deepEqual(
    book.ignored.filter(({ model }) => model === 'm').map(({ field }) => field),
    ['search_context_cost_per_query.search_context_size_low'],
  );
  assert.deepEqual(
    book.ignored.filter(({ model }) => model === 'free').map(({ field, reason }) => [field, reason]),
    [['input_cost_per_token', 'is not a non-negative number']],
  );
});

test('a catalogue is models.dev’s where one of its entries has models', () => {
  assert.equal(isModelsDev('{"of nobody": {}, "a provider": {"models": {}}}'), true);
  for (const text of ['{"m": {"mode": "chat"}}', '{"a": {"models": 3}}', '[]', '{}'])
    assert.equal(isModelsDev(text), false, text);
});

test('a models.dev catalogue', () => {
  const book = readModelsDev(`{"acme": {"id": "acme", "models": {
    "m": {"cost": {"input": 2.50, "output": 15, "cache_read": 0.25, "cache_write": 3.125, "input_audio": 1,
                    "context_over_200k": {"input": 5, "output": 22.5, "x": 1}}},
    "none": {"name": "none"}, "half": {"cost": {"input": 1}}}}}`);
  assert.deepEqual(book.prices.get('acme/m')?.price, {
    input: '2.5',
    output: '15',
    cached_input: '0.25',
    cache_write_5m: '3.125',
    audio_input: '1',
    long_context: { above: 200_000, input: '5', output: '22.5' },
  });
  assert.deepEqual(
    book.skipped.map(({ model, reason }) => `${model}: ${reason}`),
    ['acme/none: has no cost', 'acme/half: output is missing: a model of kind text needs output'],
  );
  assert.deepEqual(
    book.ignored.map(({ field }) => field),
    ['context_over_200k.x'],
  );
});

test('a LiteLLM catalogue: speeds and regions are multipliers, and OpenAI writes its cache for thirty minutes', () => {
  const book = readLiteLlm(`{
    "c": {"mode": "chat", "litellm_provider": "anthropic", "input_cost_per_token": 5e-06, "output_cost_per_token": 2.5e-05,
          "cache_creation_input_token_cost": 6.25e-06, "cache_creation_input_token_cost_above_1hr_above_200k_tokens": 2e-05,
          "provider_specific_entry": {"us": 1.10, "fast": 6.0, "eu": 0, "slow": 0.5, "zz": 1.00001, "options": {"a": 1}}},
    "o": {"mode": "responses", "litellm_provider": "openai", "input_cost_per_token": 2e-06, "output_cost_per_token": 1e-05,
          "cache_creation_input_token_cost": 2.5e-06, "cache_creation_input_token_cost_priority": 5e-06}
  }`);
  assert.deepEqual(book.prices.get('c')?.price, {
    input: '5',
    output: '25',
    cache_write_5m: '6.25',
    long_context: { above: 200_000, cache_write_1h: '20' },
    speeds: { fast: '6' },
    geos: { us: '1.1' },
  });
  assert.deepEqual(book.prices.get('o')?.price, {
    input: '2',
    output: '10',
    cache_write_5m: '2.5',
    cache_write_30m: '2.5',
    service_tiers: { priority: { cache_write_5m: '5', cache_write_30m: '5' } },
  });
  assert.deepEqual(
    book.ignored.map(({ field, reason }) => `${field} ${reason}`),
    [
      'provider_specific_entry.eu is not a multiplier',
      'provider_specific_entry.slow has no counterpart',
      'provider_specific_entry.zz is not a multiplier',
    ],
  );
});

test('a model has one long-context threshold: the amounts of a second one are named and left out', () => {
  const book = readLiteLlm(`{"m": {"mode": "chat", "input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06,
    "input_cost_per_token_above_128k_tokens": 3e-06, "output_cost_per_token_above_200k_tokens": 4e-06}}`);
  assert.deepEqual(book.prices.get('m')?.price, { input: '1', output: '2', long_context: { above: 128_000, input: '3' } });
  assert.deepEqual(book.ignored, [
    { model: 'm', field: 'output_cost_per_token_above_200k_tokens', reason: 'a second long-context threshold' },
  ]);
});

test('a models.dev catalogue: thresholds from the list, and modes as what turns them on', () => {
  const book = readModelsDev(`{"anthropic": {"models": {"c": {"cost": {"input": 5, "output": 25},
      "experimental": {"modes": {"fast": {"cost": {"input": 30, "output": 150}, "provider": {"body": {"speed": "fast"}}},
        "odd": {"cost": {"input": 1}}, "free": {"provider": {"body": {"speed": "x"}}}}}}}},
    "openai": {"models": {"g": {"cost": {"input": 10, "output": 50, "cache_read": 1, "cache_write": 12.5,
        "tiers": [{"tier": {"type": "context", "size": 272000}, "input": 20, "output": 75}, {"tier": {"type": "hours", "size": 5}, "input": 1}],
        "context_over_200k": {"input": 20, "output": 75}},
      "experimental": {"modes": {"fast": {"cost": {"input": 20, "output": 100, "cache_write": 25,
        "tiers": [{"tier": {"size": 272000}, "output": 150}]}, "provider": {"body": {"service_tier": "priority"}}}}}}}}}`);
  assert.deepEqual(book.prices.get('anthropic/c')?.price, {
    input: '5',
    output: '25',
    speeds: { fast: { input: '30', output: '150' } },
  });
  assert.deepEqual(book.prices.get('openai/g')?.price, {
    input: '10',
    output: '50',
    cached_input: '1',
    cache_write_5m: '12.5',
    cache_write_30m: '12.5',
    long_context: { above: 272_000, input: '20', output: '75' },
    service_tiers: {
      priority: {
        input: '20',
        output: '100',
        cache_write_5m: '25',
        cache_write_30m: '25',
        long_context: { above: 272_000, output: '150' },
      },
    },
  });
  assert.deepEqual(
    book.ignored.map(({ field }) => field),
    ['experimental.modes.odd.cost', 'tiers[1]'],
  );
});

test("OpenAI's one price of a cache write is that of thirty minutes, above a threshold of its length too, standard and in tiers", () => {
  const litellm = readLiteLlm(`{"o": {"mode": "responses", "litellm_provider": "openai", "input_cost_per_token": 5e-06,
    "output_cost_per_token": 3e-05, "cache_creation_input_token_cost": 6.25e-06,
    "cache_creation_input_token_cost_above_272k_tokens": 1.25e-05, "cache_creation_input_token_cost_above_272k_tokens_flex": 6.25e-06}}`);
  const dev = readModelsDev(`{"openai": {"models": {"o": {"cost": {"input": 5, "output": 30, "cache_write": 6.25,
    "tiers": [{"tier": {"size": 272000}, "cache_write": 12.5}]}, "experimental": {"modes": {"flex": {"cost":
    {"tiers": [{"tier": {"size": 272000}, "cache_write": 6.25}]}, "provider": {"body": {"service_tier": "flex"}}}}}}}}}`);
  for (const rates of [litellm.prices.get('o')?.rates, dev.prices.get('openai/o')?.rates]) {
    assert.ok(rates !== undefined);
    const written = (tokens: number, serviceTier: string) => chargeFor({ cacheWrite30m: tokens, serviceTier }, rates).total;
    assert.equal(written(272_000, 'default'), 272_000n * 6250n);
    assert.equal(written(272_001, 'default'), 272_001n * 12_500n);
    assert.equal(written(272_001, 'flex'), 272_001n * 6250n);
  }
});

test('a price of reasoning that repeats that of the output follows it into tiers and above thresholds; another one stays', () => {
  const dev = (cost: string, mode: string) =>
    readModelsDev(`{"p": {"models": {"m": {"cost": {${cost}}, "experimental": {"modes": {"x": {"cost": {${mode}},
      "provider": {"body": {"service_tier": "priority"}}}}}}}}}`).prices.get('p/m')?.rates;
  const litellm = (more: string) =>
    readLiteLlm(`{"m": {"mode": "chat", "input_cost_per_token": 5e-07, "output_cost_per_token": 3e-06,
      "output_cost_per_token_above_200k_tokens": 4.5e-06, "output_cost_per_token_priority": 5.4e-06, ${more}}}`).prices.get('m')
      ?.rates;
  const long = '"tiers": [{"tier": {"size": 200000}, "output": 4.5}]';
  for (const [rates, standard, above, priority] of [
    [litellm('"output_cost_per_reasoning_token": 3.0e-06'), 3000n, 4500n, 5400n],
    [litellm('"output_cost_per_reasoning_token": 2e-06'), 2000n, 2000n, 2000n],
    [litellm('"output_cost_per_reasoning_token": 3e-06, "output_cost_per_reasoning_token_priority": 9e-06'), 3000n, 4500n, 9000n],
    [dev(`"input": 0.5, "output": 3, "reasoning": 3.00, ${long}`, '"output": 5.4'), 3000n, 4500n, 5400n],
    [dev(`"input": 0.5, "output": 3, "reasoning": 2, ${long}`, '"output": 5.4'), 2000n, 2000n, 2000n],
  ] as const) {
    assert.ok(rates !== undefined);
    const thought = (usage: BillableUsage) => chargeFor({ reasoning: 1, ...usage }, rates).total - chargeFor(usage, rates).total;
    assert.equal(thought({ input: 1000 }), standard);
    assert.equal(thought({ input: 200_001 }), above);
    assert.equal(thought({ input: 1000, serviceTier: 'priority' }), priority);
  }
});

test('a name with two prices has none, and is named', () => {
  const one = '{"mode": "chat", "input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6}';
  const litellm = readLiteLlm(`{"m": ${one}, "n": ${one}, "m": ${one}}`);
  assert.deepEqual([...litellm.prices.keys()], ['n']);
  assert.deepEqual(litellm.skipped, [{ model: 'm', reason: 'has two prices in the file' }]);
  const dev = readModelsDev(
    '{"a": {"models": {"m": {"cost": {"input": 1, "output": 1}}, "m": {"cost": {"input": 2, "output": 2}}}}, "b": {"models": {"m": {"cost": {"input": 1, "output": 1}}}}}',
  );
  assert.deepEqual([...dev.prices.keys()], ['b/m']);
  assert.deepEqual(dev.skipped, [{ model: 'a/m', reason: 'has two prices in the file' }]);
});

test('F36: what is not a catalogue converts to nothing, and what is not JSON throws', () => {
  for (const text of ['null', '[]', '5', '{"a": 5}', '{"a": {"models": 3}}']) {
    assert.equal(readLiteLlm(text).prices.size + readModelsDev(text).prices.size, 0);
  }
  assert.throws(() => readLiteLlm('{'), SyntaxError);
});
