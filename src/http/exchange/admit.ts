/**
 * The checks before a request is dispatched, in the order of the design: the key's models, existence, price, balance, spend
 * windows and limits by time. Takes the reservation that bounds what is in flight. Knows no dialect.
 */
import { GatewayError } from '../../codecs/canonical/error.ts';
import type { Principal } from '../../store/keys.ts';
import type { ModelKind, Rates } from '../../store/prices.ts';
import type { Reservation } from '../../store/reservations.ts';
import { fromStore } from '../from-store.ts';
import type { Config, Model } from '../config/config.ts';
import type { Demand } from '../limits/buckets.ts';
import { takeLimits } from '../limits/take-limits.ts';
import { classHasModel } from '../dispatch/candidates.ts';
import type { Call, CallContext, Gateway } from '../gateway.ts';

/** Whole numbers. */
export interface Estimate {
  /** Tokens of the request, roughly. */
  readonly input: number;
  /** The most that the answer may cost. */
  readonly output: number;
  /** Tokens of pictures, beside `output`. */
  readonly imageOutput?: number;
}

/**
 * The model, where the key may use it, the account's class has it and it is of the endpoint's kind. Throws `model_not_allowed`,
 * `model_not_found` or `model_kind_mismatch`.
 */
export function checkModel(config: Config, principal: Principal, name: string, kind?: ModelKind): Model {
  const { models } = principal.key;
  if (models !== undefined && !models.includes(name)) {
    throw new GatewayError('model_not_allowed', 'This API key may not use this model.', { param: 'model' });
  }
  const model = config.models.get(name);
  if (model === undefined || !classHasModel(config, name, principal.account.class)) {
    throw new GatewayError('model_not_found', `The model ${quote(name)} does not exist.`, { param: 'model' });
  }
  if (kind !== undefined && model.kind !== kind) throw kindMismatch(model, kind);
  return model;
}

/** A 400, since no repetition helps: `no_healthy_upstream` would be repeated. */
export function kindMismatch({ name, kind }: Model, wanted: ModelKind): GatewayError {
  return new GatewayError(
    'model_kind_mismatch',
    `The model ${quote(name)} is of kind ${kind}: this endpoint serves ${wanted} models.`,
    { param: 'model' },
  );
}

/** The rates are a snapshot: a price that changes during the exchange does not change its charge. */
export interface Reserved {
  readonly rates: Rates;
  readonly reservation: Reservation;
}

/**
 * `nanos`: what to set aside, given the rates of the model. Throws `model_pricing_required`, `insufficient_balance` or
 * `api_key_spend_limit_reached`, and StoreError where the store is unwell.
 */
export async function reserve(
  { store, clock }: Gateway,
  principal: Principal,
  model: Model,
  nanos: (rates: Rates) => bigint,
): Promise<Reserved> {
  const { rates } = model;
  if (rates === undefined) {
    throw new GatewayError('model_pricing_required', `The model ${quote(model.name)} has no price.`);
  }
  const admitting = store.admission.admit(principal, nanos(rates), clock.now());
  const admitted = admitting instanceof Promise ? await inTime(clock, admitting) : admitting;
  if (admitted.ok) return { rates, reservation: admitted.value };
  if (admitted.refusal.reason === 'insufficient_balance') {
    throw new GatewayError('insufficient_balance', 'The balance is too low.');
  }
  throw new GatewayError('api_key_spend_limit_reached', `The ${admitted.refusal.window} spend limit of this API key is used up.`);
}

type Admitting = Awaited<ReturnType<Gateway['store']['admission']['admit']>>;

function inTime(clock: Gateway['clock'], admitting: Promise<Admitting>): Promise<Admitting> {
  return fromStore(clock, admitting).catch((thrown: unknown) => {
    // Nobody is left to give back what the store may still reserve.
    admitting.then((late) => late.ok && late.value.release()).catch(() => undefined);
    throw thrown;
  });
}

/**
 * The limits by time of the key, its account, the model and the account's class: undefined where there are none. Rejects with
 * `rate_limit_exceeded`.
 */
export function limited(call: CallContext | Call, principal: Principal, model: Model, demand: Demand): Promise<void> | undefined {
  const taking = takeLimits(call, principal, model, demand);
  return (
    taking &&
    fromStore(call.gateway.clock, taking).catch((thrown: unknown) => {
      // The caller is told what was thrown; what is still taken for it later is given back.
      taking.then(() => call.notes.limit?.release()).catch(() => undefined);
      throw thrown;
    })
  );
}

/** A rough upper bound: the estimated input, and the output up to its cap. */
export function estimateNanos(estimate: Estimate, rates: Rates): bigint {
  const input = rates.tokens.get('input') ?? 0n;
  const output = rates.tokens.get('output') ?? 0n;
  const picture = rates.tokens.get('image_output') ?? output;
  const piece = rates.pieces.get('image') ?? 0n;
  const tokens = BigInt(estimate.input) * input + BigInt(estimate.output) * output + BigInt(estimate.imageOutput ?? 0) * picture;
  return tokens / 1_000_000n + piece;
}

/** A client's own text, short enough to be quoted in a message. */
function quote(name: string): string {
  return JSON.stringify(name.length > 100 ? `${name.slice(0, 100)}…` : name);
}
