/**
 * Makes a GatewayError of an upstream's error: a message that clients may read, and the full facts for the log. Shared by all
 * dialects; each codec only finds the members in its own error shape (semantics: "Upstream error parsing").
 */
import { GatewayError, type UpstreamFacts, type UpstreamReason } from '../canonical/error.ts';
import { isObject, type JsonValue, tryJson } from '../canonical/json.ts';
import type { UpstreamAnswer } from '../codec.ts';
import { CONTEXT_OVERFLOW, isContextOverflow } from './context-overflow.ts';
import { PICTURE_FAULTS, POLICY_FAULTS, sanitise, shownUpstreamCode } from './sanitise.ts';

/** Statuses that every Channel would answer: the request itself is wrong. */
const DETERMINISTIC = new Set([400, 413, 422]);

export interface ErrorMembers {
  readonly message?: string | undefined;
  readonly code?: string | undefined;
  readonly type?: string | undefined;
  readonly param?: string | undefined;
}

const EVENT_DATA = /^data:(.*)$/m;

/**
 * The JSON of an error answer, or of the first event of one that is framed as a stream; the text itself where neither is JSON.
 */
export function errorBody(text: string): JsonValue {
  const whole = tryJson(text);
  const event = whole === undefined ? tryJson(EVENT_DATA.exec(text)?.[1] ?? '') : whole;
  return event === undefined ? text : event;
}

/** A string, number or boolean as text; undefined for an empty string and everything else. */
export function textOf(value: JsonValue | undefined): string | undefined {
  if (typeof value === 'string') return value === '' ? undefined : value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return undefined;
}

/**
 * Reads `{error: {message, code, type, param}}`, `{error: "text", code}`, `{detail}`, `{message, …}` router metadata, and the
 * vendor's details of messages.
 */
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

/** The validation errors of FastAPI as one text: `[{loc: ["body", "max_tokens"], msg}]`. */
function validationText(entries: readonly JsonValue[]): string | undefined {
  const messages = entries.filter(isObject).flatMap((entry) => {
    const message = textOf(entry['msg']) ?? textOf(entry['message']);
    const path = Array.isArray(entry['loc']) ? entry['loc'].map(textOf).filter((part) => part !== 'body') : [];
    return message === undefined ? [] : [path.length === 0 ? message : `${path.join('.')}: ${message}`];
  });
  return messages.length === 0 ? undefined : messages.join('; ');
}

const STATUS_BY_CODE: Readonly<Record<string, number>> = {
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
  // A server of tools that the client named cannot be reached.
  external_connector_error: 424,
  // Errors of the client that may arrive inside a 200: its prompt, or its images.
  ...Object.fromEntries(
    [
      ...PICTURE_FAULTS,
      ...POLICY_FAULTS,
      'content_filter',
      'moderation_blocked',
      'content_policy_violation',
      'image_generation_user_error',
    ].map((code) => [code, 400]),
  ),
};

/**
 * Ark's codes for what its filters refuse, perhaps with a cause at the end (`InputTextSensitiveContentDetected.PolicyViolation`).
 */
const SENSITIVE = /^(input|output)[a-z]+sensitivecontentdetected(\.|$)/;

/** The HTTP status (400 to 599) that the members of an error inside a 200 stand for, if any. */
export function statusOfMembers(members: ErrorMembers): number | undefined {
  const numeric = Number(members.code);
  if (Number.isInteger(numeric) && numeric >= 400 && numeric <= 599) return numeric;
  for (const code of [members.code, members.type]) {
    const name = code?.toLowerCase();
    if (name === undefined) continue;
    if (Object.hasOwn(STATUS_BY_CODE, name)) return STATUS_BY_CODE[name];
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
 * The messages of vendors that answer 400 to a wrong key (xAI, Google). Only the beginning of a message is matched, which never
 * quotes the client: a refused key takes the Channel out of service for everybody.
 */
const OUR_KEY = /^(?:(?:incorrect|invalid|missing) api[ _-]?key\b|api[ _-]?key (?:not valid|not found|expired|invalid)\b)/i;
/**
 * The same of an account without money, or at the limit that its owner has set (Anthropic, Fireworks, LiteLLM). A limit of one of
 * its users is that user's concern.
 */
const UNPAID =
  /^(?:your credit balance is too low\b|you have reached your specified (?:workspace )?api usage limits\b|this organization has been disabled\b|account \S{1,100} is suspended, possibly due to\b|budget has been exceeded! (?:current cost|team)\b)/i;
/** OpenAI's, Alibaba's and Groq's. */
const UNPAID_CODES: ReadonlySet<string> = new Set(['billing_hard_limit_reached', 'arrearage', 'organization_restricted']);
/**
 * Servers that check a request (Anthropic's, FastAPI's, Nest's) begin with the member that they do not know, and a client may
 * call one like those beginnings.
 */
const OF_MEMBER =
  /\b(?:extra (?:inputs|fields)|(?:additional|unexpected|unknown|unrecogni[sz]ed|unsupported) (?:argument|field|input|member|name|option|param|propert)\w*|not (?:allowed|permitted|recogni[sz]ed|supported)|should not exist)\b/i;

/**
 * The error for an upstream's refusal. Its (sanitised) message is shown for 400, 404, 413 and 422 only. Credentials, limits and
 * server faults get a general message, since they are the gateway's concern. `given`: the upstream's status.
 */
export function refusal(given: number | undefined, members: ErrorMembers, options: RefusalOptions): GatewayError {
  const status = effectiveStatus(given, members);
  const facts: { -readonly [K in keyof UpstreamFacts]: UpstreamFacts[K] } = { text: options.text };
  if (status !== undefined) facts.status = status;
  if (members.code !== undefined) facts.code = members.code;
  if (members.type !== undefined) facts.type = members.type;
  if (members.param !== undefined) facts.param = members.param;
  if (options.retryAfterMs !== undefined) facts.retryAfterMs = options.retryAfterMs;
  const shown = shownUpstreamCode(members.code) ?? shownUpstreamCode(members.type) ?? overflowCode(status, members);
  return new GatewayError('upstream_error', messageFor(status, members.message), {
    reason: options.reason,
    upstream: facts,
    ...(shown === undefined ? {} : { shownCode: shown }),
    ...(options.retryAfterMs === undefined ? {} : { retryAfterMs: options.retryAfterMs }),
  });
}

function overflowCode(status: number | undefined, members: ErrorMembers): string | undefined {
  return (status === undefined || isDeterministic(status)) && isContextOverflow(members) ? CONTEXT_OVERFLOW : undefined;
}

/** Statuses of an upstream that a client may see in a stream: those that it can act on, never those of our credential. */
const SHOWN_IN_STREAM: ReadonlySet<number> = new Set([400, 413, 422, 429, 503, 504, 529]);

/** The status of an error inside a 200 stream, for protocols whose error types depend on it. */
export function statusInStream(error: GatewayError): number {
  const status = error.details.upstream?.status;
  return error.blame === 'upstream' && status !== undefined && SHOWN_IN_STREAM.has(status) ? status : error.status;
}

/** A path as vendors write it: `messages[3].content`, `tools.0.name`. */
const FIELD = /^[a-z]\w*(?:\[\d+\]|\.\w+)*$/i;
const MAX_FIELD_CHARS = 200;

/**
 * The same error with the field that the upstream names, if the request is at fault and the name is nothing but a path (semantics
 * 2.1.1). Only for an upstream of the client's own dialect: the client did not write the fields of another one.
 */
export function namingField(error: GatewayError): GatewayError {
  const { param, status } = error.details.upstream ?? {};
  if (param === undefined || !isDeterministic(status)) return error;
  if (param.length > MAX_FIELD_CHARS || !FIELD.test(param) || sanitise(param, '') !== param) return error;
  return new GatewayError(error.code, error.message, { ...error.details, param });
}

/** The status that a 400 (Fireworks: 412) should have been, where its members tell. */
function effectiveStatus(given: number | undefined, members: ErrorMembers): number | undefined {
  if (given !== 400 && given !== 412) return given;
  const { message = '', code = '' } = members;
  const isOurs = (words: RegExp): boolean => words.test(message) && !OF_MEMBER.test(message);
  if (isOurs(OUR_KEY)) return 401;
  if (UNPAID_CODES.has(code.toLowerCase()) || isOurs(UNPAID)) return 402;
  return lacksModel(members) ? 404 : given;
}

/**
 * OpenAI's responses endpoint answers 400 for an unknown model, others 404: not the request is wrong, but the Channel's map of
 * models.
 */
function lacksModel({ code, param }: ErrorMembers): boolean {
  return code === 'model_not_found' && (param === undefined || param === 'model');
}

/** True for 400, 413 and 422: every Channel would refuse the request. */
export function isDeterministic(status: number | undefined): boolean {
  return status !== undefined && DETERMINISTIC.has(status);
}

const WAIT = /\btry again in (\d{1,6}(?:\.\d{1,6})?) ?(ms|s)(?:econds?)?\b/i;

/** The wait that a limit names, as a sentence: coding agents read it out of the message, where a stream has no header for it. */
function waitIn(message: string | undefined): string {
  const [, amount, unit] = WAIT.exec(message ?? '') ?? [];
  return amount === undefined || unit === undefined ? '' : ` Please try again in ${amount}${unit.toLowerCase()}.`;
}

function messageFor(status: number | undefined, message: string | undefined): string {
  if (status === undefined) return sanitise(message, 'The upstream reported an error.');
  if (DETERMINISTIC.has(status) || status === 404) return sanitise(message, 'The upstream refused the request.');
  if (status === 401 || status === 402 || status === 403) return 'The upstream refused the gateway.';
  if (status === 429) return `The upstream is limiting requests.${waitIn(message)}`;
  if (status === 529 || status === 503) return 'The upstream is overloaded.';
  return 'The upstream failed.';
}

const AMOUNT = /^\d+(\.\d+)?$/;
/** The three forms of RFC 9110; `Date.parse` takes many others. */
const HTTP_DATE =
  /^(?:[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4}|[A-Z][a-z]+day, \d\d-[A-Z][a-z]{2}-\d\d|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d) \d\d:\d\d:\d\d(?: GMT| \d{4})$/;

/**
 * `retry-after-ms`, else `retry-after` in seconds or as a date, which counts from the upstream's own `date`. Undefined for
 * anything else.
 */
export function retryAfterMs({ headers, receivedAtMs }: Pick<UpstreamAnswer, 'headers' | 'receivedAtMs'>): number | undefined {
  const header = (name: string): string => {
    const value = headers[name];
    return (typeof value === 'string' ? value : (value?.[0] ?? '')).trim();
  };
  const ms = header('retry-after-ms');
  if (AMOUNT.test(ms)) return wholeMs(Number(ms));
  const text = header('retry-after');
  if (AMOUNT.test(text)) return wholeMs(Number(text) * 1000);
  const now = dateOf(header('date')) ?? receivedAtMs;
  const date = dateOf(text);
  return date === undefined || now === undefined ? undefined : Math.max(0, date - now);
}

/** Rounded up; undefined for a delay that is too long to be a safe integer. */
function wholeMs(ms: number): number | undefined {
  const whole = Math.ceil(ms);
  return Number.isSafeInteger(whole) ? whole : undefined;
}

function dateOf(text: string): number | undefined {
  if (!HTTP_DATE.test(text)) return undefined;
  const time = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`);
  return Number.isNaN(time) ? undefined : time;
}

/** Decodes JSON errors of the usual shapes, for endpoints that have no dialect of their own. */
export function decodeJsonError(answer: UpstreamAnswer): GatewayError {
  return refusal(answer.status, readErrorMembers(errorBody(answer.text)), {
    reason: 'http_status',
    text: answer.text,
    retryAfterMs: retryAfterMs(answer),
  });
}
