/**
 * What the admin API answers, as schemas: the rows of a list are what the verb prints with `--json`. Amounts are decimal US
 * dollars as text.
 */
import { type TProperties, type TSchema, Type } from 'typebox';

const Text = Type.String();
const Usd = Type.String({ description: 'Decimal US dollars.' });
const Ms = Type.Integer({ description: 'Milliseconds since the epoch.' });
const Count = Type.Integer({ minimum: 0 });
const Flag = Type.Boolean();
const Optional = Type.Optional;

const Record = <Properties extends TProperties>(properties: Properties) =>
  Type.Object(properties, { additionalProperties: false });

/**
 * A page: `nextCursor` is what to give as `after` (or `before` where that is the query's name) for the next one, and is absent at
 * the end.
 */
export const Page = <Row extends TSchema>(row: Row) => Record({ data: Type.Array(row), nextCursor: Optional(Text) });
const All = <Row extends TSchema>(row: Row) => Record({ data: Type.Array(row) });

const RateLimits = Record({
  requestsPerMinute: Optional(Count),
  tokensPerMinute: Optional(Count),
  maxConcurrency: Optional(Count),
});

export const Account = Record({
  id: Text,
  name: Text,
  class: Text,
  unlimited: Flag,
  disabled: Flag,
  rateLimits: Optional(RateLimits),
  balance: Usd,
});
export const Accounts = Page(Account);

const KEY = {
  id: Text,
  accountId: Text,
  name: Text,
  prefix: Text,
  last4: Text,
  createdAtMs: Ms,
  expiresAtMs: Optional(Ms),
  disabled: Flag,
  deletedAtMs: Optional(Ms),
  models: Optional(Type.Array(Text)),
  ips: Optional(Type.Array(Text)),
  limits: Record({ total: Optional(Usd), hourly: Optional(Usd), daily: Optional(Usd) }),
  rateLimits: Optional(RateLimits),
  subAccount: Flag,
};
export const Key = Type.Object(KEY);
export const NewKey = Type.Object({
  ...KEY,
  key: Optional(Type.String({ description: 'The key itself, this once: a repetition under the same Idempotency-Key has none.' })),
});
export const RotatedKey = Type.Object({
  ...NewKey.properties,
  replaces: Text,
  replacedUntilMs: Optional(Type.Integer({ description: 'When the old key ends; absent: it is disabled.' })),
});
export const Backup = Record({
  folder: Text,
  journalRows: Count,
  head: Type.String({ description: 'SEQ:HASH of the newest journal row, to be kept elsewhere.' }),
  openExchanges: Type.Integer({ minimum: 0, description: 'Open at that moment, and not in it.' }),
});
export const Secret = Record({ secret: Type.Integer({ minimum: 1, maximum: 255, description: 'Its number.' }) });
export const Keys = Page(Key);
export const SubAccount = Record({ id: Text, balance: Usd });
export const Balances = All(Record({ account: Text, key: Optional(Text), balance: Usd }));
export const Spend = All(
  Type.Object({ key: Text, name: Text, account: Text, day: Text, requests: Count, charged: Usd }, { additionalProperties: true }),
);

const Circuit = Record({
  model: Optional(Text),
  state: Type.Union([Type.Literal('closed'), Type.Literal('open'), Type.Literal('trying')]),
  openForMs: Count,
  recentFailures: Count,
  worker: Optional(Type.Integer({ description: 'The process id of the worker that it is one of.' })),
});
export const Channel = Record({
  id: Text,
  type: Text,
  origin: Text,
  priority: Type.Number(),
  weight: Type.Number(),
  models: Type.Array(Text),
  state: Type.Union([Type.Literal('in_service'), Type.Literal('out_of_service'), Type.Literal('disabled')], {
    description: '`disabled` stands in the file and is stronger.',
  }),
  outOfService: Optional(Record({ by: Text, sinceMs: Ms, reason: Optional(Text) })),
  running: Count,
  circuits: Type.Array(Circuit),
});
export const Channels = All(Channel);
export const Probe = Record({ id: Text, ok: Flag, status: Optional(Count), ms: Count, note: Text, model: Optional(Text) });
export const Probes = All(Probe);

export const Models = All(
  Record({
    id: Text,
    kind: Text,
    price: Optional(Type.Unknown({ description: 'As the price list shows it; absent: it is not offered.' })),
    channels: Type.Array(Record({ id: Text, upstreamModel: Text, state: Text })),
  }),
);

const EXCHANGE = {
  seq: Count,
  exchangeId: Text,
  requestId: Text,
  accountId: Text,
  keyId: Text,
  endpoint: Text,
  model: Text,
  channelId: Optional(Text),
  stream: Flag,
  status: Text,
  httpStatus: Optional(Count),
  errorCode: Optional(Text),
  startedAtMs: Ms,
  durationMs: Type.Number(),
  firstOutputMs: Optional(Type.Number()),
  attempts: Count,
  inputTokens: Optional(Count),
  cachedInputTokens: Optional(Count),
  cacheWriteTokens: Optional(Count),
  outputTokens: Optional(Count),
  charge: Usd,
};
export const Exchange = Record(EXCHANGE);
export const Exchanges = Page(Exchange);
/** Each row as `logs --request ID --json` prints it, with its charge explained. */
export const ExchangeDetail = All(
  Type.Object({ exchangeId: Text, attempts: Type.Array(Type.Unknown()) }, { additionalProperties: true }),
);

const GROUP = {
  requests: Count,
  errors: Count,
  inputTokens: Count,
  cachedInputTokens: Count,
  cacheWriteTokens: Count,
  outputTokens: Count,
  reasoningTokens: Count,
  images: Count,
  videos: Count,
  durationMs: Type.Number({ description: 'The sum over all requests.' }),
  charge: Usd,
  firstTokenP50Ms: Optional(Type.Number()),
  firstTokenP95Ms: Optional(Type.Number()),
};
export const Overview = Record({
  fromMs: Ms,
  toMs: Ms,
  total: Record(GROUP),
  data: Type.Array(
    Record({
      hour: Optional(Ms),
      day: Optional(Text),
      account: Optional(Text),
      key: Optional(Text),
      model: Optional(Text),
      channel: Optional(Text),
      code: Optional(Text),
      ...GROUP,
    }),
  ),
});

export const LedgerHead = Record({ seq: Count, hash: Text });
export const Verification = Record({
  rows: Count,
  differences: Type.Array(Record({ what: Text, subject: Text, expected: Text, found: Text })),
});
export const Holds = All(Record({ id: Text, account: Text, key: Text, amount: Usd, opened: Text, task: Text }));
export const Journal = Page(
  Type.Object({
    seq: Count,
    atMs: Ms,
    kind: Text,
    ref: Text,
    from: Text,
    to: Text,
    nanos: Type.String({ description: 'Nano-dollars.' }),
    accountId: Optional(Text),
    keyId: Optional(Text),
    by: Optional(Text),
    note: Optional(Text),
    state: Optional(Text),
    hash: Text,
  }),
);

export const Video = Type.Object(
  { id: Text, state: Text, model: Text, accountId: Text, keyId: Text, price: Usd },
  { additionalProperties: true },
);
export const Videos = All(Video);

export const ConfigCheck = Record({
  valid: Flag,
  channels: Optional(Type.Array(Record({ id: Text, type: Text, origin: Text, models: Type.Array(Text) }))),
  models: Optional(Type.Array(Text)),
  notes: Optional(Type.Array(Text)),
  problems: Optional(Type.Array(Record({ path: Text, message: Text }))),
});

const TOKEN = {
  name: Text,
  role: Type.Union([Type.Literal('read'), Type.Literal('write')]),
  prefix: Text,
  last4: Text,
  createdAtMs: Ms,
};
export const AdminTokens = All(Record(TOKEN));
export const NewAdminToken = Record({ ...TOKEN, token: Type.String({ description: 'The token itself, this once.' }) });
export const Deleted = Record({ name: Text, deleted: Type.Literal(true) });
export const Session = Record({ name: Text, role: Type.Union([Type.Literal('read'), Type.Literal('write')]) });
