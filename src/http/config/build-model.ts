/** One entry of `models`: its kind, its price as exact rates, and facts that only the operator knows. */
import { defined } from '../../codecs/defined.ts';
import {
  type ModelKind,
  type Rates,
  type Modifier,
  PIECE_CLASSES,
  type RateTable,
  type TierRates,
  TOKEN_CLASSES,
} from '../../store/prices.ts';
import type { RateLimits } from '../../store/rate-limits.ts';
import type { Invalid, Result } from '../../store/result.ts';
import type { Model } from './config.ts';
import { type ConfigProblem, joinPath } from './config-error.ts';
import type { ModelEntry, RateLimitsEntry } from './schema.ts';
import { closestMatch } from './suggest-key.ts';

/** Undefined where none is set. */
export function rateLimitsOf(entry: RateLimitsEntry | undefined): RateLimits | undefined {
  const limits = defined({
    requestsPerMinute: entry?.requests_per_minute,
    tokensPerMinute: entry?.tokens_per_minute,
    maxConcurrency: entry?.max_concurrency,
  });
  return Object.keys(limits).length === 0 ? undefined : limits;
}

export type ParsePrice = (
  price: unknown,
  options?: { readonly kind?: ModelKind; readonly path?: string },
) => Result<Rates, Invalid>;

export function buildModel(name: string, entry: ModelEntry, parsePrice: ParsePrice, problems: ConfigProblem[]): Model {
  const { kind } = entry;
  const at = joinPath(['models', name]);
  const { min_thinking_budget: min, max_thinking_budget: max } = entry;
  if (min !== undefined && max !== undefined && min > max) {
    problems.push({ path: `${at}.min_thinking_budget`, message: 'is over max_thinking_budget' });
  }
  const rates = entry.price === undefined ? undefined : parsePrice(entry.price, { kind, path: `${at}.price` });
  if (rates?.ok === false) problems.push({ path: rates.refusal.field, message: rates.refusal.message });
  if (rates?.ok === true) problems.push(...misspelled(rates.value, `${at}.price`));
  return {
    name,
    kind,
    mayReason: entry.reasoning ?? true,
    fallbacks: entry.fallbacks ?? [],
    ...defined({
      rates: rates?.ok === true ? rates.value : undefined,
      maxOutputTokens: entry.max_output_tokens,
      compaction: entry.compaction,
      rateLimits: rateLimitsOf(entry.limits),
    }),
    facts: defined({ thinking: entry.thinking, minThinkingBudget: min, maxThinkingBudget: max }),
  };
}

const CLASSES: ReadonlySet<string> = new Set([...TOKEN_CLASSES, ...PIECE_CLASSES]);

/**
 * An unknown price key is the meter of a tool; one that resembles a known key is a mistake, which would give that class away.
 * `at`: the path of the price.
 */
function misspelled(rates: Rates, at: string): ConfigProblem[] {
  const named = (kind: string, modifiers: ReadonlyMap<string, Modifier> = new Map()): ConfigProblem[] =>
    [...modifiers].flatMap(([name, modifier]) => ('multiplier' in modifier ? [] : inTier(modifier, `${at}.${kind}.${name}`)));
  return [
    ...inTier(rates, at),
    ...named('service_tiers', rates.serviceTiers),
    ...named('speeds', rates.speeds),
    ...named('geos', rates.geos),
  ];
}

function inTier(tier: TierRates, at: string): ConfigProblem[] {
  return [...inTable(tier, at), ...(tier.longContext === undefined ? [] : inTable(tier.longContext, `${at}.long_context`))];
}

function inTable({ meters }: RateTable, at: string): ConfigProblem[] {
  return [...meters.keys()].flatMap((meter) => {
    const meant = closestMatch(meter, CLASSES);
    return meant === undefined ? [] : [{ path: `${at}.${meter}`, message: `is no price; did you mean ${meant}?` }];
  });
}
