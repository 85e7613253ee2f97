/** The shape of one entry of `channels`: what every Channel has, and the options of its type. */
import { Type } from 'typebox';
import { closed, HeaderName, Milliseconds, Text, Timeouts } from './schema-terms.ts';

/** What every Channel understands. */
const sharedOptions = {
  path: Type.Optional(
    Type.String({
      pattern: '^/',
      description: 'Replaces the whole path after the origin. `{model}` stands for the upstream model.',
    }),
  ),
  auth: Type.Optional(
    Type.Union([Type.Literal('bearer'), Type.Literal('x-api-key'), Type.Literal('x-goog-api-key'), Type.Literal('none')], {
      description: 'How the key is sent. Default: what the Channel’s type uses.',
    }),
  ),
  headers: Type.Optional(
    Type.Record(Type.String({ pattern: HeaderName }), Type.Union([Type.String(), Type.Null()]), {
      description: 'Headers to set; `null` leaves one out. An `anthropic-beta` is added to those of the client.',
    }),
  ),
  forward_headers: Type.Optional(
    Type.Array(Type.String({ pattern: HeaderName }), {
      description: 'Client headers that are passed on beside those of the protocol. None by default.',
    }),
  ),
  parameters: Type.Optional(Type.Record(Type.String(), Type.Unknown(), { description: 'Top-level body members to set.' })),
  drop_parameters: Type.Optional(Type.Array(Text('A top-level body member that is left out.'))),
  proxy: Type.Optional(Type.String({ pattern: '^https?://', description: 'HTTP proxy to the upstream.' })),
  ca: Type.Optional(Text('PEM certificates to trust instead of the system’s; best read from a file, as secrets are.')),
  max_concurrency: Type.Optional(Type.Integer({ minimum: 1, description: 'The most exchanges at once. More of them wait.' })),
  max_queue: Type.Optional(
    Type.Integer({ minimum: 0, default: 100, description: 'How many exchanges may wait. More of them go to the next Channel.' }),
  ),
  queue_ms: Milliseconds('How long an exchange may wait.', 10_000),
  retries: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 5,
      default: 0,
      description:
        'How often a request is repeated after 408, 429, 5xx and lost connections, once every Channel has failed. Repeats are at most a fifth of the Channel’s load.',
    }),
  ),
};

const textOptions = {
  ...sharedOptions,
  legacy_output_cap: Type.Optional(Type.Boolean({ description: 'Send `max_tokens` instead of `max_completion_tokens`.' })),
  replay_reasoning_content: Type.Optional(
    Type.Boolean({
      description: 'Send `reasoning_content` of the history back; on messages Channels, thinking without a signature.',
    }),
  ),
  accept_done_without_finish: Type.Optional(
    Type.Boolean({ description: 'Accept `[DONE]` without a finish reason as a good ending.' }),
  ),
  developer_as_system: Type.Optional(
    Type.Boolean({ description: 'Send messages of the role `developer` as `system`, for upstreams that do not know it.' }),
  ),
  compaction: Type.Optional(
    Type.Literal('summary', {
      description: 'Serve `/v1/responses/compact` by asking the model for a summary, for upstreams without compaction.',
    }),
  ),
  lower_custom_tools: Type.Optional(Type.Boolean({ description: 'Turn freeform custom tools into functions with one string.' })),
};

const ImageDefaults = Type.Object(
  {
    size: Type.Optional(Type.String()),
    quality: Type.Optional(Type.String()),
    background: Type.Optional(Type.String()),
    output_format: Type.Optional(Type.String()),
    moderation: Type.Optional(Type.String()),
  },
  closed,
);

const videoOptions = {
  ...sharedOptions,
  poll_interval_ms: Milliseconds('The time between two looks at a task.', 5_000),
  poll_deadline_s: Type.Optional(
    Type.Integer({ minimum: 60, description: 'After this long a task is unknown, if its upstream has no deadline.' }),
  ),
};

const OPTIONS = {
  chat_completion: Type.Object(textOptions, closed),
  responses: Type.Object(
    {
      ...textOptions,
      image_enable_openai_generation_tool: Type.Optional(
        Type.Boolean({ description: 'Serve the image endpoints by means of the image tool.' }),
      ),
      image_defaults: Type.Optional(ImageDefaults),
    },
    closed,
  ),
  messages: Type.Object(textOptions, closed),
  gemini: Type.Object(textOptions, closed),
  openai_image: Type.Object({ ...sharedOptions, image_defaults: Type.Optional(ImageDefaults) }, closed),
  openrouter_image: Type.Object({ ...sharedOptions, image_defaults: Type.Optional(ImageDefaults) }, closed),
  ark_video: Type.Object(videoOptions, closed),
  minimax_video: Type.Object(
    { ...videoOptions, api_version: Type.Optional(Type.Union([Type.Literal('v1'), Type.Literal('v2')])) },
    closed,
  ),
} as const;

const channelOf = <Name extends keyof typeof OPTIONS>(type: Name) =>
  Type.Object(
    {
      id: Type.String({
        pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$',
        description: 'Unique. Shown in logs, and to clients only with `channel_header`.',
      }),
      type: Type.Literal(type),
      base_url: Type.String({
        pattern: '^https?://',
        description: 'The endpoint is appended, with `/v1` (gemini: `/v1beta`) between if the URL does not end in a version.',
      }),
      api_key: Type.Optional(Text('Best read from the environment or a file, as secrets are.')),
      disabled: Type.Optional(Type.Boolean()),
      priority: Type.Optional(
        Type.Integer({ minimum: 0, default: 0, description: 'Channels with a lower number are tried first.' }),
      ),
      weight: Type.Optional(
        Type.Number({
          minimum: 0,
          default: 1,
          description: 'The share among Channels of equal priority. 0 takes it out of service.',
        }),
      ),
      classes: Type.Optional(
        Type.Array(Text('An account class.'), {
          minItems: 1,
          description: 'The account classes that it serves. If absent, all.',
        }),
      ),
      models: Type.Union([
        Type.Array(Text('A model whose upstream name is the same.'), { minItems: 1 }),
        Type.Record(Type.String({ minLength: 1 }), Text('The upstream’s name for the model.'), { minProperties: 1 }),
      ]),
      timeouts: Type.Optional(Timeouts),
      file_scope: Type.Optional(Type.Union([Text('Channels that can read the same private files share it.'), Type.Null()])),
      opaque_scope: Type.Optional(
        Type.Union([Text('Channels that accept each other’s encrypted values share it. Default: the origin.'), Type.Null()]),
      ),
      options: Type.Optional(OPTIONS[type]),
    },
    closed,
  );

export const CHANNEL_SCHEMAS = {
  chat_completion: channelOf('chat_completion'),
  responses: channelOf('responses'),
  messages: channelOf('messages'),
  gemini: channelOf('gemini'),
  openai_image: channelOf('openai_image'),
  openrouter_image: channelOf('openrouter_image'),
  ark_video: channelOf('ark_video'),
  minimax_video: channelOf('minimax_video'),
} as const;
