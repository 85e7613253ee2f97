/**
 * What operators ask for, as schemas: the request bodies of the admin API, and the options of the verbs that do the same. Amounts
 * are decimal US dollars as text; `null` takes a restriction away.
 */
import { type TSchema, Type } from 'typebox';
import { MOST_OF_LIMITS, type RATE_LIMIT_NAMES, type RateLimitName } from '../../store/rate-limits.ts';

const closed = { additionalProperties: false } as const;
const Optional = Type.Optional;

const Text = (description: string) => Type.String({ maxLength: 10_000, description });
/** Of something that the gateway or an operator named; nothing has a longer one. */
const Id = (description: string) => Type.String({ maxLength: 256, description });
const Count = (minimum: number, maximum: number, description: string) => Type.Integer({ minimum, maximum, description });
const List = (description: string) => Type.Array(Type.String({ maxLength: 1_000 }), { maxItems: 10_000, description });
const OrNone = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);
const Usd = (description: string) => Type.String({ maxLength: 64, description });
const Day = (description: string) => Type.String({ maxLength: 10, description });

/** By name or id. */
const AccountName = Text('The account, by name or by id.');
const KeyId = Id('The id of the key.');

const RateLimit = (name: RateLimitName, description: string) => Optional(OrNone(Count(1, MOST_OF_LIMITS[name], description)));

const RATE_LIMITS = {
  requestsPerMinute: RateLimit('requestsPerMinute', 'Requests a minute.'),
  tokensPerMinute: RateLimit('tokensPerMinute', 'Tokens a minute, input and output together.'),
  maxConcurrency: RateLimit('maxConcurrency', 'Requests that are answered at the same time.'),
} satisfies Record<(typeof RATE_LIMIT_NAMES)[number], unknown>;
const RateLimits = Optional(Type.Object(RATE_LIMITS, closed));

export const Nothing = Type.Object({}, closed);

export const CreateAccount = Type.Object(
  {
    name: Text('The name, unique.'),
    class: Optional(Text('The class, which decides which Channels serve the account. Default "default".')),
    credit: Optional(Usd('The opening credit.')),
    unlimited: Optional(Type.Boolean({ description: 'Its usage is journaled, but its wallet is never debited.' })),
    rateLimits: RateLimits,
  },
  closed,
);
export const ChangeAccount = Type.Object(
  {
    account: AccountName,
    class: Optional(Text('The new class.')),
    unlimited: Optional(Type.Boolean({ description: 'Whether the wallet is never debited.' })),
    disabled: Optional(Type.Boolean({ description: 'Whether its keys are refused.' })),
    rateLimits: RateLimits,
  },
  closed,
);
export const OneAccount = Type.Object({ account: AccountName }, closed);
export const AnyAccount = Type.Object({ account: Optional(AccountName) }, closed);
export const CreditAccount = Type.Object(
  { account: AccountName, amount: Usd('What is added to the wallet; negative: a correction.') },
  closed,
);

const KEY = {
  name: Optional(Text('The name, for people.')),
  expires: Optional(Text('A time such as 2027-01-31T00:00:00Z, or a span from now: 90s, 45m, 12h, 30d.')),
  models: Optional(List('The models that it may call. Absent: all.')),
  ips: Optional(List('Addresses and CIDR ranges that it may be used from. Absent: everywhere.')),
};
export const CreateKey = Type.Object(
  {
    account: AccountName,
    ...KEY,
    limits: Optional(
      Type.Object(
        {
          total: Optional(Usd('The most that it may ever spend.')),
          hourly: Optional(Usd('The most that it may spend in a UTC hour.')),
          daily: Optional(Usd('The most that it may spend in a UTC day.')),
        },
        closed,
      ),
    ),
    rateLimits: RateLimits,
    subAccount: Optional(Type.Boolean({ description: 'It pays from a balance of its own.' })),
  },
  closed,
);
export const ChangeKey = Type.Object(
  {
    id: KeyId,
    name: KEY.name,
    expires: Optional(OrNone(Text('A time, or a span from now.'))),
    models: Optional(OrNone(List('The models that it may call.'))),
    ips: Optional(OrNone(List('Addresses and CIDR ranges that it may be used from.'))),
    limits: Optional(
      Type.Object(
        {
          total: Optional(OrNone(Usd('The most that it may ever spend.'))),
          hourly: Optional(OrNone(Usd('The most that it may spend in a UTC hour.'))),
          daily: Optional(OrNone(Usd('The most that it may spend in a UTC day.'))),
        },
        closed,
      ),
    ),
    rateLimits: RateLimits,
    disabled: Optional(Type.Boolean({ description: 'Whether it is refused.' })),
  },
  closed,
);
export const OneKey = Type.Object({ id: KeyId }, closed);
export const RotateKey = Type.Object(
  { id: KeyId, grace: Optional(Text('How long the old key still works: 90s, 45m, 12h, 30d. Default: not at all.')) },
  closed,
);
export const TransferToKey = Type.Object(
  { id: KeyId, amount: Usd('What goes from the wallet to the sub-account; negative: back.') },
  closed,
);

export const BackUpStore = Type.Object(
  {
    folder: Text(
      'A folder that is not there yet, or empty. Over the admin API: below `store.backups`, on the machine of the gateway.',
    ),
  },
  closed,
);
export const RestoreStore = Type.Object(
  { folder: Text('The folder of a backup.'), to: Optional(Text('A folder or a postgres:// address, empty.')) },
  closed,
);

export const SpendQuery = Type.Object(
  {
    account: Optional(AccountName),
    key: Optional(KeyId),
    from: Optional(Day('The first UTC day, such as 2026-03-01.')),
    to: Optional(Day('The last UTC day.')),
  },
  closed,
);

export const VerifyLedger = Type.Object(
  { head: Optional(Type.String({ maxLength: 100, description: 'A head that was kept: SEQ:HASH.' })) },
  closed,
);
export const JournalQuery = Type.Object(
  {
    account: Optional(AccountName),
    ref: Optional(Id('The exchange, task or cause.')),
    after: Optional(Count(0, Number.MAX_SAFE_INTEGER - 1, 'Only rows with a greater number.')),
    limit: Optional(Count(1, 100_000, 'The most rows.')),
  },
  closed,
);

const State = Type.Union([
  Type.Literal('queued'),
  Type.Literal('submitting'),
  Type.Literal('running'),
  Type.Literal('succeeded'),
  Type.Literal('failed'),
  Type.Literal('cancelled'),
  Type.Literal('unknown'),
]);

export const VideoQuery = Type.Object(
  {
    state: Optional(State),
    limit: Optional(Count(1, 1000, 'The most tasks. Default 50.')),
  },
  closed,
);
export const OneVideo = Type.Object({ id: Id('The id of the task.') }, closed);
export const ResolveVideo = Type.Object(
  {
    id: Id('The id of the task.'),
    succeeded: Optional(Text('The URL of the result.')),
    failed: Optional(Text('The message of the failure.')),
  },
  closed,
);

const INFERENCE = {
  inference: Optional(
    Type.Boolean({
      description:
        'Ask each a short question, which costs some tokens at the vendor. A Channel without a model list is asked one in any case.',
    }),
  ),
  model: Optional(Text('The model to ask the question of, as clients name it. Default: the first that answers with text.')),
};
export const TestChannels = Type.Object(
  { id: Optional(Text('The id of the Channel. Absent: all of them.')), ...INFERENCE },
  closed,
);
export const TestEveryChannel = Type.Object(INFERENCE, closed);

/** Of a list: how many, and behind which one. */
const PAGE = {
  limit: Optional(Count(1, 1000, 'The most rows. Default 100.')),
  after: Optional(Text('The `nextCursor` of the page before.')),
};
const Search = Optional(Text('Part of a name or an id.'));
const Moment = (description: string) =>
  Type.String({
    maxLength: 64,
    description: `${description} A time such as 2026-03-01T12:00:00Z, or how long ago: 15m, 24h, 30d.`,
  });

export const AccountQuery = Type.Object({ search: Search, ...PAGE }, closed);
export const KeyQuery = Type.Object({ account: Optional(AccountName), search: Search, ...PAGE }, closed);
export const JournalPage = Type.Object(
  {
    account: Optional(AccountName),
    ref: Optional(Id('The exchange, task or cause.')),
    after: Optional(Count(0, Number.MAX_SAFE_INTEGER - 1, 'Only rows with a greater number.')),
    limit: Optional(Count(1, 1000, 'The most rows. Default 100.')),
  },
  closed,
);

const ChannelId = Id('The id of the Channel.');
export const OneChannel = Type.Object({ id: ChannelId }, closed);
export const TestChannel = Type.Object({ id: ChannelId, ...INFERENCE }, closed);

const EXCHANGES = {
  account: Optional(AccountName),
  key: Optional(KeyId),
  model: Optional(Text('As clients name it.')),
  channel: Optional(Text('The Channel that answered.')),
  code: Optional(Text('The error code, or the status of a row without one that is no success.')),
  status: Optional(
    Type.Union([Type.Literal('success'), Type.Literal('error'), Type.Literal('interrupted')], { description: 'How it ended.' }),
  ),
};
export const ExchangeQuery = Type.Object(
  {
    ...EXCHANGES,
    since: Optional(Moment('The first moment.')),
    until: Optional(Moment('The moment before which they were logged.')),
    before: Optional(Count(1, Number.MAX_SAFE_INTEGER, 'The `nextCursor` of the page before.')),
    limit: Optional(Count(1, 1000, 'The most rows. Default 100.')),
  },
  closed,
);
export const LiveQuery = Type.Object(
  {
    ...EXCHANGES,
    after: Optional(Count(0, Number.MAX_SAFE_INTEGER, 'Only rows behind this one. Default: those that come from now on.')),
    limit: Optional(Count(1, 1000, 'The most rows of one look, every half a second; of more the newest. Default 1000.')),
  },
  closed,
);
export const OneExchange = Type.Object({ id: Text('The id of the exchange, that of its answer, or the client’s own.') }, closed);

const Dimension = Type.Union([
  Type.Literal('hour'),
  Type.Literal('day'),
  Type.Literal('account'),
  Type.Literal('key'),
  Type.Literal('model'),
  Type.Literal('channel'),
  Type.Literal('code'),
]);
export const OverviewQuery = Type.Object(
  {
    from: Optional(Moment('The first hour. Default 24h.')),
    to: Optional(Moment('The hour behind the last. Default: now.')),
    by: Optional(Type.Array(Dimension, { maxItems: 7, description: 'Groups, with commas.' })),
    account: Optional(AccountName),
    key: Optional(KeyId),
    model: Optional(Text('As clients name it.')),
    channel: Optional(Text('The Channel that answered.')),
  },
  closed,
);

export const CreateToken = Type.Object(
  {
    name: Text('The name, unique: what the journal calls whoever uses it.'),
    role: Type.Union([Type.Literal('read'), Type.Literal('write')], { description: 'Whether it may change anything.' }),
  },
  closed,
);
export const OneToken = Type.Object({ name: Id('The name of the token.') }, closed);

export const SignInRequest = Type.Object({ token: Type.String({ maxLength: 512, description: 'An admin token.' }) }, closed);
