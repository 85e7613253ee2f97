/** How a responses answer began, how it ended and what it used, from its response object. */
import { GatewayError } from '../canonical/error.ts';
import type { CanonicalEvent } from '../canonical/event.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import type { Outcome } from '../canonical/outcome.ts';
import {
  countOf,
  isPlaceholder,
  isPrice,
  outputWith,
  totalCacheWrite,
  type Usage,
  type UsageIteration,
} from '../canonical/usage.ts';
import { defined } from '../defined.ts';
import { cacheWrites, orchestrationOf, pictureInput } from '../answers/token-usage.ts';
import { type ErrorMembers, readErrorMembers, refusal, statusOfMembers } from '../errors/upstream.ts';
import { nonEmptyString } from './wire.ts';

const FINAL = ['completed', 'incomplete', 'failed', 'cancelled'] as const;
export type FinalStatus = (typeof FINAL)[number];

export function startOf(response: JsonObject): CanonicalEvent {
  const { created_at: createdAt } = response;
  return {
    type: 'response.start',
    ...defined({
      id: nonEmptyString(response, 'id'),
      model: nonEmptyString(response, 'model'),
      createdAt: typeof createdAt === 'number' ? createdAt : undefined,
    }),
  };
}

/** The status of a response object where it is a final one. One that says why it is incomplete is, though it has no status (spec rule 15). */
export function finalStatus(response: JsonObject): FinalStatus | undefined {
  const { status, error, incomplete_details: details } = response;
  const final = FINAL.find((word) => word === status);
  if (final !== undefined) return final;
  const isUnsaid = (status ?? error ?? undefined) === undefined;
  return isUnsaid && isObject(details) && nonEmptyString(details, 'reason') !== undefined ? 'incomplete' : undefined;
}

/** The outcome of a finished response. `calls`: whether its output holds tool calls. `text` is the log's. */
export function readOutcome(status: FinalStatus, response: JsonObject, calls: boolean, text: string): Outcome {
  switch (status) {
    case 'completed':
      return { status, stop: calls ? 'toolUse' : 'end' };
    case 'incomplete':
      return readIncomplete(response['incomplete_details']);
    case 'failed':
      return { status, error: errorOf(response['error'], text) };
    case 'cancelled':
      return { status, error: new GatewayError('cancelled', 'The upstream cancelled the response.', { reason: 'error_event' }) };
  }
}

function readIncomplete(details: JsonValue | undefined): Outcome {
  const native = isObject(details) ? nonEmptyString(details, 'reason') : undefined;
  const spelling = {
    ...(native === undefined ? {} : { native }),
    ...(details === undefined || details === null ? {} : { details }),
  };
  switch (native) {
    case undefined:
    case 'max_output_tokens':
      return { status: 'incomplete', reason: 'max_output', ...spelling };
    case 'content_filter':
      return { status: 'incomplete', reason: 'content_filter', ...spelling };
    case 'pause_turn':
      return { status: 'incomplete', reason: 'pause', ...spelling };
    case 'compaction':
      return { status: 'incomplete', reason: 'compaction', ...spelling };
    default:
      return { status: 'incomplete', reason: 'other', ...spelling };
  }
}

/** The error of a failed response or of an `error` event (nested or flat). */
export function errorOf(body: JsonValue | undefined, text: string): GatewayError {
  const read = readErrorMembers(body ?? undefined);
  // A flat event is its own error object: its `type` names the event, not the error.
  const members: ErrorMembers = read.type === 'error' ? { ...read, type: undefined } : read;
  return refusal(statusOfMembers(members), members, { reason: 'error_event', text });
}

/**
 * Undefined where the response reports none: null, absent and placeholder zeros are not usage. `output`: its items, where a stream told
 * more of them than its terminal repeats.
 */
export function readUsage(response: JsonObject, output = outputOf(response)): Usage | undefined {
  const wire = response['usage'];
  if (!isObject(wire)) return undefined;
  const inputSaid = wire['input_tokens_details'] ?? wire['prompt_tokens_details'];
  const outputSaid = wire['output_tokens_details'] ?? wire['completion_tokens_details'];
  const inputDetails = isObject(inputSaid) ? inputSaid : {};
  const outputDetails = isObject(outputSaid) ? outputSaid : {};
  const total = countOf(wire['input_tokens']) ?? countOf(wire['prompt_tokens']);
  const reasoning = countOf(outputDetails['reasoning_tokens']);
  const completion = countOf(wire['output_tokens']) ?? countOf(wire['completion_tokens']);
  const cacheRead = countOf(inputDetails['cached_tokens']);
  const written = cacheWrites(inputDetails);
  const input = total === undefined ? undefined : Math.max(0, total - (cacheRead ?? 0) - totalCacheWrite(written));
  const meters = readMeters(response, output);
  const pictures = countPictures(output);
  const extra = [readDrawing(response), orchestrationOf(inputDetails, outputDetails)].filter((pass) => pass !== undefined);
  const usage: Usage = {
    ...defined({ input, cacheRead }),
    ...written,
    ...outputWith(reasoning, { prompt: total, completion, total: countOf(wire['total_tokens']) }),
    ...defined({
      imageInput: countOf(inputDetails['image_tokens']),
      imageOutput: countOf(outputDetails['image_tokens']),
      audioInput: countOf(inputDetails['audio_tokens']),
      audioOutput: countOf(outputDetails['audio_tokens']),
      meters: meters.size === 0 ? undefined : meters,
      images: pictures === 0 ? undefined : pictures,
      extra: extra.length === 0 ? undefined : extra,
      serviceTier: nonEmptyString(response, 'service_tier'),
      native: nativeUsage(wire),
    }),
  };
  return isPlaceholder(usage) ? undefined : usage;
}

function outputOf({ output }: JsonObject): readonly JsonValue[] {
  return Array.isArray(output) ? output : [];
}

/** Pictures that the image tool finished (known failure I8: they are not free). */
function countPictures(output: readonly JsonValue[]): number {
  return output.filter(
    (item) => isObject(item) && item['type'] === 'image_generation_call' && nonEmptyString(item, 'result') !== undefined,
  ).length;
}

/** The image tool's own tokens: reported apart from the model's and not contained in them. */
function readDrawing(response: JsonObject): UsageIteration | undefined {
  const toolUsage = response['tool_usage'];
  const drawn = isObject(toolUsage) ? toolUsage['image_gen'] : undefined;
  if (!isObject(drawn)) return undefined;
  const inputDetails = isObject(drawn['input_tokens_details']) ? drawn['input_tokens_details'] : {};
  const outputDetails = isObject(drawn['output_tokens_details']) ? drawn['output_tokens_details'] : {};
  const input = countOf(drawn['input_tokens']) ?? 0;
  const output = countOf(drawn['output_tokens']) ?? 0;
  if (input + output === 0) return undefined;
  const { cacheRead, imageInput = 0 } = pictureInput(drawn, inputDetails, input);
  return {
    type: 'image_generation',
    input: input - cacheRead,
    cacheRead,
    cacheWrite: 0,
    output,
    imageInput,
    imageOutput: Math.min(countOf(outputDetails['image_tokens']) ?? output, output),
  };
}

/** Metered calls by price key: the upstream's own counters first, else the finished calls in its output. */
function readMeters(response: JsonObject, output: readonly JsonValue[]): ReadonlyMap<string, number> {
  const meters = new Map<string, number>();
  const toolUsage = isObject(response['tool_usage']) ? response['tool_usage'] : {};
  const search = isObject(toolUsage['web_search']) ? countOf(toolUsage['web_search']['num_requests']) : undefined;
  if (search !== undefined && search > 0) meters.set('web_search', search);
  const usage = isObject(response['usage']) ? response['usage'] : {};
  const ran = usage['server_side_tool_usage_details'] ?? usage['server_side_tool_usage'] ?? response['server_side_tool_usage'];
  if (isObject(ran)) {
    for (const [key, value] of Object.entries(ran)) {
      const count = countOf(value);
      if (count !== undefined && count > 0) meters.set(key.toLowerCase().replace(XAI_COUNTER, ''), count);
    }
    return meters;
  }
  for (const item of output) {
    const type = isObject(item) ? nonEmptyString(item, 'type') : undefined;
    const meter = type === undefined ? undefined : METERED.get(type);
    if (meter === undefined || (meter === 'web_search' && search !== undefined)) continue;
    meters.set(meter, (meters.get(meter) ?? 0) + 1);
  }
  return meters;
}

/** `web_search_calls`, or `SERVER_SIDE_TOOL_WEB_SEARCH` as its SDKs have it. */
const XAI_COUNTER = /^server_side_tool_|_(calls|requests)$/g;

const METERED: ReadonlyMap<string, string> = new Map([
  ['web_search_call', 'web_search'],
  ['x_search_call', 'x_search'],
  ['file_search_call', 'file_search'],
  ['code_interpreter_call', 'code_interpreter'],
]);

const READ = new Set(['input_tokens', 'input_tokens_details', 'output_tokens', 'output_tokens_details', 'total_tokens']);

/** Usage members without a canonical reading, prices of routers left out. */
function nativeUsage(wire: JsonObject): JsonObject | undefined {
  const rest = Object.entries(wire).filter(([key]) => !READ.has(key) && !isPrice(key));
  return rest.length === 0 ? undefined : Object.fromEntries(rest);
}
