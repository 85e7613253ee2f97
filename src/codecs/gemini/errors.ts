/**
 * Errors of the upstream: HTTP error bodies, and error objects inside a stream. The http room reads an error body that replaces a
 * stream.
 */
import type { GatewayError } from '../canonical/error.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import type { UpstreamAnswer } from '../codec.ts';
import {
  errorBody,
  type ErrorMembers,
  readErrorMembers,
  refusal,
  retryAfterMs,
  statusOfMembers,
  textOf,
} from '../errors/upstream.ts';

export function decodeError(answer: UpstreamAnswer): GatewayError {
  const body = errorBody(answer.text);
  const error = errorObject(body);
  // A proxy in front of the vendor writes errors in a shape of its own.
  const members = error === undefined ? readErrorMembers(body) : membersOf(error);
  return refusal(statusOfCredential(error, answer.status) ?? answer.status, members, {
    reason: 'http_status',
    text: answer.text,
    retryAfterMs: (error === undefined ? undefined : retryDelayMs(error)) ?? retryAfterMs(answer),
  });
}

/** The error of an `{error: …}` object inside a 200 answer. */
export function errorOf(error: JsonValue, text: string): GatewayError {
  const object = isObject(error) ? error : { message: textOf(error) ?? '' };
  const members = membersOf(object);
  return refusal(statusOfCredential(object, statusOf(object)) ?? statusOf(object) ?? statusOfMembers(members), members, {
    reason: 'error_event',
    text,
    retryAfterMs: retryDelayMs(object),
  });
}

/** `{error: {…}}`, or the first of a list of them (the form of a stream that is not SSE). */
function errorObject(body: JsonValue | undefined): JsonObject | undefined {
  const holder: JsonValue | undefined = Array.isArray(body) ? body[0] : body;
  if (!isObject(holder)) return undefined;
  const error = holder['error'];
  return isObject(error) ? error : undefined;
}

function membersOf(error: JsonObject): ErrorMembers {
  return {
    message: textOf(error['message']),
    code: textOf(error['status']) ?? textOf(error['code']),
    type: reasonsOf(error)[0],
  };
}

function statusOf(error: JsonObject): number | undefined {
  const code = Number(error['code']);
  return Number.isInteger(code) && code >= 400 && code <= 599 ? code : undefined;
}

/** A file that the client uploaded a moment ago, or that could not be read. */
const UNREADY_FILE = /^the file \S{1,100} is not in an active state\b/i;

/** The true status of a 400 that refuses our credential, account or region; undefined for any other error. */
function statusOfCredential(error: JsonObject | undefined, status: number | undefined): number | undefined {
  if (error === undefined || status !== 400) return undefined;
  if (reasonsOf(error).some((reason) => /^(API_KEY_|ACCESS_TOKEN_|CREDENTIALS_)/.test(reason))) return 401;
  if (UNREADY_FILE.test(textOf(error['message']) ?? '')) return undefined;
  return error['status'] === 'FAILED_PRECONDITION' ? 403 : undefined;
}

function reasonsOf(error: JsonObject): string[] {
  return detailsOf(error).flatMap((detail) => textOf(detail['reason']) ?? []);
}

/** `RetryInfo.retryDelay`, a duration such as `34.4s`. */
function retryDelayMs(error: JsonObject): number | undefined {
  for (const detail of detailsOf(error)) {
    const match = /^(\d+(?:\.\d+)?)s$/.exec(textOf(detail['retryDelay']) ?? '');
    if (match !== null) return Math.ceil(Number(match[1]) * 1000);
  }
  return undefined;
}

function detailsOf(error: JsonObject): JsonObject[] {
  const details = error['details'];
  return Array.isArray(details) ? details.filter(isObject) : [];
}
