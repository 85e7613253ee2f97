/**
 * The models that an exchange may be answered by: the one that was asked for, then its fallbacks, each with its Channels,
 * estimate and price.
 */
import { GatewayError } from '../../codecs/canonical/error.ts';
import type { Principal } from '../../store/keys.ts';
import type { Rates } from '../../store/prices.ts';
import type { Channel, Config, Model } from '../config/config.ts';
import type { Accepted } from '../dispatch/accepted.ts';
import { dispatch } from '../dispatch/dispatch.ts';
import type { Attempt, Dispatcher, Plan } from '../dispatch/plan.ts';
import type { AttemptEntry } from '../../store/request-log.ts';
import { toGatewayError } from '../errors.ts';
import { checkModel, type Estimate, estimateNanos } from './admit.ts';

export interface Candidate {
  readonly model: Model;
  readonly channels: readonly Channel[];
  readonly estimate: Estimate;
  /** For the charge, where this model answers: what of the request changes its vendor's price and no answer tells. */
  readonly flags?: readonly string[];
}

/**
 * The fallbacks of a model that key and class may use, and whose Channels can take the request. `candidate` throws where none
 * can, or where something of the request has no price with that model.
 */
export function fallbacksOf(
  config: Config,
  principal: Principal,
  model: Model,
  candidate: (fallback: Model) => Omit<Candidate, 'model'>,
): readonly Candidate[] {
  return model.fallbacks.flatMap((name) => {
    try {
      const fallback = checkModel(config, principal, name, model.kind);
      return fallback.rates === undefined ? [] : [{ model: fallback, ...candidate(fallback) }];
    } catch (thrown) {
      if (thrown instanceof GatewayError) return [];
      throw thrown;
    }
  });
}

/**
 * Undefined where no Channel of the model is in service and its fallbacks are tried all the same; without a fallback it throws.
 */
export function inService<Found>(model: Model, find: () => Found): Found | undefined {
  try {
    return find();
  } catch (thrown) {
    if (thrown instanceof GatewayError && thrown.code === 'no_healthy_upstream' && model.fallbacks.length > 0) return undefined;
    throw thrown;
  }
}

/** The most that any of them may cost. */
export function dearestNanos(candidates: readonly { readonly estimate: Estimate; readonly rates: Rates | undefined }[]): bigint {
  const costs = candidates.map(({ estimate, rates }) => (rates === undefined ? 0n : estimateNanos(estimate, rates)));
  return costs.reduce((most, cost) => (cost > most ? cost : most), 0n);
}

/** {@link Candidate.flags} of the model that answers: that which was asked for, or one of its fallbacks. */
export function flagsOf(
  answering: Model,
  { fallbacks = [], ...own }: Pick<Candidate, 'model' | 'flags'> & { readonly fallbacks?: readonly Candidate[] },
): readonly string[] | undefined {
  return [own, ...fallbacks].find(({ model }) => model === answering)?.flags;
}

/** An answer, and the model that gave it. */
export interface Answering<Answer> {
  readonly accepted: Accepted<Answer>;
  readonly model: Model;
}

/**
 * Tries each model in turn, all Channels of one before the next. Rejects with the error of the first, which is the model that the
 * client knows, or with one after which none is tried. A model is only followed by another where its Channels failed, or could
 * not be asked: never where the request is wrong, may already be under way, or has nobody left who waits.
 */
export async function dispatchInTurn<Answer>(
  plan: Plan,
  candidates: readonly Omit<Candidate, 'estimate'>[],
  attempt: Attempt<Answer>,
  dispatcher: Dispatcher,
  attempts: AttemptEntry[],
): Promise<Answering<Answer>> {
  let first: unknown;
  for (const [index, { model, channels }] of candidates.entries()) {
    try {
      const own = index === 0 ? plan : fallbackPlan(plan, model, channels);
      return { accepted: await dispatch(own, attempt, dispatcher, attempts), model };
    } catch (thrown) {
      first ??= thrown;
      if (!mayFallBack(thrown, plan.signal)) throw thrown;
    }
  }
  throw first;
}

/**
 * The conversation of a fallback has a Channel of its own, so that the model that was asked for keeps the one with its prompt
 * cache.
 */
function fallbackPlan(plan: Plan, model: Model, channels: readonly Channel[]): Plan {
  const { circuit, conversation, ...rest } = plan;
  return {
    ...rest,
    ...{ channels, model: model.name, isFallback: true },
    ...(circuit === undefined ? {} : { circuit: model.name + circuit.slice(plan.model.length) }),
    ...(conversation === undefined ? {} : { conversation: `${conversation} ${model.name}` }),
  };
}

const FAILED: ReadonlySet<string> = new Set(['upstream_error', 'no_healthy_upstream', 'overloaded']);

function mayFallBack(thrown: unknown, signal: AbortSignal): boolean {
  const { code, status, details } = toGatewayError(thrown);
  return !signal.aborted && details.lost !== true && status >= 500 && FAILED.has(code);
}
