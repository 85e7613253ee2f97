/**
 * The shape of `mizu.config.json` as a TypeBox schema; its JSON Schema is generated from here (`mizu.schema.json`). Knows keys,
 * types and ranges; what spans several keys is `build-config.ts`. Unknown keys are refused everywhere.
 */
import { type Static, type TObject, Type } from 'typebox';
import { CHANNEL_SCHEMAS, PLATFORM_SCHEMAS } from './channel-schema.ts';
import { Affinity, Dispatch, Health, History, Limits, Timeouts, Websocket } from './limit-schemas.ts';
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
    tls: Type.Optional(
      Type.Object(
        {
          cert: Text('The certificate with its chain, PEM; best read from a file, as secrets are.'),
          key: Text('Its private key, PEM; read from a file, as secrets are.'),
        },
        { ...closed, description: 'Makes it speak HTTPS.' },
      ),
    ),
    insecure: withDefault(
      Type.Boolean({
        description: 'Let it listen beyond this machine without TLS: something in front of it encrypts, or nobody listens.',
      }),
      false,
    ),
  },
  closed,
);

type PlatformSchemas = typeof PLATFORM_SCHEMAS;
type PlainSchema = (typeof CHANNEL_SCHEMAS)[keyof typeof CHANNEL_SCHEMAS];
type HostedSchema = {
  [Type in keyof PlatformSchemas]: PlatformSchemas[Type][keyof PlatformSchemas[Type]];
}[keyof PlatformSchemas];

/** Every row of both tables: their types tell what an entry is, which a union of a list cannot. */
const Channel = Type.Unsafe<Static<PlainSchema | HostedSchema>>(
  Type.Union([
    ...Object.values(CHANNEL_SCHEMAS),
    ...Object.values(PLATFORM_SCHEMAS).flatMap((platforms) => Object.values<TObject>(platforms)),
  ]),
);

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
    price_as: Type.Optional(
      Text('The name of the model in `price_book`, where it has another there, or several have it (`openai/gpt-x`).'),
    ),
    fallbacks: Type.Optional(
      Type.Array(Text('The name of a model.'), {
        maxItems: 16,
        description:
          'Other models, of the same kind and with a price, that are tried in this order when every Channel of this one has failed and nothing was sent to the client. Their own fallbacks are not followed. Text and image models only.',
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
    min_thinking_budget: Type.Optional(
      Type.Integer({
        minimum: 0,
        description: 'The smallest thinking budget that its upstreams take, in tokens. Default: that of the Gemini 2.5 model.',
      }),
    ),
    max_thinking_budget: Type.Optional(
      Type.Integer({
        minimum: 1,
        description: 'The largest thinking budget that its upstreams take, in tokens. Default: that of the Gemini 2.5 model.',
      }),
    ),
    max_output_tokens: Type.Optional(
      Type.Integer({
        minimum: 1,
        description: 'The most that is reserved for an answer. Used to estimate a request that sets no cap.',
      }),
    ),
    reasoning: withDefault(
      Type.Boolean({
        description:
          'Whether the model may reason out of sight. If not, a stream that its client left is charged by its text alone, and not by its time.',
      }),
      true,
    ),
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
    backups: Type.Optional(
      Text(
        'The folder below which the admin API makes backups, relative to the configuration file. Default: `path` with `-backups` behind it.',
      ),
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
    unpriced: withDefault(
      Type.Union([Type.Literal('flag'), Type.Literal('refuse')], {
        description:
          'What happens to a request with a tier, speed, region, cache lifetime or fallback model that changes the vendor’s price and has no price here: its charge is flagged, or it is a 403. What only the answer tells is always flagged.',
      }),
      'flag',
    ),
    charge_failures: withDefault(
      Type.Union([Type.Literal('reported'), Type.Literal('never')], {
        description: 'What an answer that failed before its first output costs: the usage that the failure reported, or nothing.',
      }),
      'reported',
    ),
    alert_balance: withDefault(
      Type.Union([Text('US dollars as a decimal string.'), Type.Null()], {
        description:
          'A balance under this many US dollars is told, once until it has recovered: a line at warn, and `mizu_ledger_alerts_total`. `null`: never.',
      }),
      '1',
    ),
    alert_window: withDefault(
      Type.Number({
        minimum: 0,
        maximum: 1,
        description: 'The same where less than this share of a key’s spend limit is left. 0: never.',
      }),
      0.1,
    ),
    alert_accounts: withDefault(
      Type.Record(Type.String({ minLength: 1 }), Text('US dollars as a decimal string.'), {
        description: 'The balances of accounts with a threshold of their own, by the name or id of the account.',
      }),
      {},
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
    warm_up_ms: withDefault(
      Type.Integer({
        minimum: 0,
        maximum: 60_000,
        description:
          'How long a process may run synthetic exchanges when it has started, so that its first requests meet compiled code. 0: not at all.',
      }),
      3_000,
    ),
    worker_silence_ms: withDefault(
      Type.Integer({
        minimum: 0,
        maximum: 86_400_000,
        description:
          'With `--workers`: one whose event loop did not turn for this long is killed and replaced. Counted in seconds. 0: none is.',
      }),
      30_000,
    ),
    drain_ms: Milliseconds('How long open streams may go on after SIGTERM.', 30_000),
    channel_header: withDefault(Type.Boolean({ description: 'Answers carry `x-mizu-channel`, the id of the Channel.' }), false),
    channels: withDefault(Type.Array(Channel, { description: 'The upstreams.' }), []),
    models: withDefault(
      Type.Record(Type.String({ minLength: 1 }), MODEL_SCHEMA, { description: 'What clients may ask for, by its name.' }),
      {},
    ),
    price_book: Type.Optional(
      Text(
        'A file with prices for models that have none of their own, relative to the configuration file: LiteLLM’s `model_prices_and_context_window.json` or the `api.json` of models.dev.',
      ),
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
/** An entry behind a platform. */
export type HostedEntry = Filled<HostedSchema>;
export type ChannelEntry = Filled<PlainSchema> | HostedEntry;
export type ModelEntry = Filled<typeof MODEL_SCHEMA>;
/** A section of the file, as it is there when every default is filled in. */
export type SectionOf<Name extends keyof Sections> = Sections[Name];
export type RateLimitsEntry = Static<ReturnType<typeof RateLimits>>;
