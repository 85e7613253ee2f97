/** `mizu logs [--user NAME] [--limit N | --follow] | --request ID`: the request log, newest first; followed, oldest first. */
import { type Static, Type } from 'typebox';
import { defined } from '../codecs/defined.ts';
import { InputError, RefusedError } from '../http/admin/refusals.ts';
import { chargeLines, type ExplainedCharge, explainCharge } from '../store/explain-charge.ts';
import { formatUsd } from '../store/money.ts';
import type { RequestLogRow } from '../store/request-log.ts';
import { pause } from '../streams/clock.ts';
import { oneLine, type Verb, type VerbContext, verb } from './verb.ts';

const FOLLOW_MS = 500;
const PAGE = 1000;
const MAX_LIMIT = 1_000_000;

const Logs = Type.Object(
  {
    follow: Type.Optional(Type.Boolean()),
    request: Type.Optional(Type.String()),
    user: Type.Optional(Type.String()),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_LIMIT })),
  },
  { additionalProperties: false },
);

/** A row of the log; with `--request` also its charge, explained. */
type Shown = RequestLogRow & { readonly explained?: ExplainedCharge };

async function* logRows(context: VerbContext, options: Static<typeof Logs>): AsyncGenerator<Shown> {
  const [first, second] = (['request', 'follow', 'limit'] as const).filter((name) => options[name] !== undefined);
  const { request, user } = options;
  const other = second ?? (first === 'request' && user !== undefined ? 'user' : undefined);
  if (first !== undefined && other !== undefined)
    throw new InputError((name) => `logs: ${name(first)} and ${name(other)} do not go together`);
  const isWanted = (row: RequestLogRow): boolean => user === undefined || row.endUser === user;
  if (request !== undefined) yield* await requestRows(context, request);
  else if (options.follow === true) yield* follow(context, isWanted);
  else yield* newest(context, options.limit ?? 50, isWanted);
}

/** All rows of an exchange, by its id, by that of its answer, or by the client's own. Throws RefusedError where there is none. */
export async function requestRows(context: VerbContext, id: string): Promise<Shown[]> {
  const found = await (await context.store()).requestLog.find(id);
  if (found.length === 0) throw new RefusedError(`there is no request ${id}`, 'unknown', 'unknown_request');
  return found.map((row) => ({ ...row, explained: explainCharge(row) }));
}

type Filter = (row: RequestLogRow) => boolean;

async function* newest(context: VerbContext, limit: number, isWanted: Filter): AsyncGenerator<RequestLogRow> {
  const { requestLog } = await context.store();
  const signal = context.interrupted();
  for (let before: number | undefined, left = limit; left > 0 && !signal.aborted; ) {
    const size = Math.min(left, PAGE);
    const page = await requestLog.list({ limit: size, ...defined({ before }) });
    const wanted = page.filter(isWanted);
    yield* wanted;
    before = page.at(-1)?.seq;
    left -= wanted.length;
    if (before === undefined || page.length < size) break;
  }
}

async function* follow(context: VerbContext, isWanted: Filter): AsyncGenerator<RequestLogRow> {
  const { requestLog } = await context.store();
  const signal = context.interrupted();
  let after = await requestLog.head();
  while (!signal.aborted) {
    for (const row of await requestLog.list({ after, limit: PAGE })) {
      if (isWanted(row)) yield row;
      after = row.seq;
    }
    await pause(context.clock, FOLLOW_MS, signal);
  }
}

function line(row: RequestLogRow): string {
  const at = new Date(row.startedAtMs).toISOString();
  const charge = formatUsd(row.charge?.total ?? 0n);
  const tries = row.attempts.map(({ channelId, errorCode }) =>
    errorCode === undefined ? channelId : `${channelId}!${errorCode}`,
  );
  const model = row.servedModel === undefined ? row.model || '-' : `${row.model}>${row.servedModel}`;
  const what = row.errorCode === undefined ? row.status : `${row.status} ${row.errorCode}`;
  return oneLine(
    `${at} ${row.requestId} ${row.endpoint} ${model} ${row.httpStatus ?? '-'} ${what} ${row.durationMs}ms $${charge} [${tries.join(' ')}]`,
  );
}

function detail(row: RequestLogRow): string {
  const attempts = row.attempts.map(
    ({ channelId, upstreamModel, startedAtMs, durationMs, upstreamStatus, errorCode, errorText }) =>
      `  ${new Date(startedAtMs).toISOString()} ${channelId} ${upstreamModel} ${durationMs}ms ${upstreamStatus ?? ''} ${errorCode ?? 'ok'} ${errorText ?? ''}`,
  );
  const charge = chargeLines(explainCharge(row)).map((text) => `  ${text}`);
  const user = row.endUser === undefined ? [] : [`  user ${row.endUser}`];
  return [line(row), ...attempts, ...(row.errorText === undefined ? [] : [`  ${row.errorText}`]), ...charge, ...user]
    .map((text) => oneLine(text.trimEnd()))
    .join('\n');
}

export const LOGS: Verb = verb({
  name: 'logs',
  usage: '[--user NAME] [--limit N | --follow] | --request ID',
  options: Logs,
  run: logRows,
  text: (row, { request }) => (request === undefined ? line(row) : detail(row)),
});
