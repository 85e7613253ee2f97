/**
 * The body of a responses client for a responses upstream: the client's own text with only these edits. Everything else stays,
 * byte for byte (prompt caches depend on it).
 *
 * - `model` becomes the upstream's; `stream` is set only where the transport implied it (WebSocket).
 * - `previous_response_id` goes: the gateway's history was expanded into `input` before. `conversation` stays.
 * - Members of the gateway and of the WebSocket session go.
 * - A `compaction_trigger` that is not the last item goes: what came of it follows.
 * - A reference to an item that this upstream did not store is replaced by the item.
 * - Call ids that the vendor would refuse for their length (other vendors make them) are shortened, pair by pair.
 * - Envelopes in reasoning items are opened in place for the kind of upstream that made them, under the id that the value belongs
 *   to (known failure S1). A reasoning item without a usable value (foreign, tampered, or stored elsewhere) goes. The calls and
 *   texts after it stay but lose their ids, by which the vendor would miss the dropped reasoning (known failures R23, P10); items
 *   of tools that the vendor ran cannot stand without it and go too. Raw reasoning text needs no storage and stays.
 * - Reasoning that nothing follows (its answer was cut within it) goes, in a continued history and where the gateway wrote the
 *   item: the vendor continues such an answer by its id, but does not take the item (known failure R23).
 */
import { append } from '../../append.ts';
import type { RequestFeature } from '../../canonical/features.ts';
import type { ReasoningItem } from '../../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import { isEnvelope } from '../../canonical/opaque.ts';
import type { CanonicalRequest } from '../../canonical/request.ts';
import type { Target } from '../../codec.ts';
import { editJson, type JsonEdit } from '../../json/edit.ts';
import { type CacheMembers, cacheEdits } from '../../requests/cache-edits.ts';
import { gatewayMembers } from '../../requests/members.ts';
import { mayReplay } from '../../requests/opaque-replay.ts';
import { isReference, isTrigger } from './decode-input.ts';
import { OPAQUE_MEMBERS, nonEmptyString } from '../wire.ts';
import { holdsBreakpoint, standsAlone, wireCallId } from './encode-input.ts';
import type { Losses } from '../../requests/losses.ts';
import type { Steps } from '../../steps.ts';

/** Members of WebSocket frames and of the gateway's history, which no upstream may see. */
const REMOVED = ['client_metadata', 'generate', 'previous_response_id', 'stream_id', 'type'];

export function* spliceRequest(request: CanonicalRequest, target: Target, losses: Losses): Steps<string> {
  const { json } = request;
  const edits: JsonEdit[] = [{ path: ['model'], value: JSON.stringify(target.owner.model) }];
  for (const member of gatewayMembers(json)) edits.push({ path: [member], value: undefined });
  for (const member of REMOVED) if (Object.hasOwn(json, member)) edits.push({ path: [member], value: undefined });
  if (request.stream !== (json['stream'] === true)) edits.push({ path: ['stream'], value: String(request.stream) });
  yield;
  append(edits, inputEdits(request, target, losses));
  append(edits, cacheEdits(request, target, CACHE, losses));
  yield;
  return editJson(request.text, edits);
}

const CACHE: CacheMembers = {
  member: 'prompt_cache_breakpoint',
  value: { mode: 'explicit' },
  textType: 'input_text',
  // A string is the whole of what it is: an input, or instructions.
  holds: (item) => holdsBreakpoint(item) && item.at !== 'input' && item.at !== 'instructions',
};

function inputEdits(request: CanonicalRequest, target: Target, losses: Losses): JsonEdit[] {
  const input = request.json['input'];
  return Array.isArray(input) ? new InputSplicer(input, request, target, losses).edits() : [];
}

/** Goes through the input once, from its first item to its last. */
class InputSplicer {
  readonly #input: readonly JsonValue[];
  readonly #request: CanonicalRequest;
  readonly #target: Target;
  readonly #losses: Losses;
  /** The decoded reasoning items, by their path in the body. */
  readonly #reasoning = new Map<string, ReasoningItem>();
  /** True from a dropped reasoning item to the end of its turn: there, ids of model output would refer to it. */
  #isOrphaned = false;
  /** Ids of the references that were replaced by their item; a later reference to the same item goes. */
  readonly #resolved = new Set<string>();
  /** The reasoning items in a row that were looked at last: where they end, and whether output of the same turn follows. */
  #row = { end: 0, leads: false };
  /** Ids of the calls so far that were shortened. */
  readonly #longIds = new Set<string>();

  constructor(input: readonly JsonValue[], request: CanonicalRequest, target: Target, losses: Losses) {
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
    if (isTrigger(item) && index < this.#input.length - 1) return [{ path, value: undefined }];
    const named = namedItem(item, this.#request, this.#target);
    if (named !== undefined && this.#resolved.has(named.id)) return [{ path, value: undefined }];
    if (named !== undefined) this.#resolved.add(named.id);
    const changes = this.#changesOf(named?.item ?? item, index);
    if (changes === undefined) return [{ path, value: undefined }];
    if (named !== undefined) return [{ path, value: changed(named.item, changes) }];
    return changes.map(([member, value]) => ({ path: [...path, member], value }));
  }

  /** Undefined for an item that must not be sent. */
  #changesOf(item: JsonObject, index: number): Changes | undefined {
    const changes = item['type'] === 'reasoning' ? this.#ofReasoning(item, index) : this.#ofOther(item);
    if (changes === undefined) return undefined;
    const kept = [...changes, ...this.#shortId(item)];
    return this.#mayKeepId(item) ? kept : [...kept.filter(([member]) => member !== 'id'), ['id', undefined]];
  }

  #ofReasoning(item: JsonObject, index: number): Changes | undefined {
    const read = this.#reasoning.get(`input[${index}]`);
    const isKnown = this.#request.previousResponseId !== undefined || isWrittenHere(item);
    const needsOutput = isKnown && (read?.opaque === undefined || !standsAlone(read.opaque));
    const leadsNowhere = needsOutput && !this.#leadsOn(index);
    const changes = leadsNowhere ? undefined : keepReasoning(item, read, this.#target, this.#losses);
    this.#isOrphaned = changes === undefined;
    return changes;
  }

  /** True when output of the same turn follows a reasoning item. Looked up once for all that stand in a row. */
  #leadsOn(index: number): boolean {
    if (index >= this.#row.end) {
      let end = index + 1;
      for (let next = this.#input[end]; isObject(next) && next['type'] === 'reasoning'; next = this.#input[end]) end += 1;
      const behind = this.#input[end];
      this.#row = { end, leads: isObject(behind) && !endsTurn(behind) };
    }
    return this.#row.leads;
  }

  #ofOther(item: JsonObject): Changes | undefined {
    if (endsTurn(item)) this.#isOrphaned = false;
    if (!this.#isOrphaned || this.#request.conversation !== undefined) return [];
    if (isRunByVendor(item)) {
      this.#losses.add('native item');
      return undefined;
    }
    return isModelOutput(item) && item['id'] !== undefined ? [['id', undefined]] : [];
  }

  /** Once the upstream has refused the ids of another vendor. A reference is nothing but its id. */
  #mayKeepId({ id, type, role }: JsonObject): boolean {
    const isReference = type === 'item_reference' || (type === undefined && role === undefined);
    return !this.#target.without.has('ids') || typeof id !== 'string' || isReference;
  }

  /** A result gets a shortened id only where its call got one; otherwise the upstream knows the call under the long id. */
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

/** The item that a reference names, where this upstream has not stored it. */
function namedItem(
  item: JsonObject,
  { named }: CanonicalRequest,
  target: Target,
): { readonly id: string; readonly item: JsonObject } | undefined {
  const { id } = item;
  if (named === undefined || typeof id !== 'string' || !isReference(item) || target.stored?.(id) === true) return undefined;
  const found = named.get(id);
  return found === undefined ? undefined : { id, item: found };
}

/** True for a reasoning item of one of the gateway's answers; any other is between the client and the upstream. */
function isWrittenHere(item: JsonObject): boolean {
  return (
    MINTED.test(nonEmptyString(item, 'id') ?? '') || OPAQUE_MEMBERS.some((name) => isEnvelope(nonEmptyString(item, name) ?? ''))
  );
}

/** Tool results, and messages of anyone but the model, end its turn. */
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

/** Calls that hold their own results, which the vendor looks up by id. */
function isRunByVendor(item: JsonObject): boolean {
  return typeof item['type'] === 'string' && RUN_BY_VENDOR.has(item['type']);
}

/** Output of the model whose id is optional. */
function isModelOutput(item: JsonObject): boolean {
  const { type } = item;
  if (type === 'function_call' || type === 'custom_tool_call') return true;
  return (type === undefined || type === 'message') && item['role'] === 'assistant';
}

/** The changes of a reasoning item; undefined where it must not be sent. */
function keepReasoning(
  item: JsonObject,
  decoded: ReasoningItem | undefined,
  target: Target,
  losses: Losses,
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
  // Only one value is sent; the upstream could not read an envelope beside it.
  for (const name of OPAQUE_MEMBERS)
    if (name !== member && isEnvelope(nonEmptyString(item, name) ?? '')) edits.push([name, undefined]);
  const id = item['id'];
  if (typeof id === 'string' && opaque.itemId !== undefined && opaque.itemId !== id)
    edits.push(['id', JSON.stringify(opaque.itemId)]);
  return edits;
}

/**
 * The changes of a reasoning item without an opaque value; undefined where it must not be sent. Stored reasoning goes only to the
 * Channel that stored it. Raw text can go anywhere, but not under an id that the gateway minted for an answer of another dialect,
 * since the vendor would look it up (known failure P10).
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
