/** Tools, tool choice and format of another dialect for a chat upstream. */
import { notConvertible } from '../../canonical/error.ts';
import type { Dialect } from '../../canonical/dialect.ts';
import type { ToolName } from '../../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import type { CanonicalRequest, Format, Tool } from '../../canonical/request.ts';
import type { CodecOptions } from '../../codec.ts';
import { cacheMember } from './encode-parts.ts';
import { requiresCall } from '../../tools/choice.ts';
import { type CustomTool, customToolOf, freeformSchema } from '../../tools/freeform.ts';
import { strictFunction } from '../../schemas/openai-strict.ts';
import { endsStep, type Steps } from '../../steps.ts';
import { objectSchema } from '../../schemas/object-schema.ts';
import type { EncodeContext } from '../../requests/request-encoder.ts';

/**
 * True for a custom tool that the upstream gets as a function: one with an object schema, or any if the Channel lowers custom
 * tools.
 */
export function isLowered(tool: CustomTool | undefined, options: CodecOptions): boolean {
  return tool?.inputSchema !== undefined || options.lowerCustomTools === true;
}

export function* encodeTools(request: CanonicalRequest, context: EncodeContext): Steps<JsonObject[]> {
  const { losses, target } = context;
  const tools: JsonObject[] = [];
  for (const [index, tool] of request.tools.entries()) {
    if (endsStep(index)) yield;
    if (tool.kind === 'native') {
      losses.note('native tool', tool.at);
      continue;
    }
    const isFreeform = tool.kind === 'custom' && !isLowered(tool, target.options);
    if (isFreeform && !losses.note('custom tool: freeform', tool.at)) continue;
    tools.push(encodeTool(tool, request.dialect, context));
  }
  return tools;
}

function encodeTool(
  tool: Exclude<Tool, { kind: 'native' }>,
  dialect: Dialect,
  { names, losses, target: { options } }: EncodeContext,
): JsonObject {
  const name = names.toWire(tool.tool);
  const described = { name, ...(tool.description === undefined ? {} : { description: tool.description }) };
  if (tool.kind === 'function') {
    const { parameters: schema, strict, isChanged } = strictFunction(tool, dialect);
    if (isChanged) losses.note('function tool: strict');
    const parameters = schema === undefined ? {} : { parameters: withType(schema) };
    const cache =
      tool.breakpoint !== undefined && options.routerCacheControl === true ? cacheMember(tool.breakpoint, options) : {};
    return { type: 'function', function: { ...described, ...parameters, ...(strict === undefined ? {} : { strict }) }, ...cache };
  }
  if (tool.inputSchema !== undefined) {
    const parameters = objectSchema(tool.inputSchema, `${tool.at}.input_schema`);
    return { type: 'function', function: { ...described, parameters } };
  }
  if (isLowered(tool, options)) {
    losses.add('custom tool: freeform');
    return { type: 'function', function: { ...described, parameters: freeformSchema(tool.format) } };
  }
  return {
    type: 'custom',
    custom: { ...described, ...(tool.format === undefined ? {} : { format: nestedFormat(tool.format) }) },
  };
}

/** Adds the type `object` to a schema without a type, since strict servers insist on it. */
function withType(schema: JsonObject): JsonObject {
  return schema['type'] === undefined ? { type: 'object', ...schema } : schema;
}

function nestedFormat(format: JsonObject): JsonObject {
  if (format['type'] !== 'grammar' || format['grammar'] !== undefined) return format;
  const { type, ...grammar } = format;
  return { type, grammar };
}

/** `tool_choice`, or undefined where there is nothing to choose from. Throws where it requires a tool that is not offered. */
export function encodeToolChoice(
  request: CanonicalRequest,
  context: EncodeContext,
  tools: readonly JsonObject[],
): JsonValue | undefined {
  const choice = request.toolChoice;
  if (choice === undefined || choice.mode === 'native') return undefined;
  if (tools.length === 0) {
    if (requiresCall(choice)) throw unsatisfiable();
    return undefined;
  }
  switch (choice.mode) {
    case 'tool':
      if (!isOffered(context.names.toWire(choice.tool), tools)) throw unsatisfiable();
      return named(choice.tool, request, context);
    case 'allowed': {
      // All allowed tools are native to another dialect.
      if (choice.tools.length === 0 && choice.require) throw unsatisfiable();
      if (choice.tools.length === 0) return 'none';
      const allowed = choice.tools.map((tool) => named(tool, request, context));
      return { type: 'allowed_tools', allowed_tools: { mode: choice.require ? 'required' : 'auto', tools: allowed } };
    }
    default:
      return choice.mode;
  }
}

function isOffered(name: string, tools: readonly JsonObject[]): boolean {
  return tools.some((tool) => {
    const described = tool[String(tool['type'])];
    return isObject(described) && described['name'] === name;
  });
}

function unsatisfiable() {
  return notConvertible('tool_choice', 'The upstream can run none of the tools that are required here.');
}

function named(tool: ToolName, request: CanonicalRequest, { names, target }: EncodeContext): JsonObject {
  const custom = customToolOf(request.tools, tool);
  const type = custom !== undefined && !isLowered(custom, target.options) ? 'custom' : 'function';
  return { type, [type]: { name: names.toWire(tool) } };
}

export function encodeFormat(format: Format): JsonObject {
  if (format.type !== 'json_schema') return { type: format.type };
  const { name = 'response', description, schema, strict } = format;
  return {
    type: 'json_schema',
    json_schema: {
      name,
      ...(description === undefined ? {} : { description }),
      ...(schema === undefined ? {} : { schema }),
      ...(strict === undefined ? {} : { strict }),
    },
  };
}
