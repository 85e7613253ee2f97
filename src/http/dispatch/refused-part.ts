/** What an upstream refuses of a request that can be sent without it, by the words of its 400 or 422. */
import type { GatewayError } from '../../codecs/canonical/error.ts';
import { LOWER_CAPS, type LowerCap, type Refusable } from '../../codecs/canonical/request.ts';

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
