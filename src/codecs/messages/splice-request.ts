/**
 * A messages client's own body for a messages upstream: only the gateway's members change. Envelopes become the values that
 * they hold, or their blocks go; `max_tokens` is added where the client gave none. Empty texts, which upstreams stream and the
 * vendor refuses to take back, go too (M29), and arguments that say nothing become the empty object (M7).
 */
import { append } from '../append.ts';
import type { RequestFeature } from '../canonical/features.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import type { CanonicalRequest } from '../canonical/request.ts';
import type { Target } from '../codec.ts';
import { editJson, type JsonEdit, type JsonPath } from '../json/text.ts';
import { gatewayMembers } from '../requests/members.ts';
import { mayReplay } from '../requests/opaque-replay.ts';
import { DEFAULT_MAX_TOKENS } from './wire.ts';

export function spliceRequest(request: CanonicalRequest, target: Target, losses: Set<RequestFeature>): string {
  const edits: JsonEdit[] = [{ path: ['model'], value: JSON.stringify(target.owner.model) }];
  if (request.maxOutputTokens === undefined) edits.push({ path: ['max_tokens'], value: String(DEFAULT_MAX_TOKENS) });
  for (const member of gatewayMembers(request.json)) edits.push({ path: [member], value: undefined });
  append(edits, systemEdits(request.json));
  append(edits, blockEdits(request, target, losses));
  return editJson(request.text, edits);
}

/** A system prompt of empty texts alone says nothing at all. */
function systemEdits({ system }: JsonObject): JsonEdit[] {
  if (!Array.isArray(system) || system.length === 0) return [];
  if (system.every(isEmptyText)) return [{ path: ['system'], value: undefined }];
  return emptyTextsOf(system, ['system']);
}

function blockEdits(request: CanonicalRequest, target: Target, losses: Set<RequestFeature>): JsonEdit[] {
  const messages = request.json['messages'];
  if (!Array.isArray(messages)) return [];
  const values = replayedValues(request, target);
  const lastOfModel = messages.findLastIndex((message: JsonValue) => isObject(message) && message['role'] === 'assistant');
  return messages.flatMap((message: JsonValue, index) => {
    if (!isObject(message) || !Array.isArray(message['content'])) return [];
    const path = ['messages', index];
    const fates = message['content'].map((block: JsonValue, at) =>
      fateOf(block, [...path, 'content', at], values.get(`messages[${index}].content[${at}]`), target),
    );
    const edits = messageEdits(message, fates, path);
    if (!fates.includes('foreign')) return edits;
    losses.add('reasoning: opaque of another owner');
    if (index !== lastOfModel || !answersCalls(messages[index + 1]) || !requiresThinking(request, target)) return edits;
    losses.add('reasoning budget');
    return [{ path: ['thinking'], value: '{"type":"disabled"}' }, ...edits];
  });
}

/** The opaque values that go to this upstream, by the place of their blocks. */
function replayedValues(request: CanonicalRequest, target: Target): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  for (const item of request.items) {
    if (item.kind !== 'reasoning' || item.opaque === undefined || item.at === undefined) continue;
    if (mayReplay(item.opaque, target, 'messages')) values.set(item.at, item.opaque.value);
  }
  return values;
}

/** A block goes, since it says nothing or since its opaque value is not for this upstream; or it stays, with these edits. */
type Fate = 'empty' | 'foreign' | readonly JsonEdit[];

/** `value`: the opaque value that goes to this upstream, if there is one. */
function fateOf(block: JsonValue, path: JsonPath, value: string | undefined, target: Target): Fate {
  if (isEmptyText(block)) return 'empty';
  const member = opaqueMember(block);
  if (member === undefined || !isObject(block)) return [...emptyResultTexts(block, path), ...emptyInput(block, path)];
  if (target.options.replayReasoningContent === true && isUnsigned(block)) return [];
  if (value === undefined) return 'foreign';
  return value === block[member] ? [] : [{ path: [...path, member], value: JSON.stringify(value) }];
}

/** A message without content is refused: one that held nothing else goes as a whole, unless it is a user's of empty text. */
function messageEdits({ role }: JsonObject, fates: readonly Fate[], path: JsonPath): JsonEdit[] {
  if (fates.some((fate) => typeof fate !== 'string'))
    return fates.flatMap((fate, at) =>
      typeof fate === 'string' ? [{ path: [...path, 'content', at], value: undefined }] : fate,
    );
  const goes = fates.includes('foreign') || (fates.length > 0 && role === 'assistant');
  return goes ? [{ path, value: undefined }] : [];
}

/** Older models think by budget, and then refuse results of calls before which they did not think (semantics 9.3.3). */
function requiresThinking(request: CanonicalRequest, target: Target): boolean {
  const { thinking } = request.json;
  return target.facts.thinking === 'budget' && isObject(thinking) && thinking['type'] === 'enabled';
}

function answersCalls(message: JsonValue | undefined): boolean {
  const content = isObject(message) ? message['content'] : undefined;
  return Array.isArray(content) && content.some((block: JsonValue) => isObject(block) && block['type'] === 'tool_result');
}

function isEmptyText(block: JsonValue): boolean {
  return isObject(block) && block['type'] === 'text' && block['text'] === '';
}

function emptyResultTexts(block: JsonValue, path: JsonPath): JsonEdit[] {
  if (!isObject(block) || block['type'] !== 'tool_result' || !Array.isArray(block['content'])) return [];
  return emptyTextsOf(block['content'], [...path, 'content']);
}

function emptyTextsOf(list: readonly JsonValue[], path: JsonPath): JsonEdit[] {
  return list.flatMap((part, at) => (isEmptyText(part) ? [{ path: [...path, at], value: undefined }] : []));
}

/** No arguments, in a form that the vendor refuses; whatever else is no object was refused when the request was read (M7). */
function emptyInput(block: JsonValue, path: JsonPath): JsonEdit[] {
  if (!isObject(block) || block['type'] !== 'tool_use' || isObject(block['input'])) return [];
  return [{ path: [...path, 'input'], value: '{}' }];
}

function isUnsigned({ type, signature }: JsonObject): boolean {
  return type === 'thinking' && (signature === undefined || signature === null || signature === '');
}

function opaqueMember(block: JsonValue): 'signature' | 'data' | undefined {
  if (!isObject(block)) return undefined;
  if (block['type'] === 'thinking') return 'signature';
  return block['type'] === 'redacted_thinking' ? 'data' : undefined;
}
