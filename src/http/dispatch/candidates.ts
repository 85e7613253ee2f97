/**
 * Which Channels may serve a request, and in which order they are tried: priority, then weight, the conversation's own Channel
 * first. Knows nothing of what is sent.
 */
import type { ChannelType } from '../../codecs/canonical/dialect.ts';
import { GatewayError, notConvertible } from '../../codecs/canonical/error.ts';
import type { Channel, Config } from '../config/config.ts';

export interface Need {
  readonly model: string;
  readonly accountClass: string;
  /** Channel types that can serve this endpoint. */
  readonly types: ReadonlySet<ChannelType>;
  /**
   * What the endpoint needs beyond the type. It is true of one of these Channels at least: the endpoint knows the better refusal.
   */
  readonly isCapable?: (channel: Channel) => boolean;
  /** Path of the first private file reference in the client's body. */
  readonly referenceAt?: string;
  /** A member that only these types can honour, with its path. */
  readonly boundTo?: { readonly types: ReadonlySet<ChannelType>; readonly at: string };
}

/** Channels that the account's class may use for this model, whatever their type. */
export function channelsOfModel(config: Config, model: string, accountClass: string): Channel[] {
  return serving(config.channels, model).filter((channel) => channel.weight > 0 && isOfClass(channel, accountClass));
}

/** Whether the account's class has the model, be it that all its Channels were taken out of service for now. */
export function classHasModel(config: Config, model: string, accountClass: string): boolean {
  const isOf = (channel: Channel): boolean => isOfClass(channel, accountClass);
  return serving(config.channels, model).some(isOf) || serving(config.disabledChannels, model).some(isOf);
}

function isOfClass({ classes }: Channel, accountClass: string): boolean {
  return classes?.has(accountClass) ?? true;
}

type ByModel = ReadonlyMap<string, readonly Channel[]>;

/** Made by the first request after a reload: no request goes through the Channels of all models. */
const BY_MODEL = new WeakMap<readonly Channel[], ByModel>();

function serving(channels: readonly Channel[], model: string): readonly Channel[] {
  let known = BY_MODEL.get(channels);
  if (known === undefined) {
    known = byModel(channels);
    BY_MODEL.set(channels, known);
  }
  return known.get(model) ?? NO_CHANNELS;
}

const NO_CHANNELS: readonly Channel[] = [];

function byModel(channels: readonly Channel[]): ByModel {
  const found = new Map<string, Channel[]>();
  for (const channel of channels) {
    for (const model of channel.models.keys()) {
      const before = found.get(model);
      if (before === undefined) found.set(model, [channel]);
      else before.push(channel);
    }
  }
  return found;
}

/** Throws `no_healthy_upstream` with the reason, or a 400 naming the path that no Channel can honour. */
export function eligibleChannels(config: Config, need: Need): Channel[] {
  const all = channelsOfModel(config, need.model, need.accountClass);
  if (all.length === 0) throw unfit(`No upstream of the model ${need.model} is in service.`);
  const typed = all.filter(({ type }) => need.types.has(type));
  if (typed.length === 0) throw unfit(`No upstream of the model ${need.model} serves this endpoint.`);
  const { isCapable, boundTo, referenceAt } = need;
  let fit = isCapable === undefined ? typed : typed.filter(isCapable);
  if (boundTo !== undefined) {
    fit = fit.filter(({ type }) => boundTo.types.has(type));
    if (fit.length === 0) throw notConvertible(boundTo.at, `No upstream of the model ${need.model} supports ${boundTo.at}.`);
  }
  if (referenceAt !== undefined) checkFileScope(fit, referenceAt);
  return fit;
}

function unfit(message: string): GatewayError {
  return new GatewayError('no_healthy_upstream', message);
}

/** A file id means something with one vendor and credential only, so every Channel that could be chosen must share the scope. */
function checkFileScope(channels: readonly Channel[], at: string): void {
  const scopes = new Set(channels.map(({ fileScope }) => fileScope));
  if (scopes.size === 1 && !scopes.has(undefined)) return;
  throw notConvertible(at, 'A private file reference cannot be routed: send the file as content or as a public URL.');
}

export interface OrderOptions {
  /** The Channel that answered this conversation before. */
  readonly preferred?: string;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/** Lower priority numbers first; within one, a weighted draw without replacement. */
export function orderChannels(channels: readonly Channel[], options: OrderOptions): Channel[] {
  if (channels.length === 1) return [...channels];
  const drawn = channels.map((channel) => ({ channel, rank: -Math.log(1 - options.random()) / channel.weight }));
  drawn.sort((a, b) => a.channel.priority - b.channel.priority || a.rank - b.rank);
  const ordered = drawn.map(({ channel }) => channel);
  const index = ordered.findIndex(({ id }) => id === options.preferred);
  if (index > 0) ordered.unshift(...ordered.splice(index, 1));
  return ordered;
}
