/**
 * `GET /v1/models` and `GET /v1/models/{id}`: what the calling key may use. Health is ignored, so that a list does not flicker;
 * unpriced models are not offered. An entry has the members that the SDKs of both families read.
 */
import { GatewayError } from '../../codecs/canonical/error.ts';
import type { Principal } from '../../store/keys.ts';
import type { Config, Model } from '../config/config.ts';
import { channelsOfModel } from '../dispatch/candidates.ts';
import { checkModel } from '../exchange/admit.ts';
import { Waiting } from '../exchange/reply.ts';
import type { Call, Handler } from '../gateway.ts';
import { principalOf } from '../request/authenticate.ts';

export const models: Handler = async (call) => {
  const { config } = call;
  const principal = await principalOf(call);
  const { models } = principal.key;
  const allowed = models === undefined ? undefined : new Set(models);
  const data = offeredTo(config, principal).filter(({ id }) => allowed?.has(id) ?? true);
  answer(call, {
    object: 'list',
    data,
    has_more: false,
    first_id: data.at(0)?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
  });
};

/** Throws `model_not_allowed`, or `model_not_found` for whatever the list does not hold. */
export const model: Handler = async (call) => {
  const { config, id = '' } = call;
  const principal = await principalOf(call);
  const found = checkModel(config, principal, id);
  if (!isOffered(config, principal, found))
    throw new GatewayError('model_not_found', 'The model is not offered.', { param: 'model' });
  answer(call, entryOf(config, found));
};

/** By configuration and class: with thousands of models, to look through all Channels for each takes tens of milliseconds. */
const OFFERED = new WeakMap<Config, Map<string, readonly Entry[]>>();

/** By name. */
function offeredTo(config: Config, principal: Principal): readonly Entry[] {
  const ofClasses = OFFERED.get(config) ?? new Map<string, readonly Entry[]>();
  OFFERED.set(config, ofClasses);
  const { class: of } = principal.account;
  const known = ofClasses.get(of);
  if (known !== undefined) return known;
  const offered = [...config.models.values()]
    .filter((model) => isOffered(config, principal, model))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map((model) => entryOf(config, model));
  ofClasses.set(of, offered);
  return offered;
}

type Entry = ReturnType<typeof entryOf>;

function isOffered(config: Config, { account }: Principal, { name, rates }: Model): boolean {
  return rates !== undefined && channelsOfModel(config, name, account.class).length > 0;
}

function entryOf({ loadedAtMs }: Config, { name }: Model) {
  const seconds = Math.floor(loadedAtMs / 1000);
  return {
    id: name,
    object: 'model',
    created: seconds,
    owned_by: 'mizu',
    type: 'model',
    display_name: name,
    created_at: new Date(seconds * 1000).toISOString(),
  };
}

function answer(call: Call, body: object): void {
  new Waiting(call).answer({ status: 200, body: JSON.stringify(body) });
}
