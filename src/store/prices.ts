/**
 * The price of a model: the record that an operator writes (decimal strings, US dollars) and the exact rates it becomes.
 * Knows units and fall-backs between classes. Knows no model name and no upstream; what a request used is `charge.ts`.
 */
import type { Invalid, Result } from './result.ts';

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
  readonly [key: string]: string | LongContextPrice | { readonly [tier: string]: PriceRecord } | undefined;
  readonly long_context?: LongContextPrice;
  readonly service_tiers?: { readonly [tier: string]: PriceRecord };
}

/** The prices of a request whose total input, cached tokens included, is greater than `above`. */
export type LongContextPrice = { readonly above: number } & { readonly [key: string]: string | number };

/** Exact rates, in the units of the class: nano-dollars per million tokens, per piece, per thousand calls. */
export interface RateTable {
  readonly tokens: ReadonlyMap<TokenClass, bigint>;
  readonly pieces: ReadonlyMap<PieceClass, bigint>;
  readonly meters: ReadonlyMap<string, bigint>;
}

/** Rates with their tiers: immutable, snapshotted at admission and used at settlement. */
export interface Rates extends RateTable {
  readonly longContext?: RateTable & { readonly above: number };
  readonly serviceTiers: ReadonlyMap<string, RateTable & { readonly longContext?: RateTable & { readonly above: number } }>;
}

export type ModelKind = 'text' | 'embedding' | 'image' | 'video';

/** Reads a price; every refusal names its field (`service_tiers.priority.output`). Nothing is rounded. */
export type ParsePrice = (
  price: unknown,
  options?: { readonly kind?: ModelKind; readonly path?: string },
) => Result<Rates, Invalid>;
