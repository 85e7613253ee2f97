/**
 * What an upstream's words say about whose fault a refusal is, where its status does not: the Channel's, its model's, or the
 * client's who asked. The words are those of the vendors' documents and of answers that were seen.
 */
import type { GatewayError } from '../../codecs/canonical/error.ts';

/** The credential is good, and this model is not for it (OpenAI, Bedrock; LiteLLM; Alibaba): the Channel's others go well. */
const NO_ACCESS = /\b(access to|verified to use|not allowed to access) (the )?model\b|\bfree tier of the model\b/i;
/** OpenAI's, and Groq's for an organisation or a project. */
const NO_MODEL = /^model_(not_found$|permission_blocked)/;

export function isOfModel({ details: { upstream } }: GatewayError): boolean {
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
export function blamesContent(error: GatewayError): boolean {
  const upstream = error.details.upstream;
  const text = upstream?.text ?? '';
  if (upstream?.status === 402) return TOO_DEAR.test(text);
  if (upstream?.status === 429) return TOO_LARGE.test(text);
  if (upstream?.status === 403) return FLAGGED.test(text) || UNREACHABLE.test(text);
  return upstream?.status === 404 && (NO_ENDPOINT.test(text) || namesNothing(text));
}

/** The words of a 404 about what the client named. */
export function namesNothing(text: string): boolean {
  const own = text.replace(QUOTED, '');
  return NAMED_BY_CLIENT.test(own) && !/model/i.test(own);
}

export const isPage = (text: string): boolean => PAGE.test(text);

export const isTooLarge = (text: string): boolean => TOO_LARGE.test(text);
