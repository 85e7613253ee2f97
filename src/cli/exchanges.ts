/** The request log as the admin API shows it: rows in short, one row whole, and rows as they come. */
import type { Static } from 'typebox';
import { defined } from '../codecs/defined.ts';
import type { ExchangeQuery, LiveQuery, OneExchange } from '../http/admin/requests.ts';
import type { LiveBatch } from '../http/admin/routes.ts';
import { formatUsd } from '../store/money.ts';
import type { RequestLogQuery, RequestLogRow } from '../store/request-log.ts';
import { pause } from '../streams/clock.ts';
import { requestRows } from './logs.ts';
import { accountNamed, moment } from './operator-input.ts';
import type { PageOf } from './paging.ts';
import type { VerbContext } from './verb.ts';

/** A row of the log in short. */
function exchangeView(row: RequestLogRow): object {
  const { seq, exchangeId, requestId, accountId, keyId, endpoint, model, channelId, stream, status, httpStatus, errorCode } = row;
  const { startedAtMs, durationMs, firstOutputMs, usage } = row;
  return {
    ...{ seq, exchangeId, requestId, accountId, keyId, endpoint, model, stream, status, startedAtMs, durationMs },
    ...defined({ channelId, httpStatus, errorCode, firstOutputMs, inputTokens: usage?.input, outputTokens: usage?.output }),
    attempts: row.attempts.length,
    charge: formatUsd(row.charge?.total ?? 0n),
  };
}

/** Pages of the store that are looked through for one page of rows that the store cannot choose by itself. */
const MOST_PAGES = 20;
const PAGE = 1000;

export async function listExchanges(
  context: VerbContext,
  { before, limit = 100, since, until, ...filters }: Static<typeof ExchangeQuery>,
): Promise<PageOf<object>> {
  const nowMs = context.clock.now();
  const sinceMs = since === undefined ? undefined : moment(since, 'since', nowMs);
  const untilMs = until === undefined ? undefined : moment(until, 'until', nowMs);
  const { query, fits, isExact } = await filterOf(context, filters);
  const { requestLog } = await context.store();
  const data: RequestLogRow[] = [];
  let cursor = before;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const size = isExact ? limit : PAGE;
    const rows = await requestLog.list({ ...query, ...defined({ before: cursor, sinceMs, untilMs }), limit: size });
    for (const row of rows) {
      cursor = row.seq;
      if (fits(row)) data.push(row);
      if (data.length === limit) return { data: data.map(exchangeView), nextCursor: String(cursor) };
    }
    if (rows.length < size) return { data: data.map(exchangeView) };
  }
  return { data: data.map(exchangeView), ...(cursor === undefined ? {} : { nextCursor: String(cursor) }) };
}

type Filters = Pick<Static<typeof ExchangeQuery>, 'account' | 'key' | 'model' | 'channel' | 'status'>;

interface Filter {
  /** What the store chooses by. */
  readonly query: RequestLogQuery;
  /** What it does not. */
  readonly fits: (row: RequestLogRow) => boolean;
  /** The store chooses by all of it. */
  readonly isExact: boolean;
}

async function filterOf(context: VerbContext, { account, key, model, channel, status }: Filters): Promise<Filter> {
  const accountId = account === undefined ? undefined : (await accountNamed(context, account)).id;
  return {
    query: defined({ accountId, keyId: key, status }),
    fits: (row) => (model === undefined || row.model === model) && fitsChannel(row, channel),
    isExact: model === undefined && channel === undefined,
  };
}

/** It answered, or was asked in vain. */
function fitsChannel({ channelId, attempts }: RequestLogRow, channel: string | undefined): boolean {
  return channel === undefined || channelId === channel || attempts.some((attempt) => attempt.channelId === channel);
}

/** All rows of an exchange as `mizu logs --request ID --json` prints them. */
export async function showExchange(
  context: VerbContext,
  { id }: Static<typeof OneExchange>,
): Promise<{ data: readonly object[] }> {
  return { data: await requestRows(context, id) };
}

const FOLLOW_MS = 500;
/** As many rows as one look shows; of more the oldest are passed over. */
const MOST_ROWS = 1000;

export async function* followExchanges(
  context: VerbContext,
  { after, ...filters }: Static<typeof LiveQuery>,
  gone: AbortSignal,
): AsyncGenerator<LiveBatch> {
  const { query, fits } = await filterOf(context, filters);
  const { requestLog } = await context.store();
  let cursor = after ?? (await requestLog.head());
  while (!gone.aborted) {
    const head = await requestLog.head();
    const skipped = Math.max(0, head - cursor - MOST_ROWS);
    cursor += skipped;
    const rows = head > cursor ? await requestLog.list({ ...query, after: cursor, limit: MOST_ROWS }) : [];
    // Rows that do not fit are behind the reader as well.
    cursor = rows.length < MOST_ROWS ? Math.max(cursor, head, rows.at(-1)?.seq ?? 0) : (rows.at(-1)?.seq ?? cursor);
    yield { rows: rows.filter(fits).map(exchangeView), cursor, skipped };
    await pause(context.clock, FOLLOW_MS, gone);
  }
}
