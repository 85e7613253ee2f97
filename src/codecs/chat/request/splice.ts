/**
 * Writes a chat body for a chat upstream: the client's own text, in which only the gateway's members change, so that prompt
 * caches and unknown members survive.
 */
import { append } from '../../append.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import { isEnvelope, type Opaque } from '../../canonical/opaque.ts';
import type { CanonicalRequest, Effort } from '../../canonical/request.ts';
import type { Item } from '../../canonical/item.ts';
import type { Target } from '../../codec.ts';
import { editJson, type JsonEdit } from '../../json/edit.ts';
import type { JsonPath } from '../../json/text.ts';
import { type CacheMembers, cacheEdits } from '../../requests/cache-edits.ts';
import { gatewayMembers, present } from '../../requests/members.ts';
import { mayReplay } from '../../requests/opaque-replay.ts';
import { SIGNATURE_PATH, signatureOf } from '../opaque.ts';
import { type Detail, detailEntries, detailsOfBlocks, entryOfForm, readDetail, UNKNOWN_FORMAT } from '../details.ts';
import { cacheMember, holdsBreakpoint } from './encode-parts.ts';
import { wireCallId } from '../wire.ts';
import { missingReasoning } from './encode-messages.ts';
import type { Losses } from '../../requests/losses.ts';
import { endsStep, type Steps } from '../../steps.ts';

const NONE: Effort = 'none';

export function* spliceRequest(request: CanonicalRequest, target: Target, losses: Losses): Steps<string> {
  const { json } = request;
  const edits: JsonEdit[] = [{ path: ['model'], value: JSON.stringify(target.owner.model) }];
  for (const key of gatewayMembers(json)) edits.push({ path: [key], value: undefined });
  yield;
  if (request.stream) forceUsage(json, edits);
  disableReasoning(json, edits);
  if (target.options.legacyOutputCap === true) useLegacyCap(request, edits);
  else boundCap('max_tokens', request, edits);
  for (const name of OTHER_CAPS) boundCap(name, request, edits);
  if (target.options.developerAsSystem === true) renameDevelopers(json, edits, losses);
  if (target.without.has('raw')) removeReasoning(json, target, edits, losses);
  addMissingReasoning(json, target, edits);
  yield;
  yield* shortenCallIds(json, edits);
  yield;
  fillEmptyAnswers(json, edits);
  yield;
  openEnvelopes(request, target, edits, losses);
  append(edits, cacheEdits(request, target, cacheMembers(target), losses));
  yield;
  return editJson(request.text, edits);
}

function cacheMembers({ options }: Target): CacheMembers {
  const [[member, value] = []] = Object.entries(cacheMember({}, options));
  return { member: String(member), value: isObject(value) ? value : {}, textType: 'text', holds: holdsBreakpoint };
}

function forceUsage(json: JsonObject, edits: JsonEdit[]): void {
  const options = json['stream_options'];
  if (!isObject(options)) edits.push({ path: ['stream_options'], value: '{"include_usage":true}' });
  else if (options['include_usage'] !== true) edits.push({ path: ['stream_options', 'include_usage'], value: 'true' });
}

/** Effort none stands in the `reasoning` object where there is one, and then not in `reasoning_effort` (spec). */
function disableReasoning(json: JsonObject, edits: JsonEdit[]): void {
  const { reasoning, reasoning_effort: shorthand } = json;
  if (!isObject(reasoning)) return;
  const effort = typeof shorthand === 'string' ? shorthand : reasoning['effort'];
  if (effort !== NONE) return;
  if (reasoning['effort'] !== NONE) edits.push({ path: ['reasoning', 'effort'], value: JSON.stringify(NONE) });
  if (reasoning['max_tokens'] !== undefined) edits.push({ path: ['reasoning', 'max_tokens'], value: undefined });
  if (shorthand !== undefined) edits.push({ path: ['reasoning_effort'], value: undefined });
}

/** What llama.cpp and servers of Hugging Face read ahead of the protocol's own caps. */
const OTHER_CAPS = ['n_predict', 'max_new_tokens'] as const;

/** Which of several caps a server reads is not known: none is above the one that the request is weighed and charged by. */
function boundCap(name: string, { json, maxOutputTokens: cap }: CanonicalRequest, edits: JsonEdit[]): void {
  const given = json[name];
  if (cap !== undefined && typeof given === 'number' && (given > cap || given < 0))
    edits.push({ path: [name], value: String(cap) });
}

function useLegacyCap(request: CanonicalRequest, edits: JsonEdit[]): void {
  if (typeof request.json['max_completion_tokens'] !== 'number') return;
  edits.push({ path: ['max_completion_tokens'], value: undefined });
  edits.push({ path: ['max_tokens'], value: JSON.stringify(request.maxOutputTokens) });
}

function renameDevelopers({ messages }: JsonObject, edits: JsonEdit[], losses: Losses): void {
  if (!Array.isArray(messages)) return;
  for (const [turn, message] of messages.entries()) {
    if (!isObject(message) || message['role'] !== 'developer') continue;
    edits.push({ path: ['messages', turn, 'role'], value: '"system"' });
    losses.add('developer text');
  }
}

/** Longer ids hold what a server wants back (LiteLLM keeps signatures in them). */
const MAX_FOREIGN_ID = 256;

/** Ids of other vendors that OpenAI would refuse for their length, call by call; a result goes with its call. */
function* shortenCallIds({ messages }: JsonObject, edits: JsonEdit[]): Steps<void> {
  const shortened = new Map<JsonValue | undefined, string>();
  for (const [turn, message] of (Array.isArray(messages) ? messages : []).entries()) {
    if (endsStep(turn)) yield;
    if (!isObject(message)) continue;
    const { tool_calls: calls, tool_call_id: resultOf } = message;
    for (const [at, call] of (Array.isArray(calls) ? calls : []).entries()) {
      const id = isObject(call) ? call['id'] : undefined;
      if (endsStep(at)) yield;
      if (typeof id !== 'string' || id.length > MAX_FOREIGN_ID) continue;
      const short = wireCallId(id);
      if (short === id) continue;
      shortened.set(id, short);
      edits.push({ path: ['messages', turn, 'tool_calls', at, 'id'], value: JSON.stringify(short) });
    }
    const id = shortened.get(resultOf);
    if (id !== undefined) edits.push({ path: ['messages', turn, 'tool_call_id'], value: JSON.stringify(id) });
  }
}

interface AssistantMessage {
  /** Its index in `messages`. */
  readonly turn: number;
  readonly message: JsonObject;
}

function assistantMessages({ messages }: JsonObject): readonly AssistantMessage[] {
  if (!Array.isArray(messages)) return [];
  return messages.flatMap((message: JsonValue, turn) =>
    isObject(message) && message['role'] === 'assistant' ? [{ turn, message }] : [],
  );
}

/**
 * Removes raw reasoning from the history, in every member but the one that the Channel replays: a server that refuses one member
 * knows no other.
 */
function removeReasoning(json: JsonObject, { options }: Target, edits: JsonEdit[], losses: Losses): void {
  const members = ['reasoning', 'reasoning_details', 'thinking_blocks'];
  if (options.replayReasoningContent !== true) members.push('reasoning_content');
  for (const { turn, message } of assistantMessages(json)) {
    for (const member of members) {
      if (message[member] === undefined) continue;
      edits.push({ path: ['messages', turn, member], value: undefined });
      losses.add('reasoning: raw text in history');
    }
  }
}

function addMissingReasoning(json: JsonObject, target: Target, edits: JsonEdit[]): void {
  const missing = missingReasoning(target.options);
  if (missing === undefined) return;
  for (const { turn, message } of assistantMessages(json)) {
    const calls = message['tool_calls'];
    if (!Array.isArray(calls) || calls.length === 0 || present(message['reasoning_content'])) continue;
    edits.push({ path: ['messages', turn, 'reasoning_content'], value: JSON.stringify(missing) });
  }
}

/** An answer without output comes back with `content: null`, which OpenAI takes beside calls and the like alone. */
function fillEmptyAnswers(json: JsonObject, edits: JsonEdit[]): void {
  for (const { turn, message } of assistantMessages(json)) {
    const { content, tool_calls: calls, function_call: call, refusal, audio } = message;
    if (present(content) || (Array.isArray(calls) && calls.length > 0) || [call, refusal, audio].some(present)) continue;
    edits.push({ path: ['messages', turn, 'content'], value: '""' });
  }
}

/** Opens the opaque values that the target may receive. All others are removed, with the item that each belongs to. */
function openEnvelopes(request: CanonicalRequest, target: Target, edits: JsonEdit[], losses: Losses): void {
  const values = new OpaqueValues(request.items, target, losses);
  for (const { turn, message } of assistantMessages(request.json)) {
    const path: JsonPath = ['messages', turn];
    const scalar = message['reasoning_opaque'];
    if (typeof scalar === 'string' && scalar !== '') {
      const value = values.of(scalar);
      if (value !== scalar) {
        edits.push({ path: [...path, 'reasoning_opaque'], value: value === undefined ? undefined : JSON.stringify(value) });
      }
    }
    const details = message['reasoning_details'];
    if (Array.isArray(details) && !target.without.has('raw')) openDetails(details, path, values, edits, losses);
    openBlocks(message, path, values, edits, target.without.has('raw'));
    const copies = message['provider_specific_fields'];
    if (isObject(copies)) openBlocks(copies, [...path, 'provider_specific_fields'], values, edits);
    openSignature(message, path, values, edits);
    const calls = message['tool_calls'];
    if (!Array.isArray(calls)) continue;
    for (const [at, entry] of calls.entries()) openSignature(entry, [...path, 'tool_calls', at], values, edits);
  }
}

/** A block whose signature may not be sent is left out. */
function openBlocks(holder: JsonObject, at: JsonPath, values: OpaqueValues, edits: JsonEdit[], areRemoved = false): void {
  const blocks = holder['thinking_blocks'];
  if (!Array.isArray(blocks) || areRemoved) return;
  const path = [...at, 'thinking_blocks'];
  const changed: JsonEdit[] = [];
  let left = blocks.length;
  for (const [index, block] of blocks.entries()) {
    const [detail] = detailsOfBlocks([block]).map(readDetail);
    if (detail?.payload === undefined) continue;
    const value = values.of(detail.payload);
    if (value === undefined) {
      left -= 1;
      changed.push({ path: [...path, index], value: undefined });
    } else if (value !== detail.payload) {
      changed.push({ path: [...path, index, detail.kind === 'text' ? 'signature' : 'data'], value: JSON.stringify(value) });
    }
  }
  if (left === 0 && blocks.length > 0) edits.push({ path, value: undefined });
  else append(edits, changed);
}

function openSignature(signed: JsonValue, path: JsonPath, values: OpaqueValues, edits: JsonEdit[]): void {
  const signature = signatureOf(signed);
  const value = signature === undefined ? undefined : values.of(signature);
  if (value === signature) return;
  if (value === undefined) edits.push({ path: [...path, 'extra_content'], value: undefined });
  else edits.push({ path: [...path, ...SIGNATURE_PATH], value: JSON.stringify(value) });
}

function openDetails(
  details: readonly JsonValue[],
  path: JsonPath,
  values: OpaqueValues,
  edits: JsonEdit[],
  losses: Losses,
): void {
  const removed = new Set<number>();
  /** The ids of entries with a payload. */
  const paired = new Set(details.map(readDetail).flatMap((detail) => (detail?.payload === undefined ? [] : [detail.id])));
  for (const [at, entry] of details.entries()) {
    const detail = readDetail(entry);
    if (detail?.payload === undefined) {
      if (detail === undefined || !isGatewaySummary(detail) || paired.has(detail.id)) continue;
      removed.add(at);
      losses.add('reasoning: summary in history');
      continue;
    }
    const value = values.of(detail.payload);
    if (value === undefined) removed.add(at);
    else if (value !== detail.payload) edits.push(openedEntry(detail, value, values, [...path, 'reasoning_details', at]));
  }
  if (removed.size === 0) return;
  // The summary of a removed payload is removed, too: the vendor checks the pair.
  const pairs = new Set([...removed].map((at) => pairOf(details[at])));
  for (const [at, entry] of details.entries()) {
    if (readDetail(entry)?.kind === 'summary' && pairs.has(pairOf(entry))) removed.add(at);
  }
  if (removed.size === details.length) {
    edits.push({ path: [...path, 'reasoning_details'], value: undefined }, { path: [...path, 'reasoning'], value: undefined });
    return;
  }
  for (const at of removed) edits.push({ path: [...path, 'reasoning_details', at], value: undefined });
}

/**
 * True for a summary that the gateway made from an answer of another protocol. Strict chat upstreams refuse entries that are not
 * theirs.
 */
function isGatewaySummary({ kind, format, id }: Detail): boolean {
  return kind === 'summary' && format === UNKNOWN_FORMAT && id !== undefined;
}

function pairOf(entry: JsonValue | undefined): string {
  const detail = entry === undefined ? undefined : readDetail(entry);
  return `${detail?.format ?? ''} ${detail?.index ?? ''}`;
}

/**
 * The edit that opens an entry. One that the gateway made gets the form of its vendor; in a vendor's own entry only the value
 * changes.
 */
function openedEntry(detail: Detail, value: string, values: OpaqueValues, path: JsonPath): JsonEdit {
  const item = values.itemOf(detail.payload);
  const form = entryOfForm(item?.opaque?.form);
  if (form === undefined || form['type'] === detail.body['type']) {
    return { path: [...path, detail.kind === 'text' ? 'signature' : 'data'], value: JSON.stringify(value) };
  }
  const raw = item?.kind === 'reasoning' ? item.raw : undefined;
  return { path, value: JSON.stringify(detailEntries(form, raw, value).at(-1)) };
}

/** An item that may hold an opaque value. */
type SealedItem = Extract<Item, { readonly opaque?: Opaque }>;

/** The opaque values of a body, as one target may receive them. */
class OpaqueValues {
  readonly #target: Target;
  readonly #bySealed = new Map<string, SealedItem>();
  readonly #losses: Losses;

  constructor(items: readonly Item[], target: Target, losses: Losses) {
    this.#losses = losses;
    this.#target = target;
    for (const item of items) {
      if ('opaque' in item && item.opaque?.sealed !== undefined) this.#bySealed.set(item.opaque.sealed, item);
    }
  }

  itemOf(payload: string | undefined): SealedItem | undefined {
    return payload === undefined ? undefined : this.#bySealed.get(payload);
  }

  /** The raw value; undefined, and noted as a loss, where the target may not receive it. */
  of(payload: string): string | undefined {
    const value = this.#valueOf(payload);
    if (value === undefined) this.#losses.add('reasoning: opaque of another owner');
    return value;
  }

  #valueOf(payload: string): string | undefined {
    if (!isEnvelope(payload)) return this.#target.without.has('opaque') ? undefined : payload;
    const opaque = this.#bySealed.get(payload)?.opaque;
    return opaque !== undefined && mayReplay(opaque, this.#target, 'chat') ? opaque.value : undefined;
  }
}
