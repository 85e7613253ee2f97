/** How a responses answer began, how it ended and what it used, from its response object. */
import { GatewayError } from '../../canonical/error.ts';
import type { CanonicalEvent } from '../../canonical/event.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import type { Outcome } from '../../canonical/outcome.ts';
import {
  contradiction,
  countOf,
  isPlaceholder,
  isPrice,
  outputWith,
  totalCacheWrite,
  type Usage,
  type UsageIteration,
} from '../../canonical/usage.ts';
import { defined } from '../../defined.ts';
import { cacheWrites, orchestrationOf, pictureInput } from '../../answers/token-usage.ts';
import { type ErrorMembers, readErrorMembers, refusal, statusOfMembers } from '../../errors/upstream.ts';
import { nonEmptyString } from '../wire.ts';

/** The member of `incomplete_details` for a reason that this protocol has no word for; chat has its like for finish reasons. */
export const NATIVE_REASON = 'native_reason';

const FINAL = ['completed', 'incomplete', 'failed', 'cancelled'] as const;
export type FinalStatus = (typeof FINAL)[number];

export function startOf(response: JsonObject): CanonicalEvent {
  const { created_at: createdAt } = response;
  const tier = nonEmptyString(response, 'service_tier');
  return {
    type: 'response.start',
    ...defined({
      id: nonEmptyString(response, 'id'),
      model: nonEmptyString(response, 'model'),
      createdAt: typeof createdAt === 'number' ? createdAt : undefined,
      // `auto` is what was asked for: which tier it became is said at the end.
      served: tier === undefined || tier === 'auto' ? undefined : { serviceTier: tier },
    }),
  };
}

/**
 * The final status of a response object; undefined where it has none. Without a status, a reason for being incomplete counts as
 * one (spec rule 15).
 */
export function finalStatus(response: JsonObject): FinalStatus | undefined {
  const { status, error, incomplete_details: details } = response;
  const final = FINAL.find((word) => word === status);
  if (final !== undefined) return final;
  const hasNoStatus = (status ?? error ?? undefined) === undefined;
  return hasNoStatus && isObject(details) && nonEmptyString(details, 'reason') !== undefined ? 'incomplete' : undefined;
}

/** The response's own status wins over the event's name (some servers end an incomplete answer with `response.completed`). */
export function statusOfTerminal(name: string, response: JsonObject): FinalStatus {
  const status = finalStatus(response);
  if (status !== undefined) return status;
  const error = response['error'];
  if (error !== undefined && error !== null) return 'failed';
  const named = name.slice('response.'.length);
  return named === 'incomplete' || named === 'failed' || named === 'cancelled' ? named : 'completed';
}

/** The outcome of a finished response. `calls`: its output holds tool calls. `text`: the upstream's text for the log. */
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
  const reason = isObject(details) ? nonEmptyString(details, 'reason') : undefined;
  // Where it was converted, its own word stands beside it.
  const native = isObject(details) ? (nonEmptyString(details, NATIVE_REASON) ?? reason) : undefined;
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
    case 'context_window':
    case 'model_context_window_exceeded':
      return { status: 'incomplete', reason: 'context_window', ...spelling };
    case 'pause':
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
 * Undefined where the response reports none: null, absent and placeholder zeros are not usage. Calls of server tools in a good
 * answer are counted all the same: they ran. `output`: the items of the answer, where a stream had more than its terminal
 * repeats.
 */
export function readUsage(response: JsonObject, output = outputOf(response)): Usage | undefined {
  const given = response['usage'];
  if (!isObject(given) && !isGood(response)) return undefined;
  const wire = isObject(given) ? given : {};
  const inputGiven = wire['input_tokens_details'] ?? wire['prompt_tokens_details'];
  const outputGiven = wire['output_tokens_details'] ?? wire['completion_tokens_details'];
  const inputDetails = isObject(inputGiven) ? inputGiven : {};
  const outputDetails = isObject(outputGiven) ? outputGiven : {};
  const total = countOf(wire['input_tokens']) ?? countOf(wire['prompt_tokens']);
  const reasoning = countOf(outputDetails['reasoning_tokens']);
  const completion = countOf(wire['output_tokens']) ?? countOf(wire['completion_tokens']);
  const cacheRead = countOf(inputDetails['cached_tokens']);
  const written = cacheWrites(inputDetails);
  const input = total === undefined ? undefined : Math.max(0, total - (cacheRead ?? 0) - totalCacheWrite(written));
  const meters = readMeters(response, output);
  const images = countImages(output);
  const extra = [readImageTool(response), orchestrationOf(inputDetails, outputDetails)].filter((pass) => pass !== undefined);
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
      images: images === 0 ? undefined : images,
      extra: extra.length === 0 ? undefined : extra,
      serviceTier: nonEmptyString(response, 'service_tier'),
      native: nativeUsage(wire),
    }),
    ...contradiction(total, (cacheRead ?? 0) + totalCacheWrite(written)),
  };
  return isPlaceholder(usage) ? undefined : usage;
}

function isGood({ status, error }: JsonObject): boolean {
  return status !== 'failed' && status !== 'cancelled' && (error === undefined || error === null);
}

function outputOf({ output }: JsonObject): readonly JsonValue[] {
  return Array.isArray(output) ? output : [];
}

/** How many images the image tool finished; each has a price (known failure I8). */
function countImages(output: readonly JsonValue[]): number {
  return output.filter(
    (item) => isObject(item) && item['type'] === 'image_generation_call' && nonEmptyString(item, 'result') !== undefined,
  ).length;
}

/** The tokens of the image tool, which those of the model do not contain. */
function readImageTool(response: JsonObject): UsageIteration | undefined {
  const toolUsage = response['tool_usage'];
  const used = isObject(toolUsage) ? toolUsage['image_gen'] : undefined;
  if (!isObject(used)) return undefined;
  const inputDetails = isObject(used['input_tokens_details']) ? used['input_tokens_details'] : {};
  const outputDetails = isObject(used['output_tokens_details']) ? used['output_tokens_details'] : {};
  const input = countOf(used['input_tokens']) ?? 0;
  const output = countOf(used['output_tokens']) ?? 0;
  if (input + output === 0) return undefined;
  const { cacheRead, imageInput = 0 } = pictureInput(used, inputDetails, input);
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

/** Metered calls by price key: the upstream's own counters, else the calls in its output. */
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
    if (meter === undefined || (meter === 'web_search' && (search !== undefined || isPageRead(item)))) continue;
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

/** What the search tool does with a page that it found: the vendor charges searches alone. */
const PAGE_ACTIONS: ReadonlySet<string> = new Set(['open_page', 'find_in_page', 'find']);

function isPageRead(item: JsonValue): boolean {
  const action = isObject(item) ? item['action'] : undefined;
  return isObject(action) && PAGE_ACTIONS.has(nonEmptyString(action, 'type') ?? '');
}

const READ = new Set(['input_tokens', 'input_tokens_details', 'output_tokens', 'output_tokens_details', 'total_tokens']);

/** Usage members without a canonical reading, prices of routers left out. */
function nativeUsage(wire: JsonObject): JsonObject | undefined {
  const rest = Object.entries(wire).filter(([key]) => !READ.has(key) && !isPrice(key));
  return rest.length === 0 ? undefined : Object.fromEntries(rest);
}
