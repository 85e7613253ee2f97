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
  {
    host: Host('The address to listen on. HOST overrides it. Default: 127.0.0.1.'),
    port: Port('PORT overrides it. Default: 8080.'),
  },
  closed,
);

const Operations = Type.Object(
  { host: Host('Default: 127.0.0.1.'), port: Port('Default: 8081, or 8082 if clients have that one.') },
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

const RateLimit = (most: number, description: string) => Type.Optional(Type.Integer({ minimum: 1, maximum: most, description }));

const RateLimits = (whose: string) =>
  Type.Object(
    {
      requests_per_minute: RateLimit(
        1_000_000_000,
        'The requests that are admitted a minute, and at most at once after a pause.',
      ),
      tokens_per_minute: RateLimit(1_000_000_000, 'The same for input and output tokens together.'),
      max_concurrency: RateLimit(1_000_000, 'The requests that may be under way at the same time.'),
    },
    { ...closed, description: `Limits of ${whose}. None by default.` },
  );

const Model = Type.Object(
  {
    kind: Type.Optional(
      Type.Union([Type.Literal('text'), Type.Literal('embedding'), Type.Literal('image'), Type.Literal('video')], {
        default: 'text',
      }),
    ),
    price: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description:
          'US dollars as decimal strings: per million tokens, per thousand calls of a server tool, per picture or per video. Without a price a model is not served.',
      }),
    ),
    thinking: Type.Optional(
      Type.Union([Type.Literal('adaptive'), Type.Literal('budget'), Type.Literal('level')], {
        description:
          'How upstreams of this model take a reasoning effort. Default: messages `adaptive`, Claude up to 4.5 `budget`; gemini `budget`.',
      }),
    ),
    compaction: Type.Optional(
      Type.Literal('summary', { description: 'The same for every Channel of the model that says nothing else.' }),
    ),
    min_thinking_budget: Type.Optional(Type.Integer({ minimum: 0 })),
    max_thinking_budget: Type.Optional(Type.Integer({ minimum: 1 })),
    max_output_tokens: Type.Optional(
      Type.Integer({
        minimum: 1,
        description: 'The most that is reserved for an answer. Used to estimate a request that sets no cap.',
      }),
    ),
    reasoning: Type.Optional(
      Type.Boolean({
        default: true,
        description:
          'Whether the model may reason out of sight. If not, a stream that its client left is charged by its text alone, and not by its time.',
      }),
    ),
    limits: Type.Optional(RateLimits('all requests for this model together')),
  },
  closed,
);

const Node = Type.Object({ role: Type.Optional(Type.Union([Type.Literal('primary'), Type.Literal('replica')])) }, closed);

const Store = Type.Object(
  {
    path: Type.Optional(
      Text('A folder, relative to the configuration file. With `url` it is where settlements wait while the database is away.'),
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
          'What happens to a request with a server tool for which the price has no meter: it is forwarded and its calls are flagged in the request log (default), or it is a 403. A request that forces such a tool is always a 403.',
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
      description: 'An OTLP/HTTP collector; `/v1/traces` is appended. Spans contain names and counts, no content.',
    }),
    headers: Type.Optional(Type.Record(Type.String({ pattern: HeaderName }), Type.String())),
    sample: Type.Optional(
      Type.Number({ minimum: 0, maximum: 1, default: 1, description: 'The share of those traces that begin here.' }),
    ),
    service_name: Type.Optional(Text('`service.name`. Default: mizu.')),
  },
  { ...closed, description: 'OpenTelemetry traces. If absent, they are off. Read at start.' },
);

/** The longest text that V8 makes, in bytes of ASCII. The WebSocket library would read one above 2³¹ as no limit. */
const LONGEST_TEXT = 536_870_888;

const Limits = Type.Object(
  {
    json_bytes: Type.Optional(Type.Integer({ minimum: 1024, maximum: LONGEST_TEXT, default: 33_554_432 })),
    json_values: Type.Optional(
      Type.Integer({
        minimum: 1024,
        default: 250_000,
        description:
          'The most JSON values (objects, arrays, strings, numbers, literals) that a request may have, the history that it continues included.',
      }),
    ),
    multipart_bytes: Type.Optional(Type.Integer({ minimum: 1024, default: 67_108_864 })),
    event_bytes: Type.Optional(
      Type.Integer({
        minimum: 1024,
        maximum: LONGEST_TEXT,
        default: 67_108_864,
        description: 'The most that one event of an upstream may have.',
      }),
    ),
    answer_bytes: Type.Optional(
      Type.Integer({
        minimum: 1024,
        default: 134_217_728,
        description: 'The most that an answer of an upstream may have, whole or as a stream.',
      }),
    ),
    body_ms: Milliseconds('The time to receive a request body. Read at start.', 60_000),
    connections: Type.Optional(Type.Integer({ minimum: 1, default: 20_000 })),
    key_exchanges: Type.Optional(
      Type.Integer({
        minimum: 1,
        default: 20_000,
        description: 'The requests that one API key may have open in each process.',
      }),
    ),
    key_body_bytes: Type.Optional(
      Type.Integer({
        minimum: 1024,
        default: 1_073_741_824,
        description:
          'The bytes of request bodies that one API key may have in a process at once, and 100 for each JSON value in them. Never more than half of what the process may have.',
      }),
    ),
    body_bytes: Type.Optional(
      Type.Integer({
        minimum: 1024,
        default: 2_147_483_648,
        description: 'The same of all keys together. Never more than a quarter of the heap that Node allows.',
      }),
    ),
  },
  closed,
);

const Dispatch = Type.Object(
  {
    max_attempts: Type.Optional(Type.Integer({ minimum: 1, maximum: 32, default: 6 })),
    max_retry_wait_ms: Milliseconds('The longest `Retry-After` that an exchange waits for.', 5_000),
  },
  closed,
);

const Health = Type.Object(
  {
    failures: Type.Optional(
      Type.Integer({
        minimum: 1,
        default: 5,
        description: 'A circuit opens after this many failed attempts in the window, if they are at least half of all.',
      }),
    ),
    window_ms: Milliseconds('How long an attempt counts.', 30_000),
    cooldown_ms: Milliseconds('An open circuit lets nothing through for this long, then one trial.', 30_000),
    rate_limit_cooldown_ms: Milliseconds('The cooldown after a 429 without `Retry-After`.', 15_000),
    refused_cooldown_ms: Milliseconds(
      'The cooldown after 401, 402 or 403 (of the whole Channel) and after 404 (of the model on it).',
      60_000,
    ),
    probe_ms: Type.Optional(
      Type.Integer({
        minimum: 1000,
        maximum: 86_400_000,
        description: 'How often every Channel is asked for its model list. Two failures in a row take it out. If absent, never.',
      }),
    ),
  },
  closed,
);

const History = Type.Object(
  {
    entry_bytes: Type.Optional(
      Type.Integer({ minimum: 0, default: 33_554_432, description: 'The most that one conversation may have.' }),
    ),
    key_bytes: Type.Optional(
      Type.Integer({ minimum: 0, default: 134_217_728, description: 'The most that all conversations of one key may have.' }),
    ),
    total_bytes: Type.Optional(
      Type.Integer({
        minimum: 0,
        default: 536_870_912,
        description: 'The most that all conversations in this process may have.',
      }),
    ),
  },
  { ...closed, description: 'The responses that may be continued by id. Whatever was not used for longest goes first.' },
);

const Websocket = Type.Object(
  {
    turns: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 100_000, default: 128, description: 'The most turns that one connection may have.' }),
    ),
    idle_ms: Milliseconds('A connection without a turn for this long is closed.', 600_000),
    lifetime_ms: Milliseconds('A connection that is older than this begins no new turn.', 3_600_000),
    per_key: Type.Optional(
      Type.Integer({ minimum: 1, default: 64, description: 'The connections that one key may have open in each process.' }),
    ),
    unfinished_bytes: Type.Optional(
      Type.Integer({
        minimum: 1024,
        default: 67_108_864,
        description: 'The most that messages of one key, of which a part is still to come, may have in a process.',
      }),
    ),
  },
  closed,
);

const Affinity = Type.Object(
  {
    max_entries: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000, default: 50_000 })),
    idle_ms: Milliseconds('A conversation without a request for this long is forgotten.', 1_800_000),
  },
  closed,
);

export const CONFIG_SCHEMA = Type.Object(
  {
    $schema: Type.Optional(Type.String()),
    listen: Type.Optional(Listen),
    operations: Type.Optional(
      Type.Union([Operations, Type.Null()], {
        description: 'The listener for metrics and health, never on the public port. `null` turns it off.',
      }),
    ),
    public_base_url: Type.Optional(
      Type.String({
        pattern: '^https?://',
        description: 'The address that the pages name. If absent, it is the one that the browser sees.',
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
    commit_after_ms: Milliseconds('A stream that has nothing to say after this long gets its 200 and keep-alives.', 10_000),
    keep_alive_ms: Milliseconds('The silence after which a comment is sent to the client.', 15_000),
    drain_ms: Milliseconds('How long open streams may go on after SIGTERM.', 30_000),
    channel_header: Type.Optional(Type.Boolean({ description: 'Answers carry `x-mizu-channel`, the id of the Channel.' })),
    channels: Type.Optional(Type.Array(Channel)),
    models: Type.Optional(Type.Record(Type.String({ minLength: 1 }), Model)),
    classes: Type.Optional(
      Type.Record(
        Type.String({ minLength: 1 }),
        Type.Object({ limits: Type.Optional(RateLimits('all accounts of this class together')) }, closed),
        { description: 'Classes of accounts, by name.' },
      ),
    ),
  },
  { ...closed, $id: 'https://mizu.invalid/mizu.schema.json', title: 'Mizu configuration' },
);

export type ConfigFile = Static<typeof CONFIG_SCHEMA>;
export type ChannelEntry = NonNullable<ConfigFile['channels']>[number];
export type RateLimitsEntry = Static<ReturnType<typeof RateLimits>>;
export type ModelEntry = NonNullable<ConfigFile['models']>[string];
