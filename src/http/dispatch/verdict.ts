/**
 * What a failed attempt means: for the Channel that failed, and for the client. One table by status, and the words of a refused
 * opaque value.
 */
import { errorCode } from '../errors.ts';
import { ERRORS, GatewayError, type UpstreamReason } from '../../codecs/canonical/error.ts';
import { LOWER_CAPS, type LowerCap, type Refusable } from '../../codecs/canonical/request.ts';
import { isDeterministic } from '../../codecs/errors/upstream.ts';
import type { AttemptEntry } from '../../store/request-log.ts';
import type { Channel } from '../config/config.ts';
import type { Health, Permit } from './health.ts';

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
  if (status === 429) return !TOO_LARGE.test(upstream?.text ?? '');
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
  else if (status === 403 && PAGE.test(error.details.upstream?.text ?? '')) permit.failed();
  else if (status === 403) permit.forbidden();
  else if (status === 401 || status === 402) permit.refused();
  else if (status === 429) permit.rateLimited(error.details.retryAfterMs ?? error.details.upstream?.retryAfterMs);
  else if (status !== undefined && status >= 400 && status < 500 && status !== 408) permit.nothing();
  else permit.failed();
}

/** The credential is good, and this model is not for it (OpenAI, Bedrock; LiteLLM; Alibaba): the Channel's others go well. */
const NO_ACCESS = /\b(access to|verified to use|not allowed to access) (the )?model\b|\bfree tier of the model\b/i;
/** OpenAI's, and Groq's for an organisation or a project. */
const NO_MODEL = /^model_(not_found$|permission_blocked)/;

function isOfModel({ details: { upstream } }: GatewayError): boolean {
  const text = upstream?.text ?? '';
  const isNamed = upstream?.status === 404 && /model/i.test(text.replace(QUOTED, ''));
  return isNamed || NO_MODEL.test(upstream?.code ?? '') || NO_ACCESS.test(text);
}

/** The last are xAI's, and LiteLLM's, whose filters stand in front of any model. */
const FLAGGED =
  /flagged_input|input was flagged|moderation_blocked|content_policy_violation|\bcontent violates usage guidelines\b|\bcontent blocked\b/i;
/**
 * A page is no vendor's refusal of a credential. A firewall in front of it may have taken offence at what one client wrote, or at
 * the gateway's address, which several clients then find out.
 */
const PAGE = /^\s*<(?:!doctype|html|head|title)\b/i;
/** Files and caches expire, and a client may name what was never there: Google then speaks of permission. */
const UNREACHABLE =
  /\baccess (to )?the (file|google cloud storage object)\b|\bstorage\.objects\.|\bcachedcontent not found\b|\bpermission '(discoveryengine|aiplatform\.(cachedContents|rag\w+))\./i;
/** What a vendor quotes of the request: a name is the client's own choice of words. */
const QUOTED = /'[^']*'|`[^`]*`/g;
const NAMED_BY_CLIENT =
  /\b(conversation|previous_response|item|prompt|file|container|skill|vector[ _]store|cached[ _]?content)(_?id|s)?\b/i;

/**
 * A router has the model, and nobody behind it who does what this request asks for, or whom it asks for (OpenRouter). Without
 * "that" it is the model that is missing.
 */
const NO_ENDPOINT = /\bno endpoints (found|available) (that|matching)\b|\bno allowed providers\b/i;
/** The same router has credits left, for less than the request may cost, in its answer or in its prompt. */
const TOO_DEAR =
  /\bfewer max_tokens\b.{0,80}\bcan only afford [1-9]|\bprompt tokens limit exceeded: \d+ > [1-9]|\btoken capacity required, [1-9]\d* available/is;

/**
 * OpenAI's 429 of a request that alone asks for more than a minute has, and Anthropic's of a prompt that is longer than the
 * subscription holds: no wait helps it, and smaller ones go well.
 */
const TOO_LARGE = /\brequest too large\b.{0,400}\bmust be reduced\b|\bextra usage is required for long context\b/is;

/**
 * A 403 about the content, a 403 or 404 about what the client named or asked for, or a 402 or 429 about how much it asked for, is
 * no evidence against the Channel: otherwise one tenant could close it for all others by asking.
 */
function blamesContent(error: GatewayError): boolean {
  const upstream = error.details.upstream;
  const text = upstream?.text ?? '';
  if (upstream?.status === 402) return TOO_DEAR.test(text);
  if (upstream?.status === 429) return TOO_LARGE.test(text);
  if (upstream?.status === 403) return FLAGGED.test(text) || UNREACHABLE.test(text);
  return upstream?.status === 404 && (NO_ENDPOINT.test(text) || namesNothing(text));
}

/** The words of a 404 about what the client named. */
function namesNothing(text: string): boolean {
  const own = text.replace(QUOTED, '');
  return NAMED_BY_CLIENT.test(own) && !/model/i.test(own);
}

const OPAQUE_WORDS =
  /invalid_encrypted_content|thinking_signature_invalid|encrypted_content|encrypted content|thought[_ ]?signature|invalid [`'"]?signature|signature[`'"]? in [`'"]?thinking|thinking[`'"]? block.{0,80}signature|redacted_thinking/i;

/** OpenAI's, of reasoning items whose `content` is not empty; other servers of its protocol want that text back. */
const RAW_ITEM_WORDS = /\binput\[\d+\]\.content\b.{0,20}array too long.{0,60}\bmaximum length 0\b/is;
/**
 * Groq, Cerebras, Mistral and Fireworks, of messages that carry the reasoning of a model of DeepSeek's kind; that kind wants it
 * back.
 */
const RAW_MEMBER = String.raw`(\breasoning_(content|details)|\bmessages\b\S{0,30}[.[]['"]?reasoning)\b`;
const NOT_TAKEN = String.raw`\b(unsupported|not (supported|permitted|allowed)|unexpected|unrecognized)\b`;
const RAW_MEMBER_WORDS = new RegExp(`${RAW_MEMBER}.{0,60}${NOT_TAKEN}|${NOT_TAKEN}.{0,60}${RAW_MEMBER}`, 'is');

/** OpenAI's, of ids that others of its protocol give: longer than 64 characters, or without the prefix of their kind. */
const ITEM_ID_WORDS = /\binput\[\d+\]\.id\b.{0,200}(string too long|expected an id that begins)/is;

/** Servers that do not know the members of cache breakpoints, or a model that takes none. */
const CACHE_MEMBER = String.raw`\b(prompt_cache_(breakpoint|options)|cache_control)\b`;
const UNKNOWN = String.raw`\b(unknown|extra|additional|unsupported|not (supported|permitted|allowed)|unexpected|unrecognized)\b`;
const CACHE_WORDS = new RegExp(`${CACHE_MEMBER}.{0,80}${UNKNOWN}|${UNKNOWN}.{0,80}${CACHE_MEMBER}`, 'is');

/** Anthropic's, of Claude from 4.1 on. */
const BOTH_WORDS = /\btemperature\b.{0,20}\btop_p\b.{0,20}\bcannot both be specified\b/i;

/** Anthropic's and Bedrock's, of a cap above what the model can write. */
const CAP_WORDS = /max_tokens: \d{1,9} > (\d{1,9}),|maximum tokens you requested exceeds the model limit of (\d{1,9})/i;

/** Claude before 4.5, of a cap that does not fit behind a prompt of this length. */
const ROOM_WORDS = /`?max_tokens`? exceed context limit: (\d{1,9}) \+ \d{1,9} > (\d{1,9})/i;

/** The largest known cap that the model takes, after an error about a larger one. */
function lowerCap(text: string): LowerCap | undefined {
  const [, most, limit] = CAP_WORDS.exec(text) ?? [];
  const [, input, window] = ROOM_WORDS.exec(text) ?? [];
  const room = Number(most ?? limit ?? Number(window) - Number(input));
  const cap = LOWER_CAPS.find((known) => known <= room);
  return cap === undefined ? undefined : `cap_${cap}`;
}

/** What is refused because of the length of this request tells nothing about the next. */
export function teaches(error: GatewayError): boolean {
  return !ROOM_WORDS.test(`${error.details.upstream?.text ?? ''} ${error.message}`);
}

/** What of the request this error refuses that it can be sent without; undefined for all other errors. */
export function refusedPart(error: GatewayError): Refusable | undefined {
  const upstream = error.details.upstream;
  if (upstream?.status !== 400 && upstream?.status !== 422) return undefined;
  const text = `${upstream.code ?? ''} ${upstream.type ?? ''} ${upstream.text ?? ''} ${error.message}`;
  if (RAW_ITEM_WORDS.test(text) || RAW_MEMBER_WORDS.test(text)) return 'raw';
  if (CACHE_WORDS.test(text)) return 'breakpoints';
  if (ITEM_ID_WORDS.test(text)) return 'ids';
  if (BOTH_WORDS.test(text)) return 'both_samplings';
  return lowerCap(text) ?? (OPAQUE_WORDS.test(text) ? 'opaque' : undefined);
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
