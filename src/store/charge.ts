/**
 * From what a request used to what it costs. All classes are disjoint; the codecs have already taken cached tokens out of
 * the input and reasoning out of the output. Rounding: each line is exact in millionths of a nano-dollar, the sum is
 * truncated to nano-dollars once, toward zero.
 */
import { defined } from './defined.ts';
import { MAX_NANOS } from './money.ts';
import { type Multiplier, MULTIPLIER_UNIT, productText } from './multiplier.ts';
import type { Modifier, PieceClass, Rates, RateTable, TierRates, TokenClass } from './prices.ts';

/** What a request used. Counts are non-negative integers; an absent field is zero. */
export interface BillableUsage {
  /** Input that was neither read from nor written to a cache. */
  readonly input?: number;
  readonly cachedInput?: number;
  readonly cacheWrite5m?: number;
  readonly cacheWrite30m?: number;
  readonly cacheWrite1h?: number;
  readonly cacheWrite12h?: number;
  /** Cache writes whose lifetime the upstream did not report: billed as 5 minutes, flagged. */
  readonly cacheWriteUnsplit?: number;
  /** Output without reasoning. */
  readonly output?: number;
  readonly reasoning?: number;
  /** Image tokens, not contained in `input` and `output`. */
  readonly imageInput?: number;
  readonly imageOutput?: number;
  /** Tokens of sound, not contained in them either. */
  readonly audioInput?: number;
  readonly audioOutput?: number;
  /** Pieces. */
  readonly images?: number;
  readonly videos?: number;
  /** Tool calls by meter name. */
  readonly meters?: ReadonlyMap<string, number>;
  /** The tier, the speed and the region that the upstream said it served. */
  readonly serviceTier?: string;
  readonly speed?: string;
  readonly geo?: string;
  /** The model that answered in place of the one that was asked, as the upstream names it: a fallback of the upstream's own. */
  readonly model?: string;
  /** Passes of other models on top of it. */
  readonly passes?: readonly UsagePass[];
}

/** What a pass of another model used; that model's price counts. */
export interface UsagePass {
  /** `advisor_message`, … */
  readonly type: string;
  /** As the upstream names it. */
  readonly model: string;
  readonly input?: number;
  readonly cachedInput?: number;
  readonly cacheWrite5m?: number;
  readonly cacheWrite1h?: number;
  readonly cacheWriteUnsplit?: number;
  readonly output?: number;
}

/** The rates of a model that an upstream names; undefined where it has no price of ours. */
export type RatesOf = (upstreamModel: string) => Rates | undefined;

/**
 * One line of a charge; `amount` is quantity × rate (× multiplier), in millionths of a nano-dollar: exact without a multiplier,
 * and with one less than a millionth below the exact product.
 */
export interface ChargeLine {
  readonly item: string;
  /** The class whose rate was used, where it is not `item`'s own. */
  readonly billedAs?: string;
  readonly quantity: number;
  /** Nano-dollars per `per`. */
  readonly rate: bigint;
  readonly per: 'million' | 'thousand' | 'piece';
  /** The product of the multipliers of the speed and the region, as a plain decimal; absent: 1. */
  readonly multiplier?: string;
  readonly amount: bigint;
  /** Whose rate it is, as the upstream names it; absent: that of the model that the exchange is charged for. */
  readonly model?: string;
}

export interface Charge {
  readonly lines: readonly ChargeLine[];
  /** Nano-dollars. */
  readonly total: bigint;
  /**
   * `cache_write_unsplit`, `long_context`, `service_tier:<name>`, `speed:<name>`, `geo:<name>`, `estimated`, `overflow`; what has
   * no price of ours: `unknown_service_tier`, `unknown_speed`, `unknown_geo`, `unpriced:<item>`, `no_rate:<class>` (billed at the
   * rate of another), `unpriced_model:<name>` (billed at the rates of the model that was asked); `invalid_usage:<field>`.
   */
  readonly flags: readonly string[];
}

/** Above this a count is not a measurement but a mistake (or an attack on the arithmetic): it is not billed, and flagged. */
export const LARGEST_COUNT = 1_000_000_000;

type TokenField =
  | 'input'
  | 'cachedInput'
  | 'cacheWrite5m'
  | 'cacheWrite30m'
  | 'cacheWrite1h'
  | 'cacheWrite12h'
  | 'cacheWriteUnsplit'
  | 'output'
  | 'reasoning'
  | 'imageInput'
  | 'imageOutput'
  | 'audioInput'
  | 'audioOutput';

interface TokenRow {
  readonly field: TokenField;
  /** Its own class first, then the classes whose rate stands in for a missing one. */
  readonly classes: readonly [TokenClass, ...TokenClass[]];
  /** Counts toward the length of the context. */
  readonly isInput: boolean;
  /** A rate that stands in is flagged: vendors charge more for writing a cache, the more the longer it lives, and for sound. */
  readonly flagStandIn?: boolean;
}

const TOKENS: readonly TokenRow[] = [
  { field: 'input', classes: ['input'], isInput: true },
  { field: 'cachedInput', classes: ['cached_input', 'input'], isInput: true },
  { field: 'cacheWrite5m', classes: ['cache_write_5m', 'input'], isInput: true, flagStandIn: true },
  { field: 'cacheWrite30m', classes: ['cache_write_30m', 'cache_write_5m', 'input'], isInput: true, flagStandIn: true },
  { field: 'cacheWrite1h', classes: ['cache_write_1h', 'input'], isInput: true, flagStandIn: true },
  { field: 'cacheWrite12h', classes: ['cache_write_12h', 'cache_write_1h', 'input'], isInput: true, flagStandIn: true },
  { field: 'cacheWriteUnsplit', classes: ['cache_write_5m', 'input'], isInput: true },
  { field: 'output', classes: ['output'], isInput: false },
  { field: 'reasoning', classes: ['reasoning', 'output'], isInput: false },
  { field: 'imageInput', classes: ['image_input', 'input'], isInput: true },
  { field: 'imageOutput', classes: ['image_output', 'output'], isInput: false },
  { field: 'audioInput', classes: ['audio_input', 'input'], isInput: true, flagStandIn: true },
  { field: 'audioOutput', classes: ['audio_output', 'output'], isInput: false, flagStandIn: true },
];

/**
 * The names of tiers, speeds and regions that cost the standard price. `on_demand` is Groq's, `not_available` Anthropic's for
 * models without regions.
 */
export const STANDARD = {
  service_tier: new Set(['', 'default', 'standard', 'auto', 'on_demand']),
  speed: new Set(['', 'default', 'standard']),
  geo: new Set(['', 'default', 'global', 'not_available']),
} satisfies Record<string, ReadonlySet<string>>;

/**
 * What a request costs. Never throws and never gives a negative amount: what cannot be billed is flagged instead
 * (`invalid_usage:<field>`, `unpriced:<class>`), so that the caller can see it. The same usage and rates give the same charge.
 */
export function chargeFor(usage: BillableUsage, rates: Rates, ratesOf: RatesOf = () => undefined): Charge {
  const flags = new Set<string>();
  const flag = (name: string): unknown => flags.add(name);
  const { model, passes = [], ...main } = usage;
  const ratesOfModel = (name: string): Rates | undefined => {
    const found = ratesOf(name);
    if (found === undefined) flag(`unpriced_model:${name}`);
    return found;
  };
  const own = model === undefined ? undefined : ratesOfModel(model);
  const lines = named(linesOf(main, own ?? rates, flag), own, model);
  // A pass is served as the answer was, as far as its model has prices for that.
  const { serviceTier, speed, geo } = usage;
  for (const { type: _type, model: name, ...counts } of passes) {
    const its = ratesOfModel(name);
    const served = { ...counts, ...defined({ serviceTier, speed, geo }) };
    const told = (what: string): unknown => (what.startsWith('unknown_') ? undefined : flag(what));
    lines.push(...named(linesOf(served, its ?? rates, told), its, name));
  }
  const sum = total(lines, flag);
  return { lines, total: sum, flags: [...flags] };
}

/** Lines at the rates of another model say whose they are. */
function named(lines: ChargeLine[], rates: Rates | undefined, model: string | undefined): ChargeLine[] {
  return rates === undefined || model === undefined ? lines : lines.map((line) => ({ ...line, model }));
}

type Flag = (name: string) => unknown;

function linesOf(usage: BillableUsage, rates: Rates, flag: Flag): ChargeLine[] {
  const lines: ChargeLine[] = [];
  const count = (field: string, value: number | undefined): number => {
    if (value === undefined || value === 0) return 0;
    if (Number.isSafeInteger(value) && value > 0 && value <= LARGEST_COUNT) return value;
    flag(`invalid_usage:${field}`);
    return 0;
  };

  const used: { readonly row: TokenRow; readonly quantity: number }[] = [];
  let totalInput = 0;
  for (const row of TOKENS) {
    const quantity = count(row.field, usage[row.field]);
    if (quantity === 0) continue;
    used.push({ row, quantity });
    if (row.isInput) totalInput += quantity;
  }
  const { tables, multipliers } = applicable(usage, totalInput, rates, flag);

  for (const { row, quantity } of used) {
    const [own] = row.classes;
    if (row.field === 'cacheWriteUnsplit') flag('cache_write_unsplit');
    const found = firstRate(row.classes, (name) => pick(tables, (table) => table.tokens.get(name)));
    if (found === undefined) flag(`unpriced:${own}`);
    else {
      if (row.flagStandIn === true && found.name !== own) flag(`no_rate:${own}`);
      lines.push(multiplied(line(own, found.name, quantity, found.rate, 'million'), multipliers));
    }
  }
  pieces('image', count('images', usage.images));
  pieces('video', count('videos', usage.videos));
  for (const [meter, value] of usage.meters ?? []) {
    const quantity = count(meter, value);
    if (quantity === 0) continue;
    const rate = pick(tables, (table) => table.meters.get(meter));
    if (rate === undefined) flag(`unpriced:${meter}`);
    else lines.push(line(meter, meter, quantity, rate, 'thousand'));
  }
  return lines;

  /** A fee for each image exists only where it is configured; images are otherwise paid by their tokens. */
  function pieces(name: PieceClass, quantity: number): void {
    if (quantity === 0) return;
    const rate = pick(tables, (table) => table.pieces.get(name));
    if (rate !== undefined) lines.push(line(name, name, quantity, rate, 'piece'));
    else if (name === 'video') flag('unpriced:video');
  }
}

/** The tables that apply, those of equal standing together: the highest rate of the first group that has one counts. */
type Tables = readonly (readonly RateTable[])[];

interface Applicable {
  readonly tables: Tables;
  /** Of every token rate. */
  readonly multipliers: readonly Multiplier[];
}

function applicable(usage: BillableUsage, totalInput: number, rates: Rates, flag: Flag): Applicable {
  const isLong = (table: TierRates): boolean => table.longContext !== undefined && totalInput > table.longContext.above;
  const long = isLong(rates) ? rates.longContext : undefined;
  if (!isServedApart(usage)) {
    if (long !== undefined) flag('long_context');
    return { tables: long === undefined ? [[rates]] : [[long], [rates]], multipliers: NO_MULTIPLIERS };
  }
  const served = [
    ...modifierOf('service_tier', usage.serviceTier, rates.serviceTiers, flag),
    ...modifierOf('speed', usage.speed, rates.speeds, flag),
    ...modifierOf('geo', usage.geo, rates.geos, flag),
  ];
  const modifiers = served.map(({ modifier }) => modifier);
  const multipliers = modifiers.flatMap((modifier) => ('multiplier' in modifier ? [modifier.multiplier] : []));
  const own = modifiers.flatMap((modifier) => ('multiplier' in modifier ? [] : [modifier]));
  const ownLong = own.flatMap((table) => (isLong(table) && table.longContext !== undefined ? [table.longContext] : []));
  if (long !== undefined || ownLong.length > 0) flag('long_context');
  for (const { what, name } of served) flag(`${what}:${name}`);
  // A tier that has no long-context rates of its own must not make a long request cheaper than its long-context price.
  return { tables: [ownLong, long === undefined ? own : [...own, long], [rates]], multipliers };
}

const NO_MULTIPLIERS: readonly Multiplier[] = [];

/** Whether a tier, a speed or a region was named that may have a price of its own. Most answers name none. */
function isServedApart({ serviceTier, speed, geo }: BillableUsage): boolean {
  return serviceTier !== undefined || speed !== undefined || geo !== undefined;
}

/** What was served and has a price, or nothing; what was served without one is flagged. */
function modifierOf(
  what: keyof typeof STANDARD,
  name: string | undefined,
  priced: ReadonlyMap<string, Modifier> | undefined,
  flag: Flag,
): { readonly what: string; readonly name: string; readonly modifier: Modifier }[] {
  if (name === undefined) return [];
  const modifier = priced?.get(name);
  if (modifier !== undefined) return [{ what, name, modifier }];
  if (!STANDARD[what].has(name)) flag(`unknown_${what}`);
  return [];
}

function pick(tables: Tables, rateOf: (table: RateTable) => bigint | undefined): bigint | undefined {
  for (const group of tables) {
    let highest: bigint | undefined;
    for (const table of group) {
      const rate = rateOf(table);
      if (rate !== undefined && (highest === undefined || rate > highest)) highest = rate;
    }
    if (highest !== undefined) return highest;
  }
  return undefined;
}

function firstRate(classes: readonly TokenClass[], rateOf: (name: TokenClass) => bigint | undefined) {
  for (const name of classes) {
    const rate = rateOf(name);
    if (rate !== undefined) return { name, rate };
  }
  return undefined;
}

const TO_MILLIONTHS = { million: 1n, thousand: 1_000n, piece: 1_000_000n } as const;

function line(item: string, billedAs: string, quantity: number, rate: bigint, per: ChargeLine['per']): ChargeLine {
  const amount = BigInt(quantity) * rate * TO_MILLIONTHS[per];
  return { item, ...(billedAs === item ? {} : { billedAs }), quantity, rate, per, amount };
}

function multiplied(charged: ChargeLine, multipliers: readonly Multiplier[]): ChargeLine {
  if (multipliers.length === 0) return charged;
  const amount = multipliers.reduce((product, { units }) => product * units, charged.amount);
  return { ...charged, multiplier: productText(multipliers), amount: amount / MULTIPLIER_UNIT ** BigInt(multipliers.length) };
}

function total(lines: readonly ChargeLine[], flag: Flag): bigint {
  const nanos = lines.reduce((sum, { amount }) => sum + amount, 0n) / 1_000_000n;
  if (nanos <= MAX_NANOS) return nanos;
  flag('overflow');
  return MAX_NANOS;
}
