/**
 * The response object that the gateway itself writes. It echoes the client's own values (semantics 8.4.2) and has every required
 * member, since strict SDKs refuse a missing zero.
 */
import type { GatewayError } from '../../canonical/error.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import type { Incomplete, Outcome } from '../../canonical/outcome.ts';
import { shownUsage, totalCacheWrite, totalInput, type Usage } from '../../canonical/usage.ts';
import { writtenFor } from '../../answers/token-usage.ts';
import type { ResponseContext } from '../../codec.ts';
import { NATIVE_REASON } from './outcome.ts';

const TIERS = new Set(['auto', 'default', 'flex', 'scale', 'priority', 'fast', 'ultrafast']);

/** What a response that the gateway writes shows as its tier at the start. */
export function askedTier({ request }: ResponseContext): JsonValue {
  return (request.dialect === 'responses' ? request.json['service_tier'] : undefined) ?? 'auto';
}

/** The response at its start. `createdAt` is the upstream's, and is shown where that speaks this dialect. */
export function emptyResponse(context: ResponseContext, createdAt?: number): JsonObject {
  const { owner, request } = context;
  const isOurs = createdAt === undefined || owner.channelType !== 'responses';
  const asked = request.dialect === 'responses' ? request.json : {};
  const text = isObject(asked['text']) ? asked['text'] : {};
  const reasoning = isObject(asked['reasoning']) ? asked['reasoning'] : {};
  return {
    id: context.responseId,
    access_programs: null,
    object: 'response',
    created_at: isOurs ? context.createdAt : createdAt,
    status: 'in_progress',
    background: false,
    completed_at: null,
    error: null,
    frequency_penalty: asked['frequency_penalty'] ?? 0,
    incomplete_details: null,
    instructions: asked['instructions'] ?? null,
    max_output_tokens: asked['max_output_tokens'] ?? null,
    max_tool_calls: asked['max_tool_calls'] ?? null,
    model: context.model,
    output: [],
    parallel_tool_calls: asked['parallel_tool_calls'] ?? true,
    presence_penalty: asked['presence_penalty'] ?? 0,
    previous_response_id: request.previousResponseId ?? null,
    prompt_cache_key: asked['prompt_cache_key'] ?? null,
    reasoning: { ...reasoning, effort: reasoning['effort'] ?? null, summary: reasoning['summary'] ?? null },
    safety_identifier: asked['safety_identifier'] ?? null,
    service_tier: askedTier(context),
    store: request.store ?? true,
    temperature: asked['temperature'] ?? 1,
    text: { ...text, format: text['format'] ?? { type: 'text' }, verbosity: text['verbosity'] ?? 'medium' },
    tool_choice: asked['tool_choice'] ?? 'auto',
    tools: echoedTools(asked['tools']),
    top_logprobs: asked['top_logprobs'] ?? 0,
    top_p: asked['top_p'] ?? 1,
    truncation: asked['truncation'] ?? 'disabled',
    usage: null,
    ...(typeof asked['user'] === 'string' ? { user: asked['user'] } : {}),
    metadata: asked['metadata'] ?? {},
  };
}

/** The request's tools. A function is shown with every member that the protocol requires of it. */
function echoedTools(tools: JsonValue | undefined): JsonValue {
  if (!Array.isArray(tools)) return [];
  return tools.map((tool: JsonValue) => {
    if (!isObject(tool) || tool['type'] !== 'function') return tool;
    const { description = null, parameters = null, strict = null } = tool;
    return { ...tool, description, parameters, strict };
  });
}

/**
 * The members that an end sets in the response. `cancelled` is shown as `failed` with the code `cancelled` (design, decisions);
 * only a completed one has a time. `asked`: what the response has shown as its `service_tier`.
 */
export function finishedMembers(
  context: ResponseContext,
  asked: JsonValue | undefined,
  output: readonly JsonValue[],
  usage: Usage | undefined,
  outcome: Outcome,
): JsonObject {
  const status = outcome.status === 'cancelled' ? 'failed' : outcome.status;
  const isFailure = outcome.status === 'failed' || outcome.status === 'cancelled';
  const shown = shownUsage(usage);
  return {
    status,
    completed_at: status === 'completed' ? (context.now?.() ?? null) : null,
    error: isFailure ? errorObject(outcome.error) : null,
    incomplete_details: outcome.status === 'incomplete' ? incompleteDetails(outcome) : null,
    service_tier: tierOf(usage, context.owner.channelType === 'responses' ? asked : undefined),
    output,
    usage: shown === undefined ? null : writeUsage(shown),
    ...toolUsage(usage?.meters),
  };
}

export function errorObject(error: GatewayError): JsonObject {
  return { code: error.shownCode, message: error.message };
}

/** The protocol's own reasons beside `max_output_tokens` and `content_filter`, which only its own upstreams give. */
const OWN_REASONS: ReadonlySet<string> = new Set(['max_messages', 'steered']);

/** The wire's reason. For one that it has no word for, the answer was cut, and the upstream's word stands beside it. */
export function incompleteDetails({ reason, native }: Incomplete): JsonObject {
  switch (reason) {
    case 'max_output':
      return { reason: 'max_output_tokens' };
    case 'content_filter':
      return { reason: 'content_filter' };
    case 'context_window':
      return { reason: 'max_output_tokens', [NATIVE_REASON]: native ?? 'context_window' };
    case 'pause':
      return { reason: 'max_output_tokens', [NATIVE_REASON]: native ?? 'pause_turn' };
    case 'compaction':
      return { reason: 'max_output_tokens', [NATIVE_REASON]: native ?? 'compaction' };
    case 'other':
      if (native !== undefined && OWN_REASONS.has(native)) return { reason: native };
      return { reason: 'max_output_tokens', [NATIVE_REASON]: native || 'other' };
  }
}

/** The tier that was used, where this protocol has a word for it. `asked`: by the client, of an upstream that was sent it. */
function tierOf(usage: Usage | undefined, asked: JsonValue | undefined): JsonValue {
  const used = usage?.serviceTier;
  if (used !== undefined && TIERS.has(used)) return used;
  return asked === 'auto' || asked === undefined ? 'default' : asked;
}

function writeUsage(usage: Usage): JsonObject {
  const input = totalInput(usage);
  const output = usage.output ?? 0;
  return {
    input_tokens: input,
    input_tokens_details: {
      cached_tokens: usage.cacheRead ?? 0,
      cache_write_tokens: totalCacheWrite(usage),
      ...writtenFor(usage),
      ...media(usage.imageInput, usage.audioInput),
    },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: usage.reasoning ?? 0, ...media(usage.imageOutput, usage.audioOutput) },
    total_tokens: input + output,
  };
}

/** Tokens of images and audio, which have prices of their own. */
function media(images: number | undefined, audio: number | undefined): JsonObject {
  return { image_tokens: images, audio_tokens: audio };
}

/** The vendor counts both tools wherever it counts one. */
const NO_PICTURES = {
  input_tokens: 0,
  input_tokens_details: { image_tokens: 0, text_tokens: 0 },
  output_tokens: 0,
  output_tokens_details: { image_tokens: 0, text_tokens: 0 },
  total_tokens: 0,
};

/** Searches that an upstream of another protocol ran. Their items have no form here, so only their number is shown. */
function toolUsage(meters: Usage['meters']): JsonObject {
  const searches = meters?.get('web_search');
  return searches === undefined ? {} : { tool_usage: { image_gen: NO_PICTURES, web_search: { num_requests: searches } } };
}
