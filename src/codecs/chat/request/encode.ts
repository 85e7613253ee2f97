/**
 * A canonical request as a chat-completions body: the client's own text with edits for a chat client, built from items for any
 * other.
 */
import type { JsonObject } from '../../canonical/json.ts';
import type { CanonicalRequest, ReasoningControl } from '../../canonical/request.ts';
import type { Target } from '../../codec.ts';
import { effortOfBudget } from '../../requests/effort-of-budget.ts';
import { cacheControlOf, promptOptionsOf } from '../../requests/cache-breakpoints.ts';
import { type EncodeContext, requestEncoder } from '../../requests/request-encoder.ts';
import { shortKey } from '../../requests/short-id.ts';
import { writeWithSchemas } from '../../schemas/text.ts';
import { PLAIN_NAMES } from '../../tools/names.ts';
import type { Steps } from '../../steps.ts';
import { encodeMessages } from './encode-messages.ts';
import { encodeFormat, encodeToolChoice, encodeTools } from './encode-tools.ts';
import { requestLosses } from '../losses.ts';
import { spliceRequest } from './splice.ts';

export const encodeInSteps = requestEncoder({
  dialect: 'chat',
  losses: requestLosses,
  nameRule: PLAIN_NAMES,
  // OpenAI takes no more.
  mostStops: 4,
  path: () => '/chat/completions',
  splice: spliceRequest,
  write: writeBody,
});

function* writeBody(request: CanonicalRequest, context: EncodeContext): Steps<string> {
  const { target } = context;
  const tools = yield* encodeTools(request, context);
  const toolChoice = encodeToolChoice(request, context, tools);
  const messages = yield* encodeMessages(request, context);
  // Undefined members, here and below, are left out by JSON.stringify.
  const body = {
    model: target.owner.model,
    messages,
    ...(request.stream ? { stream: true, stream_options: { include_usage: true } } : {}),
    tools: tools.length === 0 ? undefined : tools,
    tool_choice: toolChoice,
    parallel_tool_calls: tools.length === 0 ? undefined : request.parallelToolCalls,
    ...sampling(request, context),
    ...reasoning(request.reasoning),
    ...identity(request),
    ...wholeCache(request, target),
  };
  yield;
  return yield* writeWithSchemas(body, request, ['function', 'parameters'], ['response_format', 'json_schema', 'schema']);
}

function sampling(request: CanonicalRequest, { target, stops }: EncodeContext): JsonObject {
  const cap = target.options.legacyOutputCap === true ? 'max_tokens' : 'max_completion_tokens';
  const { logprobs, format } = request;
  return {
    [cap]: request.maxOutputTokens,
    temperature: request.temperature,
    top_p: request.topP,
    top_k: request.topK,
    seed: request.seed,
    presence_penalty: request.presencePenalty,
    frequency_penalty: request.frequencyPenalty,
    logit_bias: request.logitBias,
    stop: stops.sent,
    logprobs: logprobs === undefined ? undefined : true,
    top_logprobs: logprobs !== undefined && logprobs.top > 0 ? logprobs.top : undefined,
    response_format: format === undefined ? undefined : encodeFormat(format),
    verbosity: request.verbosity,
    modalities: request.modalities,
  };
}

function reasoning({ effort, budget }: ReasoningControl = {}): JsonObject {
  return { reasoning_effort: effort ?? (budget === undefined ? undefined : effortOfBudget(budget)) };
}

function wholeCache({ cache }: CanonicalRequest, { options, without }: Target): JsonObject {
  if (cache === undefined || without.has('breakpoints')) return {};
  if (options.routerCacheControl === true) return cache.isAutomatic ? { cache_control: cacheControlOf(cache) } : {};
  return { prompt_cache_options: promptOptionsOf(cache) };
}

function identity(request: CanonicalRequest): JsonObject {
  return {
    user: shortKey(request.user),
    metadata: request.metadata,
    prompt_cache_key: shortKey(request.promptCacheKey),
    safety_identifier: shortKey(request.safetyIdentifier),
  };
}
