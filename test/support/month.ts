/**
 * A seeded month of exchanges in a store, made in order so that it goes on where it stopped, and what each view of the console
 * asks of it.
 */
import { randomUUID } from 'node:crypto';
import type { TestContext } from 'node:test';
import type { AdminRole } from '../../src/store/admin-tokens.ts';
import type { Principal } from '../../src/store/keys.ts';
import type { RequestLogEntry } from '../../src/store/request-log.ts';
import type { Store } from '../../src/store/store.ts';
import { type AdminGateway, adminGateway } from '../admin/admin-gateway.ts';
import type { Clock } from '../../src/store/store.ts';
import { entry, ok, realClock, T0 } from '../store/support/store.ts';
import { systemClock } from '../../src/streams/clock.ts';

const MONTH_MS = 30 * 86_400_000;
/** What is asked for and written at once. */
const IN_FLIGHT = 384;

/** Its time is the month's, its timers are the machine's. */
export class MonthClock implements Clock {
  atMs = T0;
  readonly now = () => this.atMs;
  readonly after = realClock.after;
}

/** Wealthy accounts with one key each; where they were made before they are found again. */
export async function monthOwners(store: Store, count: number): Promise<Principal[]> {
  const owners: Principal[] = [];
  const cause = (id: string) => ({ id, by: 'month' });
  for (let n = 0; n < count; n += 1) {
    const name = `month-${n}`;
    const known = (await store.accounts.list()).find((account) => account.name === name);
    const account = known ?? ok(await store.accounts.create({ name, creditNanos: 10n ** 15n }, cause(`account-${n}`)));
    const [found] = await store.keys.list(account.id);
    owners.push({ account, key: found ?? ok(await store.keys.create({ accountId: account.id, name }, cause(`key-${n}`))).key });
  }
  return owners;
}

/**
 * The `n`th exchange: keys, models and Channels in every combination, one of fifty failed, one of a thousand at a Channel that
 * was asked seldom.
 */
export function monthExchange(owners: readonly Principal[], name: string, n: number): RequestLogEntry {
  const owner = owners[n % owners.length];
  if (owner === undefined) throw new Error('nobody asks');
  const channelId = n % 1_000 === 7 ? 'seldom' : `channel-${Math.floor(n / 7) % 4}`;
  const attempt = { channelId, channelType: 'chat', upstreamModel: 'u', startedAtMs: T0, durationMs: 900 };
  const failed = n % 50 === 0;
  const errorCode = n % 5_000 === 0 ? 'rate_limited' : 'upstream_error';
  return entry(owner, `${name}-${n}`, 777n, {
    attempts: [failed ? { ...attempt, errorCode, errorText: 'the upstream says no', upstreamStatus: 529 } : attempt],
    model: `model-${n % 5}`,
    usage: { input: 1_200, output: 345 },
    firstOutputMs: 200 + (n % 900),
    ...(failed ? { status: 'error', errorCode, httpStatus: 502 } : { channelId, httpStatus: 200 }),
  });
}

/** Writes what is missing of `exchanges`, spread over thirty days that end at `monthEnd`. */
export async function fillMonth(store: Store, clock: MonthClock, owners: readonly Principal[], exchanges: number): Promise<void> {
  const step = MONTH_MS / exchanges;
  const first = await store.requestLog.head();
  clock.atMs = T0 + first * step;
  for (let n = first; n < exchanges; n += 1) {
    void store.settlements.settle({ entry: monthExchange(owners, 'month', n) });
    if (n % IN_FLIGHT !== IN_FLIGHT - 1) continue;
    await store.settlements.flush();
    clock.atMs = T0 + n * step;
  }
  await store.settlements.flush();
}

/** The gateway at the end of that month. */
export async function monthGateway(t: Pick<TestContext, 'after'>, store: Store): Promise<AdminGateway> {
  const secret = async (role: AdminRole): Promise<string> => {
    const name = `month-${role}-${randomUUID()}`;
    return ok(await store.adminTokens.create({ name, role }, { id: name, by: 'month' })).secret;
  };
  const channel = (id: string) => ({ id, type: 'chat_completion', base_url: 'http://127.0.0.1:1', api_key: 'k', models: MODELS });
  return adminGateway(t, {
    store,
    tokens: { read: await secret('read'), write: await secret('write') },
    clock: { ...systemClock, now: () => T0 + MONTH_MS },
    file: {
      channels: ['channel-0', 'channel-1', 'channel-2', 'channel-3', 'seldom'].map(channel),
      models: Object.fromEntries(MODELS.map((model) => [model, {}])),
    },
  });
}

const MODELS = ['model-0', 'model-1', 'model-2', 'model-3', 'model-4'];
const NAMES = ['accounts?limit=1000', 'keys?limit=1000'];
/** A month is plotted by day. */
const overview = (more: string): string[] =>
  [more.includes('30d') ? 'day' : 'hour', 'code', 'model', 'channel', 'key']
    .map((by) => `overview?by=${by}&${more}`)
    .concat(NAMES);
const log = (more: string): string[] => [`exchanges?limit=100${more}`, 'models', 'channels', ...NAMES];

/** By view: what its page asks at once. */
export function consoleViews([one]: readonly Principal[], exchanges: number): Readonly<Record<string, readonly string[]>> {
  const [accountId, keyId] = [one?.account.id ?? '', one?.key.id ?? ''];
  const day = 'overview?from=24h&by=channel';
  return {
    'overview, 24 hours': overview('from=24h'),
    'overview, 7 days': overview('from=7d'),
    'overview, 30 days': overview('from=30d'),
    'overview, 30 days of a model': overview('from=30d&model=model-1'),
    'overview, 30 days of a Channel': overview('from=30d&channel=seldom'),
    'overview, 30 days of a key': overview(`from=30d&key=${keyId}`),
    attention: [
      'channels',
      'models',
      'videos?state=unknown&limit=100',
      NAMES[0] ?? '',
      'overview?from=1h&by=channel',
      'config/check',
    ],
    exchanges: log(''),
    'exchanges, the oldest page': log('&before=101'),
    'exchanges of 30 days': log('&since=30d'),
    'exchanges of an account': log(`&account=${accountId}`),
    'exchanges of a key': log(`&key=${keyId}`),
    'exchanges of a model': log('&model=model-3'),
    'exchanges of a Channel': log('&channel=seldom'),
    'exchanges that failed': log('&status=error'),
    'exchanges with an error code': log('&code=rate_limited'),
    'exchanges by five filters': log(`&account=${accountId}&key=${keyId}&model=model-0&status=error&code=upstream_error`),
    'exchanges by filters that nothing fits': log(`&key=${keyId}&model=model-1`),
    'exchanges of a model that nobody asked for': log('&model=nothing'),
    'one exchange': [`exchanges/month-${Math.floor(exchanges / 2)}`, ...NAMES],
    accounts: ['accounts?limit=100'],
    'one account': [`accounts/${accountId}`, `keys?account=${accountId}&limit=1000`, `balances?account=${accountId}`],
    keys: ['keys?limit=100', ...NAMES],
    'one key': [`keys/${keyId}`, ...NAMES],
    channels: ['channels', day],
    prices: ['models'],
    videos: ['videos?limit=100', ...NAMES],
    ledger: ['ledger/head', 'ledger/journal?limit=100', 'ledger/holds', ...NAMES],
    'ledger of an account': ['ledger/head', `ledger/journal?limit=100&account=${accountId}`, 'ledger/holds', ...NAMES],
    gateway: ['tokens', 'config/check', '/healthz'],
  };
}

/** How long everything that a view asks takes, milliseconds. Throws where something is refused. */
export async function viewMs(gateway: AdminGateway, asked: readonly string[]): Promise<number> {
  const began = performance.now();
  const answers = await Promise.all(asked.map((path) => gateway.ask(path)));
  const ms = performance.now() - began;
  for (const [at, { status, text }] of answers.entries()) if (status !== 200) throw new Error(`${asked[at]}: ${status} ${text}`);
  return ms;
}
