/**
 * A request as the loss table of the upstream leaves it: what the table drops is taken out before anything is encoded, and what
 * it refuses is refused at the client's path.
 */
import type { RequestFeature } from '../canonical/features.ts';
import type { Item, Media, Part, ReasoningItem, Role } from '../canonical/item.ts';
import type { Opaque } from '../canonical/opaque.ts';
import type { CanonicalRequest, ReasoningControl, Tool, ToolChoice } from '../canonical/request.ts';
import { mapped, without } from '../entries.ts';
import { isOfModel } from '../tools/call-pairs.ts';
import { declaredTool } from '../tools/names.ts';
import { asksForCaching } from './cache-breakpoints.ts';
import type { Losses } from './losses.ts';
import { hasUnreadMembers } from './members.ts';

/** Members whose presence is a feature. */
const MEMBERS = {
  maxOutputTokens: 'output cap',
  temperature: 'temperature, top_p',
  topP: 'temperature, top_p',
  topK: 'top_k',
  seed: 'seed',
  presencePenalty: 'presence and frequency penalty',
  frequencyPenalty: 'presence and frequency penalty',
  logitBias: 'logit bias',
  stop: 'stop sequences',
  logprobs: 'logprobs',
  verbosity: 'verbosity',
  user: 'user',
  metadata: 'metadata',
  serviceTier: 'service tier',
  promptCacheKey: 'prompt cache key',
  safetyIdentifier: 'safety identifier',
  store: 'store',
  include: 'include',
  fallbacks: 'fallback models',
} as const satisfies Partial<Record<keyof CanonicalRequest, RequestFeature>>;
const MEMBER_FEATURES = Object.entries(MEMBERS) as readonly (readonly [keyof typeof MEMBERS, RequestFeature])[];

/**
 * The request as the table of `losses` leaves it: the same object where it takes nothing out. `isOurs`: the upstream may get the
 * opaque value.
 */
export function withoutLosses(request: CanonicalRequest, losses: Losses, isOurs: (opaque: Opaque) => boolean): CanonicalRequest {
  const changed: Partial<Mutable<CanonicalRequest>> = {};
  const { toolChoice, format, modalities, reasoning } = request;
  const isText = modalities?.every((modality) => modality === 'text') ?? true;
  if (!isText && !losses.decide('output modalities', 'modalities')) changed.modalities = undefined;
  if (toolChoice !== undefined && !losses.decide(featureOfChoice(toolChoice), 'tool_choice')) changed.toolChoice = undefined;
  if (hasUnreadMembers(request)) losses.decide('unknown members');
  const items = asksForCaching(request) && !losses.decide('cache breakpoint') ? unmarked(request, changed) : request.items;
  const kept = keptItems(items, request.tools, losses, isOurs);
  if (kept !== request.items) changed.items = kept;
  const tools = mapped(changed.tools ?? request.tools, (tool) => keptTool(tool, losses));
  if (tools !== request.tools) changed.tools = tools;
  if (request.parallelToolCalls === false && !losses.decide('parallel tool calls: off')) changed.parallelToolCalls = undefined;
  if (format?.type === 'json_schema' && !losses.decide('format: json schema')) changed.format = undefined;
  if (format?.type === 'json_object' && !losses.decide('format: json object')) changed.format = undefined;
  if (reasoning !== undefined) {
    const control = keptControl(reasoning, losses);
    if (control !== reasoning) changed.reasoning = control;
  }
  for (const [member, feature] of MEMBER_FEATURES) {
    const value = request[member];
    // An empty list asks for nothing.
    if (value === undefined || (Array.isArray(value) && value.length === 0)) continue;
    if (!losses.decide(feature)) changed[member] = undefined;
  }
  return Object.keys(changed).length === 0 ? request : ({ ...request, ...changed } as CanonicalRequest);
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] | undefined };

/** The items without breakpoints; the tools and the member of the whole request go into `changed`. */
function unmarked({ items, tools, cache }: CanonicalRequest, changed: Partial<Mutable<CanonicalRequest>>): readonly Item[] {
  if (cache !== undefined) changed.cache = undefined;
  const unmarkedTools = mapped(tools, (tool) => ('breakpoint' in tool ? without(tool, 'breakpoint') : tool));
  if (unmarkedTools !== tools) changed.tools = unmarkedTools;
  return mapped(items, (item) => ('breakpoint' in item ? without(item, 'breakpoint') : item));
}

const TEXTS: Readonly<Record<Role, RequestFeature>> = {
  system: 'system text',
  developer: 'developer text',
  user: 'user text',
  assistant: 'assistant text',
};

function keptItems(
  items: readonly Item[],
  tools: readonly Tool[],
  losses: Losses,
  isOurs: (opaque: Opaque) => boolean,
): readonly Item[] {
  let hasTurn = false;
  let isFirst = true;
  return mapped(items, (item) => {
    const isInstruction = item.kind === 'text' && (item.role === 'system' || item.role === 'developer');
    if (isInstruction && hasTurn && !losses.decide('system text after the first turn', item.at)) return undefined;
    if (!isInstruction) {
      if (isFirst && isOfModel(item) && !losses.decide('assistant turn first', item.at)) return undefined;
      isFirst &&= isOfModel(item) && !hasTurn && item.kind === 'reasoning';
      hasTurn = true;
    }
    return item.kind === 'reasoning' ? keptReasoning(item, losses, isOurs) : keptItem(item, tools, losses);
  });
}

function keptReasoning(item: ReasoningItem, losses: Losses, isOurs: (opaque: Opaque) => boolean): ReasoningItem {
  const { raw, opaque, at } = item;
  const signed =
    opaque !== undefined && isOurs(opaque) && !losses.decide('reasoning: opaque of this owner', at)
      ? without(item, 'opaque')
      : item;
  return raw === undefined || losses.decide('reasoning: raw text in history', at) ? signed : without(signed, 'raw');
}

function keptItem(item: Exclude<Item, ReasoningItem>, tools: readonly Tool[], losses: Losses): Item | undefined {
  const { at } = item;
  switch (item.kind) {
    case 'text':
      if (item.text !== '' && !losses.decide(TEXTS[item.role], at)) return undefined;
      return item.phase === undefined || losses.decide('assistant phase', at) ? item : without(item, 'phase');
    case 'refusal':
      return losses.decide('refusal in history', at) ? item : undefined;
    case 'toolCall': {
      if (!losses.decide(item.toolType === 'custom' ? 'custom tool call' : 'function call', at)) return undefined;
      if (declaredTool(tools, item.tool) === undefined && !losses.decide('call of an undeclared tool', at)) return undefined;
      return item.opaque === undefined || losses.decide('function call signature', at) ? item : without(item, 'opaque');
    }
    case 'toolResult': {
      const content = mapped(item.content, (part) => keptPart(part, at, losses));
      const isError = item.isError && losses.decide('tool result: error flag', at);
      return content === item.content && isError === item.isError ? item : { ...item, content, isError };
    }
    case 'media': {
      const path = item.media.at ?? at;
      if (!losses.decide(featureOfMedia(item.media), path)) return undefined;
      return item.role !== 'assistant' || losses.decide('image by assistant in history', path) ? item : undefined;
    }
    case 'native':
      // The encoder leaves it out in its place: it may stand between a call and its result.
      return item;
  }
}

function keptPart(part: Part, at: string | undefined, losses: Losses): Part | undefined {
  if (part.kind === 'native') return part;
  if (part.kind === 'text') return losses.decide('tool result: text', at) ? part : undefined;
  const { media } = part;
  const path = media.at ?? at;
  if (!losses.decide(featureOfMedia(media), path)) return undefined;
  if (media.source.from === 'text') return part;
  return losses.decide(media.type === 'image' ? 'tool result: image' : 'tool result: file', path) ? part : undefined;
}

function featureOfMedia({ type, source }: Media): RequestFeature {
  const { from } = source;
  if (from === 'text') return 'file: text';
  if (from === 'reference') return type === 'image' ? 'image: reference' : 'file: reference';
  return `${type}: ${from}`;
}

/** Tools of another vendor, and freeform ones, which an option of the Channel may lower, are the encoder's. */
function keptTool(tool: Tool, losses: Losses): Tool | undefined {
  if (tool.kind === 'native') return tool;
  const { at } = tool;
  if (tool.tool.namespace !== undefined && !losses.decide('function tool: namespace', at)) return undefined;
  if (tool.kind === 'custom')
    return tool.inputSchema === undefined || losses.decide('custom tool with object schema', at) ? tool : undefined;
  if (!losses.decide('function tool', at)) return undefined;
  return tool.strict !== true || losses.decide('function tool: strict', at) ? tool : without(tool, 'strict');
}

function featureOfChoice({ mode }: ToolChoice): RequestFeature {
  if (mode === 'tool') return 'tool choice: one tool';
  if (mode === 'allowed') return 'tool choice: allowed tools';
  return mode === 'native' ? 'tool choice: native' : 'tool choice: auto, none, required';
}

function keptControl(control: ReasoningControl, losses: Losses): ReasoningControl {
  const { effort, budget, summary, betweenTools } = control;
  const dropped: (keyof ReasoningControl)[] = [];
  const decide = (isThere: boolean, member: keyof ReasoningControl, feature: RequestFeature) => {
    if (isThere && !losses.decide(feature)) dropped.push(member);
  };
  decide(effort !== undefined, 'effort', effort === 'none' ? 'reasoning effort: none' : 'reasoning effort');
  decide(budget !== undefined, 'budget', 'reasoning budget');
  decide(summary !== undefined, 'summary', 'reasoning summary asked');
  decide(betweenTools === true, 'betweenTools', 'reasoning between tools');
  return dropped.reduce<ReasoningControl>(without, control);
}
