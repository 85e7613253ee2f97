/** Decodes a messages request. Known members are read strictly; unknown ones are left to a messages upstream. */
import { GatewayError } from '../../canonical/error.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import type { CanonicalRequest, Format, ReasoningControl, SchemaPlaces, Tool, ToolChoice } from '../../canonical/request.ts';
import type { RequestContext } from '../../codec.ts';
import { READ } from './read-members.ts';
import { defined } from '../../defined.ts';
import {
  objectAt,
  optionalArray,
  optionalBoolean,
  optionalInteger,
  optionalNumber,
  optionalObject,
  optionalString,
  optionalStrings,
  present,
  requiredName,
  requiredString,
  wrongType,
} from '../../requests/members.ts';
import { readAutomatic, readCacheControl } from '../../requests/cache-breakpoints.ts';
import { readFunctionMembers } from '../../tools/function-members.ts';
import { uniqueTools } from '../../tools/names.ts';
import { ConversationReader } from './decode-content.ts';
import { changedEffort, withToolChanges } from './decode-changes.ts';
import type { Steps } from '../../steps.ts';

/** The name that a schema gets for dialects which need one (semantics 6.4.1). */
const SCHEMA_NAME = 'response';

const SCHEMAS: SchemaPlaces = { inTool: ['input_schema'], format: ['output_config', 'format', 'schema'] };

export function* decodeInSteps(text: string, json: JsonObject, context: RequestContext): Steps<CanonicalRequest> {
  const model = requiredName(json, 'model');
  refuseThread(json);
  const stream = optionalBoolean(json, 'stream') ?? false;
  const maxOutputTokens = optionalInteger(json, 'max_tokens', { least: 0 });
  const items = yield* new ConversationReader(text, context).read(json);
  yield;
  const declared = (optionalArray(json, 'tools') ?? []).map((tool, index) => toolOf(tool, `tools[${index}]`));
  yield;
  const tools = uniqueTools(withToolChanges(declared, json['messages'], toolOf));
  const choice = optionalObject(json, 'tool_choice');
  const toolChoice = choice === undefined ? undefined : toolChoiceOf(choice, tools);
  const disabled = choice === undefined ? undefined : optionalBoolean(choice, 'disable_parallel_tool_use', 'tool_choice');
  const optional = defined<Partial<CanonicalRequest>>({
    toolChoice,
    // With `none` it says nothing, and vendors have no such member there.
    parallelToolCalls: disabled === undefined || toolChoice?.mode === 'none' ? undefined : !disabled,
    maxOutputTokens,
    temperature: optionalNumber(json, 'temperature'),
    topP: optionalNumber(json, 'top_p'),
    topK: optionalInteger(json, 'top_k'),
    stop: optionalStrings(json, 'stop_sequences'),
    format: formatOf(json),
    reasoning: reasoningOf(json),
    user: userOf(json),
    cache: readAutomatic(json),
    serviceTier: optionalString(json, 'service_tier'),
    boundTo: boundTo(json, maxOutputTokens),
    fallbacks: present(json['fallbacks']) ? true : undefined,
  });
  return {
    dialect: 'messages',
    text,
    json,
    reads: READ,
    schemas: SCHEMAS,
    model,
    stream,
    items,
    tools,
    includeUsage: true,
    ...optional,
  };
}

/**
 * Refuses to continue a conversation that the vendor holds (beta): it is named by the vendor's id of an answer, which no client
 * of the gateway has. Such a request has only the new messages. The official SDK, whose tool runner asks for a thread by default,
 * then sends the whole conversation.
 */
function refuseThread({ thread }: JsonObject): void {
  if (!isObject(thread) || thread['type'] !== 'continue') return;
  const message = 'No thread is held under this id. Send the whole conversation.';
  throw new GatewayError('thread_not_found', message, { param: 'thread.previous_message_id' });
}

/**
 * Requests that no other protocol has: one without an answer, to fill the prompt cache (`max_tokens: 0`), and a compaction
 * (beta).
 */
function boundTo({ compaction }: JsonObject, maxOutputTokens: number | undefined): CanonicalRequest['boundTo'] {
  if (maxOutputTokens === 0) return { dialect: 'messages', at: 'max_tokens' };
  return isObject(compaction) ? { dialect: 'messages', at: 'compaction' } : undefined;
}

function toolOf(value: JsonValue | undefined, at: string): Tool {
  const tool = objectAt(value, at);
  const type = optionalString(tool, 'type', at);
  if (type !== undefined && type !== 'custom') {
    const name = optionalString(tool, 'name', at);
    return { kind: 'native', dialect: 'messages', type, ...defined({ name }), body: tool, at };
  }
  const name = requiredName(tool, 'name', at);
  const schema = objectAt(tool['input_schema'], `${at}.input_schema`);
  if (schema['type'] !== 'object') throw wrongType(`${at}.input_schema.type`, 'object');
  return {
    kind: 'function',
    tool: { name },
    parameters: withoutNulls(schema),
    ...defined({
      description: optionalString(tool, 'description', at),
      strict: optionalBoolean(tool, 'strict', at),
      breakpoint: readCacheControl(tool, at),
    }),
    ...readFunctionMembers(tool, at),
    at,
  };
}

/** This vendor's own types have null for an object without members, and for none that is required. Schemas have no such form. */
function withoutNulls(schema: JsonObject): JsonObject {
  const { properties, required, ...rest } = schema;
  if (properties !== null && required !== null) return schema;
  return {
    ...rest,
    ...(properties === null ? {} : defined({ properties })),
    ...(required === null ? {} : defined({ required })),
  };
}

/** A choice that names a tool of the vendor's own is a native one: no other upstream can satisfy it. */
function toolChoiceOf(choice: JsonObject, tools: readonly Tool[]): ToolChoice {
  switch (requiredString(choice, 'type', 'tool_choice')) {
    case 'auto':
      return { mode: 'auto' };
    case 'any':
      return { mode: 'required' };
    case 'none':
      return { mode: 'none' };
    case 'tool': {
      const name = requiredName(choice, 'name', 'tool_choice');
      if (tools.some((tool) => tool.kind === 'native' && tool.name === name))
        return { mode: 'native', dialect: 'messages', body: choice };
      return { mode: 'tool', toolType: 'function', tool: { name } };
    }
    default:
      return { mode: 'native', dialect: 'messages', body: choice };
  }
}

/** `output_config.format`, or its older spelling `output_format`. */
function formatOf(json: JsonObject): Format | undefined {
  const config = optionalObject(json, 'output_config');
  const nested = config === undefined ? undefined : optionalObject(config, 'format', 'output_config');
  const format = nested ?? optionalObject(json, 'output_format');
  if (format === undefined) return undefined;
  const at = nested === undefined ? 'output_format' : 'output_config.format';
  const type = requiredString(format, 'type', at);
  if (type !== 'json_schema') throw wrongType(`${at}.type`, 'json_schema');
  const schema = objectAt(format['schema'], `${at}.schema`);
  return { type: 'json_schema', name: SCHEMA_NAME, schema };
}

/**
 * `output_config.effort` wins over a budget (semantics 6.7.3); a budget keeps its number for upstreams that take one. The effort
 * is that at the end of the conversation.
 */
function reasoningOf(json: JsonObject): ReasoningControl | undefined {
  const thinking = optionalObject(json, 'thinking');
  const config = optionalObject(json, 'output_config');
  const asked = config === undefined ? undefined : optionalString(config, 'effort', 'output_config');
  const type = thinking === undefined ? undefined : requiredString(thinking, 'type', 'thinking');
  if (type === 'disabled') return { effort: 'none' };
  const budget = thinking === undefined ? undefined : optionalNumber(thinking, 'budget_tokens', 'thinking');
  const summary = thinking?.['display'] === 'summarized' ? 'auto' : undefined;
  const control = defined<ReasoningControl>({
    effort: changedEffort(json['messages']) ?? asked,
    budget: type === 'enabled' ? budget : undefined,
    summary,
    adaptive: type === 'adaptive' ? true : undefined,
    betweenTools: type === 'between_tools' ? true : undefined,
  });
  return Object.keys(control).length === 0 ? undefined : control;
}

function userOf(json: JsonObject): string | undefined {
  const metadata = optionalObject(json, 'metadata');
  return metadata === undefined ? undefined : optionalString(metadata, 'user_id', 'metadata');
}
