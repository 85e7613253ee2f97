/**
 * A request that is longer than the model's context. Agents shorten their history when they are told so, and each looks for its
 * own vendor's sign: a code in the OpenAI protocols, words in messages. Most vendors have words only.
 */

/** The code of OpenAI, by which Codex and the SDKs' users tell it. */
export const CONTEXT_OVERFLOW = 'context_length_exceeded';
/** The words of Anthropic, by which Claude Code tells it. */
const PROMPT_TOO_LONG = 'prompt is too long';

/** Error codes and types of its own: llama.cpp, GitHub Models. */
const NAMES: ReadonlySet<string> = new Set([
  'exceed_context_size_error',
  'too_many_prompt_tokens',
  'model_max_prompt_tokens_exceeded',
]);

const WORDS: readonly RegExp[] = [
  // Anthropic; Ollama; Bedrock.
  /\bprompt (?:is )?too long\b/i,
  /\binput is too long for requested model\b/i,
  // OpenAI, vLLM, OpenRouter, Mistral; llama.cpp; LM Studio; Responses, MiniMax.
  /\b(?:maximum|max) context length\b/i,
  /\bexceeds? the available context size\b/i,
  /\bgreater than the context length\b/i,
  /\b(?:exceeds?|larger than) (?:the|your) (?:model's )?context (?:window|length)\b/i,
  /\bcontext window exceeds limit\b/i,
  // Gemini; xAI; GitHub Copilot; Moonshot; Alibaba.
  /\binput token count\b.{0,40}\bexceeds the maximum number of tokens\b/i,
  /\bmaximum prompt length is \d+/i,
  /\bprompt token count of \d+ exceeds the limit\b/i,
  /\bexceeded model token limit\b/i,
  /\brange of input length should be\b/i,
];
/** Vendors say it at once; a longer message quotes the request. */
const READ_CHARS = 500;

interface Refused {
  readonly message?: string | undefined;
  readonly code?: string | undefined;
  readonly type?: string | undefined;
}

export function isContextOverflow({ message = '', code, type }: Refused): boolean {
  if ([code, type].some((name) => name !== undefined && (name === CONTEXT_OVERFLOW || NAMES.has(name)))) return true;
  const begin = message.slice(0, READ_CHARS);
  return WORDS.some((words) => words.test(begin));
}

/** The message of an error for a messages client. */
export function inAnthropicWords(message: string): string {
  return message.toLowerCase().includes(PROMPT_TOO_LONG) ? message : `${PROMPT_TOO_LONG}: ${message}`;
}
