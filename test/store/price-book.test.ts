/** Public catalogues become our price records without a float in between. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readLiteLlm } from '../../src/store/litellm-prices.ts';
import { readModelsDev } from '../../src/store/models-dev-prices.ts';
import { shiftDecimal } from '../../src/store/price-book.ts';

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
    ['input_cost_per_audio_token', 'search_context_cost_per_query.search_context_size_low'],
  );
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
    long_context: { above: 200_000, input: '5', output: '22.5' },
  });
  assert.deepEqual(
    book.skipped.map(({ model, reason }) => `${model}: ${reason}`),
    ['acme/none: has no cost', 'acme/half: output is missing: a model of kind text needs output'],
  );
  assert.deepEqual(
    book.ignored.map(({ field }) => field),
    ['input_audio', 'context_over_200k.x'],
  );
});

test('F36: what is not a catalogue converts to nothing, and what is not JSON throws', () => {
  for (const text of ['null', '[]', '5', '{"a": 5}', '{"a": {"models": 3}}']) {
    assert.equal(readLiteLlm(text).prices.size + readModelsDev(text).prices.size, 0);
  }
  assert.throws(() => readLiteLlm('{'), SyntaxError);
});
