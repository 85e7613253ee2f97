/** What was asked, failed and charged in a time, in groups. */
import type { Static } from 'typebox';
import { defined } from '../codecs/defined.ts';
import { InputError } from '../http/admin/refusals.ts';
import type { OverviewQuery } from '../http/admin/requests.ts';
import { formatUsd } from '../store/money.ts';
import type { RequestLogRow } from '../store/request-log.ts';
import { accountNamed, moment } from './operator-input.ts';
import type { VerbContext } from './verb.ts';

type Dimension = NonNullable<Static<typeof OverviewQuery>['by']>[number];

const HOUR_MS = 3_600_000;
/** Rows that are looked through at most, the newest first. */
const MOST_ROWS = 200_000;
const PAGE = 1000;

interface Sums {
  readonly members: object;
  requests: number;
  errors: number;
  inputTokens: number;
  cachedInputTokens: number;
  outputTokens: number;
  reasoningTokens: number;
  images: number;
  durationMs: number;
  nanos: bigint;
  readonly firstMs: number[];
}

/** Whole UTC hours: those that begin before `to` and end after `from`. */
export async function overview(context: VerbContext, query: Static<typeof OverviewQuery>): Promise<object> {
  const { from = '24h', to, by = [], account, key, model, channel } = query;
  const nowMs = context.clock.now();
  const fromMs = Math.floor(moment(from, 'from', nowMs) / HOUR_MS) * HOUR_MS;
  const toMs = Math.ceil((to === undefined ? nowMs : moment(to, 'to', nowMs)) / HOUR_MS) * HOUR_MS;
  if (fromMs >= toMs) throw new InputError((name) => `${name('from')} is not before ${name('to')}`);
  const accountId = account === undefined ? undefined : (await accountNamed(context, account)).id;
  const { requestLog } = await context.store();
  const total = none({});
  const groups = new Map<string, Sums>();
  let before: number | undefined;
  for (let seen = 0; seen < MOST_ROWS; seen += PAGE) {
    const rows = await requestLog.list({
      ...defined({ accountId, keyId: key, before }),
      sinceMs: fromMs,
      untilMs: toMs,
      limit: PAGE,
    });
    for (const row of rows) {
      if ((model !== undefined && row.model !== model) || (channel !== undefined && channelOf(row) !== channel)) continue;
      add(total, row);
      const members = Object.fromEntries(by.map((dimension) => [dimension, MEMBERS[dimension](row)]));
      const name = JSON.stringify(members);
      const group = groups.get(name) ?? none(members);
      groups.set(name, group);
      add(group, row);
    }
    before = rows.at(-1)?.seq;
    if (rows.length < PAGE) break;
  }
  const ordered = [...groups].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, group]) => group);
  return {
    fromMs,
    toMs,
    total: viewOf(total),
    data: by.length === 0 ? [] : ordered.map((sums) => ({ ...sums.members, ...viewOf(sums) })),
  };
}

const channelOf = ({ channelId, attempts }: RequestLogRow): string => channelId ?? attempts.at(-1)?.channelId ?? '';
const codeOf = ({ status, errorCode }: RequestLogRow): string =>
  status === 'success' ? '' : status === 'interrupted' ? status : (errorCode ?? 'error');

const MEMBERS: Readonly<Record<Dimension, (row: RequestLogRow) => string | number>> = {
  hour: ({ loggedAtMs }) => Math.floor(loggedAtMs / HOUR_MS) * HOUR_MS,
  day: ({ loggedAtMs }) => new Date(loggedAtMs).toISOString().slice(0, 10),
  account: ({ accountId }) => accountId,
  key: ({ keyId }) => keyId,
  model: ({ model }) => model,
  channel: channelOf,
  code: codeOf,
};

function none(members: object): Sums {
  const tokens = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, reasoningTokens: 0 };
  return { members, requests: 0, errors: 0, ...tokens, images: 0, durationMs: 0, nanos: 0n, firstMs: [] };
}

function add(sums: Sums, row: RequestLogRow): void {
  const { usage = {}, charge, durationMs, firstOutputMs, status } = row;
  sums.requests += 1;
  if (codeOf(row) !== '') sums.errors += 1;
  sums.inputTokens += usage.input ?? 0;
  sums.cachedInputTokens += usage.cachedInput ?? 0;
  sums.images += usage.images ?? 0;
  sums.outputTokens += usage.output ?? 0;
  sums.reasoningTokens += usage.reasoning ?? 0;
  sums.durationMs += durationMs;
  sums.nanos += charge?.total ?? 0n;
  if (status === 'success' && firstOutputMs !== undefined) sums.firstMs.push(firstOutputMs);
}

function viewOf({ members: _members, nanos, firstMs, ...counts }: Sums): object {
  firstMs.sort((a, b) => a - b);
  const within = (share: number): number | undefined => firstMs[Math.ceil(share * firstMs.length) - 1];
  return {
    ...counts,
    videos: 0,
    charge: formatUsd(nanos),
    ...defined({ firstTokenP50Ms: within(0.5), firstTokenP95Ms: within(0.95) }),
  };
}
