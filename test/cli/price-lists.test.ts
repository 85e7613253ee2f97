import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseConfig } from '../../src/http/config/parse.ts';
import type { Config } from '../../src/http/config/config.ts';
import { createPriceLists, priceListOf } from '../../src/cli/price-lists.ts';
import { parsePrice } from '../../src/store/prices.ts';

function config(models: object, revision = 1, nowMs = Date.UTC(2026, 2, 1), more: readonly object[] = []): Config {
  const channels = [
    {
      id: 'a',
      type: 'messages',
      base_url: 'http://127.0.0.1:1',
      api_key: 'k',
      models: Object.keys(models).filter((name) => name !== 'lonely'),
    },
    ...more,
  ];
  return parseConfig(JSON.stringify({ channels, models }), {
    env: {},
    readFile: () => '',
    parsePrice,
    path: '/tmp/mizu.config.json',
    revision,
    nowMs,
  });
}

const BIG = {
  input: '1.25',
  output: '10',
  cached_input: '0.125',
  web_search: '10.00',
  long_context: { above: 200_000, input: '2.5' },
  service_tiers: { priority: { input: '2', long_context: { above: 200_000, input: '4' } } },
  speeds: { fast: '6', turbo: { input: '9', long_context: { above: 200_000, input: '12' } } },
  geos: { us: '1.1' },
};

test('models that are priced and served, with every rate as a decimal string', () => {
  const models = {
    big: { price: BIG },
    clip: { kind: 'video', price: { video: '0.5' } },
    free: {},
    lonely: { price: { input: '1', output: '1' } },
  };
  assert.deepEqual(priceListOf(config(models)), {
    updatedAt: '2026-03-01T00:00:00.000Z',
    models: [
      {
        id: 'big',
        kind: 'text',
        prices: { input: '1.25', output: '10.00', cached_input: '0.125', web_search: '10.00' },
        longContext: { above: 200_000, prices: { input: '2.50' } },
        serviceTiers: { priority: { input: '2.00' } },
        serviceTierLongContext: { priority: { above: 200_000, prices: { input: '4.00' } } },
        speeds: {
          fast: { multiplier: '6' },
          turbo: { prices: { input: '9.00' }, longContext: { above: 200_000, prices: { input: '12.00' } } },
        },
        geos: { us: { multiplier: '1.1' } },
      },
      { id: 'clip', kind: 'video', prices: { video: '0.50' } },
    ],
  });
});

test('what some classes only are offered, or nobody, is not in the public list', () => {
  const price = { input: '1', output: '1' };
  const channel = (id: string, more: object) => ({
    id,
    type: 'messages',
    base_url: 'http://127.0.0.1:1',
    models: ['lonely'],
    ...more,
  });
  const listed = (...more: object[]) =>
    priceListOf(config({ a: { price }, lonely: { price } }, 1, 0, more)).models.map(({ id }) => id);
  assert.deepEqual(listed(channel('b', { classes: ['vip'] })), ['a']);
  assert.deepEqual(listed(channel('b', { weight: 0 })), ['a']);
  assert.deepEqual(listed(channel('b', { classes: ['vip'] }), channel('c', { classes: ['default', 'vip'] })), ['a', 'lonely']);
});

test('updatedAt follows the prices, not the reloads, and never goes back', () => {
  let current = config({ big: { price: BIG } });
  const list = createPriceLists({ current: () => current, onChange: () => () => undefined });
  const first = list();
  assert.equal(list(), first, 'one list for one configuration');
  current = config({ big: { price: { ...BIG, input: '1.250' } } }, 2, Date.UTC(2026, 2, 2));
  assert.equal(list().updatedAt, first.updatedAt, 'another spelling of the same price');
  current = config({ big: { price: { ...BIG, input: '1.26' } } }, 3, Date.UTC(2026, 2, 3));
  assert.equal(list().updatedAt, '2026-03-03T00:00:00.000Z');
  current = config({ big: { price: BIG } }, 4, Date.UTC(2026, 2, 1));
  assert.equal(list().updatedAt, '2026-03-03T00:00:00.000Z');
  assert.equal(list().models[0]?.prices['input'], '1.25');
});
