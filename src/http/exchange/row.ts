/**
 * An exchange as it is written down: the row of the request log, and from that one record the log line, the counters and the
 * spans.
 */
import type { GatewayError } from '../../codecs/canonical/error.ts';
import type { Usage } from '../../codecs/canonical/usage.ts';
import { defined } from '../../codecs/defined.ts';
import type { BillableUsage, Charge } from '../../store/charge.ts';
import { countsOf, type DayCounts } from '../../store/day-usage.ts';
import type { Principal } from '../../store/keys.ts';
import type { AttemptEntry, RequestLogEntry } from '../../store/request-log.ts';
import type { Accepted } from '../dispatch/accepted.ts';
import { attemptReason, failedAttempts, failureOf, isUpstreamFault } from '../dispatch/verdict.ts';
import type { CallContext } from '../gateway.ts';
import { boundedEntry } from './bounded-entry.ts';

/** Names of what the conversions dropped or wrote in another form. */
export interface Losses {
  readonly request: readonly string[];
  readonly answer: ReadonlySet<string>;
}

/** What is known of an exchange at its end. Times in milliseconds since its start. */
export interface RowFacts {
  readonly call: CallContext;
  readonly exchangeId: string;
  readonly principal: Principal;
  readonly model: string;
  readonly stream: boolean;
  readonly effort?: string | undefined;
  readonly servedModel?: string | undefined;
  readonly endUser?: string | undefined;
  readonly losses?: Losses | undefined;
  readonly status: number;
  readonly durationMs: number;
  readonly error?: GatewayError | undefined;
  readonly clientGone?: boolean | undefined;
  readonly attempts: readonly AttemptEntry[];
  readonly accepted?: Pick<Accepted<unknown>, 'channel' | 'upstreamModel' | 'affinityHit'> | undefined;
  readonly firstOutputMs?: number | undefined;
  readonly lastOutputMs?: number | undefined;
  /** As the upstream reported it. */
  readonly reported?: Usage | undefined;
  readonly billed?: BillableUsage | undefined;
  readonly charge?: Charge | undefined;
  /** Refusals of the key before this one that have no row. */
  readonly unwritten?: number | undefined;
}

export function rowOf(facts: RowFacts): RequestLogEntry {
  const { call, principal, error, clientGone, accepted, reported } = facts;
  const optional = {
    clientRequestId: call.clientRequestId,
    upstreamModel: accepted?.upstreamModel,
    channelId: accepted?.channel.id,
    channelType: accepted?.channel.type,
    errorCode: error?.code,
    errorText: error === undefined ? undefined : fullText(error, facts.unwritten),
    clientGone: clientGone === true ? true : undefined,
    firstByteMs: facts.firstOutputMs,
    firstOutputMs: facts.firstOutputMs,
    lastOutputMs: facts.lastOutputMs,
    effort: facts.effort,
    servedModel: facts.servedModel,
    endUser: facts.endUser,
    losses: namesOf(facts.losses?.request),
    answerLosses: namesOf(facts.losses?.answer),
    usage: facts.billed,
    usageJson: reported?.native === undefined ? undefined : JSON.stringify(reported.native),
    charge: facts.charge,
    affinity: accepted === undefined ? undefined : { hit: accepted.affinityHit, target: accepted.channel.id },
  };
  return boundedEntry({
    exchangeId: facts.exchangeId,
    requestId: call.requestId,
    accountId: principal.account.id,
    keyId: principal.key.id,
    endpoint: call.route,
    model: facts.model,
    stream: facts.stream,
    status: error === undefined || clientGone === true ? 'success' : 'error',
    httpStatus: facts.status,
    startedAtMs: call.startedAtMs,
    durationMs: facts.durationMs,
    ip: call.ip,
    attempts: attemptsOf(facts),
    ...defined(optional),
  });
}

function namesOf(lost: Iterable<string> = []): readonly string[] | undefined {
  const names = [...lost];
  return names.length === 0 ? undefined : names;
}

/** Every attempt. The last one, which was answered, counts as failed where its answer broke off. */
function attemptsOf({ attempts, accepted, error }: RowFacts): readonly AttemptEntry[] {
  const last = accepted === undefined ? undefined : attempts.at(-1);
  if (last === undefined || error === undefined || !isUpstreamFault(error)) return attempts;
  return [...attempts.slice(0, -1), { ...last, ...failureOf(error) }];
}

/** The counters and spans of an exchange that was admitted. */
export function reportExchange({ gateway, trace }: CallContext, entry: RequestLogEntry): void {
  const { metrics } = gateway;
  trace?.exchanged(entry);
  for (const attempt of entry.attempts) metrics.attemptEnded(attempt.channelId, attemptReason(attempt));
  const tokens = entry.usage === undefined ? undefined : tokensByKind(countsOf(entry.usage));
  const answered = answeredBy(entry);
  metrics.exchanged({ model: entry.model, chargedNanos: entry.charge?.total ?? 0n, ...defined({ tokens, answered }) });
}

function tokensByKind({ inputTokens = 0, cachedInputTokens = 0, cacheWriteTokens = 0, outputTokens = 0 }: Partial<DayCounts>) {
  return { input: inputTokens, cached_input: cachedInputTokens, cache_write: cacheWriteTokens, output: outputTokens };
}

/** The attempt that was answered, with times since it began. */
function answeredBy({ channelId, attempts, startedAtMs, durationMs, firstOutputMs, affinity }: RequestLogEntry) {
  const last = attempts.at(-1);
  if (channelId === undefined || last === undefined) return undefined;
  const before = Math.max(0, last.startedAtMs - startedAtMs);
  const since = (ms: number): number => Math.max(0, ms - before) / 1000;
  return {
    channelId,
    seconds: since(durationMs),
    affinityHit: affinity?.hit === true,
    ...(firstOutputMs === undefined ? {} : { firstTokenSeconds: since(firstOutputMs) }),
  };
}

/** The one line of an exchange, `exchange` or, where it was refused before it was dispatched, `refused`. */
export function logExchange(
  { gateway, trace }: CallContext,
  entry: RequestLogEntry,
  what: 'exchange' | 'refused',
  more: { readonly estimated?: true; readonly unwritten?: number } = {},
): void {
  const { requestId: request_id, losses, answerLosses: answer_losses } = entry;
  if (losses !== undefined || answer_losses !== undefined)
    gateway.log.debug({ request_id, losses, answer_losses }, 'conversion losses');
  gateway.log.info(
    {
      request_id: entry.requestId,
      exchange_id: entry.exchangeId,
      trace_id: trace?.traceId,
      key_id: entry.keyId,
      account_id: entry.accountId,
      route: entry.endpoint,
      model: entry.model,
      ...(entry.servedModel === undefined ? {} : { served_model: entry.servedModel }),
      channel: entry.channelId,
      attempts: entry.attempts.length,
      failed_attempts: failedAttempts(entry.attempts),
      stream: entry.stream,
      status: entry.httpStatus,
      error_code: entry.errorCode,
      client_gone: entry.clientGone,
      ttft_ms: entry.firstByteMs,
      duration_ms: entry.durationMs,
      usage: entry.usage,
      estimated: more.estimated,
      charge_nanos: entry.charge?.total.toString(),
      unwritten: more.unwritten,
    },
    what,
  );
}

/** Our message with the upstream's text, for the request log only. */
function fullText(error: GatewayError, unwritten = 0): string {
  const { upstream, cause } = error.details;
  const because = upstream?.text ?? (cause instanceof Error ? cause.message : undefined);
  const text = because === undefined || because === error.message ? error.message : `${error.message} [${because}]`;
  return unwritten === 0 ? text : `${text} [${unwritten} refusals before this one have no row]`;
}

/** Input and output, caches included: what counts towards a limit of tokens. */
export function tokensOf(usage: BillableUsage | undefined): number {
  if (usage === undefined) return 0;
  const { inputTokens = 0, cachedInputTokens = 0, cacheWriteTokens = 0, outputTokens = 0 } = countsOf(usage);
  return inputTokens + cachedInputTokens + cacheWriteTokens + outputTokens;
}
