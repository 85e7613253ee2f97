/**
 * The list of prices that the pages show: every priced model that an account of the class `default` may use, read from the same
 * rates that are charged.
 */
import type { Config, Model } from '../http/config/config.ts';
import type { ConfigSource } from '../http/config/source.ts';
import { channelsOfModel } from '../http/dispatch/candidates.ts';
import type { LongContextPrices, PricedModel, PriceList, PriceModifier, PricesByKey } from '../pages/price-list.ts';
import { DEFAULT_CLASS } from '../store/accounts.ts';
import { formatUsd } from '../store/money.ts';
import type { LongContextRates, Modifier, Rates, RateTable } from '../store/prices.ts';

export function priceListOf(config: Config, inForceSinceMs: number = config.loadedAtMs): PriceList {
  const models = [...config.models.values()]
    .flatMap((model) => (model.rates !== undefined && isPublic(config, model) ? [pricedModel(model, model.rates)] : []))
    .sort((a, b) => (a.id < b.id ? -1 : 1));
  return { updatedAt: new Date(inForceSinceMs).toISOString(), models };
}

/** Models that only some classes may use are not shown in public. */
function isPublic(config: Config, { name }: Model): boolean {
  return channelsOfModel(config, name, DEFAULT_CLASS).length > 0;
}

/**
 * The current list, made once for each configuration. A reload that changes no price keeps `updatedAt`, and a clock that went
 * back does not take it back.
 */
export function createPriceLists(source: ConfigSource): () => PriceList {
  let revision = source.current().revision;
  let sinceMs = source.current().loadedAtMs;
  let list = priceListOf(source.current());
  return () => {
    const config = source.current();
    if (config.revision === revision) return list;
    revision = config.revision;
    const next = priceListOf(config);
    if (JSON.stringify(next.models) !== JSON.stringify(list.models)) {
      sinceMs = Math.max(sinceMs, config.loadedAtMs);
      list = priceListOf(config, sinceMs);
    }
    return list;
  };
}

export function pricedModel({ name, kind }: Model, rates: Rates): PricedModel {
  const { serviceTiers, longContext, speeds, geos } = rates;
  const tiersWithLong = [...serviceTiers].flatMap(([tier, { longContext: long }]) =>
    long === undefined ? [] : [[tier, longPrices(long)] as const],
  );
  return {
    id: name,
    kind,
    prices: pricesByKey(rates),
    ...(longContext === undefined ? {} : { longContext: longPrices(longContext) }),
    ...(serviceTiers.size === 0
      ? {}
      : { serviceTiers: Object.fromEntries([...serviceTiers].map(([tier, table]) => [tier, pricesByKey(table)])) }),
    ...(tiersWithLong.length === 0 ? {} : { serviceTierLongContext: Object.fromEntries(tiersWithLong) }),
    ...(speeds === undefined ? {} : { speeds: modifiersByName(speeds) }),
    ...(geos === undefined ? {} : { geos: modifiersByName(geos) }),
  };
}

function modifiersByName(modifiers: ReadonlyMap<string, Modifier>): Record<string, PriceModifier> {
  return Object.fromEntries([...modifiers].map(([name, modifier]) => [name, priceModifier(modifier)]));
}

function priceModifier(modifier: Modifier): PriceModifier {
  if ('multiplier' in modifier) return { multiplier: modifier.multiplier.text };
  const { longContext } = modifier;
  return { prices: pricesByKey(modifier), ...(longContext === undefined ? {} : { longContext: longPrices(longContext) }) };
}

function longPrices(long: LongContextRates): LongContextPrices {
  return { above: long.above, prices: pricesByKey(long) };
}

function pricesByKey({ tokens, pieces, meters }: RateTable): PricesByKey {
  return Object.fromEntries([...tokens, ...pieces, ...meters].map(([key, nanos]) => [key, formatUsd(nanos)]));
}
