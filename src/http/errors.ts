/**
 * The one place where anything thrown becomes a {@link GatewayError}. The client's codec writes the error body; endpoints without
 * a codec use the shape of OpenAI's API.
 */
import { GatewayError, type UpstreamFacts, type UpstreamReason } from '../codecs/canonical/error.ts';
import { isObject, tryJson } from '../codecs/canonical/json.ts';
import { openAiErrorBody } from '../codecs/errors/openai.ts';
import { readErrorMembers, refusal, statusOfMembers } from '../codecs/errors/upstream.ts';
import { StoreError } from '../store/store-error.ts';
import { StreamError, type StreamErrorReason } from '../streams/stream-error.ts';

/** What each stream error means when the stream comes from an upstream. */
const UPSTREAM: Readonly<Record<StreamErrorReason, { readonly reason: UpstreamReason; readonly message: string }>> = {
  truncated_event: { reason: 'truncated', message: 'The upstream ended before its answer was complete.' },
  not_event_stream: { reason: 'undecodable', message: 'The upstream did not answer with an event stream.' },
  event_too_large: { reason: 'undecodable', message: 'The upstream sent an event that is too large.' },
  damaged_event: { reason: 'undecodable', message: 'The upstream sent an event that was damaged on its way.' },
  too_many_bytes: { reason: 'undecodable', message: 'The upstream sent an answer that is too large.' },
  encoded_body: { reason: 'undecodable', message: 'The upstream sent an encoded answer that was not asked for.' },
  source_closed: { reason: 'truncated', message: 'The upstream closed the connection before its answer was complete.' },
  first_data_timeout: { reason: 'timeout', message: 'The upstream did not begin to answer in time.' },
  unfinished_answer: { reason: 'timeout', message: 'The upstream did not finish its answer in time.' },
  idle_timeout: { reason: 'timeout', message: 'The upstream fell silent in the middle of its answer.' },
  write_stall: { reason: 'network', message: 'The client stopped reading.' },
  client_gone: { reason: 'network', message: 'The client closed the connection.' },
  cancelled: { reason: 'network', message: 'The request was cancelled.' },
  ended: { reason: 'network', message: 'The answer had ended.' },
};

const CLIENT_GONE: ReadonlySet<StreamErrorReason> = new Set(['client_gone', 'write_stall']);

/** A failure that happened while talking to an upstream. */
export function upstreamFailure(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError || thrown instanceof StoreError) return toGatewayError(thrown);
  if (thrown instanceof StreamError) {
    if (CLIENT_GONE.has(thrown.reason)) return clientGone(thrown);
    const raw = thrown.reason === 'not_event_stream' ? rawError(thrown.text ?? '') : undefined;
    if (raw !== undefined) return raw;
    const { reason, message } = UPSTREAM[thrown.reason];
    const upstream: UpstreamFacts = { text: thrown.text ?? thrown.message };
    return new GatewayError('upstream_error', message, { reason, upstream, cause: thrown });
  }
  if (thrown instanceof Error && thrown.name === 'HTTPParserError') {
    // undici's parser errors have no code.
    const upstream: UpstreamFacts = { text: thrown.message };
    return new GatewayError('upstream_error', 'The upstream did not answer in valid HTTP.', {
      reason: 'undecodable',
      upstream,
      cause: thrown,
    });
  }
  const code = errorCode(thrown);
  if (code === undefined) return toGatewayError(thrown);
  if (OUT_OF_FILES.has(code))
    return new GatewayError('overloaded', 'The gateway can open no more connections.', { retryAfterMs: 1000, cause: thrown });
  const timeout = isConnectTimeout(thrown);
  const message = timeout ? 'The upstream could not be reached in time.' : 'The connection to the upstream failed.';
  return new GatewayError('upstream_error', message, {
    reason: timeout ? 'timeout' : 'network',
    upstream: { text: `${code}: ${messageOf(thrown)}` },
    cause: thrown,
  });
}

/** This process, or its machine, has as many files open as it may: says nothing of the upstream, and holds for every other. */
const OUT_OF_FILES: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE']);

/**
 * An answer that was cut at `limits.answer_bytes`, and is one as far as it goes: a client brings such a one about (thousands of
 * vectors, the probabilities of each token).
 */
export function isCutAtLimit({ details: { byClient, cause } }: GatewayError): boolean {
  return byClient === true && cause instanceof StreamError && cause.reason === 'too_many_bytes';
}

/** The last: a proxy that opened no tunnel, since what answers may take is the gateway's own to say. */
const CONNECT_TIMEOUTS: ReadonlySet<string> = new Set(['UND_ERR_CONNECT_TIMEOUT', 'ETIMEDOUT', 'UND_ERR_HEADERS_TIMEOUT']);

/** There was no connection in time. */
export function isConnectTimeout(thrown: unknown): boolean {
  return CONNECT_TIMEOUTS.has(errorCode(thrown) ?? '');
}

/**
 * An error object that an upstream wrote without SSE framing, or the first of a list of them (Gemini without SSE); undefined for
 * any other text.
 */
function rawError(text: string): GatewayError | undefined {
  const value = tryJson(text);
  const json = Array.isArray(value) ? value[0] : value;
  if (!isObject(json) || (json['error'] ?? json['detail'] ?? json['message']) == null) return undefined;
  const members = readErrorMembers(json);
  return refusal(statusOfMembers(members), members, { reason: 'error_event', text });
}

/** Anything thrown anywhere else. An unexpected error becomes `internal_error`, with its cause kept for the log. */
export function toGatewayError(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError) return thrown;
  if (thrown instanceof StoreError) {
    return new GatewayError('store_unavailable', 'The gateway cannot reach its store.', { cause: thrown, retryAfterMs: 1000 });
  }
  if (thrown instanceof StreamError && CLIENT_GONE.has(thrown.reason)) return clientGone(thrown);
  return new GatewayError('internal_error', 'The gateway failed.', { cause: thrown });
}

/** `client_closed_request`: no client reads it, but the log shows it. */
export function clientGone(cause?: unknown): GatewayError {
  return new GatewayError('client_closed_request', 'The client closed the connection.', cause === undefined ? {} : { cause });
}

/** Why an exchange was aborted: the reason of the signal, else that its client left. */
export function goneBecause({ reason }: AbortSignal): GatewayError {
  return reason instanceof GatewayError ? reason : clientGone(reason);
}

export function shuttingDown(): GatewayError {
  return new GatewayError('shutting_down', 'The gateway is shutting down.', { retryAfterMs: 1000 });
}

export function isClientGone(error: GatewayError): boolean {
  return error.code === 'client_closed_request';
}

/** Any other `ERR_` code of Node means a bug of ours. */
const CONNECTION_ERRORS = /^ERR_(TLS|SSL|STREAM)/;

/** Node's and undici's error codes (`ECONNRESET`, `UND_ERR_SOCKET`, `CERT_HAS_EXPIRED`): the failure of a connection. */
export function errorCode(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error)) return undefined;
  if ('code' in thrown && typeof thrown.code === 'string') {
    const { code } = thrown;
    return code.startsWith('ERR_') && !CONNECTION_ERRORS.test(code) ? undefined : code;
  }
  if (thrown instanceof AggregateError) return errorCode(thrown.errors[0]);
  return thrown.cause === undefined ? undefined : errorCode(thrown.cause);
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** The error body of endpoints without a codec (models, balances, unknown paths). */
export function encodeGenericError(error: GatewayError): string {
  return JSON.stringify(openAiErrorBody(error));
}

/** The value of `Retry-After`: whole seconds, at least 1. */
export function retryAfterSeconds(error: GatewayError): string | undefined {
  const ms = error.details.retryAfterMs;
  return ms === undefined ? undefined : String(Math.max(1, Math.ceil(ms / 1000)));
}
