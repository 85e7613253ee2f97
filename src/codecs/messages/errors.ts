/** The error form of the messages wire, in both directions. The HTTP status is decided in `http/errors.ts`. */
import type { GatewayError } from '../canonical/error.ts';
import type { JsonObject } from '../canonical/json.ts';
import type { Frame, UpstreamAnswer } from '../codec.ts';
import { CONTEXT_OVERFLOW, inAnthropicWords } from '../errors/context-overflow.ts';
import { MESSAGES_FAULTS } from '../errors/sanitise.ts';
import { errorBody, readErrorMembers, refusal, retryAfterMs, statusInStream, statusOfMembers } from '../errors/upstream.ts';

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

/** Codes that official clients read in `details.error_code` and act on. */
const DETAILED: ReadonlySet<string> = new Set(['thread_not_found', ...MESSAGES_FAULTS]);

function members(error: GatewayError, type: string): JsonObject {
  const { message, shownCode, param } = error;
  return {
    type,
    message: shownCode === CONTEXT_OVERFLOW ? inAnthropicWords(message) : message,
    code: shownCode,
    ...(param === null ? {} : { param }),
    ...details(shownCode),
  };
}

function details(code: string): JsonObject {
  return DETAILED.has(code) ? { details: { error_code: code } } : {};
}

/** Members beside type and message that an upstream's own error may keep: codes that clients are allowed to see. */
export function codesOf(given: JsonObject, { shownCode }: GatewayError): JsonObject {
  return { ...(given['code'] === shownCode ? { code: shownCode } : {}), ...details(shownCode) };
}

export function encodeError(error: GatewayError, requestId: string): string {
  return JSON.stringify({ type: 'error', error: members(error, errorType(error.status)), request_id: requestId });
}

/** The last event of a stream that failed. */
export function errorFrame(error: GatewayError): Frame {
  return { event: 'error', data: JSON.stringify({ type: 'error', error: members(error, errorType(statusInStream(error))) }) };
}

/** An upstream's refusal; its full text stays in the details for the log. */
export function decodeError(answer: UpstreamAnswer): GatewayError {
  return refusal(answer.status, readErrorMembers(errorBody(answer.text)), {
    reason: 'http_status',
    text: answer.text,
    retryAfterMs: retryAfterMs(answer),
  });
}

/** The error that an upstream reports inside a 200. */
export function reportedError(json: JsonObject, text: string): GatewayError {
  const members = readErrorMembers(json);
  return refusal(statusOfMembers(members), members, { reason: 'error_event', text });
}
