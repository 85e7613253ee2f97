/** Tools, tool choice and format of a chat request, also in the deprecated form `functions`. Does not know messages. */
import { invalid } from '../../canonical/error.ts';
import type { CacheBreakpoint } from '../../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import type { CanonicalRequest, Format, Tool, ToolChoice } from '../../canonical/request.ts';
import { readCacheControl } from '../../requests/cache-breakpoints.ts';
import { defined } from '../../defined.ts';
import {
  arrayAt,
  objectAt,
  optionalBoolean,
  optionalInteger,
  optionalObject,
  optionalString,
  present,
  requiredName,
  requiredString,
  schemaMembers,
} from '../../requests/members.ts';

/** The tools, then the functions of the deprecated list: a request may hold both. */
export function readTools({ tools, functions }: JsonObject): Tool[] {
  const modern = present(tools) ? arrayAt(tools, 'tools').map((tool, index) => readTool(tool, `tools[${index}]`)) : [];
  if (!present(functions)) return modern;
  const deprecated = arrayAt(functions, 'functions').map((body, index) => {
    const at = `functions[${index}]`;
    return readFunction(objectAt(body, at), undefined, at);
  });
  return [...modern, ...deprecated];
}

function readTool(value: JsonValue, at: string): Tool {
  const body = objectAt(value, at);
  // Mistral's clients may leave out the type.
  const type = present(body['function']) && !present(body['type']) ? 'function' : requiredString(body, 'type', at);
  switch (type) {
    case 'function':
      return readFunction(objectAt(body['function'], `${at}.function`), readCacheControl(body, at), `${at}.function`);
    case 'custom':
      return readCustom(body, at);
    default: {
      // Server tools of routers exist in their own dialect only.
      const name = body['name'];
      return { kind: 'native', dialect: 'chat', type, ...(typeof name === 'string' ? { name } : {}), body, at };
    }
  }
}

/** `at`: the path of `body`, which refusals of its schema name. */
function readFunction(body: JsonObject, breakpoint: CacheBreakpoint | undefined, at: string): Tool {
  return {
    kind: 'function',
    tool: { name: requiredName(body, 'name', at) },
    ...defined({
      description: optionalString(body, 'description', at),
      parameters: optionalObject(body, 'parameters', at),
      strict: optionalBoolean(body, 'strict', at),
      breakpoint,
    }),
    at,
  };
}

/** `input_schema` is no member of chat itself: it lets a messages upstream have the tool (spec rule 14). */
function readCustom(tool: JsonObject, at: string): Tool {
  const path = `${at}.custom`;
  const body = objectAt(tool['custom'], path);
  const format = optionalObject(body, 'format', path);
  const inner = optionalObject(body, 'input_schema', path);
  return {
    kind: 'custom',
    tool: { name: requiredName(body, 'name', path) },
    ...defined({
      description: optionalString(body, 'description', path),
      format: format === undefined ? undefined : flatFormat(format, `${path}.format`),
      inputSchema: inner ?? optionalObject(tool, 'input_schema', at),
    }),
    at: inner === undefined ? at : path,
  };
}

/** Chat nests a grammar; the canonical form, as in responses, is flat. */
function flatFormat(format: JsonObject, path: string): JsonObject {
  if (format['type'] !== 'grammar') return format;
  const grammar = objectAt(format['grammar'], `${path}.grammar`);
  return { type: 'grammar', ...grammar };
}

export function readToolChoice(json: JsonObject): ToolChoice | undefined {
  const choice = json['tool_choice'];
  if (present(choice)) return readChoice(choice, 'tool_choice');
  const legacy = json['function_call'];
  if (!present(legacy)) return undefined;
  if (typeof legacy === 'string') return mode(legacy, 'function_call');
  const name = requiredString(objectAt(legacy, 'function_call'), 'name', 'function_call');
  return { mode: 'tool', toolType: 'function', tool: { name } };
}

function mode(name: string, path: string): ToolChoice {
  if (name === 'auto' || name === 'none' || name === 'required') return { mode: name };
  // Mistral's name for `required`.
  if (name === 'any') return { mode: 'required' };
  throw invalid(path, `'${path}' must be "none", "auto", "required" or an object.`);
}

function readChoice(choice: JsonValue, path: string): ToolChoice {
  if (typeof choice === 'string') return mode(choice, path);
  const body = objectAt(choice, path);
  // Clients of Hugging Face name the function alone.
  const isBare = !present(body['type']) && isObject(body['function']);
  const type = isBare ? 'function' : requiredString(body, 'type', path);
  if (type === 'function' || type === 'custom') {
    const name = requiredString(objectAt(body[type], `${path}.${type}`), 'name', `${path}.${type}`);
    return { mode: 'tool', toolType: type, tool: { name } };
  }
  if (type !== 'allowed_tools') return { mode: 'native', dialect: 'chat', body };
  const allowed = objectAt(body['allowed_tools'], `${path}.allowed_tools`);
  const require = requiredString(allowed, 'mode', `${path}.allowed_tools`) === 'required';
  const list = `${path}.allowed_tools.tools`;
  const tools = arrayAt(allowed['tools'], list).flatMap((entry, index) => {
    const tool = objectAt(entry, `${list}[${index}]`);
    const kind = tool['type'] === 'custom' ? 'custom' : 'function';
    const inner = tool[kind];
    return inner === undefined
      ? []
      : [{ name: requiredString(objectAt(inner, `${list}[${index}].${kind}`), 'name', `${list}[${index}].${kind}`) }];
  });
  return { mode: 'allowed', require, tools };
}

/**
 * Servers of other vendors also read a schema that stands beside the type: of `json_object` (Together, Cohere, llama.cpp), or of
 * `json_schema` (llama.cpp).
 */
export function hasFlatSchema(format: JsonValue | undefined): boolean {
  return isObject(format) && isObject(format['schema']) && !present(format['json_schema']);
}

export function readFormat(json: JsonObject): Format | undefined {
  const format = optionalObject(json, 'response_format');
  if (format === undefined) return undefined;
  const type = requiredString(format, 'type', 'response_format');
  const isFlat = (type === 'json_object' || type === 'json_schema') && hasFlatSchema(format);
  if (isFlat) return { type: 'json_schema', ...schemaMembers(format, 'response_format') };
  if (type === 'text' || type === 'json_object') return { type };
  // Grammars and formats of other vendors stay in the text, for an upstream of the same dialect.
  if (type !== 'json_schema') return undefined;
  const path = 'response_format.json_schema';
  return { type, ...schemaMembers(objectAt(format['json_schema'], path), path) };
}

/** `logprobs` and `top_logprobs`; alternatives without logprobs are refused, as the vendor does. */
export function readLogprobs(json: JsonObject): CanonicalRequest['logprobs'] {
  const top = optionalInteger(json, 'top_logprobs', { least: 0, most: 20 });
  const wanted = optionalBoolean(json, 'logprobs') ?? false;
  if (!wanted && top !== undefined && top > 0) throw invalid('top_logprobs', "'top_logprobs' needs 'logprobs' to be true.");
  return wanted ? { top: top ?? 0 } : undefined;
}
