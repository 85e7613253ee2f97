/**
 * An upstream's refusal as a GatewayError: what clients may read, and the full facts for the log. Shared by all dialects;
 * each codec only finds the members in its own error shape (semantics: "Upstream error parsing").
 */
import { GatewayError, type UpstreamFacts, type UpstreamReason } from '../canonical/error.ts';
import { isObject, type JsonValue, tryJson } from '../canonical/json.ts';
import type { UpstreamAnswer } from '../codec.ts';
import { PICTURE_FAULTS, POLICY_FAULTS, sanitise, shownUpstreamCode } from './sanitise.ts';

/** Statuses that say the same for every Channel: the request itself is wrong. */
const DETERMINISTIC = new Set([400, 413, 422]);

export interface ErrorMembers {
  readonly message?: string | undefined;
  readonly code?: string | undefined;
  readonly type?: string | undefined;
  readonly param?: string | undefined;
}

const EVENT_DATA = /^data:(.*)$/m;

/** The JSON of an error answer, also where a stream was asked for and the answer is framed as its first event; else its text. */
export function errorBody(text: string): JsonValue {
  return tryJson(text) ?? tryJson(EVENT_DATA.exec(text)?.[1] ?? '') ?? text;
}

/** A scalar as text; numbers and booleans become their spelling, empty strings and everything else are missing. */
export function textOf(value: JsonValue | undefined): string | undefined {
  if (typeof value === 'string') return value === '' ? undefined : value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return undefined;
}

/** Reads `{error: {message, code, type, param}}`, `{error: "text", code}`, `{detail}`, `{message, …}` router metadata, and the vendor's details of messages. */
export function readErrorMembers(body: JsonValue | undefined): ErrorMembers {
  if (!isObject(body)) return { message: textOf(body) };
  const error = body['error'] ?? body['detail'] ?? body;
  if (Array.isArray(error)) return { message: validationText(error), type: textOf(body['type']) };
  if (!isObject(error)) return { message: textOf(error), code: textOf(body['code']), type: textOf(body['type']) };
  const metadata = isObject(error['metadata']) ? error['metadata'] : {};
  const details = isObject(error['details']) ? error['details'] : {};
  return {
    message: textOf(error['message']) ?? textOf(error['detail']),
    code: textOf(error['code']) ?? textOf(metadata['provider_code']) ?? textOf(details['error_code']),
    type: textOf(error['type']) ?? textOf(error['error_type']) ?? textOf(metadata['error_type']),
    param: textOf(error['param']),
  };
}

/** FastAPI's list of what is wrong with a body: `[{loc: ["body", "max_tokens"], msg}]`. */
function validationText(entries: readonly JsonValue[]): string | undefined {
  const said = entries.filter(isObject).flatMap((entry) => {
    const message = textOf(entry['msg']) ?? textOf(entry['message']);
    const place = Array.isArray(entry['loc']) ? entry['loc'].map(textOf).filter((part) => part !== 'body') : [];
    return message === undefined ? [] : [place.length === 0 ? message : `${place.join('.')}: ${message}`];
  });
  return said.length === 0 ? undefined : said.join('; ');
}

const STATUS_BY_WORD: Readonly<Record<string, number>> = {
  rate_limit_error: 429,
  rate_limit_exceeded: 429,
  too_many_requests: 429,
  resource_exhausted: 429,
  insufficient_quota: 429,
  overloaded_error: 529,
  provider_overloaded: 529,
  server_is_overloaded: 529,
  slow_down: 503,
  invalid_request_error: 400,
  invalid_argument: 400,
  invalid_prompt: 400,
  context_length_exceeded: 400,
  invalid_encrypted_content: 400,
  thinking_signature_invalid: 400,
  authentication_error: 401,
  invalid_api_key: 401,
  permission_error: 403,
  permission_denied: 403,
  not_found_error: 404,
  request_too_large: 413,
  unprocessable_entity_error: 422,
  timeout_error: 504,
  // What was asked, and the pictures that were sent along: an error of the asker, said inside a 200.
  ...Object.fromEntries(
    [
      ...PICTURE_FAULTS,
      ...POLICY_FAULTS,
      'content_filter',
      'moderation_blocked',
      'content_policy_violation',
      'image_generation_user_error',
    ].map((word) => [word, 400]),
  ),
};

/** Ark's words for what its filters refuse, which may have a cause at the end (`InputTextSensitiveContentDetected.PolicyViolation`). */
const SENSITIVE = /^(input|output)[a-z]+sensitivecontentdetected(\.|$)/;

/** The HTTP status that an error inside a 200 stands for, where its members say one (400 to 599). */
export function statusOfMembers(members: ErrorMembers): number | undefined {
  const numeric = Number(members.code);
  if (Number.isInteger(numeric) && numeric >= 400 && numeric <= 599) return numeric;
  for (const word of [members.code, members.type]) {
    const name = word?.toLowerCase();
    if (name === undefined) continue;
    if (Object.hasOwn(STATUS_BY_WORD, name)) return STATUS_BY_WORD[name];
    if (SENSITIVE.test(name)) return 400;
  }
  return undefined;
}

export interface RefusalOptions {
  readonly reason: UpstreamReason;
  readonly text: string;
  readonly retryAfterMs?: number | undefined;
}

/**
 * How vendors that answer 400 for it say that our key is wrong (xAI, Google): as the first words, where nothing is quoted that a client
 * wrote, since a refused key takes a Channel out for everybody.
 */
const OUR_KEY = /^(?:(?:incorrect|invalid|missing) api[ _-]?key\b|api[ _-]?key (?:not valid|not found|expired|invalid)\b)/i;

/**
 * The error for an upstream's refusal. Only for 400, 404, 413 and 422 is its (sanitised) message shown; for credentials,
 * limits and server faults a general one, since those are ours to answer for.
 */
export function refusal(said: number | undefined, members: ErrorMembers, options: RefusalOptions): GatewayError {
  const status = meantBy(said, members);
  const facts: { -readonly [K in keyof UpstreamFacts]: UpstreamFacts[K] } = { text: options.text };
  if (status !== undefined) facts.status = status;
  if (members.code !== undefined) facts.code = members.code;
  if (members.type !== undefined) facts.type = members.type;
  if (members.param !== undefined) facts.param = members.param;
  if (options.retryAfterMs !== undefined) facts.retryAfterMs = options.retryAfterMs;
  const shown = shownUpstreamCode(members.code) ?? shownUpstreamCode(members.type);
  return new GatewayError('upstream_error', messageFor(status, members.message), {
    reason: options.reason,
    upstream: facts,
    ...(shown === undefined ? {} : { shownCode: shown }),
    ...(options.retryAfterMs === undefined ? {} : { retryAfterMs: options.retryAfterMs }),
  });
}

/** Statuses of an upstream that a client may read in a stream: those that it can act on, never those of our credential. */
const SHOWN_IN_STREAM: ReadonlySet<number> = new Set([400, 413, 422, 429, 503, 504, 529]);

/** The status that an error inside a 200 stands for, where the words of a protocol depend on one. */
export function statusInStream(error: GatewayError): number {
  const said = error.details.upstream?.status;
  return error.blame === 'upstream' && said !== undefined && SHOWN_IN_STREAM.has(said) ? said : error.status;
}

/** A path as vendors write it: `messages[3].content`, `tools.0.name`. */
const FIELD = /^[a-z]\w*(?:\[\d+\]|\.\w+)*$/i;
const MAX_FIELD_CHARS = 200;

/**
 * The same error, with the field that it names where the request is at fault and the name is nothing but a path (semantics 2.1.1). Only for
 * an upstream that was asked in the client's own dialect: the fields of another one are not the client's.
 */
export function namingField(error: GatewayError): GatewayError {
  const { param, status } = error.details.upstream ?? {};
  if (param === undefined || !isDeterministic(status)) return error;
  if (param.length > MAX_FIELD_CHARS || !FIELD.test(param) || sanitise(param, '') !== param) return error;
  return new GatewayError(error.code, error.message, { ...error.details, param });
}

/** What a 400 stands for where its members say more than it does. */
function meantBy(said: number | undefined, members: ErrorMembers): number | undefined {
  if (said !== 400) return said;
  if (OUR_KEY.test(members.message ?? '')) return 401;
  return lacksModel(members) ? 404 : said;
}

/** OpenAI's responses endpoint answers 400 where it has no such model, others 404: the request is not wrong, the Channel's map of models is. */
function lacksModel({ code, param }: ErrorMembers): boolean {
  return code === 'model_not_found' && (param === undefined || param === 'model');
}

/** 400, 413 and 422: what is wrong with the request is wrong with it everywhere. */
export function isDeterministic(status: number | undefined): boolean {
  return status !== undefined && DETERMINISTIC.has(status);
}

function messageFor(status: number | undefined, message: string | undefined): string {
  if (status === undefined) return sanitise(message, 'The upstream reported an error.');
  if (DETERMINISTIC.has(status) || status === 404) return sanitise(message, 'The upstream refused the request.');
  if (status === 401 || status === 402 || status === 403) return 'The upstream refused the gateway.';
  if (status === 429) return 'The upstream is limiting requests.';
  if (status === 529 || status === 503) return 'The upstream is overloaded.';
  return 'The upstream failed.';
}

const AMOUNT = /^\d+(\.\d+)?$/;
/** The three forms of RFC 9110: anything else that `Date.parse` would take is no date. */
const HTTP_DATE =
  /^(?:[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4}|[A-Z][a-z]+day, \d\d-[A-Z][a-z]{2}-\d\d|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d) \d\d:\d\d:\d\d(?: GMT| \d{4})$/;

/** `retry-after-ms`, else `retry-after` in seconds or as a date, by the upstream's own clock where it says one. Undefined for what is none. */
export function retryAfterMs({ headers, receivedAtMs }: Pick<UpstreamAnswer, 'headers' | 'receivedAtMs'>): number | undefined {
  const one = (name: string): string => {
    const value = headers[name];
    return (typeof value === 'string' ? value : (value?.[0] ?? '')).trim();
  };
  const ms = one('retry-after-ms');
  if (AMOUNT.test(ms)) return waitOf(Number(ms));
  const text = one('retry-after');
  if (AMOUNT.test(text)) return waitOf(Number(text) * 1000);
  const now = dateOf(one('date')) ?? receivedAtMs;
  const date = dateOf(text);
  return date === undefined || now === undefined ? undefined : Math.max(0, date - now);
}

/** An amount that is longer than a clock can count says nothing. */
function waitOf(ms: number): number | undefined {
  const whole = Math.ceil(ms);
  return Number.isSafeInteger(whole) ? whole : undefined;
}

function dateOf(text: string): number | undefined {
  if (!HTTP_DATE.test(text)) return undefined;
  const time = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`);
  return Number.isNaN(time) ? undefined : time;
}
