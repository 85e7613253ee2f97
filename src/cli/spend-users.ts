/**
 * `mizu spend users`: what each end user cost, as far back as the request log
 * goes. Whom a request was for is what the client named.
 */
import type { Static } from 'typebox';
import { defined } from '../codecs/defined.ts';
import { RefusedError } from '../http/admin/refusals.ts';
import { SpendQuery } from '../http/admin/requests.ts';
import { countsOf } from '../store/day-usage.ts';
import { formatUsd } from '../store/money.ts';
import type { RequestLogRow } from '../store/request-log.ts';
import { dayNumber } from '../store/spend-windows.ts';
import { accountNamed, checkDays } from './operator-input.ts';
import { table, type Verb, type VerbContext, verb } from './verb.ts';

const PAGE = 1000;
const DAY_MS = 86_400_000;

/** What the requests for one end user cost. */
export interface UserSpend {
  /** Empty: of requests that named none. */
  readonly user: string;
  readonly requests: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** US dollars. */
  readonly charged: string;
}

interface Sum {
  requests: number;
  inputTokens: number;
  outputTokens: number;
  nanos: bigint;
}

/** The dearest first. */
async function spendByUser(context: VerbContext, query: Static<typeof SpendQuery>): Promise<UserSpend[]> {
  checkDays(query);
  const sums = new Map<string, Sum>();
  for await (const row of rowsOf(context, query)) addRow(sums, row);
  return [...sums]
    .sort(([, one], [, other]) => (one.nanos < other.nanos ? 1 : one.nanos > other.nanos ? -1 : other.requests - one.requests))
    .map(([user, { nanos, ...counts }]) => ({ user, ...counts, charged: formatUsd(nanos) }));
}

async function* rowsOf(
  context: VerbContext,
  { account, key, from, to }: Static<typeof SpendQuery>,
): AsyncGenerator<RequestLogRow> {
  const { requestLog, keys } = await context.store();
  // A key that is mistyped has cost nothing either.
  if (key !== undefined && (await keys.find(key)) === undefined)
    throw new RefusedError(`there is no key ${key}`, 'unknown', 'unknown_key');
  const accountId = account === undefined ? undefined : (await accountNamed(context, account)).id;
  const [first, last] = [dayNumber(from ?? ''), dayNumber(to ?? '')];
  const sinceMs = first === undefined ? undefined : first * DAY_MS;
  const untilMs = last === undefined ? undefined : (last + 1) * DAY_MS;
  const signal = context.interrupted();
  for (let before: number | undefined; ; ) {
    // The sums of a part would read as those of all.
    signal.throwIfAborted();
    const page = await requestLog.list({ limit: PAGE, ...defined({ keyId: key, accountId, sinceMs, untilMs, before }) });
    yield* page;
    before = page.at(-1)?.seq;
    if (page.length < PAGE) return;
  }
}

function addRow(sums: Map<string, Sum>, { endUser = '', usage, charge }: RequestLogRow): void {
  const sum = sums.get(endUser) ?? { requests: 0, inputTokens: 0, outputTokens: 0, nanos: 0n };
  const { inputTokens = 0, cachedInputTokens = 0, cacheWriteTokens = 0, outputTokens = 0 } = countsOf(usage);
  sum.requests += 1;
  sum.inputTokens += inputTokens + cachedInputTokens + cacheWriteTokens;
  sum.outputTokens += outputTokens;
  sum.nanos += charge?.total ?? 0n;
  sums.set(endUser, sum);
}

function textOf(users: readonly UserSpend[]): string {
  const rows = users.map(({ user, requests, inputTokens, outputTokens, charged }) => [
    user === '' ? '-' : user,
    ...[requests, inputTokens, outputTokens].map(String),
    charged,
  ]);
  return table([['USER', 'REQUESTS', 'INPUT', 'OUTPUT', 'CHARGED USD'], ...rows]);
}

export const SPEND_USERS: Verb = verb({
  name: 'spend users',
  usage: 'users [--account NAME] [--key ID] [--from DAY] [--to DAY]',
  does: 'What each end user cost, the dearest first, as far back as the request log goes. Video tasks are not in it.',
  options: SpendQuery,
  run: spendByUser,
  text: textOf,
});
