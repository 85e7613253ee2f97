/**
 * The shape of `mizu.config.json` as a TypeBox schema; its JSON Schema is generated from here (`mizu.schema.json`). Knows keys, types
 * and ranges; what spans several keys is `build-config.ts`. Unknown keys are refused everywhere.
 */
import { type Static, Type } from 'typebox';
import { CHANNEL_SCHEMAS } from './channel-schema.ts';
import { closed, HeaderName, Milliseconds, Text, Timeouts } from './schema-terms.ts';

const Host = (description: string) => Type.Optional(Type.String({ pattern: '^[!-~]+$', description }));
const Port = (description: string) => Type.Optional(Type.Integer({ minimum: 0, maximum: 65535, description }));

const Listen = Type.Object(
  { host: Host('Address to listen on. HOST overrides it. Default: 127.0.0.1.'), port: Port('PORT overrides it. Default: 8080.') },
  closed,
);

const Operations = Type.Object(
  { host: Host('Default: 127.0.0.1.'), port: Port('Default: 8081, or 8082 where clients have that one.') },
  closed,
);

const Channel = Type.Union([
  CHANNEL_SCHEMAS.chat_completion,
  CHANNEL_SCHEMAS.responses,
  CHANNEL_SCHEMAS.messages,
  CHANNEL_SCHEMAS.gemini,
  CHANNEL_SCHEMAS.openai_image,
  CHANNEL_SCHEMAS.openrouter_image,
  CHANNEL_SCHEMAS.ark_video,
  CHANNEL_SCHEMAS.minimax_video,
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
        description:
          'How upstreams of this model take a reasoning effort. Default: messages `adaptive`, Claude up to 4.5 `budget`; gemini `budget`.',
      }),
    ),
    min_thinking_budget: Type.Optional(Type.Integer({ minimum: 0 })),
    max_thinking_budget: Type.Optional(Type.Integer({ minimum: 1 })),
    max_output_tokens: Type.Optional(Type.Integer({ minimum: 1, description: 'For the estimate of a request without a cap.' })),
  },
  closed,
);

const Node = Type.Object({ role: Type.Optional(Type.Union([Type.Literal('primary'), Type.Literal('replica')])) }, closed);

const Store = Type.Object(
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
);

const Ledger = Type.Object(
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
);

const Log = Type.Object(
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
);

const Tracing = Type.Object(
  {
    endpoint: Type.String({
      pattern: '^https?://',
      description: 'An OTLP/HTTP collector; `/v1/traces` is appended. Spans hold names and counts, no content.',
    }),
    headers: Type.Optional(Type.Record(Type.String({ pattern: HeaderName }), Type.String())),
    sample: Type.Optional(Type.Number({ minimum: 0, maximum: 1, default: 1, description: 'Share of traces that begin here.' })),
    service_name: Type.Optional(Text('`service.name`. Default: mizu.')),
  },
  { ...closed, description: 'OpenTelemetry traces; absent: off. Read at start.' },
);

/** The longest text that V8 makes, in bytes of ASCII. The WebSocket library would read one above 2³¹ as no limit. */
const LONGEST_TEXT = 536_870_888;

const Limits = Type.Object(
  {
    json_bytes: Type.Optional(Type.Integer({ minimum: 1024, maximum: LONGEST_TEXT, default: 33_554_432 })),
    multipart_bytes: Type.Optional(Type.Integer({ minimum: 1024, default: 67_108_864 })),
    event_bytes: Type.Optional(
      Type.Integer({ minimum: 1024, maximum: LONGEST_TEXT, default: 67_108_864, description: 'One event of an upstream.' }),
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
);

const Dispatch = Type.Object(
  {
    max_attempts: Type.Optional(Type.Integer({ minimum: 1, maximum: 32, default: 6 })),
    max_retry_wait_ms: Milliseconds('The longest Retry-After that an exchange waits for.', 5_000),
  },
  closed,
);

const Health = Type.Object(
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
);

const History = Type.Object(
  {
    entry_bytes: Type.Optional(Type.Integer({ minimum: 0, default: 33_554_432, description: 'One conversation.' })),
    key_bytes: Type.Optional(Type.Integer({ minimum: 0, default: 134_217_728, description: 'All of one key.' })),
    total_bytes: Type.Optional(Type.Integer({ minimum: 0, default: 536_870_912, description: 'All of this process.' })),
  },
  { ...closed, description: 'Responses that may be continued by id. What was not used for longest goes first.' },
);

const Websocket = Type.Object(
  {
    turns: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000, default: 128, description: 'Of one connection.' })),
    idle_ms: Milliseconds('A connection without a turn for this long is closed.', 600_000),
    lifetime_ms: Milliseconds('A connection older than this begins no turn.', 3_600_000),
    per_key: Type.Optional(Type.Integer({ minimum: 1, description: 'Open connections of one key. No limit by default.' })),
  },
  closed,
);

const Affinity = Type.Object(
  {
    max_entries: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000, default: 50_000 })),
    idle_ms: Milliseconds('Forgotten after this long.', 1_800_000),
  },
  closed,
);

export const CONFIG_SCHEMA = Type.Object(
  {
    $schema: Type.Optional(Type.String()),
    listen: Type.Optional(Listen),
    operations: Type.Optional(
      Type.Union([Operations, Type.Null()], { description: 'Metrics and health. Never on the public port; null: off.' }),
    ),
    public_base_url: Type.Optional(
      Type.String({
        pattern: '^https?://',
        description: 'The address that the pages name. Absent: the one that a browser sees.',
      }),
    ),
    node: Type.Optional(Node),
    store: Type.Optional(Store),
    trusted_proxies: Type.Optional(Type.Array(Text('An address or CIDR range whose forwarding headers are believed.'))),
    ledger: Type.Optional(Ledger),
    log: Type.Optional(Log),
    tracing: Type.Optional(Tracing),
    limits: Type.Optional(Limits),
    dispatch: Type.Optional(Dispatch),
    health: Type.Optional(Health),
    history: Type.Optional(History),
    websocket: Type.Optional(Websocket),
    affinity: Type.Optional(Affinity),
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

export type ConfigFile = Static<typeof CONFIG_SCHEMA>;
export type ChannelEntry = NonNullable<ConfigFile['channels']>[number];
export type ModelEntry = NonNullable<ConfigFile['models']>[string];
