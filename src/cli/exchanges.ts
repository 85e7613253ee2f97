/** The request log as the admin API shows it: rows in short, one row whole, and rows as they come. */
import type { Static } from 'typebox';
import { defined } from '../codecs/defined.ts';
import type { ExchangeQuery, LiveQuery, OneExchange } from '../http/admin/requests.ts';
import type { LiveBatch } from '../http/admin/routes.ts';
import type { BillableUsage } from '../store/charge.ts';
import { countsOf } from '../store/day-usage.ts';
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
    ...defined({ channelId, httpStatus, errorCode, firstOutputMs, ...(usage === undefined ? {} : tokensOf(usage)) }),
    attempts: row.attempts.length,
    charge: formatUsd(row.charge?.total ?? 0n),
  };
}

function tokensOf(usage: BillableUsage): object {
  const { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens } = countsOf(usage);
  return { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens };
}

export async function listExchanges(
  context: VerbContext,
  { before, limit = 100, since, until, ...filters }: Static<typeof ExchangeQuery>,
): Promise<PageOf<object>> {
  const nowMs = context.clock.now();
  const sinceMs = since === undefined ? undefined : moment(since, 'since', nowMs);
  const untilMs = until === undefined ? undefined : moment(until, 'until', nowMs);
  const query = await queryOf(context, filters);
  return await look(context, { ...query, ...defined({ sinceMs, untilMs }) }, before, limit);
}

/** Rows that are looked through at once at first: what holds the event loop must be short. */
const FIRST_WINDOW = 500;
/** A window that took longer is followed by a smaller one, one that took less than a quarter of it by a larger one. */
const WINDOW_MS = 8;
/** A page that is not full by then tells how far it looked. */
const LOOK_MS = 180;

/**
 * Newest first. Several filters together may fit few rows of many that each fits, so the log is looked through in windows, and
 * for so long only: the cursor then stands where it stopped, and the page may have less than `limit` rows, or none.
 */
async function look(
  context: VerbContext,
  query: RequestLogQuery,
  before: number | undefined,
  limit: number,
): Promise<PageOf<object>> {
  const { clock } = context;
  const { requestLog } = await context.store();
  const begunAtMs = clock.monotonic();
  const data: RequestLogRow[] = [];
  let top = before ?? (await requestLog.head()) + 1;
  for (let size = FIRST_WINDOW; top > 1; ) {
    const above = Math.max(0, top - 1 - size);
    const windowAtMs = clock.monotonic();
    const rows = await requestLog.list({ ...query, before: top, above, limit: limit - data.length });
    data.push(...rows);
    const nowMs = clock.monotonic();
    const isFull = data.length === limit;
    top = isFull ? (rows.at(-1)?.seq ?? top) : above + 1;
    if (isFull || nowMs - begunAtMs > LOOK_MS) break;
    if (nowMs - windowAtMs > WINDOW_MS) size = Math.max(FIRST_WINDOW / 4, Math.floor(size / 2));
    else if (nowMs - windowAtMs < WINDOW_MS / 4) size *= 4;
    // Others have their turn between two windows.
    await new Promise((resolve) => setImmediate(resolve));
  }
  return { data: data.map(exchangeView), ...(top > 1 ? { nextCursor: String(top) } : {}) };
}

type Filters = Pick<Static<typeof ExchangeQuery>, 'account' | 'key' | 'model' | 'channel' | 'status' | 'code'>;

async function queryOf(
  context: Pick<VerbContext, 'store'>,
  { account, key, model, channel, status, code }: Filters,
): Promise<RequestLogQuery> {
  const accountId = account === undefined ? undefined : (await accountNamed(context, account)).id;
  return defined({ accountId, keyId: key, model, channelId: channel, status, code });
}

/** All rows of an exchange as `mizu logs --request ID --json` prints them. */
export async function showExchange(
  context: VerbContext,
  { id }: Static<typeof OneExchange>,
): Promise<{ data: readonly object[] }> {
  return { data: await requestRows(context, id) };
}

const FOLLOW_MS = 500;
const MOST_ROWS = 1000;
/** Where a filter fits more than can be read, the tail does not fall behind further than this. */
const MOST_BEHIND = 5000;

/** A look shows the newest `limit` rows that came since the one before; what a filter leaves out was not passed over. */
export async function* followExchanges(
  context: Pick<VerbContext, 'clock' | 'store'>,
  { after, limit = MOST_ROWS, ...filters }: Static<typeof LiveQuery>,
  gone: AbortSignal,
): AsyncGenerator<LiveBatch> {
  const query = await queryOf(context, filters);
  const isFiltered = Object.keys(query).length > 0;
  const { requestLog } = await context.store();
  // A row that is not there yet is one of a store that was restored since.
  let cursor = Math.min(after ?? Number.POSITIVE_INFINITY, await requestLog.head());
  while (!gone.aborted) {
    const head = await requestLog.head();
    const behind = Math.max(0, head - cursor);
    // Where every row fits, those that would not be shown are not read either; a filter may fit few of many.
    const unread = Math.max(0, behind - (isFiltered ? MOST_BEHIND : limit));
    const size = isFiltered ? MOST_ROWS : limit;
    const rows = behind === 0 ? [] : await requestLog.list({ ...query, after: cursor + unread, limit: size });
    cursor = rows.length < size ? Math.max(cursor, head, rows.at(-1)?.seq ?? 0) : (rows.at(-1)?.seq ?? cursor);
    const shown = rows.slice(-limit);
    yield { rows: shown.map(exchangeView), cursor, skipped: unread + rows.length - shown.length };
    await pause(context.clock, FOLLOW_MS, gone);
  }
}
