/**
 * A responses request on its way to a responses upstream: the client's own text with only these edits. Everything else stays,
 * byte for byte (prompt caches depend on it).
 *
 * - `model` becomes the upstream's; `stream` is set only where the transport implied it (WebSocket).
 * - `previous_response_id` goes: the gateway's history was expanded into `input` before. `conversation` stays.
 * - Members of the gateway and of the WebSocket session go.
 * - An item that is only named, and that this upstream did not store, is said.
 * - Call ids that the vendor would refuse for their length (other vendors make them) are shortened, pair by pair.
 * - Envelopes in reasoning items are opened in place for the kind of upstream that made them, under the id that the value
 *   belongs to (known failure S1). Every other reasoning item without a usable value goes: foreign, tampered, or stored
 *   elsewhere. Its group follows it as far as it can: calls and texts stay, since they are what was said, but lose their ids, by
 *   which the vendor would miss the dropped reasoning (known failures R23, P10); items that the vendor itself ran cannot stand
 *   without either and go. Raw reasoning text needs no storage and stays.
 * - Reasoning of a continued history that led to nothing (its answer was cut within it) goes: the vendor continues such an answer by its
 *   id, but takes no such item (known failure R23).
 */
import { append } from '../append.ts';
import type { RequestFeature } from '../canonical/features.ts';
import type { ReasoningItem } from '../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import { isEnvelope } from '../canonical/opaque.ts';
import type { CanonicalRequest } from '../canonical/request.ts';
import type { Target } from '../codec.ts';
import { editJson, type JsonEdit } from '../json/text.ts';
import { gatewayMembers } from '../requests/members.ts';
import { mayReplay } from '../requests/opaque-replay.ts';
import { isReference } from './read-input.ts';
import { OPAQUE_MEMBERS, nonEmptyString } from './wire.ts';
import { wireCallId } from './write-input.ts';

/** Top-level members that no upstream may see, beside the routing words of gateways: those of the WebSocket session's frames. */
const UNSAID = ['client_metadata', 'generate', 'previous_response_id', 'stream_id', 'type'];

export function spliceRequest(request: CanonicalRequest, target: Target, losses: Set<RequestFeature>): string {
  const { json } = request;
  const edits: JsonEdit[] = [{ path: ['model'], value: JSON.stringify(target.owner.model) }];
  for (const member of gatewayMembers(json)) edits.push({ path: [member], value: undefined });
  for (const member of UNSAID) if (Object.hasOwn(json, member)) edits.push({ path: [member], value: undefined });
  if (request.stream !== (json['stream'] === true)) edits.push({ path: ['stream'], value: String(request.stream) });
  append(edits, inputEdits(request, target, losses));
  return editJson(request.text, edits);
}

function inputEdits(request: CanonicalRequest, target: Target, losses: Set<RequestFeature>): JsonEdit[] {
  const input = request.json['input'];
  return Array.isArray(input) ? new InputSplicer(input, request, target, losses).edits() : [];
}

/** Goes through the input once, from its first item to its last. */
class InputSplicer {
  readonly #input: readonly JsonValue[];
  readonly #request: CanonicalRequest;
  readonly #target: Target;
  readonly #losses: Set<RequestFeature>;
  /** The reasoning items as they were read, by their place in the input. */
  readonly #reasoning = new Map<string, ReasoningItem>();
  /** Between a dropped reasoning item and the end of its turn, ids of said items would ask for it. */
  #isOrphaned = false;
  /** Ids of named items that were said in full: the next of the same id says nothing more. */
  readonly #told = new Set<string>();
  /** Ids of the calls so far that were shortened. */
  readonly #longIds = new Set<string>();

  constructor(input: readonly JsonValue[], request: CanonicalRequest, target: Target, losses: Set<RequestFeature>) {
    this.#input = input;
    this.#request = request;
    this.#target = target;
    this.#losses = losses;
    for (const item of request.items) if (item.kind === 'reasoning' && item.at !== undefined) this.#reasoning.set(item.at, item);
  }

  edits(): JsonEdit[] {
    return this.#input.flatMap((item, index) => (isObject(item) ? this.#editsOf(item, index) : []));
  }

  #editsOf(item: JsonObject, index: number): JsonEdit[] {
    const path = ['input', index];
    const said = saidElsewhere(item, this.#request, this.#target);
    if (said !== undefined && this.#told.has(said.id)) return [{ path, value: undefined }];
    if (said !== undefined) this.#told.add(said.id);
    const changes = this.#changesOf(said?.item ?? item, index);
    if (changes === undefined) return [{ path, value: undefined }];
    if (said !== undefined) return [{ path, value: changed(said.item, changes) }];
    return changes.map(([member, value]) => ({ path: [...path, member], value }));
  }

  /** Undefined for an item that may not go. */
  #changesOf(item: JsonObject, index: number): Changes | undefined {
    const changes = item['type'] === 'reasoning' ? this.#ofReasoning(item, index) : this.#ofOther(item);
    return changes === undefined ? undefined : [...changes, ...this.#shortId(item)];
  }

  #ofReasoning(item: JsonObject, index: number): Changes | undefined {
    const read = this.#reasoning.get(`input[${index}]`);
    const leadsNowhere = this.#request.previousResponseId !== undefined && !leadsOn(this.#input, index, read);
    const changes = leadsNowhere ? undefined : keepReasoning(item, read, this.#target, this.#losses);
    this.#isOrphaned = changes === undefined;
    return changes;
  }

  #ofOther(item: JsonObject): Changes | undefined {
    if (endsTurn(item)) this.#isOrphaned = false;
    if (!this.#isOrphaned || this.#request.conversation !== undefined) return [];
    if (isRunByVendor(item)) {
      this.#losses.add('native item');
      return undefined;
    }
    return isSaid(item) && item['id'] !== undefined ? [['id', undefined]] : [];
  }

  /** A result whose call was not shortened answers one that the upstream holds under this id. */
  #shortId(item: JsonObject): Changes {
    const callId = nonEmptyString(item, 'call_id');
    const short = callId === undefined ? undefined : wireCallId(callId);
    if (callId === undefined || short === callId) return [];
    if (item['type'] === 'function_call' || item['type'] === 'custom_tool_call') this.#longIds.add(callId);
    return this.#longIds.has(callId) ? [['call_id', JSON.stringify(short)]] : [];
  }
}

/** Members of an item to set, or to take out. */
type Changes = readonly (readonly [string, string | undefined])[];

function changed(item: JsonObject, changes: Changes): string {
  return editJson(
    JSON.stringify(item),
    changes.map(([member, value]) => ({ path: [member], value })),
  );
}

/** What an item said that its client only names and that this upstream does not hold: it would look for the id in vain. */
function saidElsewhere(
  item: JsonObject,
  { named }: CanonicalRequest,
  target: Target,
): { readonly id: string; readonly item: JsonObject } | undefined {
  const { id } = item;
  if (named === undefined || typeof id !== 'string' || !isReference(item) || target.stored?.(id) === true) return undefined;
  const said = named.get(id);
  return said === undefined ? undefined : { id, item: said };
}

/** Whether something of the same turn follows. The envelope of an upstream that is a gateway itself may sign what stands before it. */
function leadsOn(input: readonly JsonValue[], index: number, reasoning: ReasoningItem | undefined): boolean {
  if (isEnvelope(reasoning?.opaque?.value ?? '')) return true;
  for (let at = index + 1; ; at++) {
    const next = input[at];
    if (!isObject(next)) return false;
    if (next['type'] !== 'reasoning') return !endsTurn(next);
  }
}

/** Results and messages of anyone but the model end what its reasoning led to. */
function endsTurn(item: JsonObject): boolean {
  const { type } = item;
  if (typeof type === 'string' && type.endsWith('_output')) return true;
  return (type === undefined || type === 'message') && item['role'] !== 'assistant';
}

const RUN_BY_VENDOR: ReadonlySet<string> = new Set([
  'web_search_call',
  'file_search_call',
  'code_interpreter_call',
  'mcp_call',
  'mcp_list_tools',
]);

/** Calls with their results inside, which the vendor looks up by id. */
function isRunByVendor(item: JsonObject): boolean {
  return typeof item['type'] === 'string' && RUN_BY_VENDOR.has(item['type']);
}

/** What the model said behind its reasoning, where an id is optional. */
function isSaid(item: JsonObject): boolean {
  const { type } = item;
  if (type === 'function_call' || type === 'custom_tool_call') return true;
  return (type === undefined || type === 'message') && item['role'] === 'assistant';
}

/** Members to set on a reasoning item that may go (none where it goes as it is); undefined where it may not go at all. */
function keepReasoning(
  item: JsonObject,
  decoded: ReasoningItem | undefined,
  target: Target,
  losses: Set<RequestFeature>,
): Changes | undefined {
  const member = OPAQUE_MEMBERS.find((name) => nonEmptyString(item, name) !== undefined);
  if (member === undefined) {
    const kept = withoutValue(item, target);
    if (kept === undefined) losses.add(lossOf(item));
    return kept;
  }
  const opaque = decoded?.opaque;
  if (opaque === undefined || !mayReplay(opaque, target, 'responses')) {
    losses.add('reasoning: opaque of another owner');
    return undefined;
  }
  const edits: (readonly [string, string | undefined])[] = [];
  if (target.without.has('raw') && isRaw(item)) edits.push(['content', undefined]);
  if (opaque.value === item[member]) return edits;
  edits.push([member, JSON.stringify(opaque.value)]);
  // One value is what the item holds; an envelope beside it is nothing that the upstream could read.
  for (const name of OPAQUE_MEMBERS)
    if (name !== member && isEnvelope(nonEmptyString(item, name) ?? '')) edits.push([name, undefined]);
  const id = item['id'];
  if (typeof id === 'string' && opaque.itemId !== undefined && opaque.itemId !== id)
    edits.push(['id', JSON.stringify(opaque.itemId)]);
  return edits;
}

/**
 * Reasoning without an opaque value. An item that names stored state goes to the Channel that stored it and nowhere else
 * (`Target.stored` is the hook through which the history says so). Raw text speaks for itself, but not under an id of
 * the gateway's (said for an answer of another dialect), which the vendor would look up (known failure P10).
 */
function withoutValue(item: JsonObject, target: Target): Changes | undefined {
  const id = nonEmptyString(item, 'id');
  if (id !== undefined && target.stored?.(id) === true) return [];
  if (!isRaw(item) || target.without.has('raw')) return undefined;
  return id !== undefined && MINTED.test(id) ? [['id', undefined]] : [];
}

function isRaw({ content }: JsonObject): boolean {
  return Array.isArray(content) && content.length > 0;
}

function lossOf(item: JsonObject): RequestFeature {
  if (isRaw(item)) return 'reasoning: raw text in history';
  const { summary } = item;
  return Array.isArray(summary) && summary.length > 0 ? 'reasoning: summary in history' : 'reasoning: opaque of another owner';
}

const MINTED = /^rs_[0-9a-f]{32}$/;
