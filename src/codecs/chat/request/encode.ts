/**
 * A canonical request as a chat-completions body: the client's own text with edits for a chat client, built from items for any
 * other.
 */
import type { JsonObject } from '../../canonical/json.ts';
import type { CanonicalRequest, ReasoningControl } from '../../canonical/request.ts';
import type { Target, UpstreamRequest } from '../../codec.ts';
import { effortOfBudget } from '../../requests/effort-of-budget.ts';
import { refuseForeignBinding } from '../../requests/foreign-content.ts';
import { cacheControlOf, promptOptionsOf } from '../../requests/cache-breakpoints.ts';
import { editJson } from '../../json/edit.ts';
import { writeInSteps } from '../../json/write-in-steps.ts';
import { schemaEdits } from '../../schemas/text.ts';
import { ownStops, splitStops } from '../../requests/stop-sequences.ts';
import { shortKey } from '../../requests/short-id.ts';
import { withDirectTools } from '../../tools/function-members.ts';
import { nameAllTools, verbatimNames } from '../../tools/names.ts';
import type { Steps } from '../../steps.ts';
import { encodeMessages } from './encode-messages.ts';
import { encodeFormat, encodeToolChoice, encodeTools, NAME_RULE } from './encode-tools.ts';
import { requestLosses } from '../losses.ts';
import { spliceRequest } from './splice.ts';
import { Losses } from '../../requests/losses.ts';
import { mayReplay } from '../../requests/opaque-replay.ts';
import { withoutLosses } from '../../requests/without-losses.ts';

const PATH = '/chat/completions';

export function* encodeInSteps(asked: CanonicalRequest, target: Target): Steps<UpstreamRequest> {
  const losses = new Losses(requestLosses);
  if (asked.dialect === 'chat') {
    const body = yield* spliceRequest(asked, target, losses);
    return { path: PATH, body, headers: {}, toolNames: verbatimNames, losses: losses.names };
  }
  refuseForeignBinding(asked, 'chat');
  const request = withDirectTools(
    withoutLosses(asked, losses, (opaque) => mayReplay(opaque, target, 'chat')),
    losses,
  );
  yield;
  const toolNames = yield* nameAllTools(request, NAME_RULE);
  yield;
  const tools = yield* encodeTools(request, toolNames, target.options, losses);
  const toolChoice = encodeToolChoice(request, toolNames, target.options, tools);
  const messages = yield* encodeMessages(request, target, toolNames, losses);
  const stops = splitStops(request.stop, MOST_STOPS);
  if (stops.own !== undefined) losses.note('stop sequences');
  // Undefined members, here and below, are left out by JSON.stringify.
  const body = {
    model: target.owner.model,
    messages,
    ...(request.stream ? { stream: true, stream_options: { include_usage: true } } : {}),
    tools: tools.length === 0 ? undefined : tools,
    tool_choice: toolChoice,
    parallel_tool_calls: tools.length === 0 ? undefined : request.parallelToolCalls,
    ...sampling(request, target, stops.sent),
    ...reasoning(request.reasoning),
    ...identity(request),
    ...wholeCache(request, target),
  };
  yield;
  const schemas = yield* schemaEdits(request, ['function', 'parameters'], ['response_format', 'json_schema', 'schema']);
  yield;
  const written = yield* writeInSteps(body);
  yield;
  return {
    path: PATH,
    body: editJson(written, schemas),
    headers: {},
    toolNames,
    ...ownStops(stops),
    losses: losses.names,
  };
}

/** OpenAI takes no more. */
const MOST_STOPS = 4;

function sampling(request: CanonicalRequest, target: Target, stops: readonly string[] | undefined): JsonObject {
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
    stop: stops,
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
