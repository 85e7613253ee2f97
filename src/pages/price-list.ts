/**
 * The public list of prices as the pages take it, in exact decimal dollars. It is made from the configuration by
 * `cli/price-lists.ts`; how it is shown is `price-display.ts`.
 */

export type PricedKind = 'text' | 'embedding' | 'image' | 'video';

/** Price key of the configuration (`input`, `image`, a tool meter …) to a decimal string of US dollars. */
export type PricesByKey = Readonly<Record<string, string>>;

export interface LongContextPrices {
  /** Total input tokens, cached ones included. */
  readonly above: number;
  readonly prices: PricesByKey;
}

/** What a speed or a region does to a price: a factor of every token price, as a decimal, or prices of its own. */
export type PriceModifier =
  | { readonly multiplier: string }
  | { readonly prices: PricesByKey; readonly longContext?: LongContextPrices };

export interface PricedModel {
  readonly id: string;
  readonly kind: PricedKind;
  readonly prices: PricesByKey;
  /** Prices of a request whose input is longer than `above` tokens; keys that are absent stay as in `prices`. */
  readonly longContext?: LongContextPrices;
  readonly serviceTiers?: Readonly<Record<string, PricesByKey>>;
  /** Long-context prices of the tiers that have some. */
  readonly serviceTierLongContext?: Readonly<Record<string, LongContextPrices>>;
  readonly speeds?: Readonly<Record<string, PriceModifier>>;
  readonly geos?: Readonly<Record<string, PriceModifier>>;
}

export interface PriceList {
  /** ISO 8601, UTC: since when these prices are in force. Never goes back within a process. */
  readonly updatedAt: string;
  /** By name. */
  readonly models: readonly PricedModel[];
}
