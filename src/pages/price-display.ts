/**
 * The price list as the pages and `/prices.json` show it: units, labels and how a decimal is typeset. Prices are decimal strings
 * from the configuration to the screen; they are never floats.
 */
import type { PriceList, PriceModifier } from './price-list.ts';
import { digestOf } from './representation.ts';

export type PriceUnit = 'per_million_tokens' | 'per_image' | 'per_video' | 'per_thousand_calls';

const TOKEN_LABELS = new Map([
  ['input', 'input'],
  ['cached_input', 'cached input'],
  ['cache_write_5m', 'cache write, 5 min'],
  ['cache_write_30m', 'cache write, 30 min'],
  ['cache_write_1h', 'cache write, 1 h'],
  ['cache_write_12h', 'cache write, 12 h'],
  ['output', 'output'],
  ['reasoning', 'reasoning'],
  ['image_input', 'image input'],
  ['image_output', 'image output'],
  ['audio_input', 'audio input'],
  ['audio_output', 'audio output'],
]);

/** An unknown key is the meter of a tool, priced by the thousand calls. */
export function unitOf(key: string): PriceUnit {
  if (TOKEN_LABELS.has(key)) return 'per_million_tokens';
  if (key === 'image') return 'per_image';
  if (key === 'video') return 'per_video';
  return 'per_thousand_calls';
}

/** The label of a price outside the three main columns. */
export function labelOf(key: string): string {
  const unit = unitOf(key);
  if (unit === 'per_image') return 'per image';
  if (unit === 'per_video') return 'per video';
  return TOKEN_LABELS.get(key) ?? `${key.replaceAll('_', ' ')}, 1k calls`;
}

/**
 * A decimal split for display (the fraction is set lower, like soundings on a nautical chart): at least two places, never
 * rounded.
 */
export interface TypesetPrice {
  readonly whole: string;
  /** With its point. */
  readonly fraction: string;
}

const DECIMAL = /^(\d+)(?:\.(\d+))?$/;

/** Undefined for text that is not a plain decimal: it is then shown unchanged. */
export function typesetPrice(decimal: string): TypesetPrice | undefined {
  const parts = DECIMAL.exec(decimal);
  if (parts === null) return undefined;
  const whole = (parts[1] ?? '').replace(/^0+(?=\d)/, '');
  const places = (parts[2] ?? '').replace(/0+$/, '');
  return { whole, fraction: `.${places.padEnd(2, '0')}` };
}

const CONTOURS = ['0.25', '1', '4', '16', '64'] as const;

/** The colour class of a price, 0 to 5: how many of the contours 0.25, 1, 4, 16 and 64 dollars it reaches. */
export function depthOf(decimal: string): number {
  return CONTOURS.filter((contour) => compareDecimals(decimal, contour) >= 0).length;
}

/** Exact at any length; negative, zero or positive as `a` is below, equal to or above `b`. */
function compareDecimals(a: string, b: string): number {
  const left = typesetPrice(a);
  const right = typesetPrice(b);
  if (left === undefined || right === undefined) return 0;
  if (left.whole.length !== right.whole.length) return left.whole.length - right.whole.length;
  const [x, y] = [left.whole + left.fraction, right.whole + right.fraction];
  return x < y ? -1 : x > y ? 1 : 0;
}

/**
 * The body of `GET /prices.json`. `version` is a digest of the models: equal versions are equal lists. `units` names the unit of
 * every key that occurs; `unit` is that of most.
 */
export function priceListJson(list: PriceList): string {
  const keys = new Set<string>();
  for (const model of list.models) {
    const modified = [...Object.values(model.speeds ?? {}), ...Object.values(model.geos ?? {})].flatMap((modifier) =>
      'prices' in modifier ? [modifier] : [],
    );
    const long = [model, ...modified].map(({ longContext }) => longContext);
    const beyond = [...long, ...Object.values(model.serviceTierLongContext ?? {})].map((one) => one?.prices ?? {});
    for (const record of [
      model.prices,
      ...Object.values(model.serviceTiers ?? {}),
      ...modified.map(({ prices }) => prices),
      ...beyond,
    ])
      for (const key of Object.keys(record)) keys.add(key);
  }
  const models = list.models.map((model) => ({
    id: model.id,
    kind: model.kind,
    prices: model.prices,
    ...(model.longContext === undefined ? {} : { long_context: model.longContext }),
    ...(model.serviceTiers === undefined ? {} : { service_tiers: model.serviceTiers }),
    ...(model.serviceTierLongContext === undefined ? {} : { service_tier_long_context: model.serviceTierLongContext }),
    ...(model.speeds === undefined ? {} : { speeds: modifiersJson(model.speeds) }),
    ...(model.geos === undefined ? {} : { geos: modifiersJson(model.geos) }),
  }));
  return JSON.stringify({
    object: 'price_list',
    currency: 'USD',
    unit: 'per_million_tokens',
    units: Object.fromEntries([...keys].sort().map((key) => [key, unitOf(key)])),
    updated_at: list.updatedAt,
    version: digestOf(JSON.stringify(models)),
    models,
  });
}

function modifiersJson(modifiers: Readonly<Record<string, PriceModifier>>): object {
  return Object.fromEntries(
    Object.entries(modifiers).map(([name, modifier]) => {
      if ('multiplier' in modifier) return [name, modifier];
      const { prices, longContext } = modifier;
      return [name, { prices, ...(longContext === undefined ? {} : { long_context: longContext }) }];
    }),
  );
}
