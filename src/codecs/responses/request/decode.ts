/**
 * Decodes a responses request. Known members are read strictly, with their path in the error. Unknown members are left to an
 * upstream of the same dialect, which gets the client's own text.
 */
import { append } from '../../append.ts';
import { GatewayError, invalid } from '../../canonical/error.ts';
import { hasOpaque, type Item } from '../../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import type { CanonicalRequest, Format, ReasoningControl, SchemaPlaces, Tool } from '../../canonical/request.ts';
import type { RequestContext } from '../../codec.ts';
import { type ConfigurationUpdate, updatedEffort, updatesIn } from '../../requests/configuration-updates.ts';
import { jsonSlicer } from '../../json/text.ts';
import { defined } from '../../defined.ts';
import {
  optionalBoolean,
  optionalInteger,
  optionalNumber,
  optionalObject,
  optionalString,
  optionalStrings,
  requiredName,
  schemaMembers,
  wrongType,
} from '../../requests/members.ts';
import { inheritLifetime, readPromptOptions } from '../../requests/cache-breakpoints.ts';
import { uniqueTools } from '../../tools/names.ts';
import { type InputReader, isTrigger, readInputItem, textItem } from './decode-input.ts';
import { READ } from './read-members.ts';
import { namesIn, readToolChoice, readTools } from './decode-tools.ts';
import { endsStep, type Steps } from '../../steps.ts';

const LOGPROBS = 'message.output_text.logprobs';

const SCHEMAS: SchemaPlaces = { inTool: ['parameters'], format: ['text', 'format', 'schema'] };

export function* decodeInSteps(text: string, json: JsonObject, context: RequestContext): Steps<CanonicalRequest> {
  const model = requiredName(json, 'model');
  refuseUnsupportedState(json);
  // First the tools of `tools`, then those of input items.
  const tools = uniqueTools([...readTools(json['tools'], 'tools'), ...toolsOfInput(json['input'])]);
  yield;
  const slice = jsonSlicer(text);
  const named = new Map<string, JsonObject>();
  const reader: InputReader = { context, resolve: namesIn(tools), named, slice: (...path) => slice(path) };
  const instructions = yield* readInstructions(reader, json['instructions']);
  const input = yield* readInput(reader, json);
  yield;
  const items = restoreSignatures([...instructions, ...input]);
  yield;
  const texts = optionalObject(json, 'text') ?? {};
  const updates = updatesIn(json['input'], updateOf);
  yield;
  const optional = defined<Partial<CanonicalRequest>>({
    toolChoice: readToolChoice(json['tool_choice'], tools),
    parallelToolCalls: optionalBoolean(json, 'parallel_tool_calls'),
    maxOutputTokens: optionalInteger(json, 'max_output_tokens', { least: 1 }),
    temperature: optionalNumber(json, 'temperature'),
    topP: optionalNumber(json, 'top_p'),
    logprobs: readLogprobs(json),
    format: updatedFormat(updates) ?? readFormat(texts, 'text'),
    verbosity: optionalString(texts, 'verbosity', 'text'),
    reasoning: readReasoning(json, updatedEffort(updates)),
    user: optionalString(json, 'user'),
    metadata: optionalObject(json, 'metadata'),
    serviceTier: optionalString(json, 'service_tier'),
    cache: readPromptOptions(json),
    promptCacheKey: optionalString(json, 'prompt_cache_key'),
    safetyIdentifier: optionalString(json, 'safety_identifier'),
    store: optionalBoolean(json, 'store'),
    include: optionalStrings(json, 'include'),
    previousResponseId: optionalString(json, 'previous_response_id'),
    conversation: readConversation(json['conversation']),
    boundTo: optionalObject(json, 'prompt') === undefined ? undefined : { dialect: 'responses', at: 'prompt' },
  });
  return {
    dialect: 'responses',
    text,
    json,
    reads: READ,
    schemas: SCHEMAS,
    model,
    stream: optionalBoolean(json, 'stream') ?? false,
    items: inheritLifetime(items, optional.cache?.ttl),
    tools,
    includeUsage: true,
    ...(named.size === 0 ? {} : { named }),
    ...optional,
  };
}

function refuseUnsupportedState(json: JsonObject): void {
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
  throw wrongType('conversation', 'an id or an object with an id');
}

/** Instructions are developer text before the input (semantics 6.1). */
function* readInstructions(reader: InputReader, value: JsonValue | undefined): Steps<Item[]> {
  if (value === undefined || value === null) return [];
  if (typeof value === 'string') return value === '' ? [] : [textItem(value, 'developer', { at: 'instructions', turn: 0 })];
  if (!Array.isArray(value)) throw wrongType('instructions', 'a string or an array of items');
  const items: Item[] = [];
  for (const [index, item] of value.entries()) {
    if (endsStep(index)) yield;
    append(items, yield* readInputItem(reader, item, ['instructions', index], index, 'developer'));
  }
  return items;
}

function* readInput(reader: InputReader, json: JsonObject): Steps<Item[]> {
  const { input } = json;
  const first = Array.isArray(json['instructions']) ? json['instructions'].length : 1;
  if (typeof input === 'string') return [textItem(input, 'user', { at: 'input', turn: first })];
  if (Array.isArray(input)) {
    const items: Item[] = [];
    for (const [index, item] of input.entries()) {
      if (endsStep(index)) yield;
      if (isTrigger(item) && index < input.length - 1) continue;
      const read = yield* readInputItem(reader, item, ['input', index], first + index);
      append(items, read);
      if (read.some(hasOpaque)) yield;
    }
    return items;
  }
  if (input !== undefined && input !== null) throw wrongType('input', 'a string or an array of items');
  const hasState = [json['prompt'], json['previous_response_id'], json['conversation']].some(
    (value) => value !== undefined && value !== null,
  );
  if (!hasState) throw invalid('input', 'input is required.');
  return [];
}

/** Tools that are declared in input items: `additional_tools`, and the result of a tool search. */
function toolsOfInput(input: JsonValue | undefined): Tool[] {
  if (!Array.isArray(input)) return [];
  return input.flatMap((item, index) => {
    if (!isObject(item)) return [];
    const brings = item['type'] === 'additional_tools' || item['type'] === 'tool_search_output';
    return brings ? readTools(item['tools'], `input[${index}].tools`) : [];
  });
}

/**
 * Puts signatures of calls, texts and images back on the items that they sign. They come in carriers, reasoning items of their
 * own (`answer/encode-items.ts`), which are then removed. A carrier whose item is gone stays; no encoder sends it.
 */
function restoreSignatures(items: readonly Item[]): Item[] {
  const result = [...items];
  // Some vendors use one call id in many turns: a carrier means the nearest call before it.
  const calls = new Map<string, number>();
  const carriers = new Set<number>();
  let firstCalls: ReadonlyMap<string, number> | undefined;
  const laterCall = (callId: string): number | undefined => {
    firstCalls ??= firstCallsIn(items);
    return firstCalls.get(callId);
  };
  let output: number | undefined;
  for (const [index, item] of items.entries()) {
    if (item.kind === 'toolCall') calls.set(item.callId, index);
    if (item.kind !== 'reasoning') output = isOutput(item) ? index : undefined;
    if (item.kind !== 'reasoning' || item.opaque?.itemId === undefined || 'client' in item.opaque.owner) continue;
    if (item.raw !== undefined || item.summary !== undefined) continue;
    const { itemId } = item.opaque;
    // Clients may put reasoning first, so a call may come after its carrier.
    const signedAt = calls.get(itemId) ?? (/^(msg|ig)_/.test(itemId) ? output : laterCall(itemId));
    if (signedAt === undefined) continue;
    const signed = result[signedAt];
    if (signed?.kind !== 'toolCall' && signed?.kind !== 'text' && signed?.kind !== 'media') continue;
    result[signedAt] = { ...signed, opaque: item.opaque };
    carriers.add(index);
  }
  return result.filter((_, index) => !carriers.has(index));
}

/** The first call of each id. */
function firstCallsIn(items: readonly Item[]): ReadonlyMap<string, number> {
  const calls = new Map<string, number>();
  for (const [index, item] of items.entries())
    if (item.kind === 'toolCall' && !calls.has(item.callId)) calls.set(item.callId, index);
  return calls;
}

/** True for a text or media of the assistant. With nothing but reasoning behind it, a carrier signs it. */
function isOutput(item: Item): boolean {
  return (item.kind === 'text' || item.kind === 'media') && item.role === 'assistant';
}

function readLogprobs(json: JsonObject): { readonly top: number } | undefined {
  const top = optionalInteger(json, 'top_logprobs', { least: 0, most: 20 }) ?? 0;
  const asked = optionalStrings(json, 'include')?.includes(LOGPROBS) ?? false;
  return top > 0 || asked ? { top } : undefined;
}

function updateOf(item: JsonObject, index: number): ConfigurationUpdate | undefined {
  return item['type'] === 'configuration_update' ? { members: item, at: `input[${index}]` } : undefined;
}

function updatedFormat(updates: readonly ConfigurationUpdate[]): Format | undefined {
  return updates.flatMap(({ members, at }) => readFormat(optionalObject(members, 'text', at) ?? {}, `${at}.text`) ?? []).at(-1);
}

function readFormat(text: JsonObject, path: string): Format | undefined {
  const format = optionalObject(text, 'format', path);
  if (format === undefined) return undefined;
  const at = `${path}.format`;
  const type = requiredName(format, 'type', at);
  switch (type) {
    case 'text':
    case 'json_object':
      return { type };
    case 'json_schema':
      return { type, ...schemaMembers(format, at) };
    default:
      throw wrongType(`${at}.type`, '"text", "json_object" or "json_schema"');
  }
}

function readReasoning(json: JsonObject, updated: string | undefined): ReasoningControl | undefined {
  const reasoning = optionalObject(json, 'reasoning') ?? {};
  const asked = updated ?? optionalString(reasoning, 'effort', 'reasoning');
  // `minimum` is an old alias.
  const effort = asked === 'minimum' ? 'minimal' : asked;
  const summary = optionalString(reasoning, 'summary', 'reasoning') ?? optionalString(reasoning, 'generate_summary', 'reasoning');
  if (effort === undefined && summary === undefined) return undefined;
  return defined({ effort, summary });
}
