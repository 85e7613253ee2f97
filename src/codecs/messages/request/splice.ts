/**
 * The body of a messages client for a messages upstream: the client's own text with only these edits. Envelopes become the values
 * that they hold, or their blocks go. `max_tokens` is added where the client gave none. Texts of white space go, since upstreams
 * send them but the vendor does not take them back (M29), and call ids become legal and unique. Empty tool input becomes the
 * empty object (M7). Tools that the history calls are declared where there are none.
 */
import { append } from '../../append.ts';
import { notConvertible } from '../../canonical/error.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import type { CanonicalRequest } from '../../canonical/request.ts';
import type { Target } from '../../codec.ts';
import { editJson, type JsonEdit } from '../../json/edit.ts';
import type { JsonPath } from '../../json/text.ts';
import { type CacheMembers, cacheEdits } from '../../requests/cache-edits.ts';
import { gatewayMembers } from '../../requests/members.ts';
import { mayReplay } from '../../requests/opaque-replay.ts';
import { CallIds } from './call-ids.ts';
import { NO_CALLS, openTools } from './encode-tools.ts';
import { holdsBreakpoint } from './encode-conversation.ts';
import { defaultMaxTokens, isBlank, NO_CONTENT } from '../wire.ts';
import type { Losses } from '../../requests/losses.ts';
import { endsStep, type Steps } from '../../steps.ts';

export function* spliceRequest(request: CanonicalRequest, target: Target, losses: Losses): Steps<string> {
  const edits: JsonEdit[] = [{ path: ['model'], value: JSON.stringify(target.owner.model) }];
  if (request.maxOutputTokens === undefined) edits.push({ path: ['max_tokens'], value: String(defaultMaxTokens(target)) });
  for (const member of gatewayMembers(request.json)) edits.push({ path: [member], value: undefined });
  if (request.fallbacks === true) losses.add('fallback models');
  append(edits, systemEdits(request.json));
  append(edits, yield* blockEdits(request, target, losses));
  append(edits, calledTools(request, losses));
  append(edits, cacheEdits(request, target, CACHE, losses));
  yield;
  return editJson(request.text, edits);
}

const CACHE: CacheMembers = {
  member: 'cache_control',
  value: { type: 'ephemeral' },
  textType: 'text',
  holds: holdsBreakpoint,
};

/** A system prompt of blank texts alone goes as a whole. */
function systemEdits({ system }: JsonObject): JsonEdit[] {
  if (typeof system === 'string') return isBlank(system) ? [{ path: ['system'], value: undefined }] : [];
  if (!Array.isArray(system) || system.length === 0) return [];
  if (system.every(isEmptyText)) return [{ path: ['system'], value: undefined }];
  return emptyTextsOf(system, ['system']);
}

/**
 * What the history calls is declared where the request declares nothing. Servers of MCP are declarations, too, and so are tools
 * that a message in the middle takes away.
 */
function calledTools({ items, tools, json }: CanonicalRequest, losses: Losses): JsonEdit[] {
  const isDeclared = (list: JsonValue | undefined) => Array.isArray(list) && list.length > 0;
  if (tools.length > 0 || isDeclared(json['tools']) || isDeclared(json['mcp_servers'])) return [];
  const names = new Set<string>();
  for (const item of items) if (item.kind === 'toolCall') names.add(item.tool.name);
  if (names.size === 0) return [];
  losses.note('call of an undeclared tool');
  return [
    { path: ['tools'], value: JSON.stringify(openTools(names)) },
    { path: ['tool_choice'], value: JSON.stringify(NO_CALLS) },
  ];
}

function* blockEdits(request: CanonicalRequest, target: Target, losses: Losses): Steps<JsonEdit[]> {
  const messages = request.json['messages'];
  if (!Array.isArray(messages)) return [];
  const values = replayedValues(request, target);
  const ids = new CallIds();
  const lastAnswer = messages.findLastIndex((message: JsonValue) => isObject(message) && message['role'] === 'assistant');
  const edits: JsonEdit[] = [];
  /** The role of the last message that stays. */
  let lastRole: JsonValue | undefined;
  for (const [index, message] of messages.entries()) {
    if (endsStep(index)) yield;
    if (!isObject(message)) continue;
    const path = ['messages', index];
    const { content, role } = message;
    if (role === 'user') ids.nextAnswer();
    const decisions: readonly Decision[] = Array.isArray(content)
      ? content.map((block: JsonValue, at) =>
          decide(block, [...path, 'content', at], values.get(`messages[${index}].content[${at}]`), target, ids),
        )
      : [typeof content === 'string' && isBlank(content) ? 'empty' : []];
    if (decisions.includes('foreign')) {
      losses.add('reasoning: opaque of another owner');
      if (index === lastAnswer && answersCalls(messages[index + 1]) && requiresThinking(request, target)) {
        losses.add('reasoning budget');
        edits.push({ path: ['thinking'], value: '{"type":"disabled"}' });
      }
    }
    if (!isDropped(decisions)) {
      append(edits, Array.isArray(content) ? partEdits(decisions, path) : []);
      lastRole = role;
    } else if (index === messages.length - 1 && role === 'user' && lastRole === 'assistant') {
      edits.push({ path: [...path, 'content'], value: JSON.stringify(NO_CONTENT) });
      lastRole = role;
    } else edits.push({ path, value: undefined });
  }
  if (lastRole === undefined) throw notConvertible(firstText(request), 'The request holds nothing but white space.');
  return edits;
}

function firstText({ json: { messages } }: CanonicalRequest): string {
  const first = Array.isArray(messages) ? messages[0] : undefined;
  return isObject(first) && Array.isArray(first['content']) && first['content'].length > 0
    ? 'messages[0].content[0]'
    : 'messages[0].content';
}

/** The opaque values that this upstream may get, by the path of their blocks. */
function replayedValues(request: CanonicalRequest, target: Target): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  for (const item of request.items) {
    if (item.kind !== 'reasoning' || item.at === undefined) continue;
    if (item.opaque === undefined) {
      // Thinking that nobody signed goes to servers that sign nothing, without the envelope that it was shown with.
      if (target.options.replayReasoningContent === true) values.set(item.at, '');
    } else if (mayReplay(item.opaque, target, 'messages')) values.set(item.at, item.opaque.value);
  }
  return values;
}

/** A block goes, because it is empty or its opaque value is not for this upstream; or it stays, with these edits. */
type Decision = 'empty' | 'foreign' | readonly JsonEdit[];

/** `value`: the opaque value of the block, where this upstream may get it. */
function decide(block: JsonValue, path: JsonPath, value: string | undefined, target: Target, ids: CallIds): Decision {
  if (isEmptyText(block)) return 'empty';
  const member = opaqueMember(block);
  if (member === undefined || !isObject(block))
    return [...emptyInnerTexts(block, path), ...emptyInput(block, path), ...legalId(block, path, ids)];
  if (target.options.replayReasoningContent === true && isUnsigned(block)) return [];
  if (value === undefined) return 'foreign';
  return value === block[member] ? [] : [{ path: [...path, member], value: JSON.stringify(value) }];
}

/**
 * A message without content goes as a whole, whether it lost all or never had any (a client keeps an empty answer so): the vendor
 * refuses it.
 */
function isDropped(decisions: readonly Decision[]): boolean {
  return decisions.every((decision) => typeof decision === 'string');
}

function partEdits(decisions: readonly Decision[], path: JsonPath): JsonEdit[] {
  return decisions.flatMap((decision, at) =>
    typeof decision === 'string' ? [{ path: [...path, 'content', at], value: undefined }] : decision,
  );
}

/** Older models think by budget. Then they refuse tool results unless there is thinking before the calls (semantics 9.3.3). */
function requiresThinking(request: CanonicalRequest, target: Target): boolean {
  const { thinking } = request.json;
  return target.facts.thinking === 'budget' && isObject(thinking) && thinking['type'] === 'enabled';
}

function answersCalls(message: JsonValue | undefined): boolean {
  const content = isObject(message) ? message['content'] : undefined;
  return Array.isArray(content) && content.some((block: JsonValue) => isObject(block) && block['type'] === 'tool_result');
}

function isEmptyText(block: JsonValue): boolean {
  return isObject(block) && block['type'] === 'text' && typeof block['text'] === 'string' && isBlank(block['text']);
}

/** Texts of results, and of documents and search results that hold blocks. */
function emptyInnerTexts(block: JsonValue, path: JsonPath): JsonEdit[] {
  if (!isObject(block)) return [];
  const { type, content, source } = block;
  if (type === 'tool_result' && typeof content === 'string' && content !== '' && isBlank(content))
    return [{ path: [...path, 'content'], value: undefined }];
  const own = Array.isArray(content) ? emptyTextsOf(content, [...path, 'content']) : [];
  const held = isObject(source) && Array.isArray(source['content']) ? source['content'] : undefined;
  return held === undefined ? own : [...own, ...emptyTextsOf(held, [...path, 'source', 'content'])];
}

function emptyTextsOf(list: readonly JsonValue[], path: JsonPath): JsonEdit[] {
  return list.flatMap((part, at) => (isEmptyText(part) ? [{ path: [...path, at], value: undefined }] : []));
}

/** Input that is not an object means none here: all other input was refused when the request was decoded (M7). */
function emptyInput(block: JsonValue, path: JsonPath): JsonEdit[] {
  if (!isObject(block) || block['type'] !== 'tool_use' || isObject(block['input'])) return [];
  return [{ path: [...path, 'input'], value: '{}' }];
}

/** Other upstreams make ids that this vendor refuses, or number the calls of each turn anew. */
function legalId(block: JsonValue, path: JsonPath, ids: CallIds): JsonEdit[] {
  if (!isObject(block)) return [];
  const { type, id, tool_use_id: resultOf } = block;
  if (type === 'tool_use' && typeof id === 'string') return edited(id, ids.ofCall(id), [...path, 'id']);
  if (type === 'tool_result' && typeof resultOf === 'string')
    return edited(resultOf, ids.ofResult(resultOf), [...path, 'tool_use_id']);
  return [];
}

function edited(value: string, legal: string, path: JsonPath): JsonEdit[] {
  return value === legal ? [] : [{ path, value: JSON.stringify(legal) }];
}

function isUnsigned({ type, signature }: JsonObject): boolean {
  return type === 'thinking' && (signature === undefined || signature === null || signature === '');
}

function opaqueMember(block: JsonValue): 'signature' | 'data' | undefined {
  if (!isObject(block)) return undefined;
  if (block['type'] === 'thinking') return 'signature';
  return block['type'] === 'redacted_thinking' ? 'data' : undefined;
}
