/**
 * The shape of `mizu.config.json` as a TypeBox schema; its JSON Schema is generated from here (`mizu.schema.json`). Knows keys, types
 * and ranges; what spans several keys is `build-config.ts`. Unknown keys are refused everywhere.
 */
import { type Static, Type } from 'typebox';
import { CHANNEL_SCHEMAS } from './channel-schema.ts';
import { closed, type Filled, HeaderName, Milliseconds, section, Text, withDefault } from './schema-terms.ts';

const Host = (description: string) => Type.String({ pattern: '^[!-~]+$', description });
const Port = (description: string) => Type.Integer({ minimum: 0, maximum: 65535, description });
export const LOOPBACK = '127.0.0.1';

const Listen = Type.Object(
  {
    host: withDefault(Host('The address to listen on. HOST overrides it.'), LOOPBACK),
    port: withDefault(Port('The port to listen on. PORT overrides it.'), 8080),
  },
  closed,
);

const Operations = Type.Object(
  {
    host: withDefault(Host('The address of the listener for operators.'), LOOPBACK),
    port: Type.Optional(Port('Its port. If absent, 8081, or 8082 if clients have that one.')),
  },
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

export const MODEL_SCHEMA = Type.Object(
  {
    kind: withDefault(
      Type.Union([Type.Literal('text'), Type.Literal('embedding'), Type.Literal('image'), Type.Literal('video')], {
        description: 'What the model makes, and so which endpoints serve it.',
      }),
      'text',
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
    min_thinking_budget: Type.Optional(
      Type.Integer({ minimum: 0, description: 'The smallest thinking budget that its upstreams take, in tokens.' }),
    ),
    max_thinking_budget: Type.Optional(
      Type.Integer({ minimum: 1, description: 'The largest thinking budget that its upstreams take, in tokens.' }),
    ),
    max_output_tokens: Type.Optional(Type.Integer({ minimum: 1, description: 'Used to estimate a request that sets no cap.' })),
    limits: Type.Optional(RateLimits('all requests for this model together')),
  },
  closed,
);

const Node = Type.Object(
  {
    role: withDefault(
      Type.Union([Type.Literal('primary'), Type.Literal('replica')], {
        description: 'Of several nodes on one store one is the primary: it alone serves the video endpoints.',
      }),
      'primary',
    ),
  },
  closed,
);

const Store = Type.Object(
  {
    path: withDefault(
      Text('A folder, relative to the configuration file. With `url` it is where settlements wait while the database is away.'),
      './data',
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
    durability: withDefault(
      Type.Union([Type.Literal('batched'), Type.Literal('strict')], {
        description:
          '`batched`: rows are on disk within 10 ms. `strict`: an exchange waits for the disk before anything is sent upstream and before its end is sent to the client.',
      }),
      'batched',
    ),
    unpriced_tools: withDefault(
      Type.Union([Type.Literal('forward'), Type.Literal('refuse')], {
        description:
          'What happens to a request with a server tool for which the price has no meter: it is forwarded and its calls are flagged in the request log, or it is a 403. A request that forces such a tool is always a 403.',
      }),
      'forward',
    ),
  },
  closed,
);

const Log = Type.Object(
  {
    level: withDefault(
      Type.Union(
        [Type.Literal('debug'), Type.Literal('info'), Type.Literal('warn'), Type.Literal('error'), Type.Literal('silent')],
        { description: 'What is less important than this is not logged.' },
      ),
      'info',
    ),
    retention_days: withDefault(
      Type.Integer({ minimum: 1, maximum: 3650, description: 'Rows of the request log that are older than this are deleted.' }),
      90,
    ),
  },
  closed,
);

const Tracing = Type.Object(
  {
    endpoint: Type.String({
      pattern: '^https?://',
      description: 'An OTLP/HTTP collector; `/v1/traces` is appended. Spans contain names and counts, no content.',
    }),
    headers: withDefault(
      Type.Record(Type.String({ pattern: HeaderName }), Type.String(), { description: 'Headers for the collector.' }),
      {},
    ),
    sample: withDefault(Type.Number({ minimum: 0, maximum: 1, description: 'The share of those traces that begin here.' }), 1),
    service_name: withDefault(Text('`service.name` of the spans.'), 'mizu'),
  },
  { ...closed, description: 'OpenTelemetry traces. If absent, they are off. Read at start.' },
);

/** The longest text that V8 makes, in bytes of ASCII. The WebSocket library would read one above 2³¹ as no limit. */
const LONGEST_TEXT = 536_870_888;

const Limits = Type.Object(
  {
    json_bytes: withDefault(
      Type.Integer({
        minimum: 1024,
        maximum: LONGEST_TEXT,
        description: 'The most bytes that a JSON request may have, a WebSocket message too.',
      }),
      33_554_432,
    ),
    json_values: withDefault(
      Type.Integer({
        minimum: 1024,
        description:
          'The most JSON values (objects, arrays, strings, numbers, literals) that a request may have, the history that it continues included.',
      }),
      250_000,
    ),
    multipart_bytes: withDefault(
      Type.Integer({ minimum: 1024, description: 'The most bytes that a form with uploads may have.' }),
      67_108_864,
    ),
    event_bytes: withDefault(
      Type.Integer({
        minimum: 1024,
        maximum: LONGEST_TEXT,
        description: 'The most that one event of an upstream may have.',
      }),
      67_108_864,
    ),
    answer_bytes: withDefault(
      Type.Integer({
        minimum: 1024,
        description: 'The most that an answer of an upstream may have, whole or as a stream.',
      }),
      134_217_728,
    ),
    body_ms: Milliseconds('The time to receive a request body. Read at start.', 60_000),
    connections: withDefault(
      Type.Integer({ minimum: 1, description: 'The most connections of clients in each process. Read at start.' }),
      20_000,
    ),
    key_exchanges: withDefault(
      Type.Integer({
        minimum: 1,
        description: 'The requests that one API key may have open in each process.',
      }),
      20_000,
    ),
    key_body_bytes: withDefault(
      Type.Integer({
        minimum: 1024,
        description:
          'The bytes of request bodies that one API key may have in a process at once, and 100 for each JSON value in them. Never more than half of what the process may have.',
      }),
      1_073_741_824,
    ),
    body_bytes: withDefault(
      Type.Integer({
        minimum: 1024,
        description: 'The same of all keys together. Never more than a quarter of the heap that Node allows.',
      }),
      2_147_483_648,
    ),
  },
  closed,
);

const Dispatch = Type.Object(
  {
    max_attempts: withDefault(
      Type.Integer({
        minimum: 1,
        maximum: 32,
        description: 'The most requests to upstreams that one request of a client may cost.',
      }),
      6,
    ),
    max_retry_wait_ms: Milliseconds('The longest `Retry-After` that an exchange waits for.', 5_000),
  },
  closed,
);

const Health = Type.Object(
  {
    failures: withDefault(
      Type.Integer({
        minimum: 1,
        description: 'A circuit opens after this many failed attempts in the window, if they are at least half of all.',
      }),
      5,
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
    entry_bytes: withDefault(Type.Integer({ minimum: 0, description: 'The most that one conversation may have.' }), 33_554_432),
    key_bytes: withDefault(
      Type.Integer({ minimum: 0, description: 'The most that all conversations of one key may have.' }),
      134_217_728,
    ),
    total_bytes: withDefault(
      Type.Integer({
        minimum: 0,
        description: 'The most that all conversations in this process may have.',
      }),
      536_870_912,
    ),
  },
  { ...closed, description: 'The responses that may be continued by id. Whatever was not used for longest goes first.' },
);

const Websocket = Type.Object(
  {
    turns: withDefault(
      Type.Integer({ minimum: 1, maximum: 100_000, description: 'The most turns that one connection may have.' }),
      128,
    ),
    idle_ms: Milliseconds('A connection without a turn for this long is closed.', 600_000),
    lifetime_ms: Milliseconds('A connection that is older than this begins no new turn.', 3_600_000),
    per_key: withDefault(
      Type.Integer({ minimum: 1, description: 'The connections that one key may have open in each process.' }),
      64,
    ),
    unfinished_bytes: withDefault(
      Type.Integer({
        minimum: 1024,
        description: 'The most that messages of one key, of which a part is still to come, may have in a process.',
      }),
      67_108_864,
    ),
  },
  closed,
);

const Timeouts = Type.Object(
  {
    connect_ms: Milliseconds('The time to connect, TLS included.', 10_000),
    first_data_ms: Milliseconds(
      'The time to the first data event or, without a stream, to the end of the answer. Comments do not count.',
      600_000,
    ),
    idle_ms: Milliseconds('The longest silence between bytes once data flows.', 120_000),
    write_stall_ms: Milliseconds('A client that takes nothing for this long is let go.', 60_000),
  },
  closed,
);

const Affinity = Type.Object(
  {
    max_entries: withDefault(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000,
        description: 'The most conversations whose Channel is remembered. Read at start.',
      }),
      50_000,
    ),
    idle_ms: Milliseconds('A conversation without a request for this long is forgotten.', 1_800_000),
  },
  closed,
);

export const CONFIG_SCHEMA = Type.Object(
  {
    $schema: Type.Optional(Type.String({ description: 'For editors: where this schema is.' })),
    listen: section(Listen),
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
    node: section(Node),
    store: section(Store),
    trusted_proxies: withDefault(
      Type.Array(Text('An address or CIDR range.'), {
        description: 'Addresses and CIDR ranges whose forwarding headers are believed.',
      }),
      [],
    ),
    ledger: section(Ledger),
    log: section(Log),
    tracing: Type.Optional(Tracing),
    limits: section(Limits),
    dispatch: section(Dispatch),
    health: section(Health),
    history: section(History),
    websocket: section(Websocket),
    affinity: section(Affinity),
    timeouts: section(Timeouts),
    commit_after_ms: Milliseconds('A stream that has nothing to say after this long gets its 200 and keep-alives.', 10_000),
    keep_alive_ms: Milliseconds('The silence after which a comment is sent to the client.', 15_000),
    drain_ms: Milliseconds('How long open streams may go on after SIGTERM.', 30_000),
    channel_header: withDefault(Type.Boolean({ description: 'Answers carry `x-mizu-channel`, the id of the Channel.' }), false),
    channels: withDefault(Type.Array(Channel, { description: 'The upstreams.' }), []),
    models: withDefault(
      Type.Record(Type.String({ minLength: 1 }), MODEL_SCHEMA, { description: 'What clients may ask for, by its name.' }),
      {},
    ),
    classes: withDefault(
      Type.Record(
        Type.String({ minLength: 1 }),
        Type.Object({ limits: Type.Optional(RateLimits('all accounts of this class together')) }, closed),
        { description: 'Classes of accounts, by name.' },
      ),
      {},
    ),
  },
  { ...closed, $id: 'https://mizu.invalid/mizu.schema.json', title: 'Mizu configuration' },
);

/** A file whose shape is right, before the defaults are filled in. */
export type WrittenConfig = Static<typeof CONFIG_SCHEMA>;
type Sections = Filled<typeof CONFIG_SCHEMA>;
/** A file with every default filled in. */
export interface ConfigFile extends Omit<Sections, 'channels' | 'models'> {
  readonly channels: readonly ChannelEntry[];
  readonly models: Readonly<Record<string, ModelEntry>>;
}
export type ChannelEntry = Filled<(typeof CHANNEL_SCHEMAS)[keyof typeof CHANNEL_SCHEMAS]>;
export type ModelEntry = Filled<typeof MODEL_SCHEMA>;
/** A section of the file, as it is there when every default is filled in. */
export type SectionOf<Name extends keyof Sections> = Sections[Name];
export type RateLimitsEntry = Static<ReturnType<typeof RateLimits>>;
