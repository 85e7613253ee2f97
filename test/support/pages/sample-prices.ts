/** Price lists for the tests and pictures of the pages. */
import type { PricedModel, PriceList } from '../../../src/pages/price-list.ts';

export const SAMPLE: PriceList = {
  updatedAt: '2026-11-20T11:58:03.000Z',
  models: [
    {
      id: 'gpt-5.5',
      kind: 'text',
      prices: { input: '2.50', cached_input: '0.25', output: '15.00', web_search: '10.00' },
      longContext: { above: 272000, prices: { input: '5.00', cached_input: '0.50', output: '22.50' } },
    },
    {
      id: 'gpt-5-mini',
      kind: 'text',
      prices: { input: '0.25', cached_input: '0.025', output: '2.00' },
      serviceTiers: { flex: { input: '0.125', cached_input: '0.0125', output: '1.00' } },
      serviceTierLongContext: { flex: { above: 200000, prices: { input: '0.26', deep_search: '7.00' } } },
    },
    {
      id: 'claude-opus-4-8',
      kind: 'text',
      prices: { input: '5.00', cached_input: '0.50', cache_write_5m: '6.25', cache_write_1h: '10.00', output: '25.00' },
      speeds: {
        fast: { multiplier: '6' },
        turbo: { prices: { output: '90.00' }, longContext: { above: 200_000, prices: { output: '120.00' } } },
      },
      geos: { us: { multiplier: '1.1' } },
    },
    {
      id: 'claude-haiku-4-5',
      kind: 'text',
      prices: { input: '1.00', cached_input: '0.10', cache_write_5m: '1.25', cache_write_1h: '2.00', output: '5.00' },
    },
    { id: 'gemini-3-pro', kind: 'text', prices: { input: '2.00', cached_input: '0.20', output: '12.00' } },
    { id: 'deepseek-v4', kind: 'text', prices: { input: '0.28', cached_input: '0.028', output: '0.42' } },
    { id: 'o3-pro', kind: 'text', prices: { input: '20.00', output: '80.00' } },
    { id: 'text-embedding-3-small', kind: 'embedding', prices: { input: '0.02' } },
    {
      id: 'gpt-image-2',
      kind: 'image',
      prices: { input: '5.00', cached_input: '1.25', output: '10.00', image_input: '8.00', image_output: '30.00' },
    },
    { id: 'seedance-2', kind: 'video', prices: { video: '0.50' } },
  ],
};

export const HOSTILE_NAME = `"><img src=x onerror="document.title='broken'"><script>document.title='broken'</script>'\`&amp;`;

/** Names full of markup, prices of many digits, keys that are members of every object. */
export const HOSTILE: PriceList = {
  updatedAt: '2026-11-20T11:58:03.000Z',
  models: [
    { id: HOSTILE_NAME, kind: 'text', prices: { input: '123456789012345.000000000001', output: '0.0000000000001234' } },
    {
      id: 'a'.repeat(300),
      kind: 'text',
      prices: Object.fromEntries([
        ['__proto__', '1.00'],
        ['constructor', '2.00'],
        ['<b>meter</b>', '3'],
        ['input', '007.10'],
        ['output', 'free'],
      ]),
      serviceTiers: { '</td><script>': { input: '1' } },
    },
  ],
};

/** A name as routers have them. */
export const LONG: PriceList = {
  updatedAt: '2026-11-20T11:58:03.000Z',
  models: [
    { id: 'vendor/some-model-1-8b-instruct-2026-11-20-preview-thinking:free', kind: 'text', prices: { input: '1', output: '2' } },
  ],
};

export const EMPTY: PriceList = { updatedAt: '2026-11-20T11:58:03.000Z', models: [] };

export function many(count: number): PriceList {
  const models = Array.from(
    { length: count },
    (_, index): PricedModel => ({
      id: `vendor-${index % 7}/model-${index}`,
      kind: 'text',
      prices: { input: `${index % 40}.${index}`, cached_input: `0.${index + 1}`, output: `${index}.50` },
    }),
  );
  return { updatedAt: '2026-11-20T11:58:03.000Z', models };
}
