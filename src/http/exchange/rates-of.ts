/** The price of a model that an upstream names: in its answer, or for a request that lets it answer with another model. */
import type { RatesOf } from '../../store/charge.ts';
import type { Rates } from '../../store/prices.ts';
import type { Channel, Config } from '../config/config.ts';

/** Vendors name the same model with and without the day of its making. */
const DAY = /-\d{8}$/;

/**
 * Of the logical model that one of these Channels calls so, else of the logical model of that name; in both cases also without the day at its
 * end. Undefined: it has no price of ours.
 */
export function ratesOfUpstreamModel(config: Config, channels: readonly Pick<Channel, 'models'>[]): RatesOf {
  return (upstreamModel) => {
    for (const name of new Set([upstreamModel, upstreamModel.replace(DAY, '')])) {
      const rates = ofChannels(config, channels, name) ?? config.models.get(name)?.rates;
      if (rates !== undefined) return rates;
    }
    return undefined;
  };
}

function ofChannels(config: Config, channels: readonly Pick<Channel, 'models'>[], name: string): Rates | undefined {
  for (const { models } of channels) {
    for (const [logical, upstream] of models) {
      const rates = upstream === name || upstream.replace(DAY, '') === name ? config.models.get(logical)?.rates : undefined;
      if (rates !== undefined) return rates;
    }
  }
  return undefined;
}
