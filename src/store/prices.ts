/**
 * The price of a model: the record that an operator writes (decimal strings, US dollars) and the exact rates it becomes.
 * Knows units and fall-backs between classes. Knows no model name and no upstream; what a request used is `charge.ts`.
 */
import { parseUsd } from './money.ts';
import { type Multiplier, parseMultiplier } from './multiplier.ts';
import { done, type Invalid, invalid, type Result } from './result.ts';

/** Classes priced in USD per million tokens. */
export const TOKEN_CLASSES = [
  'input',
  'cached_input',
  'cache_write_5m',
  'cache_write_30m',
  'cache_write_1h',
  'cache_write_12h',
  'output',
  'reasoning',
  'image_input',
  'image_output',
  'audio_input',
  'audio_output',
] as const;
export type TokenClass = (typeof TOKEN_CLASSES)[number];

/** Classes priced in USD each. */
export const PIECE_CLASSES = ['image', 'video'] as const;
export type PieceClass = (typeof PIECE_CLASSES)[number];

/**
 * A price as it is written: decimal strings of US dollars. Token classes per million tokens, `image` and `video` each, every
 * other key is a tool meter per thousand calls (`web_search`, …). Tiers hold the same keys; a speed or a region is either a
 * decimal multiplier of every token rate (`"1.1"`) or holds the same keys.
 */
export interface PriceRecord {
  readonly [rate: string]: string | LongContextPrice | { readonly [name: string]: PriceRecord | string };
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

/** What a speed or a region does to a price: its own rates, or a factor of every token rate. */
export type Modifier = TierRates | { readonly multiplier: Multiplier };

/** Rates with what changes them: immutable, snapshotted at admission and used at settlement. */
export interface Rates extends TierRates {
  readonly serviceTiers: ReadonlyMap<string, TierRates>;
  /** By the speed that the upstream reported (`fast`). Absent: none is priced. */
  readonly speeds?: ReadonlyMap<string, Modifier>;
  /** By the region that the upstream reported (`us`). Absent: none is priced. */
  readonly geos?: ReadonlyMap<string, Modifier>;
}

export type ModelKind = 'text' | 'embedding' | 'image' | 'video';

/** What a price of each kind must have, one of each group, so that nothing is given away by a missing rate. */
const REQUIRED: Record<ModelKind, readonly (readonly string[])[]> = {
  text: [['input'], ['output']],
  embedding: [['input']],
  image: [['image', 'image_output', 'output']],
  video: [['video']],
};

/** Keys of a price that hold prices themselves. */
const NESTED: readonly string[] = ['long_context', 'service_tiers', 'speeds', 'geos'];

const METER = /^[a-z][a-z0-9_]{0,63}$/;
const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;

/**
 * Reads a price; a refusal names its field (`service_tiers.priority.output`). Amounts are plain decimal strings with at most nine
 * digits after the point and nothing is rounded. With `kind`, the rates that such a model needs must be there ("0" is a rate).
 */
export function parsePrice(
  price: unknown,
  options: { readonly kind?: ModelKind; readonly path?: string } = {},
): Result<Rates, Invalid> {
  const path = options.path ?? '';
  const read = readRates(price, path, NESTED);
  if (!read.ok) return read;
  const { entries, ...table } = read.value;

  const long = readLongContext(entries.get('long_context'), path);
  if (!long.ok) return long;
  const tiers = readNamed(entries.get('service_tiers'), join(path, 'service_tiers'), 'tier', readTier);
  if (!tiers.ok) return tiers;
  const speeds = readNamed(entries.get('speeds'), join(path, 'speeds'), 'speed', readModifier);
  if (!speeds.ok) return speeds;
  const geos = readNamed(entries.get('geos'), join(path, 'geos'), 'region', readModifier);
  if (!geos.ok) return geos;

  for (const group of options.kind === undefined ? [] : REQUIRED[options.kind]) {
    if (!group.some((name) => entries.has(name))) {
      const first = group[0] ?? '';
      return invalid(join(path, first), `is missing: a model of kind ${options.kind} needs ${group.join(' or ')}`);
    }
  }
  return done({
    ...table,
    ...long.value,
    serviceTiers: tiers.value,
    ...(speeds.value.size === 0 ? {} : { speeds: speeds.value }),
    ...(geos.value.size === 0 ? {} : { geos: geos.value }),
  });
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
    if (!METER.test(name) || NESTED.includes(name)) return invalid(field, 'is not a price');
    // A tool of that name would be charged by the call, and the price be standard.
    if (name === 'multiplier')
      return invalid(field, 'is not a price: a multiplier stands in the place of prices, as in "speeds": { "fast": "6" }');
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

/** Prices by name: of tiers, speeds or regions. */
function readNamed<Price>(
  value: unknown,
  path: string,
  what: string,
  read: (price: unknown, path: string) => Result<Price, Invalid>,
): Result<Map<string, Price>, Invalid> {
  const prices = new Map<string, Price>();
  if (value === undefined) return done(prices);
  const entries = entriesOf(value, path);
  if (!entries.ok) return entries;
  for (const [name, entry] of entries.value) {
    const field = join(path, name);
    if (!NAME.test(name)) return invalid(field, `is not the name of a ${what}`);
    const price = read(entry, field);
    if (!price.ok) return price;
    prices.set(name, price.value);
  }
  return done(prices);
}

function readTier(value: unknown, path: string): Result<TierRates, Invalid> {
  const read = readRates(value, path, ['long_context']);
  if (!read.ok) return read;
  const { entries, ...table } = read.value;
  const long = readLongContext(entries.get('long_context'), path);
  return long.ok ? done({ ...table, ...long.value }) : long;
}

function readModifier(value: unknown, path: string): Result<Modifier, Invalid> {
  if (typeof value !== 'string') return readTier(value, path);
  const multiplier = parseMultiplier(value, path);
  return multiplier.ok ? done({ multiplier: multiplier.value }) : multiplier;
}
