/** What an exchange costs, from what it used: once, at its end, whatever ended it. */
import { isPlaceholder, type Usage } from '../../codecs/canonical/usage.ts';
import type { BillableUsage, Charge, chargeFor, RatesOf } from '../../store/charge.ts';
import type { Rates } from '../../store/prices.ts';
import type { AttemptEntry } from '../../store/request-log.ts';
import type { Channel, Config } from '../config/config.ts';
import { billableUsage } from './billable.ts';

export interface Used {
  readonly config: Config;
  readonly chargeFor: typeof chargeFor;
  /** Of the model that answers, as they were at admission. */
  readonly rates: Rates;
  /** The Channel that answered. */
  readonly channel?: Channel | undefined;
  readonly usage?: Usage | undefined;
  /** Of a fallback that failed, by its name. */
  readonly ratesOf: (model: string) => Rates;
  /** Every attempt, in order. */
  readonly attempts: readonly AttemptEntry[];
  /** For the charge, beside its own: what of the request no answer tells. */
  readonly flags?: readonly string[] | undefined;
}

export interface Bill {
  /** As the upstream reported it, or as it was counted; placeholder zeros are no report. */
  readonly reported?: Usage | undefined;
  readonly billed?: BillableUsage | undefined;
  readonly charge?: Charge | undefined;
}

export function billOf({ config, chargeFor: charged, rates, ratesOf, channel, usage, attempts, flags = [] }: Used): Bill {
  const reported = usage === undefined || isPlaceholder(usage) ? undefined : usage;
  const mayFail = channel === undefined && config.chargeFailures === 'reported';
  const failed = reported === undefined && mayFail ? ofFailedAttempts(attempts) : undefined;
  const billed = reported === undefined ? failed?.usage : billableUsage(reported);
  if (billed === undefined) return { reported };
  const its = failed?.model === undefined ? rates : ratesOf(failed.model);
  const charge = charged(billed, its, ratesOfUpstreamModel(config, channel === undefined ? [] : [channel]));
  const more = [...flags, ...(reported?.flags ?? []), ...(reported?.estimated === true ? ['estimated'] : [])];
  return { reported, billed, charge: { ...charge, flags: [...charge.flags, ...more] } };
}

/** The last failed attempt that reported what it used: billed where no attempt was answered. */
function ofFailedAttempts(attempts: readonly AttemptEntry[]): AttemptEntry | undefined {
  return attempts.findLast(({ usage }) => usage !== undefined);
}

/** Vendors name the same model with and without the day of its making. */
const DAY = /-\d{8}$/;

/**
 * Of the logical model that one of these Channels calls so, else of the logical model of that name; in both cases also without
 * the day at its end. Undefined: it has no price of ours.
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
