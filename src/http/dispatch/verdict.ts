/** What a failed attempt means: for the Channel that failed, and for the client. One table by status. */
import { errorCode } from '../errors.ts';
import { ERRORS, GatewayError, type UpstreamReason } from '../../codecs/canonical/error.ts';
import { isDeterministic } from '../../codecs/errors/upstream.ts';
import type { AttemptEntry } from '../../store/request-log.ts';
import type { Channel } from '../config/config.ts';
import type { Health, Permit } from './health.ts';
import { blamesContent, isOfModel, isPage, isTooLarge, namesNothing } from './vendor-words.ts';

export type Verdict =
  /** No other Channel can help, or must not be asked: the error is the answer. */
  | 'stop'
  /** This Channel cannot express the request; another type may. Not an attempt. */
  | 'unsuitable'
  /** The next Channel may do better. */
  | 'next'
  /** The request itself is wrong, by this upstream. If all agree, the client is told. */
  | 'deterministic'
  /** The upstream may be doing what was asked, and it must not be done twice: never another attempt. */
  | 'lost';

/** By our code first, else by the upstream's status. */
export function verdictOf(error: GatewayError): Verdict {
  if (error.details.lost === true) return 'lost';
  if (error.code === 'unsupported_conversion' || error.code === 'item_not_found') return 'unsuitable';
  if (!isUpstreamFault(error)) return 'stop';
  return isRequestWrong(error) ? 'deterministic' : 'next';
}

/**
 * A name in the request that the upstream does not have is as wrong as any other member, although its status is that of a missing
 * model.
 */
function isRequestWrong({ details: { upstream, byClient } }: GatewayError): boolean {
  const status = upstream?.status;
  return isDeterministic(status) || (status === 404 && (byClient === true || namesNothing(upstream?.text ?? '')));
}

/** An answer that we cannot express was a good one. */
export function isUpstreamFault({ blame, code }: GatewayError): boolean {
  return blame === 'upstream' && code !== 'response_not_representable';
}

/** Whether the same Channel may answer the same request a moment later: 408, 429, 5xx, or a connection that failed. */
export function isTransient({ details: { reason, upstream } }: GatewayError): boolean {
  const status = upstream?.status;
  if (status === 429) return !isTooLarge(upstream?.text ?? '');
  if (status !== undefined) return status === 408 || status >= 500;
  return reason === 'network' || reason === 'timeout';
}

/** What the request log holds of a failed attempt. */
export function failureOf(error: GatewayError): Pick<AttemptEntry, 'errorCode' | 'errorText'> {
  const { upstream, reason } = error.details;
  return { errorCode: upstream?.code ?? reason ?? error.code, errorText: upstream?.text ?? error.message };
}

const UPSTREAM_REASONS: Readonly<Record<UpstreamReason, true>> = {
  http_status: true,
  error_event: true,
  network: true,
  timeout: true,
  truncated: true,
  undecodable: true,
  illegal_lifecycle: true,
  malformed_event: true,
  not_representable: true,
  empty: true,
  credential_refused: true,
  credential_timeout: true,
  credential_unavailable: true,
  credential_unreadable: true,
};

/**
 * Why an attempt failed, from a closed set: a metric keeps every value of a label for ever, and an upstream's code could be
 * anything.
 */
export function attemptReason({ errorCode, upstreamStatus }: AttemptEntry): string {
  if (errorCode === undefined) return '';
  if (upstreamStatus !== undefined && (upstreamStatus < 200 || upstreamStatus > 299)) return `status_${upstreamStatus}`;
  return Object.hasOwn(UPSTREAM_REASONS, errorCode) || Object.hasOwn(ERRORS, errorCode) ? errorCode : 'error_event';
}

/** For the log line: each failed attempt as its Channel and reason; undefined where none failed. */
export function failedAttempts(attempts: readonly AttemptEntry[]): readonly string[] | undefined {
  if (attempts.every(({ errorCode }) => errorCode === undefined)) return undefined;
  return attempts.flatMap((attempt) => {
    const reason = attemptReason(attempt);
    return reason === '' ? [] : [`${attempt.channelId} ${reason}`];
  });
}

/** Tells the circuit what was learnt of the Channel. */
export function reportTo(permit: Permit, error: GatewayError): void {
  const status = error.details.upstream?.status;
  if (!isUpstreamFault(error) || error.details.byClient === true || blamesContent(error)) permit.nothing();
  else if ((status === 401 || status === 403 || status === 404) && isOfModel(error)) permit.unknownModel();
  else if (status === 404) permit.missing();
  else if (status === 403 && isPage(error.details.upstream?.text ?? '')) permit.failed();
  else if (status === 403) permit.forbidden();
  else if (status === 401 || status === 402) permit.refused();
  else if (status === 429) permit.rateLimited(error.details.retryAfterMs ?? error.details.upstream?.retryAfterMs);
  else if (status !== undefined && status >= 400 && status < 500 && status !== 408) permit.nothing();
  else permit.failed();
}

/** No Channel can even be asked, since their circuits are open. The error tells when the first of them may be asked again. */
export function noneFit(channels: readonly Channel[], circuit: string, health: Health): GatewayError {
  const waits = channels.map(({ id }) => health.closedForMs(id, circuit));
  return noHealthyUpstream(waits.length === 0 ? 1000 : Math.max(1000, Math.min(...waits)));
}

function noHealthyUpstream(retryAfterMs: number): GatewayError {
  return new GatewayError('no_healthy_upstream', 'No upstream of this model is available now.', { retryAfterMs });
}

/**
 * The error of an exchange all of whose attempts failed: the one deterministic refusal that all agree on passes as itself,
 * anything else is a 502. `retryAfterMs`: until it may go well, if that is known.
 */
export function finalError(errors: readonly GatewayError[], retryAfterMs?: number): GatewayError {
  const last = errors.at(-1);
  if (last === undefined) return noHealthyUpstream(1000);
  if (last.code !== 'upstream_error') return last;
  const status = last.details.upstream?.status;
  const isAgreed = errors.every((error) => isRequestWrong(error) && error.details.upstream?.status === status);
  if (isAgreed && status !== undefined) return new GatewayError('upstream_error', last.message, { ...last.details, status });
  const { shownCode: _code, param: _param, retryAfterMs: _alone, ...details } = last.details;
  const wait = retryAfterMs === undefined ? {} : { retryAfterMs };
  return new GatewayError('upstream_error', last.message, { ...details, ...wait, cause: last });
}

/** An idle connection that the upstream closed just as it was used again: it had answered before. */
export function isStaleConnection(error: GatewayError): boolean {
  const cause = error.details.cause;
  if (error.details.reason !== 'network' || !(cause instanceof Error)) return false;
  const code = errorCode(cause);
  if (code !== 'UND_ERR_SOCKET' && code !== 'ECONNRESET' && code !== 'EPIPE') return false;
  const socket = 'socket' in cause ? cause.socket : undefined;
  const bytesRead = typeof socket === 'object' && socket !== null && 'bytesRead' in socket ? socket.bytesRead : 0;
  return typeof bytesRead === 'number' && bytesRead > 0;
}
