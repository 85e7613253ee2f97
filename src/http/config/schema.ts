/**
 * The shape of `mizu.config.json` as a TypeBox schema; its JSON Schema is generated from here (`mizu.schema.json`). Knows keys, types
 * and ranges; what spans several keys is `check.ts`. Unknown keys are refused everywhere.
 */
import { type Static, Type } from 'typebox';

const closed = { additionalProperties: false } as const;

const Milliseconds = (description: string, fallback: number) =>
  Type.Optional(Type.Integer({ minimum: 1, maximum: 86_400_000, default: fallback, description }));
const Text = (description: string) => Type.String({ minLength: 1, description });

const Listen = Type.Object(
  {
    host: Type.Optional(Text('Address to listen on. HOST overrides it.')),
    port: Type.Optional(Type.Integer({ minimum: 0, maximum: 65535, description: 'PORT overrides it.' })),
  },
  closed,
);

const Timeouts = Type.Object(
  {
    connect_ms: Milliseconds('To a connection with TLS.', 10_000),
    first_data_ms: Milliseconds('To the first data event or, without a stream, to the answer. Comments do not count.', 600_000),
    idle_ms: Milliseconds('Between bytes once data flows.', 120_000),
    write_stall_ms: Milliseconds('A client that takes nothing for this long is let go.', 60_000),
  },
  closed,
);

const HeaderName = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$";

/** What every Channel understands. */
const sharedOptions = {
  path: Type.Optional(
    Type.String({ pattern: '^/', description: 'Replaces the endpoint path after the origin; `{model}` is the upstream model.' }),
  ),
  auth: Type.Optional(
    Type.Union([Type.Literal('bearer'), Type.Literal('x-api-key'), Type.Literal('x-goog-api-key'), Type.Literal('none')], {
      description: 'How the key is sent. Default: what the type of the Channel uses.',
    }),
  ),
  headers: Type.Optional(
    Type.Record(Type.String({ pattern: HeaderName }), Type.Union([Type.String(), Type.Null()]), {
      description: 'Headers to set; null leaves one out. An `anthropic-beta` joins those of the client.',
    }),
  ),
  forward_headers: Type.Optional(
    Type.Array(Type.String({ pattern: HeaderName }), {
      description: 'Client headers passed on beside the protocol ones. None by default.',
    }),
  ),
  parameters: Type.Optional(Type.Record(Type.String(), Type.Unknown(), { description: 'Top-level body members to set.' })),
  drop_parameters: Type.Optional(Type.Array(Text('A top-level body member that is left out.'))),
  proxy: Type.Optional(Type.String({ pattern: '^https?://', description: 'HTTP proxy to the upstream.' })),
  ca: Type.Optional(Text('PEM certificates to trust instead of the system’s; best read from a file, as secrets are.')),
  max_concurrency: Type.Optional(Type.Integer({ minimum: 1, description: 'Exchanges at once; more wait.' })),
  max_queue: Type.Optional(
    Type.Integer({ minimum: 0, default: 100, description: 'How many may wait; more go to the next Channel.' }),
  ),
  queue_ms: Milliseconds('How long one may wait.', 10_000),
  retries: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 5,
      default: 0,
      description:
        'Repeats after 408, 429, 5xx and lost connections, once every Channel has failed; at most a fifth of its load.',
    }),
  ),
};

const textOptions = {
  ...sharedOptions,
  legacy_output_cap: Type.Optional(Type.Boolean({ description: 'Send `max_tokens` instead of `max_completion_tokens`.' })),
  replay_reasoning_content: Type.Optional(
    Type.Boolean({ description: 'Send `reasoning_content` of the history back; on messages, unsigned thinking.' }),
  ),
  accept_done_without_finish: Type.Optional(Type.Boolean({ description: 'Accept `[DONE]` without a finish reason as an end.' })),
  lower_custom_tools: Type.Optional(Type.Boolean({ description: 'Lower freeform custom tools to functions with one string.' })),
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
  poll_interval_ms: Milliseconds('Between two looks at a task.', 5_000),
  poll_deadline_s: Type.Optional(
    Type.Integer({ minimum: 60, description: 'After this a task whose upstream has no deadline is unknown.' }),
  ),
};

const OPTIONS = {
  chat_completion: Type.Object(textOptions, closed),
  responses: Type.Object(
    {
      ...textOptions,
      image_enable_openai_generation_tool: Type.Optional(
        Type.Boolean({ description: 'Serve image endpoints with the image tool.' }),
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
      id: Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$', description: 'Unique; shown in logs, never to clients.' }),
      type: Type.Literal(type),
      base_url: Type.String({
        pattern: '^https?://',
        description: 'The endpoint is appended, with `/v1` between where it ends in no version.',
      }),
      api_key: Type.Optional(Text('Best read from the environment or a file, as secrets are.')),
      disabled: Type.Optional(Type.Boolean()),
      priority: Type.Optional(Type.Integer({ minimum: 0, default: 0, description: 'Lower is tried first.' })),
      weight: Type.Optional(
        Type.Number({ minimum: 0, default: 1, description: 'Share among equal priorities; 0 takes it out.' }),
      ),
      classes: Type.Optional(Type.Array(Text('An account class.'), { minItems: 1, description: 'Absent: every class.' })),
      models: Type.Union([
        Type.Array(Text('A model whose upstream name is the same.'), { minItems: 1 }),
        Type.Record(Type.String({ minLength: 1 }), Text('The upstream’s name of the model.'), { minProperties: 1 }),
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

const Channel = Type.Union([
  channelOf('chat_completion'),
  channelOf('responses'),
  channelOf('messages'),
  channelOf('gemini'),
  channelOf('openai_image'),
  channelOf('openrouter_image'),
  channelOf('ark_video'),
  channelOf('minimax_video'),
]);

const Model = Type.Object(
  {
    kind: Type.Optional(
      Type.Union([Type.Literal('text'), Type.Literal('embedding'), Type.Literal('image'), Type.Literal('video')], {
        default: 'text',
      }),
    ),
    price: Type.Optional(Type.Record(Type.String(), Type.Unknown(), { description: 'US dollars as decimal strings.' })),
    thinking: Type.Optional(
      Type.Union([Type.Literal('adaptive'), Type.Literal('budget'), Type.Literal('level')], {
        description: 'How upstreams of this model take a reasoning effort.',
      }),
    ),
    min_thinking_budget: Type.Optional(Type.Integer({ minimum: 0 })),
    max_thinking_budget: Type.Optional(Type.Integer({ minimum: 1 })),
    max_output_tokens: Type.Optional(Type.Integer({ minimum: 1, description: 'For the estimate of a request without a cap.' })),
  },
  closed,
);

export const CONFIG_SCHEMA = Type.Object(
  {
    $schema: Type.Optional(Type.String()),
    listen: Type.Optional(Listen),
    operations: Type.Optional(
      Type.Union([Listen, Type.Null()], { description: 'Metrics and health. Never on the public port; null: off.' }),
    ),
    public_base_url: Type.Optional(Type.String({ pattern: '^https?://[^/?#@]+(/[^?#]*)?$' })),
    node: Type.Optional(
      Type.Object({ role: Type.Optional(Type.Union([Type.Literal('primary'), Type.Literal('replica')])) }, closed),
    ),
    store: Type.Optional(
      Type.Object(
        {
          path: Type.Optional(
            Text('A folder; relative to the config file. With `url`: where settlements wait while the database is away.'),
          ),
          url: Type.Optional(
            Type.String({
              pattern: '^postgres(ql)?://',
              description: 'A PostgreSQL database, for gateways on several machines.',
            }),
          ),
        },
        closed,
      ),
    ),
    trusted_proxies: Type.Optional(Type.Array(Text('An address or CIDR range whose forwarding headers are believed.'))),
    ledger: Type.Optional(
      Type.Object(
        {
          durability: Type.Optional(Type.Union([Type.Literal('batched'), Type.Literal('strict')])),
          unpriced_tools: Type.Optional(
            Type.Union([Type.Literal('forward'), Type.Literal('refuse')], {
              description:
                'A request with a server tool that the price has no meter for: forwarded, and a call flagged in the log (default), or 403. A request that forces such a tool is always 403.',
            }),
          ),
        },
        closed,
      ),
    ),
    log: Type.Optional(
      Type.Object(
        {
          level: Type.Optional(
            Type.Union([
              Type.Literal('debug'),
              Type.Literal('info'),
              Type.Literal('warn'),
              Type.Literal('error'),
              Type.Literal('silent'),
            ]),
          ),
          retention_days: Type.Optional(Type.Integer({ minimum: 1, maximum: 3650, default: 90 })),
        },
        closed,
      ),
    ),
    tracing: Type.Optional(
      Type.Object(
        {
          endpoint: Type.String({
            pattern: '^https?://',
            description: 'An OTLP/HTTP collector; `/v1/traces` is appended. Spans hold names and counts, no content.',
          }),
          headers: Type.Optional(Type.Record(Type.String({ pattern: HeaderName }), Type.String())),
          sample: Type.Optional(
            Type.Number({ minimum: 0, maximum: 1, default: 1, description: 'Share of traces that begin here.' }),
          ),
          service_name: Type.Optional(Text('`service.name`. Default: mizu.')),
        },
        { ...closed, description: 'OpenTelemetry traces; absent: off. Read at start.' },
      ),
    ),
    limits: Type.Optional(
      Type.Object(
        {
          json_bytes: Type.Optional(Type.Integer({ minimum: 1024, default: 33_554_432 })),
          multipart_bytes: Type.Optional(Type.Integer({ minimum: 1024, default: 67_108_864 })),
          event_bytes: Type.Optional(
            Type.Integer({ minimum: 1024, default: 67_108_864, description: 'One event of an upstream.' }),
          ),
          answer_bytes: Type.Optional(
            Type.Integer({ minimum: 1024, default: 134_217_728, description: 'A whole answer of an upstream.' }),
          ),
          body_ms: Milliseconds('To receive a request body.', 60_000),
          connections: Type.Optional(Type.Integer({ minimum: 1, default: 20_000 })),
          key_exchanges: Type.Optional(
            Type.Integer({
              minimum: 1,
              default: 20_000,
              description: 'Requests that one API key may have open, in each process.',
            }),
          ),
          key_body_bytes: Type.Optional(
            Type.Integer({
              minimum: 1024,
              default: 1_073_741_824,
              description: 'Request bodies that one API key may have in a process at once.',
            }),
          ),
        },
        closed,
      ),
    ),
    dispatch: Type.Optional(
      Type.Object(
        {
          max_attempts: Type.Optional(Type.Integer({ minimum: 1, maximum: 32, default: 6 })),
          max_retry_wait_ms: Milliseconds('The longest Retry-After that an exchange waits for.', 5_000),
        },
        closed,
      ),
    ),
    health: Type.Optional(
      Type.Object(
        {
          failures: Type.Optional(
            Type.Integer({ minimum: 1, default: 5, description: 'In the window, and at least half of the attempts.' }),
          ),
          window_ms: Milliseconds('How long a failure counts.', 30_000),
          cooldown_ms: Milliseconds('An open circuit lets nothing through for this long, then one trial.', 30_000),
          rate_limit_cooldown_ms: Milliseconds('After 429 without Retry-After.', 15_000),
          refused_cooldown_ms: Milliseconds('After 401, 402, 403 (the Channel) or 404 (the model on it).', 60_000),
          probe_ms: Type.Optional(
            Type.Integer({
              minimum: 1000,
              maximum: 86_400_000,
              description: 'Ask every Channel for its model list this often; two failures in a row take it out. Absent: never.',
            }),
          ),
        },
        closed,
      ),
    ),
    history: Type.Optional(
      Type.Object(
        {
          entry_bytes: Type.Optional(Type.Integer({ minimum: 0, default: 33_554_432, description: 'One conversation.' })),
          key_bytes: Type.Optional(Type.Integer({ minimum: 0, default: 134_217_728, description: 'All of one key.' })),
          total_bytes: Type.Optional(Type.Integer({ minimum: 0, default: 536_870_912, description: 'All of this process.' })),
        },
        { ...closed, description: 'Responses that may be continued by id. What was not used for longest goes first.' },
      ),
    ),
    websocket: Type.Optional(
      Type.Object(
        {
          turns: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000, default: 128, description: 'Of one connection.' })),
          idle_ms: Milliseconds('A connection without a turn for this long is closed.', 600_000),
          lifetime_ms: Milliseconds('A connection older than this begins no turn.', 3_600_000),
          per_key: Type.Optional(Type.Integer({ minimum: 1, description: 'Open connections of one key. No limit by default.' })),
        },
        closed,
      ),
    ),
    affinity: Type.Optional(
      Type.Object(
        {
          max_entries: Type.Optional(Type.Integer({ minimum: 1, default: 50_000 })),
          idle_ms: Milliseconds('Forgotten after this long.', 1_800_000),
        },
        closed,
      ),
    ),
    timeouts: Type.Optional(Timeouts),
    commit_after_ms: Milliseconds('A stream that has nothing after this long gets its 200 and keep-alives.', 10_000),
    keep_alive_ms: Milliseconds('Silence after which a comment is sent.', 15_000),
    drain_ms: Milliseconds('How long open streams may go on after SIGTERM.', 30_000),
    channel_header: Type.Optional(Type.Boolean({ description: 'Answer with `x-mizu-channel`.' })),
    channels: Type.Optional(Type.Array(Channel)),
    models: Type.Optional(Type.Record(Type.String({ minLength: 1 }), Model)),
  },
  { ...closed, $id: 'https://mizu.invalid/mizu.schema.json', title: 'Mizu configuration' },
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

export type ConfigFile = Static<typeof CONFIG_SCHEMA>;
export type ChannelEntry = NonNullable<ConfigFile['channels']>[number];
export type ModelEntry = NonNullable<ConfigFile['models']>[string];
