/**
 * From what a request used to what it costs. All classes are disjoint; the codecs have already taken cached tokens out of
 * the input and reasoning out of the output. Rounding: each line is exact in millionths of a nano-dollar, the sum is
 * truncated to nano-dollars once, toward zero.
 */
import type { Rates } from './prices.ts';

/** What a request used. Counts are non-negative integers; an absent field is zero. */
export interface BillableUsage {
  /** Input that was neither read from nor written to a cache. */
  readonly input?: number;
  readonly cachedInput?: number;
  readonly cacheWrite5m?: number;
  readonly cacheWrite1h?: number;
  /** Cache writes whose lifetime the upstream did not say: billed as 5 minutes, flagged. */
  readonly cacheWriteUnsplit?: number;
  /** Output without reasoning. */
  readonly output?: number;
  readonly reasoning?: number;
  /** Image tokens, not contained in `input` and `output`. */
  readonly imageInput?: number;
  readonly imageOutput?: number;
  /** Pieces. */
  readonly images?: number;
  readonly videos?: number;
  /** Tool calls by meter name. */
  readonly meters?: ReadonlyMap<string, number> | Readonly<Record<string, number>>;
  /** The tier that the upstream said it served. */
  readonly serviceTier?: string;
}

/** One line of a charge. `picos` is in millionths of a nano-dollar: quantity × rate, exact. */
export interface ChargeLine {
  readonly item: string;
  /** The class whose rate was used, where it is not `item`'s own. */
  readonly billedAs?: string;
  readonly quantity: number;
  /** Nano-dollars per `per`. */
  readonly rate: bigint;
  readonly per: 'million' | 'thousand' | 'piece';
  readonly amount: bigint;
}

export interface Charge {
  readonly lines: readonly ChargeLine[];
  /** Nano-dollars. */
  readonly total: bigint;
  /** `cache_write_unsplit`, `unknown_service_tier`, `long_context`, `unpriced:<item>`, `invalid_usage:<field>`, `overflow`, `estimated`, … */
  readonly flags: readonly string[];
}

export type ChargeFor = (usage: BillableUsage, rates: Rates) => Charge;
