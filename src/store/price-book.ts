/**
 * Converts two public price catalogues into our price records: LiteLLM's `model_prices_and_context_window.json` (US dollars a
 * token) and models.dev's `api.json` (US dollars a million tokens). Reads the digits as they are written, so that no price passes
 * through a float, and says what it left out and why. The data is the operator's; this file brings none.
 */
import type { ModelKind, PriceRecord } from './prices.ts';
import { parsePrice } from './prices.ts';

export interface PriceBook {
  readonly prices: ReadonlyMap<string, { readonly kind: ModelKind; readonly price: PriceRecord }>;
  /** Models without any price of ours, and why. */
  readonly skipped: readonly { readonly model: string; readonly reason: string }[];
  /** Price fields of converted models that our records cannot say. */
  readonly ignored: readonly { readonly model: string; readonly field: string; readonly reason: string }[];
}

/** A number as it was spelled in the file. */
class NumberText {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** Throws SyntaxError on text that is not JSON. */
function parseKeepingDigits(text: string): unknown {
  return JSON.parse(text, (_key: string, value: unknown, ...rest: unknown[]) => {
    if (typeof value !== 'number') return value;
    const [context] = rest;
    const source = typeof context === 'object' && context !== null && 'source' in context ? context.source : undefined;
    return new NumberText(typeof source === 'string' ? source : String(value));
  });
}

/** The plain decimal spelling of `text` × 10^shift, or undefined when it is no finite non-negative number. */
export function shiftDecimal(text: string, shift: number): string | undefined {
  const match = /^([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]{1,3}))?$/.exec(text);
  if (match === null) return undefined;
  const [, whole = '', fraction = '', exponent = '0'] = match;
  const digits = whole + fraction;
  const point = whole.length + Number(exponent) + shift;
  const padded = point <= 0 ? digits.padStart(digits.length - point + 1, '0') : digits.padEnd(point, '0');
  const at = Math.max(point, 1);
  const integer = padded.slice(0, at).replace(/^0+(?=[0-9])/, '');
  const rest = padded.slice(at).replace(/0+$/, '');
  return rest === '' ? integer : `${integer}.${rest}`;
}

type Fields = Map<string, unknown>;

function fieldsOf(value: unknown): Fields | undefined {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof NumberText);
  return isObject ? new Map(Object.entries(value)) : undefined;
}

/** LiteLLM's names (US dollars a token, a piece, a call), ours, and the shift from their unit to ours. */
const LITELLM: ReadonlyMap<string, readonly [string, number]> = new Map([
  ['input_cost_per_token', ['input', 6]],
  ['cache_read_input_token_cost', ['cached_input', 6]],
  ['cache_creation_input_token_cost', ['cache_write_5m', 6]],
  ['cache_creation_input_token_cost_above_1hr', ['cache_write_1h', 6]],
  ['output_cost_per_token', ['output', 6]],
  ['output_cost_per_reasoning_token', ['reasoning', 6]],
  ['input_cost_per_image_token', ['image_input', 6]],
  ['output_cost_per_image_token', ['image_output', 6]],
  ['output_cost_per_image', ['image', 0]],
  ['file_search_cost_per_1k_calls', ['file_search', 0]],
]);

const KIND_OF_MODE: ReadonlyMap<string, ModelKind> = new Map([
  ['chat', 'text'],
  ['completion', 'text'],
  ['responses', 'text'],
  ['embedding', 'embedding'],
  ['image_generation', 'image'],
  ['image_edit', 'image'],
  ['video_generation', 'video'],
]);

/** Where a LiteLLM price name with its suffixes belongs. */
function litellmPlace(name: string): (Omit<Place, 'field'> & { readonly tier: string | undefined }) | undefined {
  const match = /^(.*?)(?:_above_([0-9]+)k_tokens)?(?:_(priority|flex))?$/.exec(name);
  const found = LITELLM.get(match?.[1] ?? '');
  if (match === null || found === undefined) return undefined;
  const [rate, shift] = found;
  const [, , thousands, tier] = match;
  return { rate, shift, above: thousands === undefined ? undefined : Number(thousands) * 1000, tier };
}

/** A price under construction. */
interface Draft {
  readonly rates: Map<string, string>;
  readonly long: Map<string, string>;
  above?: number;
  readonly tiers: Map<string, Draft>;
}

const draft = (): Draft => ({ rates: new Map(), long: new Map(), tiers: new Map() });

function recordOf({ rates, long, above, tiers }: Draft): PriceRecord {
  return Object.fromEntries<PriceRecord[string]>([
    ...rates,
    ...(above === undefined ? [] : [['long_context', { above, ...Object.fromEntries(long) }] as const]),
    ...(tiers.size === 0
      ? []
      : [['service_tiers', Object.fromEntries([...tiers].map(([name, tier]) => [name, recordOf(tier)]))] as const]),
  ]);
}

/** Where an amount comes from and goes to. */
interface Place {
  /** As the catalogue names it. */
  readonly field: string;
  readonly rate: string;
  /** Powers of ten between its unit and ours. */
  readonly shift?: number;
  /** Tokens of input above which it holds. */
  readonly above?: number | undefined;
}

class BookBuilder {
  readonly prices = new Map<string, { kind: ModelKind; price: PriceRecord }>();
  readonly skipped: { model: string; reason: string }[] = [];
  readonly ignored: { model: string; field: string; reason: string }[] = [];

  skip(model: string, reason: string): void {
    this.skipped.push({ model, reason });
  }

  ignore(model: string, field: string, reason: string): void {
    this.ignored.push({ model, field, reason });
  }

  /** Puts one amount of a model into the draft, or says why not. */
  set(model: string, into: Draft, { field, rate, shift = 0, above }: Place, value: unknown): void {
    const amount = value instanceof NumberText ? shiftDecimal(value.text, shift) : undefined;
    if (amount === undefined) {
      this.ignore(model, field, 'is not a non-negative number');
      return;
    }
    if (above === undefined) {
      into.rates.set(rate, amount);
      return;
    }
    if (into.above !== undefined && into.above !== above) {
      this.ignore(model, field, 'a second long-context threshold');
      return;
    }
    into.above = above;
    into.long.set(rate, amount);
  }

  add(model: string, kind: ModelKind, price: Draft): void {
    const record = recordOf(price);
    const checked = parsePrice(record, { kind });
    if (checked.ok) this.prices.set(model, { kind, price: record });
    else this.skip(model, `${checked.refusal.field} ${checked.refusal.message}`);
  }
}

/** Throws SyntaxError when `text` is not JSON. */
export function convertLiteLlm(text: string): PriceBook {
  const book = new BookBuilder();
  for (const [model, entry] of fieldsOf(parseKeepingDigits(text)) ?? []) {
    const fields = fieldsOf(entry);
    if (model === 'sample_spec') continue;
    const kind = KIND_OF_MODE.get(String(fields?.get('mode')));
    if (fields === undefined || kind === undefined) {
      book.skip(model, `mode ${String(fields?.get('mode') ?? 'missing')} is not served`);
      continue;
    }
    const price = draft();
    for (const [name, value] of fields) {
      if (!/cost/.test(name)) continue;
      if (name === 'search_context_cost_per_query') searchCost(book, model, price, value);
      else if (kind === 'image' && name === 'input_cost_per_image') book.set(model, price, { field: name, rate: 'image' }, value);
      else {
        const place = litellmPlace(name);
        if (place === undefined) book.ignore(model, name, 'has no counterpart');
        else book.set(model, tierOf(price, place.tier), { field: name, ...place }, value);
      }
    }
    book.add(model, kind, price);
  }
  return book;
}

function tierOf(price: Draft, tier: string | undefined): Draft {
  if (tier === undefined) return price;
  const found = price.tiers.get(tier) ?? draft();
  price.tiers.set(tier, found);
  return found;
}

/** One rate a search is ours; where sizes differ, the medium size, which is the default of the upstreams, counts. */
function searchCost(book: BookBuilder, model: string, price: Draft, value: unknown): void {
  const sizes = fieldsOf(value);
  const medium = sizes?.get('search_context_size_medium');
  if (sizes === undefined || medium === undefined) {
    book.ignore(model, 'search_context_cost_per_query', 'has no medium size');
    return;
  }
  book.set(model, price, { field: 'search_context_cost_per_query', rate: 'web_search', shift: 3 }, medium);
  for (const [size, other] of sizes) {
    const same = other instanceof NumberText && medium instanceof NumberText && other.text === medium.text;
    if (!same) book.ignore(model, `search_context_cost_per_query.${size}`, 'differs from the medium size');
  }
}

const MODELS_DEV: ReadonlyMap<string, string> = new Map([
  ['input', 'input'],
  ['output', 'output'],
  ['cache_read', 'cached_input'],
  ['cache_write', 'cache_write_5m'],
  ['reasoning', 'reasoning'],
]);

/** Models are named `provider/model`. Throws SyntaxError when `text` is not JSON. */
export function convertModelsDev(text: string): PriceBook {
  const book = new BookBuilder();
  for (const [provider, entry] of fieldsOf(parseKeepingDigits(text)) ?? []) {
    for (const [id, model] of fieldsOf(fieldsOf(entry)?.get('models')) ?? []) {
      const name = `${provider}/${id}`;
      const cost = fieldsOf(fieldsOf(model)?.get('cost'));
      if (cost === undefined) {
        book.skip(name, 'has no cost');
        continue;
      }
      const price = draft();
      for (const [field, value] of cost) devField(book, name, price, field, value);
      book.add(name, 'text', price);
    }
  }
  return book;
}

function devField(book: BookBuilder, model: string, price: Draft, field: string, value: unknown): void {
  const rate = MODELS_DEV.get(field);
  if (rate !== undefined) {
    book.set(model, price, { field, rate }, value);
    return;
  }
  const thousands = /^context_over_([0-9]+)k$/.exec(field)?.[1];
  const nested = fieldsOf(value);
  if (thousands === undefined || nested === undefined) {
    book.ignore(model, field, 'has no counterpart');
    return;
  }
  for (const [inner, amount] of nested) {
    const innerRate = MODELS_DEV.get(inner);
    if (innerRate === undefined) book.ignore(model, `${field}.${inner}`, 'has no counterpart');
    else book.set(model, price, { field: `${field}.${inner}`, rate: innerRate, above: Number(thousands) * 1000 }, amount);
  }
}
