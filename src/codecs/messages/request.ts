/** A messages request as the canonical request. Strict about what it knows, tolerant of what it does not. */
import { invalid } from '../canonical/error.ts';
import type { JsonObject, JsonValue } from '../canonical/json.ts';
import type { CanonicalRequest, Format, ReasoningControl, Tool, ToolChoice } from '../canonical/request.ts';
import type { RequestContext } from '../codec.ts';
import { READ_IN } from './read-members.ts';
import { ConversationReader } from './request-content.ts';
import {
  mayArray,
  mayBoolean,
  mayInteger,
  mayNumber,
  mayObject,
  mayText,
  needName,
  needObjectAt,
  needText,
} from './request-fields.ts';

/** The name that a schema gets for dialects which need one (semantics 6.4.1). */
const SCHEMA_NAME = 'response';

/** Everything at the top of a body that has a canonical reading. */
const READ: ReadonlySet<string> = new Set([
  ...['model', 'system', 'messages', 'stream', 'max_tokens', 'tools', 'tool_choice', 'temperature', 'top_p', 'top_k'],
  ...['stop_sequences', 'thinking', 'output_config', 'output_format', 'metadata', 'service_tier', 'cache_control'],
]);

export function decodeRequest(text: string, json: JsonObject, context: RequestContext): CanonicalRequest {
  const model = needName(json, 'model', 'model');
  const stream = mayBoolean(json, 'stream', 'stream') ?? false;
  const maxOutputTokens = mayInteger(json, 'max_tokens', 'max_tokens', 0);
  const items = new ConversationReader(text, context).read(json);
  const tools = (mayArray(json, 'tools', 'tools') ?? []).map(toolOf);
  const choice = mayObject(json, 'tool_choice', 'tool_choice');
  const toolChoice = choice === undefined ? undefined : toolChoiceOf(choice, tools);
  const disabled =
    choice === undefined ? undefined : mayBoolean(choice, 'disable_parallel_tool_use', 'tool_choice.disable_parallel_tool_use');
  const format = formatOf(json);
  const reasoning = reasoningOf(json);
  const user = userOf(json);
  return {
    dialect: 'messages',
    text,
    json,
    reads: READ,
    readsIn: READ_IN,
    model,
    stream,
    items,
    tools,
    ...optional('toolChoice', toolChoice),
    ...optional('parallelToolCalls', disabled === undefined ? undefined : !disabled),
    ...optional('maxOutputTokens', maxOutputTokens),
    ...optional('temperature', mayNumber(json, 'temperature', 'temperature')),
    ...optional('topP', mayNumber(json, 'top_p', 'top_p')),
    ...optional('topK', mayInteger(json, 'top_k', 'top_k', 0)),
    ...optional('stop', stopOf(json)),
    ...optional('format', format),
    ...optional('reasoning', reasoning),
    ...optional('user', user),
    ...optional('cacheControl', mayObject(json, 'cache_control', 'cache_control')),
    ...optional('serviceTier', mayText(json, 'service_tier', 'service_tier')),
    // No answer at all is asked for only to fill the vendor's prompt cache.
    ...optional('boundTo', maxOutputTokens === 0 ? ({ dialect: 'messages', at: 'max_tokens' } as const) : undefined),
    includeUsage: true,
  };
}

/** The member, or nothing: optional members are absent, never undefined. */
function optional<K extends string, V>(key: K, value: V | undefined): { [P in K]?: V } {
  const result: { [P in K]?: V } = {};
  if (value !== undefined) result[key] = value;
  return result;
}

function toolOf(value: JsonValue, index: number): Tool {
  const at = `tools[${index}]`;
  const tool = needObjectAt(value, at);
  const type = mayText(tool, 'type', `${at}.type`);
  if (type !== undefined && type !== 'custom') {
    const name = mayText(tool, 'name', `${at}.name`);
    return { kind: 'native', dialect: 'messages', type, ...optional('name', name), body: tool, at };
  }
  const name = needName(tool, 'name', `${at}.name`);
  const schema = needObjectAt(tool['input_schema'], `${at}.input_schema`);
  if (schema['type'] !== 'object') throw invalid(`${at}.input_schema.type`, `${at}.input_schema.type must be object.`);
  return {
    kind: 'function',
    tool: { name },
    ...optional('description', mayText(tool, 'description', `${at}.description`)),
    parameters: schema,
    ...optional('strict', mayBoolean(tool, 'strict', `${at}.strict`)),
    ...optional('cacheControl', mayObject(tool, 'cache_control', `${at}.cache_control`)),
    at,
  };
}

/** A choice that names a tool of the vendor's own is a native one: no other upstream can satisfy it. */
function toolChoiceOf(choice: JsonObject, tools: readonly Tool[]): ToolChoice {
  switch (needText(choice, 'type', 'tool_choice.type')) {
    case 'auto':
      return { mode: 'auto' };
    case 'any':
      return { mode: 'required' };
    case 'none':
      return { mode: 'none' };
    case 'tool': {
      const name = needName(choice, 'name', 'tool_choice.name');
      if (tools.some((tool) => tool.kind === 'native' && tool.name === name))
        return { mode: 'native', dialect: 'messages', body: choice };
      return { mode: 'tool', flavour: 'function', tool: { name } };
    }
    default:
      return { mode: 'native', dialect: 'messages', body: choice };
  }
}

function stopOf(json: JsonObject): string[] | undefined {
  const list = mayArray(json, 'stop_sequences', 'stop_sequences');
  return list?.map((value, index) => {
    if (typeof value !== 'string') throw invalid(`stop_sequences[${index}]`, `stop_sequences[${index}] must be a string.`);
    return value;
  });
}

/** `output_config.format`, or its older spelling `output_format`. */
function formatOf(json: JsonObject): Format | undefined {
  const config = mayObject(json, 'output_config', 'output_config');
  const nested = config === undefined ? undefined : mayObject(config, 'format', 'output_config.format');
  const format = nested ?? mayObject(json, 'output_format', 'output_format');
  if (format === undefined) return undefined;
  const at = nested === undefined ? 'output_format' : 'output_config.format';
  const type = needText(format, 'type', `${at}.type`);
  if (type !== 'json_schema') throw invalid(`${at}.type`, `${at}.type must be json_schema.`);
  const schema = needObjectAt(format['schema'], `${at}.schema`);
  return { type: 'json_schema', name: SCHEMA_NAME, schema };
}

/** Semantics 6.7.3: `output_config.effort` wins over what a budget stands for; a budget alone keeps its number for those who take one. */
function reasoningOf(json: JsonObject): ReasoningControl | undefined {
  const thinking = mayObject(json, 'thinking', 'thinking');
  const config = mayObject(json, 'output_config', 'output_config');
  const asked = config === undefined ? undefined : mayText(config, 'effort', 'output_config.effort');
  const type = thinking === undefined ? undefined : needText(thinking, 'type', 'thinking.type');
  if (type === 'disabled') return { effort: 'none' };
  const budget = thinking === undefined ? undefined : mayNumber(thinking, 'budget_tokens', 'thinking.budget_tokens');
  const summary = thinking?.['display'] === 'summarized' ? 'auto' : undefined;
  const control: ReasoningControl = {
    ...optional('effort', asked),
    ...optional('budget', type === 'enabled' ? budget : undefined),
    ...optional('summary', summary),
    ...optional('adaptive', type === 'adaptive' ? true : undefined),
  };
  return Object.keys(control).length === 0 ? undefined : control;
}

/** The effort that a budget stands for, and for budgets the other way round see `encode-controls.ts`. */
export function effortOfBudget(budget: number): string {
  if (budget <= 1024) return 'low';
  if (budget <= 4096) return 'medium';
  return budget <= 16384 ? 'high' : 'xhigh';
}

function userOf(json: JsonObject): string | undefined {
  const metadata = mayObject(json, 'metadata', 'metadata');
  return metadata === undefined ? undefined : mayText(metadata, 'user_id', 'metadata.user_id');
}
