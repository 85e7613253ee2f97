/**
 * The price of a model: the record that an operator writes (decimal strings, US dollars) and the exact rates it becomes.
 * Knows units and fall-backs between classes. Knows no model name and no upstream; what a request used is `charge.ts`.
 */
import { parseUsd } from './money.ts';
import { done, type Invalid, invalid, type Result } from './result.ts';

/** Classes priced in USD per million tokens. */
export const TOKEN_CLASSES = [
  'input',
  'cached_input',
  'cache_write_5m',
  'cache_write_1h',
  'output',
  'reasoning',
  'image_input',
  'image_output',
] as const;
export type TokenClass = (typeof TOKEN_CLASSES)[number];

/** Classes priced in USD each. */
export const PIECE_CLASSES = ['image', 'video'] as const;
export type PieceClass = (typeof PIECE_CLASSES)[number];

/**
 * A price as it is written: decimal strings of US dollars. Token classes per million tokens, `image` and `video` each, every
 * other key is a tool meter per thousand calls (`web_search`, …). Tiers hold the same keys.
 */
export interface PriceRecord {
  readonly [rate: string]: string | LongContextPrice | { readonly [tier: string]: PriceRecord };
}

/** The prices of a request whose total input, cached tokens included, is greater than `above`. */
export interface LongContextPrice {
  readonly above: number;
  readonly [rate: string]: string | number;
}

/** Exact rates, in the units of the class: nano-dollars per million tokens, per piece, per thousand calls. */
export interface RateTable {
  readonly tokens: ReadonlyMap<TokenClass, bigint>;
  readonly pieces: ReadonlyMap<PieceClass, bigint>;
  readonly meters: ReadonlyMap<string, bigint>;
}

/** The rates of a request whose total input is greater than `above`. */
export interface LongContextRates extends RateTable {
  readonly above: number;
}

/** The rates of a service tier. */
export interface TierRates extends RateTable {
  readonly longContext?: LongContextRates;
}

/** Rates with their tiers: immutable, snapshotted at admission and used at settlement. */
export interface Rates extends TierRates {
  readonly serviceTiers: ReadonlyMap<string, TierRates>;
}

export type ModelKind = 'text' | 'embedding' | 'image' | 'video';

/** What a price of each kind must have, one of each group, so that nothing is given away by a missing rate. */
const REQUIRED: Record<ModelKind, readonly (readonly string[])[]> = {
  text: [['input'], ['output']],
  embedding: [['input']],
  image: [['image', 'image_output', 'output']],
  video: [['video']],
};

const METER = /^[a-z][a-z0-9_]{0,63}$/;
const TIER = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;

/**
 * Reads a price; a refusal names its field (`service_tiers.priority.output`). Amounts are plain decimal strings with at most
 * nine digits after the point and nothing is rounded. With `kind`, the rates that such a model needs must be there ("0" is a rate).
 */
export function parsePrice(
  price: unknown,
  options: { readonly kind?: ModelKind; readonly path?: string } = {},
): Result<Rates, Invalid> {
  const path = options.path ?? '';
  const read = readRates(price, path, ['long_context', 'service_tiers']);
  if (!read.ok) return read;
  const { entries, ...table } = read.value;

  const long = readLongContext(entries.get('long_context'), path);
  if (!long.ok) return long;
  const tiers = readTiers(entries.get('service_tiers'), path);
  if (!tiers.ok) return tiers;

  for (const group of options.kind === undefined ? [] : REQUIRED[options.kind]) {
    if (!group.some((name) => entries.has(name))) {
      const first = group[0] ?? '';
      return invalid(join(path, first), `is missing: a model of kind ${options.kind} needs ${group.join(' or ')}`);
    }
  }
  return done({ ...table, ...long.value, serviceTiers: tiers.value });
}

const join = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`);

function entriesOf(value: unknown, path: string): Result<Map<string, unknown>, Invalid> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return invalid(path === '' ? 'price' : path, 'must be an object');
  return done(new Map(Object.entries(value)));
}

/** The rates of one object. `nested` keys are left to the caller, in `entries`. */
function readRates(
  value: unknown,
  path: string,
  nested: readonly string[],
): Result<RateTable & { readonly entries: ReadonlyMap<string, unknown> }, Invalid> {
  const entries = entriesOf(value, path);
  if (!entries.ok) return entries;
  const tokens = new Map<TokenClass, bigint>();
  const pieces = new Map<PieceClass, bigint>();
  const meters = new Map<string, bigint>();
  for (const [name, amount] of entries.value) {
    if (nested.includes(name)) continue;
    const field = join(path, name);
    if (!METER.test(name) || name === 'long_context' || name === 'service_tiers') return invalid(field, 'is not a price');
    if (typeof amount !== 'string') return invalid(field, 'must be a decimal string, such as "2.50"');
    const rate = parseUsd(amount, { field });
    if (!rate.ok) return rate;
    if (isOneOf(TOKEN_CLASSES, name)) tokens.set(name, rate.value);
    else if (isOneOf(PIECE_CLASSES, name)) pieces.set(name, rate.value);
    else meters.set(name, rate.value);
  }
  return done({ tokens, pieces, meters, entries: entries.value });
}

function isOneOf<Name extends string>(names: readonly Name[], name: string): name is Name {
  return (names as readonly string[]).includes(name);
}

function readLongContext(value: unknown, path: string): Result<{ readonly longContext?: LongContextRates }, Invalid> {
  if (value === undefined) return done({});
  const field = join(path, 'long_context');
  const read = readRates(value, field, ['above']);
  if (!read.ok) return read;
  const { entries, ...table } = read.value;
  const above = entries.get('above');
  if (typeof above !== 'number' || !Number.isSafeInteger(above) || above <= 0) {
    return invalid(`${field}.above`, 'must be a number of tokens greater than zero');
  }
  return done({ longContext: { ...table, above } });
}

function readTiers(value: unknown, path: string): Result<Map<string, TierRates>, Invalid> {
  const tiers = new Map<string, TierRates>();
  if (value === undefined) return done(tiers);
  const field = join(path, 'service_tiers');
  const entries = entriesOf(value, field);
  if (!entries.ok) return entries;
  for (const [name, tier] of entries.value) {
    const tierPath = join(field, name);
    if (!TIER.test(name)) return invalid(tierPath, 'is not the name of a tier');
    const read = readRates(tier, tierPath, ['long_context']);
    if (!read.ok) return read;
    const { entries: tierEntries, ...table } = read.value;
    const long = readLongContext(tierEntries.get('long_context'), tierPath);
    if (!long.ok) return long;
    tiers.set(name, { ...table, ...long.value });
  }
  return done(tiers);
}
