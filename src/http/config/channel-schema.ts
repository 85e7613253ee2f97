/**
 * The shape of one entry of `channels`: what every Channel has, and the options of its type. An option stands with the types that
 * read it, so that `check` refuses it everywhere else.
 */
import { type TObject, type TProperties, Type } from 'typebox';
import type { ChannelType } from '../../codecs/canonical/dialect.ts';
import { PLATFORM_ADDRESS, PLATFORM_OPTIONS } from './platform-schemas.ts';
import { closed, HeaderName, Milliseconds, section, Text, withDefault } from './schema-terms.ts';

/** How much a Channel is asked, and what is changed of its requests. */
const common = {
  headers: withDefault(
    Type.Record(Type.String({ pattern: HeaderName }), Type.Union([Type.String(), Type.Null()]), {
      description: 'Headers to set; `null` leaves one out. An `anthropic-beta` is added to those of the client.',
    }),
    {},
  ),
  parameters: withDefault(Type.Record(Type.String(), Type.Unknown(), { description: 'Top-level body members to set.' }), {}),
  drop_parameters: withDefault(
    Type.Array(Text('A top-level body member.'), { description: 'Top-level body members that are left out.' }),
    [],
  ),
  proxy: Type.Optional(Type.String({ pattern: '^https?://', description: 'HTTP proxy to the upstream.' })),
  ca: Type.Optional(Text('PEM certificates to trust instead of the system’s; best read from a file, as secrets are.')),
  max_concurrency: Type.Optional(
    Type.Integer({ minimum: 1, description: 'The most exchanges (submissions of videos) at once. More of them wait.' }),
  ),
  max_queue: withDefault(
    Type.Integer({ minimum: 0, description: 'How many may wait for `max_concurrency`. More of them go to the next Channel.' }),
    100,
  ),
  queue_ms: Milliseconds('How long one may wait for `max_concurrency`.', 10_000),
  retries: withDefault(
    Type.Integer({
      minimum: 0,
      maximum: 5,
      description:
        'How often a request is repeated after 408, 429, 5xx and lost connections, once every Channel has failed. Repeats are at most a fifth of the Channel’s load. Videos: only what was certainly not taken.',
    }),
    0,
  ),
};

/** How a Channel is reached; behind a platform that is the platform's own affair. */
const connection = {
  auth: Type.Optional(
    Type.Union([Type.Literal('bearer'), Type.Literal('x-api-key'), Type.Literal('x-goog-api-key'), Type.Literal('none')], {
      description: 'How the key is sent. If absent, as the vendor of the Channel’s type wants it.',
    }),
  ),
  ...common,
};

const forward_headers = withDefault(
  Type.Array(Type.String({ pattern: HeaderName }), {
    description: 'Client headers that are passed on beside those of the protocol.',
  }),
  [],
);

/** Of Channels that are asked while a client waits. */
const synchronous = {
  ...connection,
  path: Type.Optional(
    Type.String({
      pattern: '^/',
      description: 'Replaces the whole path after the origin. `{model}` stands for the upstream model.',
    }),
  ),
  forward_headers,
};
/** The same behind a platform. */
const hosted = { ...common, forward_headers };

const replay_reasoning_content = withDefault(
  Type.Boolean({
    description: 'Send `reasoning_content` of the history back; on messages Channels, thinking without a signature.',
  }),
  false,
);
const lower_custom_tools = withDefault(
  Type.Boolean({ description: 'Turn freeform custom tools into functions with one string.' }),
  false,
);

const compaction = Type.Optional(
  Type.Literal('summary', {
    description: 'Serve `/v1/responses/compact` by asking the model for a summary, for upstreams without compaction.',
  }),
);

const cache_breakpoints = Type.Optional(
  Type.Literal('auto', {
    description: 'Set cache breakpoints where the client set none: behind the instructions and the last two turns of the user.',
  }),
);

const pictures = {
  size: Type.Optional(Type.String({ description: 'The size of a picture.' })),
  quality: Type.Optional(Type.String({ description: 'Its quality.' })),
  background: Type.Optional(Type.String({ description: 'Its background.' })),
  output_format: Type.Optional(Type.String({ description: 'Its format.' })),
};
const moderation = Type.Optional(Type.String({ description: 'How strictly the vendor moderates.' }));
const IMAGE_DEFAULTS = { ...closed, description: 'What a request for pictures is sent with where it does not say.' };
const image_defaults = withDefault(Type.Object({ ...pictures, moderation }, IMAGE_DEFAULTS), {});
/** The router's own document knows no moderation. */
const router_image_defaults = withDefault(Type.Object(pictures, IMAGE_DEFAULTS), {});

const videos = {
  ...connection,
  poll_interval_ms: Milliseconds('The time between two polls of a task.', 5_000),
};

/** What the types that platforms serve read, wherever they are reached. */
const OWN = {
  chat_completion: {
    legacy_output_cap: withDefault(Type.Boolean({ description: 'Send `max_tokens` instead of `max_completion_tokens`.' }), false),
    replay_reasoning_content,
    accept_done_without_finish: withDefault(
      Type.Boolean({ description: 'Accept `[DONE]` without a finish reason as a good ending.' }),
      false,
    ),
    developer_as_system: withDefault(
      Type.Boolean({ description: 'Send messages of the role `developer` as `system`, for upstreams that do not know it.' }),
      false,
    ),
    lower_custom_tools,
    compaction,
    cache_breakpoints,
    router_cache_control: withDefault(
      Type.Boolean({
        description:
          'Send cache breakpoints as `cache_control`, as OpenRouter and Alibaba read them, in place of OpenAI’s member.',
      }),
      false,
    ),
  },
  responses: {
    compaction,
    cache_breakpoints,
    image_enable_openai_generation_tool: withDefault(
      Type.Boolean({ description: 'Serve the image endpoints by means of the image tool.' }),
      false,
    ),
    image_defaults,
  },
  messages: { replay_reasoning_content, lower_custom_tools, compaction, cache_breakpoints },
  gemini: { lower_custom_tools, compaction },
  openai_image: { image_defaults },
};

const websocket = withDefault(
  Type.Boolean({
    description:
      'Ask the turns of WebSocket clients over a WebSocket of the upstream, so that they can steer answers. An upstream that opens none is asked over HTTP.',
  }),
  false,
);

const OPTIONS = {
  chat_completion: Type.Object({ ...synchronous, ...OWN.chat_completion }, closed),
  responses: Type.Object({ ...synchronous, ...OWN.responses, websocket }, closed),
  messages: Type.Object({ ...synchronous, ...OWN.messages }, closed),
  gemini: Type.Object({ ...synchronous, ...OWN.gemini }, closed),
  openai_image: Type.Object({ ...synchronous, ...OWN.openai_image }, closed),
  openrouter_image: Type.Object({ ...synchronous, image_defaults: router_image_defaults }, closed),
  ark_video: Type.Object(videos, closed),
  minimax_video: Type.Object(
    {
      ...videos,
      poll_deadline_s: Type.Optional(
        Type.Integer({ minimum: 60, description: 'After this long a task is unknown. The upstream itself names no deadline.' }),
      ),
      api_version: withDefault(
        Type.Union([Type.Literal('v1'), Type.Literal('v2')], {
          description: 'Which of MiniMax’s two video interfaces it speaks.',
        }),
        'v1',
      ),
    },
    closed,
  ),
} as const;

const own = (description: string) =>
  Type.Optional(
    Type.Integer({ minimum: 1, maximum: 86_400_000, description: `${description} If absent, as \`timeouts\` says.` }),
  );

const SYNCHRONOUS_TIMEOUTS = Type.Object(
  {
    connect_ms: own('The time to connect, TLS included.'),
    first_data_ms: own('The time to the first data event or, without a stream, to the end of the answer.'),
    idle_ms: own('The longest silence between bytes once data flows.'),
    write_stall_ms: own('A client that takes nothing of an answer of this Channel for this long is let go.'),
  },
  closed,
);
const VIDEO_TIMEOUTS = Type.Object(
  {
    connect_ms: own('The time to connect, TLS included.'),
    first_data_ms: Milliseconds('The time to the answer to a submission. A poll has at most 30,000.', 120_000),
  },
  closed,
);

const file_scope = Type.Optional(
  Type.Union([Text('A name.'), Type.Null()], { description: 'Channels that can read the same private files share it.' }),
);
const opaque_scope = Type.Optional(
  Type.Union([Text('A name.'), Type.Null()], {
    description: 'Channels that accept each other’s encrypted values share it. If absent, the origin.',
  }),
);

const TEXT = { timeouts: section(SYNCHRONOUS_TIMEOUTS), file_scope, opaque_scope };
const VIDEO = { timeouts: section(VIDEO_TIMEOUTS) };
/** What every Channel has, of whatever type. */
const shared = {
  id: Type.String({
    pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$',
    description: 'Unique. Shown in logs, and to clients only with `channel_header`.',
  }),
  base_url: Type.String({
    pattern: '^https?://',
    description: 'The endpoint is appended, with `/v1` (gemini: `/v1beta`) between if the URL does not end in a version.',
  }),
  api_key: Type.Optional(Text('Best read from the environment or a file, as secrets are.')),
  disabled: withDefault(Type.Boolean({ description: 'Nothing is sent to it. Its models stay known.' }), false),
  priority: withDefault(Type.Integer({ minimum: 0, description: 'Channels with a lower number are tried first.' }), 0),
  weight: withDefault(
    Type.Number({ minimum: 0, description: 'The share among Channels of equal priority. 0 takes it out of service.' }),
    1,
  ),
  classes: Type.Optional(
    Type.Array(Text('An account class.'), {
      minItems: 1,
      description: 'The account classes that it serves. If absent, all.',
    }),
  ),
  models: Type.Union(
    [
      Type.Array(Text('A model whose upstream name is the same.'), { minItems: 1 }),
      Type.Record(Type.String({ minLength: 1 }), Text('The upstream’s name for the model.'), { minProperties: 1 }),
    ],
    { description: 'Its models: a list, or a map to the names that the upstream has for them.' },
  ),
};

function channelOf<const Name extends string, Own extends TProperties, Options extends TObject>(
  type: Name,
  own: Own,
  options: Options,
) {
  const keys = {
    ...shared,
    type: Type.Literal(type, { description: 'The protocol of the upstream.' }),
    ...own,
    options: section(options),
  };
  return Type.Object<typeof keys>(keys, closed);
}

/** The same type behind a platform: its own address and credential, and neither `auth` nor `path`. */
function hostedChannelOf<
  const Name extends string,
  const Platform extends keyof typeof PLATFORM_OPTIONS,
  Own extends TProperties,
  Options extends TProperties,
>(type: Name, platform: Platform, own: Own, options: Options) {
  const keys = {
    ...shared,
    base_url: PLATFORM_ADDRESS[platform],
    type: Type.Literal(type, { description: 'The protocol of the upstream.' }),
    platform: Type.Literal(platform, { description: 'The cloud that serves the protocol, by rules of its own.' }),
    ...own,
    options: Type.Object({ ...hosted, ...options, ...PLATFORM_OPTIONS[platform] }, closed),
  };
  return Type.Object<typeof keys>(keys, closed);
}

const IMAGE = { timeouts: section(SYNCHRONOUS_TIMEOUTS), file_scope };

/** Which platforms serve which types. */
export const PLATFORM_SCHEMAS = {
  messages: {
    bedrock: hostedChannelOf('messages', 'bedrock', TEXT, OWN.messages),
    vertex: hostedChannelOf('messages', 'vertex', TEXT, OWN.messages),
  },
  gemini: { vertex: hostedChannelOf('gemini', 'vertex', TEXT, OWN.gemini) },
  chat_completion: { azure: hostedChannelOf('chat_completion', 'azure', TEXT, OWN.chat_completion) },
  responses: { azure: hostedChannelOf('responses', 'azure', TEXT, OWN.responses) },
  openai_image: { azure: hostedChannelOf('openai_image', 'azure', IMAGE, OWN.openai_image) },
} as const;

export const CHANNEL_SCHEMAS = {
  chat_completion: channelOf('chat_completion', TEXT, OPTIONS.chat_completion),
  responses: channelOf('responses', TEXT, OPTIONS.responses),
  messages: channelOf('messages', TEXT, OPTIONS.messages),
  gemini: channelOf('gemini', TEXT, OPTIONS.gemini),
  openai_image: channelOf('openai_image', IMAGE, OPTIONS.openai_image),
  openrouter_image: channelOf('openrouter_image', { timeouts: section(SYNCHRONOUS_TIMEOUTS) }, OPTIONS.openrouter_image),
  ark_video: channelOf('ark_video', VIDEO, OPTIONS.ark_video),
  minimax_video: channelOf('minimax_video', VIDEO, OPTIONS.minimax_video),
} as const satisfies Readonly<Record<ChannelType, TObject>>;

/** What a Channel of a type is checked against; undefined where the type is not served behind that platform. */
export function channelSchema(type: string, platform: string | undefined): TObject | undefined {
  if (platform === undefined) return entryOf<TObject>(CHANNEL_SCHEMAS, type);
  const platforms: Readonly<Record<string, TObject>> = entryOf(PLATFORM_SCHEMAS, type) ?? {};
  return entryOf(platforms, platform);
}

/** The platforms that serve a type. */
export function platformsOf(type: string): readonly string[] {
  return Object.keys(entryOf(PLATFORM_SCHEMAS, type) ?? {});
}

function entryOf<Entry>(table: Readonly<Record<string, Entry>>, name: string): Entry | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}
