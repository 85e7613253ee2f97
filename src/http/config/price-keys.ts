/** An unknown price key is the meter of a tool; one that resembles a known key is a mistake, which would give that class away. */
import { type Modifier, PIECE_CLASSES, type Rates, type RateTable, type TierRates, TOKEN_CLASSES } from '../../store/prices.ts';
import type { ConfigProblem } from './config-error.ts';
import { closestMatch } from './suggest-key.ts';

const CLASSES: ReadonlySet<string> = new Set([...TOKEN_CLASSES, ...PIECE_CLASSES]);

/** `at`: the path of the price. */
export function misspelled(rates: Rates, at: string): ConfigProblem[] {
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
