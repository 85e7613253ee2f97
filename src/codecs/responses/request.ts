/**
 * A client's responses request. Known members are read strictly, with their path in the error; unknown ones are left to an
 * upstream of the same dialect, which gets the client's own text.
 */
import { GatewayError, invalid } from '../canonical/error.ts';
import type { Item } from '../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import type { CanonicalRequest, Format, ReasoningControl, Tool } from '../canonical/request.ts';
import type { RequestContext } from '../codec.ts';
import { jsonSlicer } from '../json-text.ts';
import { schemaMembers } from '../request-members.ts';
import {
  optionalBoolean,
  optionalInteger,
  optionalNumber,
  optionalObject,
  optionalString,
  optionalStrings,
  requiredString,
} from './members.ts';
import { type InputReader, readInputItem, textItem } from './read-input.ts';
import { READ_IN } from './read-members.ts';
import { namesIn, readToolChoice, readTools, uniqueTools } from './read-tools.ts';

const LOGPROBS = 'message.output_text.logprobs';
const ANY = Number.MAX_SAFE_INTEGER;

/** Everything at the top of a body that has a canonical reading, or concerns the client's own stream alone (`stream_options`). */
const READ: ReadonlySet<string> = new Set([
  ...['model', 'input', 'instructions', 'prompt', 'previous_response_id', 'conversation', 'background', 'store', 'include'],
  ...['stream', 'stream_options', 'tools', 'tool_choice', 'parallel_tool_calls', 'max_output_tokens', 'temperature', 'top_p'],
  ...['top_logprobs', 'text', 'reasoning', 'user', 'metadata', 'service_tier', 'prompt_cache_key', 'safety_identifier'],
]);

export function decodeRequest(text: string, json: JsonObject, context: RequestContext): CanonicalRequest {
  const model = requiredString(json, 'model');
  refuseStates(json);
  const tools = uniqueTools([...readTools(json['tools'], 'tools'), ...broughtTools(json['input'])]);
  const slice = jsonSlicer(text);
  const reader: InputReader = { context, resolve: namesIn(tools), slice: (...path) => slice(path) };
  const items = giveBack([...readInstructions(reader, json['instructions']), ...readInput(reader, json)]);
  const given = <K extends string, V>(key: K, value: V | undefined): { [P in K]?: V } =>
    value === undefined ? {} : ({ [key]: value } as { [P in K]?: V });
  const texts = optionalObject(json, 'text') ?? {};
  return {
    dialect: 'responses',
    text,
    json,
    reads: READ,
    readsIn: READ_IN,
    model,
    stream: optionalBoolean(json, 'stream') ?? false,
    items,
    tools,
    ...given('toolChoice', readToolChoice(json['tool_choice'], tools)),
    ...given('parallelToolCalls', optionalBoolean(json, 'parallel_tool_calls')),
    ...given('maxOutputTokens', optionalInteger(json, 'max_output_tokens', 1, ANY)),
    ...given('temperature', optionalNumber(json, 'temperature')),
    ...given('topP', optionalNumber(json, 'top_p')),
    ...given('logprobs', readLogprobs(json)),
    ...given('format', readFormat(texts)),
    ...given('verbosity', optionalString(texts, 'verbosity', 'text')),
    ...given('reasoning', readReasoning(json)),
    ...given('user', optionalString(json, 'user')),
    ...given('metadata', optionalObject(json, 'metadata')),
    ...given('serviceTier', optionalString(json, 'service_tier')),
    ...given('promptCacheKey', optionalString(json, 'prompt_cache_key')),
    ...given('safetyIdentifier', optionalString(json, 'safety_identifier')),
    ...given('store', optionalBoolean(json, 'store')),
    ...given('include', optionalStrings(json, 'include')),
    ...given('previousResponseId', optionalString(json, 'previous_response_id')),
    ...given('conversation', readConversation(json['conversation'])),
    includeUsage: true,
    ...given(
      'boundTo',
      optionalObject(json, 'prompt') === undefined ? undefined : { dialect: 'responses' as const, at: 'prompt' },
    ),
  };
}

function refuseStates(json: JsonObject): void {
  if (optionalBoolean(json, 'background') === true) {
    throw new GatewayError('background_not_supported', 'Background responses are not supported.', { param: 'background' });
  }
  const conversation = readConversation(json['conversation']);
  if (conversation !== undefined && optionalString(json, 'previous_response_id') !== undefined) {
    throw invalid('previous_response_id', 'previous_response_id and conversation must not be used together.');
  }
}

function readConversation(value: JsonValue | undefined): JsonValue | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string') return value;
  if (isObject(value) && typeof value['id'] === 'string') return value;
  throw invalid('conversation', 'conversation must be an id or an object with an id.');
}

/** Semantics 6.1: text of the developer, first of all. */
function readInstructions(reader: InputReader, value: JsonValue | undefined): Item[] {
  if (value === undefined || value === null) return [];
  if (typeof value === 'string') return value === '' ? [] : [textItem(value, 'developer', { at: 'instructions', turn: 0 })];
  if (!Array.isArray(value)) throw invalid('instructions', 'instructions must be a string or an array of items.');
  return value.flatMap((item, index) => readInputItem(reader, item, ['instructions', index], index, 'developer'));
}

function readInput(reader: InputReader, json: JsonObject): Item[] {
  const { input } = json;
  const first = Array.isArray(json['instructions']) ? json['instructions'].length : 1;
  if (typeof input === 'string') return [textItem(input, 'user', { at: 'input', turn: first })];
  if (Array.isArray(input)) return input.flatMap((item, index) => readInputItem(reader, item, ['input', index], first + index));
  if (input !== undefined && input !== null) throw invalid('input', 'input must be a string or an array of items.');
  const hasState = [json['prompt'], json['previous_response_id'], json['conversation']].some(
    (value) => value !== undefined && value !== null,
  );
  if (!hasState) throw invalid('input', 'input is required.');
  return [];
}

/** Tools that items of the input bring: `additional_tools`, and what a tool search found. */
function broughtTools(input: JsonValue | undefined): Tool[] {
  if (!Array.isArray(input)) return [];
  return input.flatMap((item, index) => {
    if (!isObject(item)) return [];
    const brings = item['type'] === 'additional_tools' || item['type'] === 'tool_search_output';
    return brings ? readTools(item['tools'], `input[${index}].tools`) : [];
  });
}

/**
 * Envelopes that belong to a call, a text or an image came in reasoning items of their own (`write-items.ts`): each goes back
 * to the item that it names, and the carrier disappears. A carrier whose item is gone stays, and no encoder has a use for it.
 */
function giveBack(items: readonly Item[]): Item[] {
  const result = [...items];
  const calls = new Map<string, number>();
  for (const [index, item] of items.entries()) if (item.kind === 'toolCall') calls.set(item.callId, index);
  const carriers = new Set<number>();
  for (const [index, item] of items.entries()) {
    if (item.kind !== 'reasoning' || item.opaque?.itemId === undefined || 'client' in item.opaque.owner) continue;
    if (item.raw !== undefined || item.summary !== undefined) continue;
    const { itemId } = item.opaque;
    const owner = calls.get(itemId) ?? (/^(msg|ig)_/.test(itemId) ? lastSaid(items, index) : undefined);
    if (owner === undefined) continue;
    const said = result[owner];
    if (said?.kind !== 'toolCall' && said?.kind !== 'text' && said?.kind !== 'media') continue;
    result[owner] = { ...said, opaque: item.opaque };
    carriers.add(index);
  }
  return result.filter((_, index) => !carriers.has(index));
}

function lastSaid(items: readonly Item[], before: number): number | undefined {
  for (let index = before - 1; index >= 0; index -= 1) {
    const item = items[index];
    if ((item?.kind === 'text' || item?.kind === 'media') && item.role === 'assistant') return index;
    if (item?.kind !== 'reasoning') return undefined;
  }
  return undefined;
}

function readLogprobs(json: JsonObject): { readonly top: number } | undefined {
  const top = optionalInteger(json, 'top_logprobs', 0, 20) ?? 0;
  const asked = optionalStrings(json, 'include')?.includes(LOGPROBS) ?? false;
  return top > 0 || asked ? { top } : undefined;
}

function readFormat(text: JsonObject): Format | undefined {
  const format = optionalObject(text, 'format', 'text');
  if (format === undefined) return undefined;
  const at = 'text.format';
  const type = requiredString(format, 'type', at);
  switch (type) {
    case 'text':
    case 'json_object':
      return { type };
    case 'json_schema':
      return { type, ...schemaMembers(format, at) };
    default:
      throw invalid(`${at}.type`, `${at}.type must be "text", "json_object" or "json_schema".`);
  }
}

function readReasoning(json: JsonObject): ReasoningControl | undefined {
  const reasoning = optionalObject(json, 'reasoning');
  if (reasoning === undefined) return undefined;
  const asked = optionalString(reasoning, 'effort', 'reasoning');
  const effort = asked === 'minimum' ? 'minimal' : asked;
  const summary = optionalString(reasoning, 'summary', 'reasoning') ?? optionalString(reasoning, 'generate_summary', 'reasoning');
  if (effort === undefined && summary === undefined) return undefined;
  return { ...(effort === undefined ? {} : { effort }), ...(summary === undefined ? {} : { summary }) };
}
