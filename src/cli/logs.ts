/**
 * `mizu logs`: the request log under a header, filtered, newest first; followed, oldest first; one request with all that was
 * tried.
 */
import { type Static, Type } from 'typebox';
import { defined } from '../codecs/defined.ts';
import { InputError, RefusedError } from '../http/admin/refusals.ts';
import { chargeLines, type ExplainedCharge, explainCharge } from '../store/explain-charge.ts';
import { formatUsd } from '../store/money.ts';
import type { RequestLogQuery, RequestLogRow } from '../store/request-log.ts';
import { pause } from '../streams/clock.ts';
import { accountNamed, expiry } from './operator-input.ts';
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
    key: Type.Optional(Type.String()),
    account: Type.Optional(Type.String()),
    model: Type.Optional(Type.String()),
    channel: Type.Optional(Type.String()),
    code: Type.Optional(Type.String()),
    status: Type.Optional(Type.Enum(['success', 'error', 'interrupted'])),
    since: Type.Optional(Type.String()),
    until: Type.Optional(Type.String()),
  },
  { additionalProperties: false },
);

/** A row of the log; with `--request` also its charge, explained. */
type Shown = RequestLogRow & { readonly explained?: ExplainedCharge };

const FILTERS = ['user', 'key', 'account', 'model', 'channel', 'code', 'status', 'since', 'until'] as const;

/** A row of the log with the names of its account and key; the first one is preceded by the header. */
interface Line {
  readonly row: Shown;
  readonly account: string;
  readonly key: string;
  readonly isFirst: boolean;
}

async function* logLines(context: VerbContext, options: Static<typeof Logs>): AsyncGenerator<Line> {
  const store = await context.store();
  const names = new Map((await store.accounts.list()).map(({ id, name }) => [id, name] as const));
  for (const { id, name } of await store.keys.list()) names.set(id, name);
  let isFirst = options.request === undefined;
  for await (const row of logRows(context, options)) {
    yield { row, account: names.get(row.accountId) ?? row.accountId, key: names.get(row.keyId) ?? row.keyId, isFirst };
    isFirst = false;
  }
}

/** Throws InputError and RefusedError. A key is named by its id, or by a name that is one key's only. */
async function queryOf(context: VerbContext, options: Static<typeof Logs>): Promise<RequestLogQuery> {
  const { model, channel, code, status, since, until } = options;
  const accountId = options.account === undefined ? undefined : (await accountNamed(context, options.account)).id;
  const keyId = options.key === undefined ? undefined : await keyNamed(context, options.key, accountId);
  const time = (text: string | undefined, member: string) =>
    text === undefined ? undefined : past(text, member, context.clock.now());
  const [sinceMs, untilMs] = [time(since, 'since'), time(until, 'until')];
  return defined({ accountId, keyId, model, channelId: channel, code, status, sinceMs, untilMs });
}

async function keyNamed(context: VerbContext, words: string, accountId: string | undefined): Promise<string> {
  const keys = await (await context.store()).keys.list(accountId);
  const [found, ...others] = keys.filter(({ id, name }) => id === words || name === words);
  if (found === undefined) throw new RefusedError(`there is no key ${words}`, 'unknown', 'unknown_key');
  if (others.length > 0 && found.id !== words)
    throw new RefusedError(
      `${others.length + 1} keys are named ${words}: give an id, or an account, too`,
      'conflict',
      'ambiguous_key',
    );
  return found.id;
}

/** A time, or a span that lies behind now. */
function past(text: string, member: string, nowMs: number): number {
  const given = expiry(text, member);
  return 'expiresAtMs' in given ? given.expiresAtMs : nowMs - given.expiresInMs;
}

async function* logRows(context: VerbContext, options: Static<typeof Logs>): AsyncGenerator<Shown> {
  const [first, second] = (['request', 'follow', 'limit'] as const).filter((name) => options[name] !== undefined);
  const { request, user } = options;
  const filter = FILTERS.find((name) => options[name] !== undefined);
  const other = second ?? (first === 'request' ? filter : undefined);
  if (first !== undefined && other !== undefined)
    throw new InputError((name) => `logs: ${name(first)} and ${name(other)} do not go together`);
  const isWanted = (row: RequestLogRow): boolean => user === undefined || row.endUser === user;
  if (request !== undefined) yield* await requestRows(context, request);
  else if (options.follow === true) yield* follow(context, isWanted, await queryOf(context, options));
  else yield* newest(context, options.limit ?? 50, isWanted, await queryOf(context, options));
}

/** All rows of an exchange, by its id, by that of its answer, or by the client's own. Throws RefusedError where there is none. */
export async function requestRows(context: VerbContext, id: string): Promise<Shown[]> {
  const found = await (await context.store()).requestLog.find(id);
  if (found.length === 0) throw new RefusedError(`there is no request ${id}`, 'unknown', 'unknown_request');
  return found.map((row) => ({ ...row, explained: explainCharge(row) }));
}

type Filter = (row: RequestLogRow) => boolean;

async function* newest(
  context: VerbContext,
  limit: number,
  isWanted: Filter,
  query: RequestLogQuery,
): AsyncGenerator<RequestLogRow> {
  const { requestLog } = await context.store();
  const signal = context.interrupted();
  for (let before: number | undefined, left = limit; left > 0 && !signal.aborted; ) {
    const size = Math.min(left, PAGE);
    const page = await requestLog.list({ ...query, limit: size, ...defined({ before }) });
    const wanted = page.filter(isWanted);
    yield* wanted;
    before = page.at(-1)?.seq;
    left -= wanted.length;
    if (before === undefined || page.length < size) break;
  }
}

async function* follow(context: VerbContext, isWanted: Filter, query: RequestLogQuery): AsyncGenerator<RequestLogRow> {
  const { requestLog } = await context.store();
  const signal = context.interrupted();
  let after = await requestLog.head();
  while (!signal.aborted) {
    for (const row of await requestLog.list({ ...query, after, limit: PAGE })) {
      if (isWanted(row)) yield row;
      after = row.seq;
    }
    await pause(context.clock, FOLLOW_MS, signal);
  }
}

const HEADER = 'TIME REQUEST ACCOUNT/KEY ENDPOINT MODEL HTTP STATUS DURATION CHARGE [CHANNELS]';

function line({ row, account, key }: Omit<Line, 'isFirst'>): string {
  const at = new Date(row.startedAtMs).toISOString();
  const charge = formatUsd(row.charge?.total ?? 0n);
  const tries = row.attempts.map(({ channelId, errorCode }) =>
    errorCode === undefined ? channelId : `${channelId}!${errorCode}`,
  );
  const model = row.servedModel === undefined ? row.model || '-' : `${row.model}>${row.servedModel}`;
  const what = row.errorCode === undefined ? row.status : `${row.status} ${row.errorCode}`;
  return oneLine(
    `${at} ${row.requestId} ${account}/${key} ${row.endpoint} ${model} ${row.httpStatus ?? '-'} ${what} ${row.durationMs}ms $${charge} [${tries.join(' ')}]`,
  );
}

function detail(of: Line): string {
  const { row } = of;
  const attempts = row.attempts.map(
    ({ channelId, upstreamModel, startedAtMs, durationMs, upstreamStatus, errorCode, errorText }) =>
      `  ${new Date(startedAtMs).toISOString()} ${channelId} ${upstreamModel} ${durationMs}ms ${upstreamStatus ?? ''} ${errorCode ?? 'ok'} ${errorText ?? ''}`,
  );
  const charge = chargeLines(explainCharge(row)).map((text) => `  ${text}`);
  const user = row.endUser === undefined ? [] : [`  user ${row.endUser}`];
  const lost = [...(row.losses ?? []), ...(row.answerLosses ?? []).map((name) => `${name} (answer)`)];
  const losses = lost.length === 0 ? [] : [`  lost: ${lost.join(', ')}`];
  return [line(of), ...attempts, ...(row.errorText === undefined ? [] : [`  ${row.errorText}`]), ...charge, ...user, ...losses]
    .map((text) => oneLine(text.trimEnd()))
    .join('\n');
}

export const LOGS: Verb = verb({
  name: 'logs',
  usage:
    '[--user NAME] [--key K] [--account NAME] [--model M] [--channel ID] [--code CODE] [--status success|error|interrupted] [--since TIME] [--until TIME] [--limit N | --follow] | --request ID',
  does: 'The request log, newest first; `--follow` as it grows. `--request`: one request with its attempts and its charge line by line.',
  options: Logs,
  run: logLines,
  json: ({ row, account, key }) => ({ ...row, accountName: account, keyName: key }),
  text: (of, { request }) => (request === undefined ? `${of.isFirst ? `${HEADER}\n` : ''}${line(of)}` : detail(of)),
});
