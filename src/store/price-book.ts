/**
 * A public price catalogue as price records of ours, as it is read: the amounts by their digits as they are written, so that no price
 * passes through a float, and what was left out and why. Knows no catalogue; the data is the operator's.
 */
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
  /** Models without any price of ours, and why. */
  readonly skipped: readonly { readonly model: string; readonly reason: string }[];
  /** Price fields of those models that our records cannot say. */
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

/** The members of an object; undefined for anything else. */
export function fieldsOf(value: unknown): Fields | undefined {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof NumberText);
  return isObject ? new Map(Object.entries(value)) : undefined;
}

/** A price under construction. */
export interface Draft {
  readonly rates: Map<string, string>;
  readonly long: Map<string, string>;
  above?: number;
  readonly tiers: Map<string, Draft>;
}

export const draft = (): Draft => ({ rates: new Map(), long: new Map(), tiers: new Map() });

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
export interface Place {
  /** As the catalogue names it. */
  readonly field: string;
  readonly rate: string;
  /** Powers of ten between its unit and ours. */
  readonly shift?: number;
  /** Tokens of input above which it holds. */
  readonly above?: number | undefined;
}

export class BookBuilder {
  readonly prices = new Map<string, BookPrice>();
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
    if (checked.ok) this.prices.set(model, { kind, price: record, rates: checked.value });
    else this.skip(model, `${checked.refusal.field} ${checked.refusal.message}`);
  }
}
