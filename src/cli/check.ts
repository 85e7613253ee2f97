/**
 * `mizu check`: reads the configuration as `serve` would, and reports what it found, without secrets. What is valid but hardly intended (a model
 * that no channel serves, a misspelled price key) is a note.
 */
import type { ChannelType } from '../codecs/canonical/dialect.ts';
import { EMBEDDING_TYPES } from '../codecs/embeddings/index.ts';
import { IMAGE_UPSTREAMS } from '../codecs/images/index.ts';
import { PIECE_CLASSES, type Rates, type RateTable, type TierRates, TOKEN_CLASSES } from '../store/prices.ts';
import type { Channel, Config, Model } from '../http/config/config.ts';
import { ConfigError, joinPath } from '../http/config/config-error.ts';
import { closestMatch } from '../http/config/suggest-key.ts';
import { routeOf } from '../http/videos/video-channel.ts';
import { report, allowOnly, type Verb, type VerbContext } from './verb.ts';

export function checkVerb(textTypes: ReadonlySet<ChannelType>): Verb {
  return async (context) => {
    allowOnly(context, 'check', 0);
    const config = readConfig(context);
    if (config === undefined) return 1;
    const models = [...config.models.values()];
    const notes = [
      ...models.filter(({ rates }) => rates === undefined).map(({ name }) => `model ${name} has no price: it is not offered`),
      ...models.flatMap((model) => unserved(config, model, textTypes)),
      ...config.channels.flatMap(misread),
      ...models.flatMap(({ name, rates }) => (rates === undefined ? [] : doubtful(rates, joinPath(['models', name, 'price'])))),
    ];
    const channels = config.channels.map(({ id, type, origin, models: own }) => ({ id, type, origin, models: [...own.keys()] }));
    const head = `the configuration is valid: ${counted(channels.length, 'channel')}, ${counted(models.length, 'model')}`;
    report(context, { valid: true, channels, models: [...config.models.keys()], notes }, [head, ...notes].join('\n'));
    return 0;
  };
}

/** Undefined when it is not valid and `--json` reported that; without `--json` the error is thrown. */
function readConfig(context: VerbContext): Config | undefined {
  try {
    return context.config();
  } catch (thrown) {
    if (!context.json || !(thrown instanceof ConfigError)) throw thrown;
    report(context, { valid: false, problems: thrown.problems }, thrown.message);
    return undefined;
  }
}

function unserved(config: Config, { name, kind }: Model, textTypes: ReadonlySet<ChannelType>): string[] {
  const channels = config.channels.filter(({ weight, models }) => weight > 0 && models.has(name));
  if (channels.length === 0) return [`model ${name} is served by no channel`];
  const can = {
    text: ({ type }: Channel) => textTypes.has(type),
    embedding: ({ type }: Channel) => EMBEDDING_TYPES.has(type),
    image: ({ type, image }: Channel) => IMAGE_UPSTREAMS.has(type) && (!textTypes.has(type) || image.generationTool),
    video: (channel: Channel) => routeOf(channel, name) !== undefined,
  }[kind];
  return channels.some(can) ? [] : [`model ${name} is served by no channel that can answer a model of kind ${kind}`];
}

/** Endpoint paths that vendors' documentation shows at the end of an address. */
const ENDPOINT = /\/(?:completions|responses|messages|embeddings|generations|edits|models|tasks|video_generation)$/;

/** How shells, other gateways and a forgotten brace name a variable. */
const VARIABLE = /^(?:\$\w+|\$\{.*|\{env:.*\}|%\w+%|os\.environ\/.*)$/;

/** Values of a channel that are valid but hardly intended. */
function misread({ id, basePath, options, apiKey }: Channel): string[] {
  const endpoint = options.path === undefined ? ENDPOINT.exec(basePath)?.[0] : undefined;
  return [
    ...(endpoint === undefined
      ? []
      : [`channel ${id}: base_url ends in ${endpoint}, but the gateway appends the endpoint itself`]),
    ...(VARIABLE.test(apiKey ?? '') ? [`channel ${id}: api_key is used as written; write \${NAME} to read a variable`] : []),
  ];
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

const CLASSES: ReadonlySet<string> = new Set([...TOKEN_CLASSES, ...PIECE_CLASSES]);

/** An unknown price key is the meter of a tool; one that is similar to a known key is probably misspelled. */
function doubtful(rates: Rates, at: string): string[] {
  const inTable = ({ meters }: RateTable, place: string): string[] =>
    [...meters.keys()].flatMap((meter) => {
      const meant = closestMatch(meter, CLASSES);
      return meant === undefined ? [] : [`${place}.${meter} is the price of a tool; did you mean ${meant}?`];
    });
  const inTier = (tier: TierRates, place: string): string[] => [
    ...inTable(tier, place),
    ...(tier.longContext === undefined ? [] : inTable(tier.longContext, `${place}.long_context`)),
  ];
  const tiers = [...rates.serviceTiers].flatMap(([name, tier]) => inTier(tier, `${at}.service_tiers.${name}`));
  return [...inTier(rates, at), ...tiers];
}
