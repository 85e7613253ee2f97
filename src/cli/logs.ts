/** `mizu logs [--limit N | --follow | --request ID]`: the request log, newest first; followed, oldest first. */
import { formatUsd } from '../store/money.ts';
import type { RequestLogRow } from '../store/request-log.ts';
import type { Store } from '../store/store.ts';
import { pause } from '../streams/clock.ts';
import { countOption } from './operator-input.ts';
import { oneLine, RefusedError, report, allowOnly, textOption, UsageError, type Verb, type VerbContext } from './verb.ts';

const FOLLOW_MS = 500;
const PAGE = 1000;
const MAX_LIMIT = 1_000_000;

export const logs: Verb = async (context) => {
  allowOnly(context, 'logs', 0, 'follow', 'request', 'limit');
  const given = ['request', 'follow', 'limit'].filter((name) => context.options[name] !== undefined);
  if (given.length > 1) throw new UsageError(`logs: --${given[0]} and --${given[1]} do not go together`);
  const limit = countOption(context, 'limit', 1, MAX_LIMIT) ?? 50;
  const store = await context.store();
  const id = textOption(context, 'request');
  if (id !== undefined) {
    const found = await store.requestLog.find(id);
    if (found.length === 0) throw new RefusedError(`there is no request ${id}`);
    for (const row of found) report(context, row, detail(row));
    return 0;
  }
  if (context.options['follow'] === true) return await follow(context, store);
  const signal = context.interrupted();
  for (let before: number | undefined, left = limit; left > 0 && !signal.aborted; ) {
    const page = await store.requestLog.list({ limit: Math.min(left, PAGE), ...(before === undefined ? {} : { before }) });
    for (const row of page) report(context, row, line(row));
    before = page.at(-1)?.seq;
    left -= page.length;
    if (before === undefined || page.length < PAGE) break;
  }
  return 0;
};

async function follow(context: VerbContext, store: Store): Promise<number> {
  const signal = context.interrupted();
  let after = await store.requestLog.head();
  while (!signal.aborted) {
    for (const row of await store.requestLog.list({ after, limit: 1000 })) {
      report(context, row, line(row));
      after = row.seq;
    }
    await pause(context.clock, FOLLOW_MS, signal);
  }
  return 0;
}

function line(row: RequestLogRow): string {
  const at = new Date(row.startedAtMs).toISOString();
  const charge = formatUsd(row.charge?.total ?? 0n);
  const tries = row.attempts.map(({ channelId, errorCode }) =>
    errorCode === undefined ? channelId : `${channelId}!${errorCode}`,
  );
  const what = row.errorCode === undefined ? row.status : `${row.status} ${row.errorCode}`;
  return oneLine(
    `${at} ${row.requestId} ${row.endpoint} ${row.model || '-'} ${row.httpStatus ?? '-'} ${what} ${row.durationMs}ms $${charge} [${tries.join(' ')}]`,
  );
}

function detail(row: RequestLogRow): string {
  const attempts = row.attempts.map(
    ({ channelId, upstreamModel, startedAtMs, durationMs, upstreamStatus, errorCode, errorText }) =>
      `  ${new Date(startedAtMs).toISOString()} ${channelId} ${upstreamModel} ${durationMs}ms ${upstreamStatus ?? ''} ${errorCode ?? 'ok'} ${errorText ?? ''}`,
  );
  return [line(row), ...attempts, ...(row.errorText === undefined ? [] : [`  ${row.errorText}`])]
    .map((text) => oneLine(text.trimEnd()))
    .join('\n');
}
