/**
 * Where the events of a stream belong, for upstreams that say it otherwise than the protocol does. Such an event gets its place
 * before anything reads it, so that everything behind knows one way of counting, and so does a client of the same dialect:
 *
 * - no index at all (llama.cpp): items count in the order in which they are announced and are found again by id or call id;
 * - indices with holes, or in another order than items are announced in: SDKs put items where the list ends and look for them there;
 * - content parts that go on counting from one item to the next (vLLM): each item counts its own from 0;
 * - a call that takes the index of an item before it (Ollama): it gets one of its own, and a message that it pushes aside is over;
 * - events of an item that say its id alone, among others that say its index;
 * - a summary without the index of its part (older Ollama, Copilot through a proxy): it is the latest part's.
 *
 * What fits none of these is left as it is, and the order (`lifecycle.ts`) refuses it.
 */
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import type { JsonEdit } from '../json/text.ts';
import { type ItemVerb, meaningOf, type PartVerb } from './lifecycle.ts';
import { nonEmptyString } from './wire.ts';

export interface Placed {
  /** Never empty. */
  readonly edits: readonly JsonEdit[];
  /** The index of the open message that this event pushed aside. */
  readonly displaced?: number;
}

interface Entry {
  readonly index: number;
  readonly type: string;
  readonly callId: string | undefined;
  isOpen: boolean;
  /** Content parts that were announced. */
  parts: number;
  /** The index that its upstream gave its first content part: above 0 where it goes on counting from item to item. */
  firstPart: number;
  /** Summary parts that were announced. */
  summaries: number;
}

export class Places {
  /** Whether item events say their index: the first one decides. */
  #areSaid: boolean | undefined;
  /** Items by the index that their upstream gave them. */
  readonly #byIndex = new Map<number, Entry>();
  /** By id and by call id: items that the index of their events does not lead to. */
  readonly #unsaid = new Map<string, Entry>();
  /** Items that were announced with an id, by that. */
  readonly #byId = new Map<string, Entry>();
  /** Content parts that were announced in all items. */
  #parts = 0;
  /** Items that were announced. */
  #next = 0;

  /** Undefined for an event that says its place as the protocol does. */
  place(name: string, json: JsonObject): Placed | undefined {
    const { item: verb, part, isSummary } = meaningOf(name);
    const given = json['output_index'];
    if (verb === undefined) return this.#progress(json, given);
    const isSaid = given !== undefined && given !== null;
    if (isSaid && typeof given !== 'number') return undefined;
    this.#areSaid ??= isSaid;
    // Indices here and none there is no way of counting; what only adds to an item is found by its id.
    if (this.#areSaid !== isSaid && (isSaid || verb !== 'child')) return undefined;
    const edits: JsonEdit[] = [];
    const known = verb === 'added' ? undefined : this.#entryOf(verb, json);
    const isNew = verb === 'added' || (verb === 'done' && known === undefined);
    const displaced = isNew ? this.#announce(json) : undefined;
    const entry = known ?? this.#entryOf(verb, json);
    if (entry === undefined) return undefined;
    if (verb === 'done') entry.isOpen = false;
    if (json['output_index'] !== entry.index) edits.push({ path: ['output_index'], value: String(entry.index) });
    if (!isSaid && verb !== 'child') edits.push(...identify(json['item']));
    if (part !== undefined && isSummary === true) edits.push(...placeSummary(entry, part, json['summary_index']));
    else if (part !== undefined) edits.push(...this.#placePart(entry, part, json['content_index']));
    if (edits.length === 0) return undefined;
    return displaced === undefined ? { edits } : { edits, displaced: displaced.index };
  }

  /** What is said of the progress of an item that counts otherwise than its upstream counts it. */
  #progress(json: JsonObject, given: JsonValue | undefined): Placed | undefined {
    if (this.#unsaid.size === 0 || typeof given !== 'number') return undefined;
    const entry = this.#entryOf('child', json);
    if (entry === undefined || entry.index === given) return undefined;
    return { edits: [{ path: ['output_index'], value: String(entry.index) }] };
  }

  /** Notes a new item; returns the open message whose index it takes. */
  #announce(json: JsonObject): Entry | undefined {
    const { item, output_index: given } = json;
    if (!isObject(item)) return undefined;
    const callId = nonEmptyString(item, 'call_id');
    const before = typeof given === 'number' ? this.#byIndex.get(given) : undefined;
    const isFree = before === undefined;
    if (!isFree && !takesItsPlace(item, callId, before)) return undefined;
    const index = this.#next++;
    const entry: Entry = { index, type: String(item['type']), callId, isOpen: true, parts: 0, firstPart: 0, summaries: 0 };
    const id = nonEmptyString(item, 'id');
    if (id !== undefined) this.#byId.set(id, entry);
    if (typeof given === 'number' && isFree) this.#byIndex.set(given, entry);
    if (index !== given) for (const key of [id, callId]) if (key !== undefined) this.#unsaid.set(key, entry);
    if (isFree || !before.isOpen) return undefined;
    before.isOpen = false;
    return before;
  }

  #entryOf(verb: ItemVerb, json: JsonObject): Entry | undefined {
    const { item, output_index: given } = json;
    if (this.#unsaid.size > 0) {
      const found =
        verb === 'child'
          ? this.#named(json, 'item_id')
          : isObject(item)
            ? (this.#named(item, 'id') ?? this.#named(item, 'call_id'))
            : undefined;
      if (found !== undefined) return found;
    }
    if (typeof given === 'number') return this.#byIndex.get(given);
    return this.#byId.get(nonEmptyString(json, 'item_id') ?? '');
  }

  #named(body: JsonObject, member: string): Entry | undefined {
    const key = nonEmptyString(body, member);
    return key === undefined ? undefined : this.#unsaid.get(key);
  }

  #placePart(entry: Entry, verb: PartVerb, given: JsonValue | undefined): JsonEdit[] {
    if (verb === 'added') {
      if (entry.parts === 0 && given === this.#parts) entry.firstPart = this.#parts;
      entry.parts += 1;
      this.#parts += 1;
    }
    const isSaid = given !== undefined && given !== null;
    if (isSaid && (typeof given !== 'number' || entry.firstPart === 0 || given < entry.firstPart)) return [];
    if (!isSaid && this.#areSaid === true) return [];
    const index = isSaid ? given - entry.firstPart : Math.max(0, entry.parts - 1);
    return [{ path: ['content_index'], value: String(index) }];
  }
}

function placeSummary(entry: Entry, verb: PartVerb, given: JsonValue | undefined): JsonEdit[] {
  if (verb === 'added') entry.summaries += 1;
  if (given !== undefined && given !== null) return [];
  return [{ path: ['summary_index'], value: String(Math.max(0, entry.summaries - 1)) }];
}

/** A call of its own where a message or a finished call stands. */
function takesItsPlace(item: JsonObject, callId: string | undefined, before: Entry): boolean {
  if (item['type'] !== 'function_call' && item['type'] !== 'custom_tool_call') return false;
  if (before.type === 'message') return true;
  return !before.isOpen && callId !== undefined && before.callId !== undefined && callId !== before.callId;
}

/** A call that its events name by its call id has that as its id. */
function identify(item: JsonValue | undefined): JsonEdit[] {
  if (!isObject(item) || item['id'] !== undefined) return [];
  const callId = nonEmptyString(item, 'call_id');
  return callId === undefined ? [] : [{ path: ['item', 'id'], value: JSON.stringify(callId) }];
}
