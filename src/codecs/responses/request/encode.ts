/**
 * The body for a responses upstream: the client's own text where it speaks the same dialect (`splice.ts`), else a new body from
 * the canonical request. Equal requests give equal bytes.
 */
import { append } from '../../append.ts';
import { notConvertible } from '../../canonical/error.ts';
import type { Dialect } from '../../canonical/dialect.ts';
import type { Item, ToolName } from '../../canonical/item.ts';
import type { JsonObject } from '../../canonical/json.ts';
import type { CanonicalRequest, Format, Tool, ToolChoice } from '../../canonical/request.ts';
import { effortOfBudget } from '../../requests/effort-of-budget.ts';
import { isMarked, placeBreakpoints, promptOptionsOf } from '../../requests/cache-breakpoints.ts';
import { PLAIN_NAMES, type ToolNames } from '../../tools/names.ts';
import type { Losses } from '../../requests/losses.ts';
import { type EncodeContext, requestEncoder } from '../../requests/request-encoder.ts';
import { writeWithSchemas } from '../../schemas/text.ts';
import { shortKey } from '../../requests/short-id.ts';
import { strictFunction } from '../../schemas/openai-strict.ts';
import { objectSchema } from '../../schemas/object-schema.ts';
import { requestLosses } from '../losses.ts';
import { spliceRequest } from './splice.ts';
import { holdsBreakpoint, writeInput } from './encode-input.ts';
import { endsStep, type Steps } from '../../steps.ts';

export const encodeInSteps = requestEncoder({
  dialect: 'responses',
  losses: requestLosses,
  nameRule: PLAIN_NAMES,
  // The protocol has no such member.
  mostStops: 0,
  path: () => '/responses',
  splice: spliceRequest,
  write: writeBody,
});

function* writeBody(request: CanonicalRequest, { target, names, losses }: EncodeContext): Steps<string> {
  if (request.metadata !== undefined && request.dialect !== 'chat') losses.add('metadata');
  const schemaTools = new Set(request.tools.flatMap((tool) => (isSchemaTool(tool) ? [names.toWire(tool.tool)] : [])));
  const placed = placeBreakpoints(request, { target, holds: holdsBreakpoint, onTools: false, losses });
  const [instructions, items] = splitInstructions(request, placed);
  const tools: JsonObject[] = [];
  for (const [index, tool] of request.tools.entries()) {
    if (endsStep(index)) yield;
    append(tools, writeTool(tool, names, request.dialect, losses));
  }
  const toolChoice = request.toolChoice === undefined ? undefined : writeToolChoice(request.toolChoice, names, tools);
  const text = writeText(request.format, request.verbosity);
  const reasoning = writeReasoning(request);
  // JSON.stringify leaves out what is undefined, here and below.
  const body = {
    model: target.owner.model,
    instructions,
    input: yield* writeInput(items, { target, names, schemaTools, losses, functionCalls: new Set() }),
    stream: request.stream ? true : undefined,
    tools: tools.length === 0 ? undefined : tools,
    tool_choice: toolChoice,
    parallel_tool_calls: tools.length === 0 ? undefined : request.parallelToolCalls,
    max_output_tokens: outputCap(request.maxOutputTokens, losses),
    temperature: request.temperature,
    top_p: request.topP,
    reasoning,
    text,
    // This upstream sends logprobs only with the include; no other include is ever added.
    ...(request.logprobs === undefined ? {} : { top_logprobs: request.logprobs.top, include: ['message.output_text.logprobs'] }),
    user: shortKey(request.user),
    metadata: request.dialect === 'chat' ? request.metadata : undefined,
    prompt_cache_key: shortKey(request.promptCacheKey),
    prompt_cache_options: target.without.has('breakpoints') ? undefined : promptOptionsOf(request.cache),
    safety_identifier: shortKey(request.safetyIdentifier),
  };
  yield;
  return yield* writeWithSchemas(body, request, ['parameters'], ['text', 'format', 'schema']);
}

/** The vendor refuses smaller caps, which other protocols allow. */
const LEAST_OUTPUT_CAP = 16;

function outputCap(cap: number | undefined, losses: Losses): number | undefined {
  if (cap === undefined || cap >= LEAST_OUTPUT_CAP) return cap;
  losses.note('output cap');
  return LEAST_OUTPUT_CAP;
}

/**
 * The leading system blocks of a messages request are instructions, unless a cached prefix ends among them; chat keeps its system
 * messages where they are.
 */
function splitInstructions(
  { dialect }: CanonicalRequest,
  items: readonly Item[],
): readonly [string | undefined, readonly Item[]] {
  if (dialect !== 'messages') return [undefined, items];
  const first = items.findIndex((item) => item.kind !== 'text' || item.role !== 'system');
  const count = first === -1 ? items.length : first;
  const leading = items.slice(0, count);
  // Instructions are one string, which has no place for a cache breakpoint.
  if (leading.some(isMarked)) return [undefined, items];
  const texts = leading.flatMap((item) => (item.kind === 'text' && item.text !== '' ? [item.text] : []));
  return [texts.length === 0 ? undefined : texts.join('\n\n'), items.slice(count)];
}

function isSchemaTool(tool: Tool): tool is Extract<Tool, { kind: 'custom' }> {
  return tool.kind === 'custom' && tool.inputSchema !== undefined;
}

function writeTool(tool: Tool, names: ToolNames, dialect: Dialect, losses: Losses): JsonObject[] {
  if (tool.kind === 'native') {
    losses.note('native tool', tool.at);
    return [];
  }
  if (tool.kind === 'custom' && tool.inputSchema === undefined && !losses.note('custom tool: freeform', tool.at)) return [];
  const identity = { name: names.toWire(tool.tool), description: tool.description };
  if (tool.kind === 'custom' && tool.inputSchema === undefined) return [{ type: 'custom', ...identity, format: tool.format }];
  const own = tool.kind === 'function' ? strictFunction(tool, dialect) : { parameters: tool.inputSchema, isChanged: false };
  if (own.isChanged) losses.note('function tool: strict');
  const schema = own.parameters;
  const at = `${tool.at}.${tool.kind === 'custom' ? 'input_schema' : 'parameters'}`;
  // Vendors want an object schema, even an empty one.
  const parameters = schema === undefined ? { type: 'object', properties: {} } : objectSchema(schema, at);
  return [{ type: 'function', ...identity, parameters, strict: own.strict }];
}

/** Throws where the choice requires a tool that is not offered. */
function writeToolChoice(choice: ToolChoice, names: ToolNames, written: readonly JsonObject[]) {
  const typeByName = new Map(written.map((tool) => [tool['name'], tool['type']]));
  const reference = (tool: ToolName, toolType: 'function' | 'custom'): JsonObject => {
    const name = names.toWire(tool);
    return { type: typeByName.get(name) ?? toolType, name };
  };
  switch (choice.mode) {
    case 'auto':
    case 'none':
      return written.length === 0 ? undefined : choice.mode;
    case 'required':
      if (written.length === 0) throw unsatisfiable();
      return choice.mode;
    case 'tool':
      if (!typeByName.has(names.toWire(choice.tool))) throw unsatisfiable();
      return reference(choice.tool, choice.toolType);
    case 'allowed': {
      // No allowed tool is left: they were all native tools of another vendor.
      if (choice.tools.length === 0 && choice.require) throw unsatisfiable();
      if (choice.tools.length === 0) return 'none';
      const mode = choice.require ? 'required' : 'auto';
      return { type: 'allowed_tools', mode, tools: choice.tools.map((tool) => reference(tool, 'function')) };
    }
    case 'native':
      return undefined;
  }
}

function unsatisfiable() {
  return notConvertible('tool_choice', 'tool_choice requires a tool, and none of the tools exists in the selected protocol.');
}

function writeText(format: Format | undefined, verbosity: string | undefined): JsonObject | undefined {
  if (format === undefined && verbosity === undefined) return undefined;
  return { format: format === undefined ? undefined : writeFormat(format), verbosity };
}

function writeFormat(format: Format): JsonObject {
  if (format.type !== 'json_schema') return { type: format.type };
  return {
    type: format.type,
    name: format.name ?? 'response',
    description: format.description,
    schema: format.schema ?? {},
    strict: format.strict,
  };
}

function writeReasoning(request: CanonicalRequest): JsonObject | undefined {
  const { effort, budget, summary } = request.reasoning ?? {};
  const level = effort ?? (budget === undefined ? undefined : effortOfBudget(budget));
  if (level === undefined && summary === undefined) return undefined;
  return { effort: level, summary };
}
