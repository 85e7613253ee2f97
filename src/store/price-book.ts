/**
 * A public price catalogue as price records of ours, as it is read: the amounts by their digits as they are written, so that no
 * price passes through a float, and what was left out and why. Knows no catalogue; the data is the operator's.
 */
import { visit } from 'jsonc-parser';
import { shiftDecimal } from './decimal.ts';
import { parseMultiplier } from './multiplier.ts';
import type { ModelKind, PriceRecord, Rates } from './prices.ts';
import { parsePrice } from './prices.ts';

export interface BookPrice {
  readonly kind: ModelKind;
  readonly price: PriceRecord;
  /** The price as it is read. */
  readonly rates: Rates;
}

export interface PriceBook {
  readonly prices: ReadonlyMap<string, BookPrice>;
  /** Whether the catalogue names the kind of each model; otherwise all are taken for text models. */
  readonly hasKinds: boolean;
  /** Models without any price of ours, and why. */
  readonly skipped: readonly { readonly model: string; readonly reason: string }[];
  /** Price fields of those models that our records cannot express. */
  readonly ignored: readonly { readonly model: string; readonly field: string; readonly reason: string }[];
}

/** A number as it was spelled in the file. */
export class NumberText {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** JSON whose numbers are {@link NumberText}. Throws SyntaxError on text that is not JSON. */
export function parseKeepingDigits(text: string): unknown {
  return JSON.parse(text, (_key: string, value: unknown, ...rest: unknown[]) => {
    if (typeof value !== 'number') return value;
    const [context] = rest;
    const source = typeof context === 'object' && context !== null && 'source' in context ? context.source : undefined;
    return new NumberText(typeof source === 'string' ? source : String(value));
  });
}

/**
 * Whether a catalogue is models.dev's, whose entries are providers with models; otherwise it is read as LiteLLM's. Throws
 * SyntaxError.
 */
export function isModelsDev(text: string): boolean {
  const entries = fieldsOf(JSON.parse(text));
  return entries !== undefined && [...entries.values()].some((entry) => fieldsOf(fieldsOf(entry)?.get('models')) !== undefined);
}

type Fields = Map<string, unknown>;

/** The members of an object; undefined for anything else. */
export function fieldsOf(value: unknown): Fields | undefined {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof NumberText);
  return isObject ? new Map(Object.entries(value)) : undefined;
}

/** What changes a price, by the name of the member that holds it. */
const MODIFIERS = ['service_tiers', 'speeds', 'geos'] as const;
export type ModifierKind = (typeof MODIFIERS)[number];

/** A price under construction. */
export interface Draft {
  readonly rates: Map<string, string>;
  readonly long: Map<string, string>;
  above?: number;
  /** Prices by name, or multipliers. */
  readonly modifiers: Readonly<Record<ModifierKind, Map<string, Draft | string>>>;
}

export const draft = (): Draft => ({
  rates: new Map(),
  long: new Map(),
  modifiers: { service_tiers: new Map(), speeds: new Map(), geos: new Map() },
});

/** The prices of a tier, a speed or a region, begun where they were not. */
export function modifierDraft(price: Draft, kind: ModifierKind, name: string): Draft {
  const found = price.modifiers[kind].get(name);
  if (found !== undefined && typeof found !== 'string') return found;
  const begun = draft();
  price.modifiers[kind].set(name, begun);
  return begun;
}

function recordOf({ rates, long, above, modifiers }: Draft): PriceRecord {
  return Object.fromEntries<PriceRecord[string]>([
    ...rates,
    ...(above === undefined ? [] : [['long_context', { above, ...Object.fromEntries(long) }] as const]),
    ...MODIFIERS.flatMap((kind) => {
      const named = [...modifiers[kind]].map(
        ([name, value]) => [name, typeof value === 'string' ? value : recordOf(value)] as const,
      );
      return named.length === 0 ? [] : [[kind, Object.fromEntries(named)] as const];
    }),
  ]);
}

/** The paths, as JSON lists, that an object gives twice at one of these depths: JSON readers keep the last without a warning. */
export function givenTwice(text: string, ...depths: readonly number[]): ReadonlySet<string> {
  const seen = new Set<string>();
  const twice = new Set<string>();
  visit(text, {
    onObjectProperty(name, _offset, _length, _line, _character, pathSupplier) {
      const path = pathSupplier();
      if (!depths.includes(path.length)) return;
      const place = JSON.stringify([...path, name]);
      if (seen.has(place)) twice.add(place);
      seen.add(place);
    },
  });
  return twice;
}

/**
 * OpenAI keeps nothing for less than thirty minutes, so its one price of a cache write is the price of that lifetime. Nothing
 * else that a catalogue says tells which lifetime it means.
 */
export function shortestWrite({ rates, long, modifiers }: Draft): void {
  for (const table of [rates, long]) {
    const write = table.get('cache_write_5m');
    if (write !== undefined) table.set('cache_write_30m', write);
  }
  for (const tier of modifiers.service_tiers.values()) if (typeof tier !== 'string') shortestWrite(tier);
}

/**
 * Catalogues repeat the price of the output as that of reasoning, and leave it out of tiers and above thresholds. As a price of
 * its own it would hold there, too, whatever the output costs there.
 */
function outputSaidTwice({ rates }: Draft): void {
  if (rates.get('reasoning') === rates.get('output')) rates.delete('reasoning');
}

/** Where an amount comes from and goes to. */
export interface Place {
  /** As the catalogue names it. */
  readonly field: string;
  readonly rate: string;
  /** Powers of ten between its unit and ours. */
  readonly shift?: number;
  /** Tokens of input above which it holds. */
  readonly above?: number | undefined;
}

export class BookBuilder implements PriceBook {
  readonly prices = new Map<string, BookPrice>();
  readonly hasKinds: boolean;
  readonly skipped: { model: string; reason: string }[] = [];
  readonly ignored: { model: string; field: string; reason: string }[] = [];

  constructor(hasKinds: boolean) {
    this.hasKinds = hasKinds;
  }

  skip(model: string, reason: string): void {
    this.skipped.push({ model, reason });
  }

  ignore(model: string, field: string, reason: string): void {
    this.ignored.push({ model, field, reason });
  }

  /** Puts one amount of a model into the draft, or returns why not. */
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

  /** A multiplier of every token price, for a speed or a region. */
  multiply(model: string, price: Draft, kind: 'speeds' | 'geos', name: string, field: string, value: unknown): void {
    const text = value instanceof NumberText ? shiftDecimal(value.text, 0) : undefined;
    if (text === undefined || !parseMultiplier(text, field).ok) this.ignore(model, field, 'is not a multiplier');
    else price.modifiers[kind].set(name, text);
  }

  add(model: string, kind: ModelKind, price: Draft): void {
    outputSaidTwice(price);
    const record = recordOf(price);
    const checked = parsePrice(record, { kind });
    if (checked.ok) this.prices.set(model, { kind, price: record, rates: checked.value });
    else this.skip(model, `${checked.refusal.field} ${checked.refusal.message}`);
  }
}
