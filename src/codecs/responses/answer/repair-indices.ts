/**
 * Repairs output, content and summary indices of upstreams that do not count as the protocol does. An event is repaired before
 * anything reads it, so that the rest of the decoder, and a client of the same dialect, know one way of counting:
 *
 * - no output index at all (llama.cpp): items are numbered in the order in which they are announced, and found by id or call id;
 * - output indices with holes, or in another order than that of the announcements: SDKs append items to a list and find them by
 *   index;
 * - content indices that go on counting from one item to the next (vLLM): each item counts its own from 0;
 * - a call with the index of an item before it (Ollama): it gets an index of its own, and a message that it displaces is over;
 * - events with only the id of their item, among others with its index;
 * - summary text without `summary_index` (older Ollama, Copilot through a proxy): it belongs to the latest part.
 *
 * What fits none of these is left as it is, and the order (`lifecycle.ts`) refuses it.
 */
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import type { JsonEdit } from '../../json/edit.ts';
import { type ItemVerb, specOf, type PartVerb } from '../lifecycle.ts';
import { nonEmptyString } from '../wire.ts';

export interface Repaired {
  /** Never empty. */
  readonly edits: readonly JsonEdit[];
  /** The index of the open message that this event displaced. */
  readonly displaced?: number;
}

interface Entry {
  readonly index: number;
  readonly type: string;
  readonly callId: string | undefined;
  isOpen: boolean;
  /** How many content parts were added. */
  parts: number;
  /** The index of its first content part in the upstream's count: above 0 where that goes on from item to item. */
  firstPart: number;
  /** How many summary parts were added. */
  summaries: number;
}

/** The items of an answer. */
interface Known {
  /** By their upstream's index. */
  readonly byIndex: Map<number, Entry>;
  /** Those whose index is not their upstream's, by id and by call id. */
  readonly renumbered: Map<string, Entry>;
  /** Those that were announced with an id, by that id. */
  readonly byId: Map<string, Entry>;
}

/** What an event says of its item. */
interface Named {
  readonly index: number | undefined;
  /** Of an event within an item. */
  readonly itemId: string | undefined;
  /** Of an event that holds its item. */
  readonly id: string | undefined;
  readonly callId: string | undefined;
}

/** How an event finds its item: the first of these that does. */
const FINDS: readonly ((known: Known, named: Named) => Entry | undefined)[] = [
  ({ renumbered }, { itemId }) => entryAt(renumbered, itemId),
  ({ renumbered }, { id }) => entryAt(renumbered, id),
  ({ renumbered }, { callId }) => entryAt(renumbered, callId),
  ({ byIndex }, { index }) => entryAt(byIndex, index),
  // An event without an index, of an upstream that gives some.
  ({ byId }, { index, itemId }) => (index === undefined ? entryAt(byId, itemId) : undefined),
];

function entryAt<Key>(entries: ReadonlyMap<Key, Entry>, key: Key | undefined): Entry | undefined {
  return key === undefined ? undefined : entries.get(key);
}

export class IndexRepair {
  /** Whether item events have an `output_index`: the first one decides. */
  #hasIndices: boolean | undefined;
  readonly #known: Known = { byIndex: new Map(), renumbered: new Map(), byId: new Map() };
  /** How many content parts were added in all items. */
  #parts = 0;
  /** The index of the next item. */
  #next = 0;

  /** Undefined for an event that needs no repair. */
  repair(name: string, json: JsonObject): Repaired | undefined {
    const { item: verb, part, isSummary } = specOf(name);
    const given = json['output_index'];
    if (verb === undefined) return this.#repairProgress(json, given);
    const isGiven = given !== undefined && given !== null;
    if (isGiven && typeof given !== 'number') return undefined;
    this.#hasIndices ??= isGiven;
    // An upstream either gives indices or does not; only an event within an item may lack one, since it is found by its id.
    if (this.#hasIndices !== isGiven && (isGiven || verb !== 'child')) return undefined;
    const edits: JsonEdit[] = [];
    const known = verb === 'added' ? undefined : this.#entryOf(verb, json);
    const isNew = verb === 'added' || (verb === 'done' && known === undefined);
    const displaced = isNew ? this.#announce(json) : undefined;
    const entry = known ?? this.#entryOf(verb, json);
    if (entry === undefined) return undefined;
    if (verb === 'done') entry.isOpen = false;
    if (json['output_index'] !== entry.index) edits.push({ path: ['output_index'], value: String(entry.index) });
    if (!isGiven && verb !== 'child') edits.push(...repairItemId(json['item']));
    if (part !== undefined && isSummary === true) edits.push(...repairSummaryIndex(entry, part, json['summary_index']));
    else if (part !== undefined) edits.push(...this.#repairPartIndex(entry, part, json['content_index']));
    if (edits.length === 0) return undefined;
    return displaced === undefined ? { edits } : { edits, displaced: displaced.index };
  }

  /** A progress event of a built-in tool, whose item was renumbered or had no index. */
  #repairProgress(json: JsonObject, given: JsonValue | undefined): Repaired | undefined {
    const isMissing = this.#hasIndices === false && (given === undefined || given === null);
    if (this.#known.renumbered.size === 0 || !(isMissing || typeof given === 'number')) return undefined;
    const entry = this.#entryOf('child', json);
    if (entry === undefined || entry.index === given) return undefined;
    return { edits: [{ path: ['output_index'], value: String(entry.index) }] };
  }

  /** Registers a new item. Returns the open message that it displaces. */
  #announce(json: JsonObject): Entry | undefined {
    const { item, output_index: given } = json;
    if (!isObject(item)) return undefined;
    const { byIndex, renumbered, byId } = this.#known;
    const callId = nonEmptyString(item, 'call_id');
    const before = typeof given === 'number' ? byIndex.get(given) : undefined;
    const isFree = before === undefined;
    if (!isFree && !takesIndex(item, callId, before)) return undefined;
    const index = this.#next++;
    const entry: Entry = { index, type: String(item['type']), callId, isOpen: true, parts: 0, firstPart: 0, summaries: 0 };
    const id = nonEmptyString(item, 'id');
    if (id !== undefined) byId.set(id, entry);
    if (typeof given === 'number' && isFree) byIndex.set(given, entry);
    if (index !== given) for (const key of [id, callId]) if (key !== undefined) renumbered.set(key, entry);
    if (isFree || !before.isOpen) return undefined;
    before.isOpen = false;
    return before;
  }

  #entryOf(verb: ItemVerb, json: JsonObject): Entry | undefined {
    const { item, output_index: given } = json;
    const held = verb !== 'child' && isObject(item) ? item : {};
    const named = {
      index: typeof given === 'number' ? given : undefined,
      itemId: verb === 'child' ? nonEmptyString(json, 'item_id') : undefined,
      id: nonEmptyString(held, 'id'),
      callId: nonEmptyString(held, 'call_id'),
    };
    for (const find of FINDS) {
      const entry = find(this.#known, named);
      if (entry !== undefined) return entry;
    }
    return undefined;
  }

  #repairPartIndex(entry: Entry, verb: PartVerb, given: JsonValue | undefined): JsonEdit[] {
    if (verb === 'added') {
      if (entry.parts === 0 && given === this.#parts) entry.firstPart = this.#parts;
      entry.parts += 1;
      this.#parts += 1;
    }
    const isGiven = given !== undefined && given !== null;
    if (isGiven && (typeof given !== 'number' || entry.firstPart === 0 || given < entry.firstPart)) return [];
    if (!isGiven && this.#hasIndices === true) return [];
    const index = isGiven ? given - entry.firstPart : Math.max(0, entry.parts - 1);
    return [{ path: ['content_index'], value: String(index) }];
  }
}

function repairSummaryIndex(entry: Entry, verb: PartVerb, given: JsonValue | undefined): JsonEdit[] {
  if (verb === 'added') entry.summaries += 1;
  if (given !== undefined && given !== null) return [];
  return [{ path: ['summary_index'], value: String(Math.max(0, entry.summaries - 1)) }];
}

/** True for a call that comes with the index of a message or of another, finished call: it is an item of its own. */
function takesIndex(item: JsonObject, callId: string | undefined, before: Entry): boolean {
  if (item['type'] !== 'function_call' && item['type'] !== 'custom_tool_call') return false;
  if (before.type === 'message') return true;
  return !before.isOpen && callId !== undefined && before.callId !== undefined && callId !== before.callId;
}

/** A call without an id gets its call id as its id, since its events name it so. */
function repairItemId(item: JsonValue | undefined): JsonEdit[] {
  if (!isObject(item) || item['id'] !== undefined) return [];
  const callId = nonEmptyString(item, 'call_id');
  return callId === undefined ? [] : [{ path: ['item', 'id'], value: JSON.stringify(callId) }];
}
