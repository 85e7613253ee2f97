/**
 * What a vendor would bill, computed by itself from a price as it is written: fractions of whole numbers over the rules of
 * docs/money.md. It shares no code with what it checks.
 */

/** A price as an operator writes it. */
export type WrittenPrice = { readonly [key: string]: unknown };

/** What one model used, by the names of the price, and what was served. */
export interface Use {
  /** Counts by price key: `input`, `cache_write_1h`, `web_search`, … */
  readonly counts: Readonly<Record<string, number>>;
  readonly tier?: string;
  readonly speed?: string;
  readonly geo?: string;
}

const PER: Readonly<Record<string, bigint>> = { image: 1n, video: 1n };
const TOKENS = new Set(
  [
    'input',
    'cached_input',
    'cache_write_5m',
    'cache_write_30m',
    'cache_write_1h',
    'cache_write_12h',
    'output',
    'reasoning',
  ].concat([...['image_input', 'image_output', 'audio_input', 'audio_output']]),
);
/** What a missing rate is taken from. */
const INSTEAD: Readonly<Record<string, readonly string[]>> = {
  cached_input: ['input'],
  cache_write_5m: ['input'],
  cache_write_30m: ['cache_write_5m', 'input'],
  cache_write_1h: ['input'],
  cache_write_12h: ['cache_write_1h', 'input'],
  reasoning: ['output'],
  image_input: ['input'],
  image_output: ['output'],
  audio_input: ['input'],
  audio_output: ['output'],
};
const OUTPUTS = new Set(['output', 'reasoning', 'image_output', 'audio_output']);

/** Billionths of a dollar over `scale`: numerator and denominator. */
type Fraction = readonly [bigint, bigint];

function decimal(text: unknown): Fraction | undefined {
  if (typeof text !== 'string') return undefined;
  const [whole = '0', fraction = ''] = text.split('.');
  return [BigInt(whole + fraction), 10n ** BigInt(fraction.length)];
}

function object(value: unknown): WrittenPrice | undefined {
  return typeof value === 'object' && value !== null ? (value as WrittenPrice) : undefined;
}

/** The exact cost in billionths of a dollar, as a fraction. */
export function costOf(price: WrittenPrice, { counts, tier, speed, geo }: Use): Fraction {
  const length = Object.entries(counts).reduce(
    (sum, [key, count]) => (TOKENS.has(key) && !OUTPUTS.has(key) ? sum + count : sum),
    0,
  );
  const chosen = [
    object(price['service_tiers'])?.[tier ?? ''],
    object(price['speeds'])?.[speed ?? ''],
    object(price['geos'])?.[geo ?? ''],
  ].filter((one) => one !== undefined);
  const factors = chosen.flatMap((one) => decimal(one) ?? []) as bigint[];
  const sets = chosen.flatMap((one) => (typeof one === 'string' ? [] : [one as WrittenPrice]));
  const longOf = (set: WrittenPrice): WrittenPrice[] => {
    const long = object(set['long_context']);
    return long !== undefined && length > Number(long['above']) ? [long] : [];
  };
  // The most particular first: the long context of what was served, then what was served beside the long context of all, then the
  // price itself.
  const layers = [sets.flatMap(longOf), [...sets, ...longOf(price)], [price]];
  const rateOf = (key: string): Fraction | undefined => {
    for (const layer of layers) {
      const rates = layer.flatMap((set) => (Object.hasOwn(set, key) ? [decimal(set[key]) ?? [0n, 1n]] : [])) as Fraction[];
      if (rates.length > 0) return rates.reduce((most, rate) => (rate[0] * most[1] > most[0] * rate[1] ? rate : most));
    }
    return undefined;
  };
  let total: Fraction = [0n, 1n];
  for (const [key, count] of Object.entries(counts)) {
    const name = [key, ...(INSTEAD[key] ?? [])].find((each) => rateOf(each) !== undefined);
    const rate = name === undefined ? undefined : rateOf(name);
    if (rate === undefined) continue;
    const isToken = TOKENS.has(key);
    let amount: Fraction = [BigInt(count) * rate[0] * 1_000_000_000n, rate[1] * (isToken ? 1_000_000n : (PER[key] ?? 1_000n))];
    if (isToken) {
      for (let at = 0; at < factors.length; at += 2)
        amount = [amount[0] * (factors[at] ?? 1n), amount[1] * (factors[at + 1] ?? 1n)];
    }
    total = [total[0] * amount[1] + amount[0] * total[1], total[1] * amount[1]];
  }
  return total;
}

/** The sum of several costs in whole billionths of a dollar, rounded down. */
export function billed(...costs: readonly Fraction[]): bigint {
  const [numerator, denominator] = costs.reduce<Fraction>(
    (sum, cost) => [sum[0] * cost[1] + cost[0] * sum[1], sum[1] * cost[1]],
    [0n, 1n],
  );
  return numerator / denominator;
}
