/** A legacy completions body into a canonical request: the prompt is one user text (spec: "POST /v1/completions"). */
import { GatewayError, invalid } from '../../canonical/error.ts';
import type { JsonObject, JsonValue } from '../../canonical/json.ts';
import type { CanonicalRequest, ReadMembers } from '../../canonical/request.ts';
import { defined } from '../../defined.ts';
import {
  optionalInteger,
  optionalNumber,
  optionalObject,
  optionalString,
  own,
  present,
  readSeed,
  readStop,
  readStreaming,
  refuseSeveralChoices,
  requiredName,
} from '../../requests/members.ts';

/** Members that no conversion can honour. */
const REFUSED = ['suffix', 'echo', 'best_of', 'logprobs'] as const;

/** Everything else that has a canonical reading. */
const READ: ReadMembers = own(
  ...['model', 'prompt', 'stream', 'stream_options', 'n', 'user', 'max_tokens', 'temperature', 'top_p', 'seed'],
  ...['presence_penalty', 'frequency_penalty', 'logit_bias', 'stop'],
);

export function decodeRequest(text: string, json: JsonObject): CanonicalRequest {
  const model = requiredName(json, 'model');
  for (const key of REFUSED) {
    if (present(json[key])) throw new GatewayError('unsupported_parameter', `'${key}' is not supported.`, { param: key });
  }
  refuseSeveralChoices(json);
  const { prompt, at } = readPrompt(json['prompt']);
  const optional = defined<Partial<CanonicalRequest>>({
    maxOutputTokens: optionalInteger(json, 'max_tokens', { least: 1 }),
    temperature: optionalNumber(json, 'temperature'),
    topP: optionalNumber(json, 'top_p'),
    seed: readSeed(json),
    presencePenalty: optionalNumber(json, 'presence_penalty'),
    frequencyPenalty: optionalNumber(json, 'frequency_penalty'),
    logitBias: optionalObject(json, 'logit_bias'),
    stop: readStop(json),
    user: optionalString(json, 'user'),
  });
  return {
    dialect: 'completions',
    text,
    json,
    reads: READ,
    model,
    ...readStreaming(json),
    items: [{ kind: 'text', role: 'user', text: prompt, citations: [], turn: 0, at }],
    tools: [],
    ...optional,
  };
}

function readPrompt(prompt: JsonValue | undefined): { readonly prompt: string; readonly at: string } {
  if (!present(prompt)) throw invalid('prompt', "Missing required parameter: 'prompt'.");
  if (typeof prompt === 'string') return { prompt, at: 'prompt' };
  const only: JsonValue | undefined = Array.isArray(prompt) && prompt.length === 1 ? prompt[0] : undefined;
  if (typeof only !== 'string') throw invalid('prompt', "'prompt' must be a string or an array of exactly one string.");
  return { prompt: only, at: 'prompt[0]' };
}
