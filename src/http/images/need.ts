/**
 * Which Channels can serve an image request. Everything that would be an error on each of them is an error before anything is
 * forwarded.
 */
import type { ChannelType } from '../../codecs/canonical/dialect.ts';
import { firstReference, IMAGE_UPSTREAMS, type ImageRequest } from '../../codecs/images/index.ts';
import type { Channel, Config, Model } from '../config/config.ts';
import { channelsOfModel, eligibleChannels } from '../dispatch/candidates.ts';
import type { Health } from '../dispatch/health.ts';
import { kindMismatch } from '../exchange/admit.ts';
import { noneFit } from '../dispatch/verdict.ts';

const ALL_TYPES: ReadonlySet<ChannelType> = new Set(IMAGE_UPSTREAMS.keys());
/** A text model draws where its Channel turns the image tool on. */
const TOOL_TYPES: ReadonlySet<ChannelType> = new Set(['responses']);

/** Throws `model_kind_mismatch`, `no_healthy_upstream`, or the 400 that every Channel would answer with. */
export function imageChannels(config: Config, accountClass: string, model: Model, request: ImageRequest): Channel[] {
  const types = typesFor(config, model);
  const typed = channelsOfModel(config, model.name, accountClass).filter(({ type }) => types.has(type));
  const refusals = new Map(typed.map((channel) => [channel, IMAGE_UPSTREAMS.get(channel.type)?.refuse(request, channel.image)]));
  const [first] = refusals.values();
  if (first !== undefined && [...refusals.values()].every((refusal) => refusal !== undefined)) throw first;
  const referenceAt = firstReference(request);
  return eligibleChannels(config, {
    model: model.name,
    accountClass,
    types,
    isCapable: (channel) => refusals.get(channel) === undefined,
    ...(referenceAt === undefined ? {} : { referenceAt }),
  });
}

/** Throws `model_kind_mismatch`. */
function typesFor(config: Config, model: Model): ReadonlySet<ChannelType> {
  if (model.kind === 'image') return ALL_TYPES;
  const channels = [...config.channels, ...config.disabledChannels].filter(({ models }) => models.has(model.name));
  if (model.kind !== 'text' || !channels.some(({ type }) => TOOL_TYPES.has(type))) throw kindMismatch(model, 'image');
  return TOOL_TYPES;
}

/** Known before a stream's 200 goes out: whether any of the Channels would be let through. */
export function checkAnyFit(channels: readonly Channel[], model: string, health: Health): void {
  if (channels.some(({ id }) => health.isFit(id, model))) return;
  throw noneFit(channels, model, health);
}
