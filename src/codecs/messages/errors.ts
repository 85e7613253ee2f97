/** The messages error form, in both directions. `http/errors.ts` decides the status; this file only the words. */
import type { GatewayError } from '../canonical/error.ts';
import type { JsonObject } from '../canonical/json.ts';
import type { Frame, UpstreamAnswer } from '../codec.ts';
import { MESSAGES_FAULTS } from '../errors/sanitise.ts';
import { errorBody, readErrorMembers, refusal, retryAfterMs } from '../errors/upstream.ts';

const TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  409: 'invalid_request_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  503: 'overloaded_error',
  504: 'timeout_error',
  529: 'overloaded_error',
};

/** The vendor's error type for a status (semantics 2.1.2). */
function errorType(status: number): string {
  return TYPES[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error');
}

/** Upstream statuses whose type a client may read in a stream: those that it can act on, never those of our credential. */
const SHOWN_UPSTREAM: ReadonlySet<number> = new Set([400, 413, 422, 429, 503, 504, 529]);

function streamErrorType(error: GatewayError): string {
  const said = error.details.upstream?.status;
  return errorType(error.blame === 'upstream' && said !== undefined && SHOWN_UPSTREAM.has(said) ? said : error.status);
}

/** Codes that official clients know by `details.error_code`, and act on. */
const DETAILED: ReadonlySet<string> = new Set(['thread_not_found', ...MESSAGES_FAULTS]);

function members(error: GatewayError, type: string): JsonObject {
  const { message, shownCode, param } = error;
  return {
    type,
    message,
    code: shownCode,
    ...(param === null ? {} : { param }),
    ...(DETAILED.has(shownCode) ? { details: { error_code: shownCode } } : {}),
  };
}

export function encodeError(error: GatewayError, requestId: string): string {
  return JSON.stringify({ type: 'error', error: members(error, errorType(error.status)), request_id: requestId });
}

/** The last event of a stream that failed. */
export function errorFrame(error: GatewayError): Frame {
  return { event: 'error', data: JSON.stringify({ type: 'error', error: members(error, streamErrorType(error)) }) };
}

/** An upstream's refusal; its full text stays in the details for the log. */
export function decodeError(answer: UpstreamAnswer): GatewayError {
  return refusal(answer.status, readErrorMembers(errorBody(answer.text)), {
    reason: 'http_status',
    text: answer.text,
    retryAfterMs: retryAfterMs(answer),
  });
}
