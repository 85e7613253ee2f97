/** Prices from the operator's price book, and models that stand in for others: what is taken from where, and what is refused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Config } from '../../../src/http/config/config.ts';
import { ConfigError } from '../../../src/http/config/config-error.ts';
import { parseConfig } from '../../../src/http/config/parse.ts';
import { formatUsd } from '../../../src/store/money.ts';
import { parsePrice } from '../../../src/store/prices.ts';

const entry = (input: number, more: object = {}) => ({
  mode: 'chat',
  input_cost_per_token: input / 1e6,
  output_cost_per_token: 1e-6,
  ...more,
});
const FILES: Readonly<Record<string, string>> = {
  '/etc/mizu/litellm.json': JSON.stringify({
    sample_spec: { mode: 'one of' },
    'claude-x': entry(5, { provider_specific_entry: { fast: 6 }, input_cost_per_video_per_second: 1 }),
    'azure/gpt-x': entry(3),
    'openai/gpt-x': entry(2),
    'east/same': entry(7),
    'west/same': entry(7),
    vectors: { mode: 'embedding', input_cost_per_token: 2e-8, output_cost_per_token: 0 },
    half: { mode: 'chat', input_cost_per_token: 1e-6 },
  }),
  '/etc/mizu/twice.json': `{"m": ${JSON.stringify(entry(1))}, "n": ${JSON.stringify(entry(1))}, "m": ${JSON.stringify(entry(2))}}`,
  '/etc/mizu/dev.json': JSON.stringify({
    openai: { models: { 'gpt-x': { cost: { input: 2, output: 8 } }, vectors: { cost: { input: 0.02, output: 0 } } } },
    other: { models: { 'gpt-x': { cost: { input: 2, output: 8 } } } },
  }),
  '/etc/mizu/broken.json': '{',
  '/etc/mizu/nothing.json': '{"a": 1}',
};

function parse(file: object): Config {
  return parseConfig(JSON.stringify(file), {
    env: {},
    readFile(path) {
      const text = FILES[path];
      if (text === undefined) throw Object.assign(new Error('no'), { code: 'ENOENT' });
      return text;
    },
    ...{ parsePrice, path: '/etc/mizu/mizu.config.json', revision: 1, nowMs: 0 },
  });
}

function problemsOf(file: object): string[] {
  try {
    parse(file);
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    return error.problems.map(({ path, message }) => `${path}: ${message}`);
  }
  return [];
}

const channel = (models: object) => ({ id: 'a', type: 'messages', base_url: 'http://x', api_key: 'k', models });
const inputOf = (config: Config, name: string): string => formatUsd(config.models.get(name)?.rates?.tokens.get('input') ?? -1n);
const own = { price: { input: '1', output: '1' } };

test('a model without a price has that of its name, of its name behind a provider, or of what a Channel calls it', () => {
  const config = parse({
    price_book: './litellm.json',
    channels: [channel({ opus: 'claude-x', same: 'up' })],
    models: {
      'claude-x': {},
      opus: {},
      same: {},
      mine: own,
      'my-gpt': { price_as: 'openai/gpt-x' },
      unknown: {},
      vectors: { kind: 'embedding' },
    },
  });
  assert.deepEqual(
    ['claude-x', 'opus', 'same', 'mine', 'my-gpt', 'vectors'].map((name) => inputOf(config, name)),
    ['5.00', '5.00', '7.00', '1.00', '2.00', '0.02'],
  );
  assert.equal(config.models.get('unknown')?.rates, undefined);
  assert.deepEqual(config.models.get('opus')?.bookPrice, { entry: 'claude-x', ignored: ['input_cost_per_video_per_second'] });
  assert.equal(config.models.get('mine')?.bookPrice, undefined);
  assert.ok(config.models.get('claude-x')?.rates?.speeds?.has('fast'));
});

test('a models.dev book says of no model what kind it is: the kind of ours decides what the price must have', () => {
  const config = parse({ price_book: 'dev.json', models: { 'gpt-x': {}, vectors: { kind: 'embedding' } } });
  assert.deepEqual([inputOf(config, 'gpt-x'), inputOf(config, 'vectors')], ['2.00', '0.02']);
  assert.deepEqual(problemsOf({ price_book: 'dev.json', models: { 'gpt-x': { kind: 'video' } } }), [
    'models["gpt-x"].price: in the price book, the price of openai/gpt-x is not one of kind video: video is missing: a model of kind video needs video',
  ]);
});

test('two prices for one name, another kind, and a book that is none are told', () => {
  const at = (models: object, price_book = 'litellm.json') => problemsOf({ price_book, models });
  assert.deepEqual(at({ 'gpt-x': {} }), [
    'models["gpt-x"].price: in the price book, azure/gpt-x and openai/gpt-x have different prices: price_as says which one is meant',
  ]);
  assert.deepEqual(at({ vectors: {} }), [
    'models.vectors.price: in the price book, vectors is of kind embedding, and this model is of kind text',
  ]);
  assert.deepEqual(at({ half: {} }), [
    'models.half.price: in the price book, half output is missing: a model of kind text needs output',
  ]);
  assert.deepEqual(at({ m: {}, n: {} }, 'twice.json'), ['models.m.price: in the price book, m has two prices in the file']);
  assert.deepEqual(at({ m: { price_as: 'nobody' } }), ['models.m.price_as: the price book has no model "nobody"']);
  assert.deepEqual(problemsOf({ models: { m: { price_as: 'x' } } }), ['models.m.price_as: needs a price_book']);
  assert.deepEqual(at({}, 'absent.json'), ['price_book: the file /etc/mizu/absent.json cannot be read (ENOENT)']);
  assert.match(at({}, 'broken.json')[0] ?? '', /^price_book: \/etc\/mizu\/broken\.json is not valid JSON/);
  assert.deepEqual(at({}, 'nothing.json'), [
    'price_book: /etc/mizu/nothing.json holds no price as LiteLLM or models.dev writes them',
  ]);
});

test('fallbacks: known, of the same kind, priced, once, and in no circle', () => {
  const at = (models: object) => problemsOf({ models });
  assert.deepEqual(at({ a: { ...own, fallbacks: ['b', 'c'] }, b: { ...own, fallbacks: ['c'] }, c: own }), []);
  assert.deepEqual(
    at({
      a: { ...own, fallbacks: ['a', 'nobody', 'b', 'b', 'v', 'free'] },
      b: own,
      v: { kind: 'embedding', price: { input: '1' } },
      free: {},
    }),
    [
      'models.a.fallbacks[0]: is the model itself',
      'models.a.fallbacks[1]: "nobody" is not in models',
      'models.a.fallbacks[3]: "b" is named twice',
      'models.a.fallbacks[4]: "v" is of kind embedding, and this model is of kind text',
      'models.a.fallbacks[5]: "free" has no price',
    ],
  );
  assert.deepEqual(
    at({ v: { kind: 'embedding', price: { input: '1' }, fallbacks: ['w'] }, w: { kind: 'embedding', price: { input: '1' } } }),
    ['models.v.fallbacks[0]: models of kind embedding have no fallbacks'],
  );
  assert.deepEqual(at({ a: { ...own, fallbacks: ['b'] }, b: { ...own, fallbacks: ['c'] }, c: { ...own, fallbacks: ['a'] } }), [
    'models.a.fallbacks[0]: is a circle: a -> b -> c -> a',
    'models.b.fallbacks[0]: is a circle: b -> c -> a -> b',
    'models.c.fallbacks[0]: is a circle: c -> a -> b -> c',
  ]);
  const many = Object.fromEntries(
    Array.from({ length: 300 }, (_, n) => [
      `m${n}`,
      { ...own, fallbacks: [1, 2, 3].map((step) => `m${n + step}`).filter((_name, i) => n + i + 1 < 300) },
    ]),
  );
  const before = performance.now();
  assert.deepEqual(at(many), []);
  assert.ok(performance.now() - before < 2_000, 'no model is looked at twice on one way');
  assert.deepEqual(
    problemsOf({ price_book: 'litellm.json', models: { a: { ...own, fallbacks: ['claude-x'] }, 'claude-x': {} } }),
    [],
  );
});

test('an unknown price key that resembles a known one is a mistake, wherever it stands', () => {
  const base = { input: '1', output: '1' };
  const price = {
    ...base,
    ...{ cached_inputs: '0.1', web_search: '10', code_interpreter: '30' },
    long_context: { above: 5, ouput: '3' },
    service_tiers: { flex: { inputs: '1', long_context: { above: 9, reasonning: '1' } } },
    speeds: { fast: { outputs: '2' }, other: '2' },
    geos: { us: { cache_write_2h: '2' } },
  };
  assert.deepEqual(problemsOf({ models: { m: { price } } }), [
    'models.m.price.cached_inputs: is no price; did you mean cached_input?',
    'models.m.price.long_context.ouput: is no price; did you mean output?',
    'models.m.price.service_tiers.flex.inputs: is no price; did you mean input?',
    'models.m.price.service_tiers.flex.long_context.reasonning: is no price; did you mean reasoning?',
    'models.m.price.speeds.fast.outputs: is no price; did you mean output?',
    'models.m.price.geos.us.cache_write_2h: is no price; did you mean cache_write_1h?',
  ]);
});
