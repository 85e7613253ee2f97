/**
 * The body of a messages client for a messages upstream: the client's own text with only these edits. Envelopes become the values that they
 * hold, or their blocks go. `max_tokens` is added where the client gave none. Texts of white space go, since upstreams send
 * them but the vendor does not take them back (M29), and call ids become legal and unique. Empty tool input becomes the empty object (M7).
 */
import { append } from '../../append.ts';
import type { RequestFeature } from '../../canonical/features.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import type { CanonicalRequest } from '../../canonical/request.ts';
import type { Target } from '../../codec.ts';
import { editJson, type JsonEdit } from '../../json/edit.ts';
import type { JsonPath } from '../../json/text.ts';
import { type CacheMembers, cacheEdits } from '../../requests/cache-edits.ts';
import { gatewayMembers } from '../../requests/members.ts';
import { mayReplay } from '../../requests/opaque-replay.ts';
import { CallIds } from './call-ids.ts';
import { holdsBreakpoint } from './encode-conversation.ts';
import { DEFAULT_MAX_TOKENS } from '../wire.ts';

export function spliceRequest(request: CanonicalRequest, target: Target, losses: Set<RequestFeature>): string {
  const edits: JsonEdit[] = [{ path: ['model'], value: JSON.stringify(target.owner.model) }];
  if (request.maxOutputTokens === undefined) edits.push({ path: ['max_tokens'], value: String(DEFAULT_MAX_TOKENS) });
  for (const member of gatewayMembers(request.json)) edits.push({ path: [member], value: undefined });
  append(edits, systemEdits(request.json));
  append(edits, blockEdits(request, target, losses));
  append(edits, cacheEdits(request, target, CACHE, losses));
  return editJson(request.text, edits);
}

const CACHE: CacheMembers = {
  member: 'cache_control',
  value: { type: 'ephemeral' },
  textType: 'text',
  holds: holdsBreakpoint,
};

/** A system prompt of empty texts alone goes as a whole. */
function systemEdits({ system }: JsonObject): JsonEdit[] {
  if (!Array.isArray(system) || system.length === 0) return [];
  if (system.every(isEmptyText)) return [{ path: ['system'], value: undefined }];
  return emptyTextsOf(system, ['system']);
}

function blockEdits(request: CanonicalRequest, target: Target, losses: Set<RequestFeature>): JsonEdit[] {
  const messages = request.json['messages'];
  if (!Array.isArray(messages)) return [];
  const values = replayedValues(request, target);
  const ids = new CallIds();
  const lastAnswer = messages.findLastIndex((message: JsonValue) => isObject(message) && message['role'] === 'assistant');
  return messages.flatMap((message: JsonValue, index) => {
    if (!isObject(message) || !Array.isArray(message['content'])) return [];
    const path = ['messages', index];
    const decisions = message['content'].map((block: JsonValue, at) =>
      decide(block, [...path, 'content', at], values.get(`messages[${index}].content[${at}]`), target, ids),
    );
    const edits = messageEdits(message, decisions, path);
    if (!decisions.includes('foreign')) return edits;
    losses.add('reasoning: opaque of another owner');
    if (index !== lastAnswer || !answersCalls(messages[index + 1]) || !requiresThinking(request, target)) return edits;
    losses.add('reasoning budget');
    return [{ path: ['thinking'], value: '{"type":"disabled"}' }, ...edits];
  });
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
    return [...emptyResultTexts(block, path), ...emptyInput(block, path), ...legalId(block, path, ids)];
  if (target.options.replayReasoningContent === true && isUnsigned(block)) return [];
  if (value === undefined) return 'foreign';
  return value === block[member] ? [] : [{ path: [...path, member], value: JSON.stringify(value) }];
}

/** A message that loses all its content goes as a whole, since the vendor refuses an empty one. A user's message of empty text stays. */
function messageEdits({ role }: JsonObject, decisions: readonly Decision[], path: JsonPath): JsonEdit[] {
  if (decisions.some((decision) => typeof decision !== 'string'))
    return decisions.flatMap((decision, at) =>
      typeof decision === 'string' ? [{ path: [...path, 'content', at], value: undefined }] : decision,
    );
  const isDropped = decisions.includes('foreign') || (decisions.length > 0 && role === 'assistant');
  return isDropped ? [{ path, value: undefined }] : [];
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
  return isObject(block) && block['type'] === 'text' && typeof block['text'] === 'string' && block['text'].trim() === '';
}

function emptyResultTexts(block: JsonValue, path: JsonPath): JsonEdit[] {
  if (!isObject(block) || block['type'] !== 'tool_result' || !Array.isArray(block['content'])) return [];
  return emptyTextsOf(block['content'], [...path, 'content']);
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
