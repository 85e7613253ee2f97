/** Tools and tool_choice for a messages upstream. Throws `unsupported_conversion` with the client's path. */
import { notConvertible } from '../../canonical/error.ts';
import type { ToolName } from '../../canonical/item.ts';
import type { JsonObject, JsonValue } from '../../canonical/json.ts';
import type { CanonicalRequest, Tool, ToolChoice } from '../../canonical/request.ts';
import type { Target } from '../../codec.ts';
import { cacheControlOf } from '../../requests/cache-breakpoints.ts';
import { requiresCall } from '../../tools/choice.ts';
import { freeformSchema } from '../../tools/freeform.ts';
import type { SchemaTexts } from '../../schemas/text.ts';
import { endsStep, type Steps } from '../../steps.ts';
import { declaredTool, toolKey, type ToolNames } from '../../tools/names.ts';
import { objectSchema } from '../../schemas/object-schema.ts';
import { loweredText } from './encode-format.ts';
import type { WireBlock } from '../wire.ts';
import type { Losses } from '../../requests/losses.ts';
import type { EncodeContext } from '../../requests/request-encoder.ts';

const OPEN_SCHEMA = { type: 'object', properties: {}, additionalProperties: true };

/**
 * Declares what a history calls where the request declares no tools, since the vendor refuses calls without any. {@link NO_CALLS}
 * goes with it.
 */
export const openTools = (names: Iterable<JsonValue | undefined>): JsonObject[] =>
  [...names].map((name) => ({ name, input_schema: OPEN_SCHEMA }));

export const NO_CALLS = { type: 'none' };

/** The tools that the upstream can have; those of another vendor are left out. */
export function* encodeTools(request: CanonicalRequest, schemas: SchemaTexts, context: EncodeContext): Steps<WireBlock[]> {
  const { toolChoice } = request;
  const allowed = toolChoice?.mode === 'allowed' ? new Set(toolChoice.tools.map(toolKey)) : undefined;
  const blocks: WireBlock[] = [];
  for (const [index, tool] of request.tools.entries()) {
    if (endsStep(index)) yield;
    if (tool.kind === 'native') {
      context.losses.note('native tool', tool.at);
      continue;
    }
    if (allowed?.has(toolKey(tool.tool)) === false) continue;
    blocks.push(yield* encodeTool(tool, schemas.tools.get(tool.at), context));
  }
  return blocks;
}

function* encodeTool(
  tool: Exclude<Tool, { kind: 'native' }>,
  schema: string | undefined,
  { target, names, losses }: EncodeContext,
): Steps<WireBlock> {
  const name = names.toWire(tool.tool);
  const { description } = tool;
  const inputSchema = tool.kind === 'function' ? functionSchema(tool) : customSchema(tool, target, losses);
  const strict = tool.kind === 'function' && tool.strict === true ? yield* loweredText(inputSchema, schema) : undefined;
  const text = strict ?? schema;
  if (tool.kind === 'function' && tool.strict === true && strict !== (schema ?? JSON.stringify(inputSchema))) {
    losses.note('function tool: strict');
  }
  const json: JsonObject = {
    name,
    ...(description === undefined ? {} : { description }),
    ...(text === undefined ? { input_schema: inputSchema } : {}),
    ...(strict === undefined ? {} : { strict: true }),
  };
  return { json, schema: text, cacheControl: breakpointOf(tool, target) };
}

function breakpointOf(tool: Exclude<Tool, { kind: 'native' }>, { without }: Target): JsonObject | undefined {
  if (tool.kind !== 'function' || tool.breakpoint === undefined || without.has('breakpoints')) return undefined;
  return cacheControlOf(tool.breakpoint);
}

function functionSchema({ parameters, at }: Extract<Tool, { kind: 'function' }>): JsonObject {
  return parameters === undefined ? { type: 'object', properties: {} } : objectSchema(parameters, `${at}.parameters`);
}

function customSchema(tool: Extract<Tool, { kind: 'custom' }>, target: Target, losses: Losses): JsonObject {
  if (tool.inputSchema !== undefined) return objectSchema(tool.inputSchema, `${tool.at}.input_schema`);
  if (target.options.lowerCustomTools === true) losses.add('custom tool: freeform');
  else losses.note('custom tool: freeform', tool.at);
  return freeformSchema(tool.format);
}

/** Undefined for a request without tools or choice. Throws where the client requires a tool that the upstream cannot have. */
export function encodeToolChoice(request: CanonicalRequest, names: ToolNames, hasTools: boolean): JsonObject | undefined {
  const { toolChoice: choice, parallelToolCalls: parallel } = request;
  if (!hasTools) {
    if (requiresCall(choice))
      throw notConvertible('tool_choice', 'tool_choice requires a tool, and none can be sent to this upstream.');
    return undefined;
  }
  if (choice?.mode === 'tool' && !isDeclared(request, choice.tool)) {
    throw notConvertible('tool_choice', `tool_choice names ${choice.tool.name}, which cannot be sent to this upstream.`);
  }
  const wire = choice === undefined || choice.mode === 'native' ? undefined : wireChoice(choice, names);
  if (wire?.['type'] === 'none') return wire;
  if (parallel === false) return { ...(wire ?? { type: 'auto' }), disable_parallel_tool_use: true };
  return wire !== undefined && parallel === true ? { ...wire, disable_parallel_tool_use: false } : wire;
}

function isDeclared(request: CanonicalRequest, name: ToolName): boolean {
  return declaredTool(request.tools, name) !== undefined;
}

function wireChoice(choice: Exclude<ToolChoice, { mode: 'native' }>, names: ToolNames): JsonObject {
  switch (choice.mode) {
    case 'auto':
    case 'none':
      return { type: choice.mode };
    case 'required':
      return { type: 'any' };
    case 'tool':
      return { type: 'tool', name: names.toWire(choice.tool) };
    case 'allowed':
      return { type: choice.require ? 'any' : 'auto' };
  }
}
