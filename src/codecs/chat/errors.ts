/** Errors of chat upstreams: HTTP error answers, and failures inside a 200. */
import { byClient, type GatewayError, upstreamFault } from '../canonical/error.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import type { UpstreamAnswer } from '../codec.ts';
import { errorBody, readErrorMembers, refusal, retryAfterMs, statusOfMembers } from '../errors/upstream.ts';
import { isFailure, isRefusedCall } from './answer/outcome.ts';
import { firstChoice } from './wire.ts';

/** An error answer; text that is no JSON is its message. */
export function decodeError(answer: UpstreamAnswer): GatewayError {
  const members = readErrorMembers(unwrapped(errorBody(answer.text)));
  return refusal(answer.status, members, {
    reason: 'http_status',
    text: answer.text,
    retryAfterMs: retryAfterMs(answer),
  });
}

/** Some vendors wrap the error object in an array. */
function unwrapped(body: JsonValue): JsonValue {
  const error: JsonValue | undefined = Array.isArray(body) ? body[0] : body;
  return error ?? null;
}

/** The failure that a chunk or body reports; undefined when it reports none. */
export function failureIn(body: JsonObject, event: string | undefined, text: string): GatewayError | undefined {
  const failure = failureMembers(body, event);
  if (failure === undefined) return undefined;
  const members = readErrorMembers(failure);
  const error = refusal(statusOfMembers(members) ?? numericStatus(failure), members, { reason: 'error_event', text });
  return isRefusedCall(firstChoice(body)?.choice['finish_reason']) ? byClient(error) : error;
}

function failureMembers(body: JsonObject, event: string | undefined): JsonObject | undefined {
  const { error } = body;
  if (isTruthy(error)) return body;
  const groq = body['x_groq'];
  if (isObject(groq) && isTruthy(groq['error'])) return { error: groq['error'] };
  if (event === 'error' || body['object'] === 'error' || body['type'] === 'error') return body;
  const minimax = minimaxError(body['base_resp']);
  if (minimax !== undefined) return minimax;
  if (!Array.isArray(body['choices'])) return isBareFailure(body) ? body : undefined;
  const choice = firstChoice(body)?.choice;
  if (choice === undefined) return undefined;
  if (isTruthy(choice['error'])) return { error: choice['error'] };
  return isFailure(choice['finish_reason']) ? {} : undefined;
}

/** HTTP statuses for the codes of MiniMax: limits, refusals of our key, invalid requests. */
const MINIMAX_STATUS: ReadonlyMap<number, number> = new Map([
  [1002, 429],
  [1039, 429],
  [1041, 429],
  [2056, 429],
  [1004, 401],
  [2049, 401],
  [1008, 402],
  [1026, 400],
  [1027, 400],
  [2013, 400],
]);

/** MiniMax reports a failure in `base_resp` of any 200 answer; code 0 is success. */
function minimaxError(base: JsonValue | undefined): JsonObject | undefined {
  if (!isObject(base)) return undefined;
  const code = base['status_code'];
  if (typeof code !== 'number' || code === 0) return undefined;
  return { error: { message: base['status_msg'] ?? null, code, status: MINIMAX_STATUS.get(code) ?? null } };
}

/** True for an error object in the place of a chunk: a `detail`, or a code with a message (Spark, where 0 is success). */
function isBareFailure(body: JsonObject): boolean {
  if (body['id'] !== undefined) return false;
  const { code, message, detail } = body;
  return isTruthy(detail) || (isTruthy(message) && isTruthy(code) && Number(code) !== 0);
}

function isTruthy(value: JsonValue | undefined): value is JsonValue {
  return value !== undefined && value !== null && value !== false && value !== '';
}

/** Groq and others give the status beside the code. */
function numericStatus(failure: JsonObject): number | undefined {
  const error = isObject(failure['error']) ? failure['error'] : failure;
  for (const value of [error['status_code'], error['status']]) {
    if (typeof value === 'number' && Number.isInteger(value) && value >= 400 && value <= 599) return value;
  }
  return undefined;
}

export function undecodable(what: string): GatewayError {
  return upstreamFault('undecodable', `The upstream's answer could not be read (${what}).`);
}
