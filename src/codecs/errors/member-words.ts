/**
 * An upstream of another dialect names members of a request that the client did not write. Where the client wrote a member for
 * the same thing, the error says that one, in its message and as its field.
 */
import type { Dialect } from '../canonical/dialect.ts';
import { GatewayError } from '../canonical/error.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import { isDeterministic, namingField } from './upstream.ts';

type Subject = 'cap' | 'topP' | 'topK' | 'stop' | 'format' | 'reasoning' | 'user' | 'logprobs';

/** How each dialect spells them, the fuller path first. */
const WORDS: Readonly<Record<Dialect, Partial<Record<Subject, readonly string[]>>>> = {
  chat: {
    cap: ['max_completion_tokens', 'max_tokens'],
    topP: ['top_p'],
    stop: ['stop'],
    format: ['response_format'],
    reasoning: ['reasoning_effort', 'reasoning', 'thinking'],
    user: ['user'],
    logprobs: ['top_logprobs', 'logprobs'],
  },
  completions: { cap: ['max_tokens'], topP: ['top_p'], stop: ['stop'], user: ['user'], logprobs: ['logprobs'] },
  responses: {
    cap: ['max_output_tokens'],
    topP: ['top_p'],
    format: ['text.format'],
    reasoning: ['reasoning.effort', 'reasoning'],
    user: ['user'],
    logprobs: ['top_logprobs'],
  },
  messages: {
    cap: ['max_tokens'],
    topP: ['top_p'],
    topK: ['top_k'],
    stop: ['stop_sequences'],
    format: ['output_config.format'],
    reasoning: ['thinking.enabled.budget_tokens', 'thinking.budget_tokens', 'output_config.effort', 'thinking'],
    user: ['metadata.user_id'],
  },
  gemini: {
    cap: spellings('max_output_tokens', 'maxOutputTokens'),
    topP: spellings('top_p', 'topP'),
    topK: spellings('top_k', 'topK'),
    stop: spellings('stop_sequences', 'stopSequences'),
    format: [...spellings('response_json_schema', 'responseJsonSchema'), ...spellings('response_schema', 'responseSchema')],
    reasoning: [
      ...['thinking_config.thinking_budget', 'thinking_config.thinking_level', 'thinking_config'].flatMap((name) =>
        spellings(name),
      ),
      ...spellings('thinkingConfig'),
    ],
    logprobs: spellings('logprobs'),
  },
};

function spellings(...names: readonly string[]): string[] {
  return names.flatMap((name) => [
    `GenerateContentRequest.generation_config.${name}`,
    `generation_config.${name}`,
    `generationConfig.${name}`,
    name,
  ]);
}

/** How far in front of a name its `type '` begins. */
const TYPE_WORDS = 7;
/** A word that is an identifier wherever it stands; others are members only in quotes or in front of a colon. */
const IDENTIFIER = /[_.]|[a-z][A-Z]/;

/** The error in the client's words. One of the client's own dialect is in them already. */
export function namingMembers(
  error: GatewayError,
  { dialect, json }: { readonly dialect: Dialect; readonly json: JsonObject },
  upstream: Dialect,
): GatewayError {
  if (upstream === dialect) return namingField(error);
  if (!isDeterministic(error.details.upstream?.status)) return error;
  let { message } = error;
  let param: string | undefined;
  for (const [subject, names] of Object.entries(WORDS[upstream]) as [Subject, readonly string[]][]) {
    const own = WORDS[dialect][subject]?.find((path) => holds(json, path));
    if (own === undefined) continue;
    const found = names.map((name) => ({ name, at: placeOf(message, name) })).find(({ at }) => at !== undefined);
    if (found?.at !== undefined) {
      const end = found.at + found.name.length;
      const rest = /^(?:\.\w+)*/.exec(message.slice(end))?.[0] ?? '';
      param ??= `${own}${rest}`;
      message = message.slice(0, found.at) + own + message.slice(end);
    }
    const named = error.details.upstream?.param;
    if (named !== undefined && names.includes(named)) param = own;
  }
  if (message === error.message && param === undefined) return error;
  return new GatewayError(error.code, message, { ...error.details, ...(param === undefined ? {} : { param }) });
}

/** Where a message names this member; undefined where it merely uses the word. */
function placeOf(message: string, name: string): number | undefined {
  for (let at = message.indexOf(name); at !== -1; at = message.indexOf(name, at + 1)) {
    const before = message[at - 1] ?? '';
    const behind = message[at + name.length] ?? '';
    // The name of a type is a value.
    if (/\btype ['"`]$/.test(message.slice(Math.max(0, at - TYPE_WORDS), at))) continue;
    const isWhole = !/[\w.]/.test(before) && !/\w/.test(behind);
    const isMember = IDENTIFIER.test(name) || (/['"`]/.test(before) && before === behind) || (at === 0 && behind === ':');
    if (isWhole && isMember) return at;
  }
  return undefined;
}

function holds(json: JsonObject, path: string): boolean {
  let value: JsonValue | undefined = json;
  for (const step of path.split('.')) value = isObject(value) ? value[step] : undefined;
  return value !== undefined && value !== null;
}
