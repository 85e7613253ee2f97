/**
 * `mizu check`: reads the configuration as `serve` would, and reports what it found, without secrets. What is valid but hardly
 * intended (a model that no channel serves, an address with an endpoint in it) is a note, and so is where a price of the price
 * book comes from.
 */
import type { ChannelType } from '../codecs/canonical/dialect.ts';
import { EMBEDDING_TYPES } from '../codecs/embeddings/index.ts';
import { IMAGE_UPSTREAMS } from '../codecs/images/index.ts';
import type { BookSource, Channel, Config, Model } from '../http/config/config.ts';
import { ConfigError, type ConfigProblem } from '../http/config/config-error.ts';
import { routeOf } from '../http/videos/video-channel.ts';
import { Nothing } from '../http/admin/requests.ts';
import { type Verb, type VerbContext, verb } from './verb.ts';

/** Either what stands in it, or what is wrong with it. */
export type Checked =
  | {
      readonly valid: true;
      readonly channels: readonly {
        readonly id: string;
        readonly type: string;
        readonly origin: string;
        readonly models: string[];
      }[];
      readonly models: readonly string[];
      /** What is valid but hardly intended. */
      readonly notes: readonly string[];
    }
  | { readonly valid: false; readonly problems: readonly ConfigProblem[] };

export async function checkConfig(context: VerbContext, textTypes: ReadonlySet<ChannelType>): Promise<Checked> {
  let config: Config;
  try {
    config = context.config();
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown;
    return { valid: false, problems: thrown.problems };
  }
  const models = [...config.models.values()];
  const notes = [
    ...models.filter(({ rates }) => rates === undefined).map(({ name }) => `model ${name} has no price: it is not offered`),
    ...models.flatMap((model) => unserved(config, model, textTypes)),
    ...config.channels.flatMap(misread),
    ...models.flatMap(({ name, bookPrice }) => (bookPrice === undefined ? [] : [fromBook(name, bookPrice)])),
  ];
  const channels = config.channels.map(({ id, type, origin, models: own }) => ({ id, type, origin, models: [...own.keys()] }));
  return { valid: true, channels, models: [...config.models.keys()], notes };
}

/** Throws ConfigError: what is wrong goes where errors go. */
function textOf(checked: Checked): string {
  if (!checked.valid) throw new ConfigError(checked.problems);
  const { channels, models, notes } = checked;
  const head = `the configuration is valid: ${counted(channels.length, 'channel')}, ${counted(models.length, 'model')}`;
  return [head, ...notes].join('\n');
}

export function checkVerb(textTypes: ReadonlySet<ChannelType>): Verb {
  return verb({
    name: 'check',
    usage: '',
    does: 'Checks the configuration: names every mistake with its path, and what is worth a look. Exit code 1 where there is a mistake.',
    options: Nothing,
    run: (context) => checkConfig(context, textTypes),
    text: textOf,
    code: ({ valid }) => (valid ? 0 : 1),
  });
}

function fromBook(name: string, { entry, ignored }: BookSource): string {
  const left = ignored.length === 0 ? '' : `; it has no place for ${ignored.join(', ')}`;
  return `model ${name} has the price of ${entry} in the price book${left}`;
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
