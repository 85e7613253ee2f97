/**
 * Matches the output of a terminal event with the items that were streamed: by id, else by position, else by equal content, and
 * only within one item type, so that no item takes the identity of another. Routers give new ids in the terminal, others leave
 * items out.
 */
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import { contradiction } from '../../canonical/missing-deltas.ts';
import { finalInput, inputMember } from './decode-items.ts';
import { type Slot, streamedInput } from './slot.ts';
import { isKnownItem, arrayOrEmpty, malformed, needString, nonEmptyString } from '../wire.ts';

export interface MatchedItem {
  readonly item: JsonObject;
  readonly type: string;
  readonly position: number;
  /** The streamed item that it is; undefined where it appears here for the first time. */
  streamed: Slot | undefined;
}

export interface OutputMatch {
  readonly found: readonly MatchedItem[];
  /** The output repeats items but leaves one out that has a canonical reading. */
  readonly isMissing: boolean;
}

/** Slot items that no entry has taken yet, for one entry: the first of them that it is. */
type Rule = (entry: MatchedItem) => Slot | undefined;

/** The rules are tried in their order, each for every entry, so that a weak one takes nothing from a strong one. */
export function matchOutput(output: readonly JsonValue[], slots: ReadonlyMap<number, Slot>): OutputMatch {
  const found = output.map((item, position): MatchedItem => {
    if (!isObject(item)) throw malformed('response output');
    return { item, type: needString(item, 'type', 'response output'), position, streamed: undefined };
  });
  const free = new FreeSlots(slots.values());
  for (const rule of free.rules) {
    if (free.size === 0) break;
    for (const entry of found) if (entry.streamed === undefined) entry.streamed = free.take(rule(entry));
  }
  const isExpected = (slot: Slot) => isKnownItem(slot.type) && slot.type !== 'reasoning' && !slot.isDisplaced;
  const isMissing = found.length > 0 && free.some(isExpected);
  return { found, isMissing };
}

/** The streamed items that are still to be matched, by what entries are compared with: an answer may have very many of both. */
class FreeSlots {
  readonly #free: Set<Slot>;
  readonly #byIndex = new Map<number, Slot>();
  readonly #byCallId: Queues;
  readonly #byId: Queues;
  readonly #byIdWithoutCallId: Queues;
  #byContent: Queues | undefined;
  #byContentWithoutCallId: Queues | undefined;

  constructor(slots: Iterable<Slot>) {
    this.#free = new Set([...slots].sort((a, b) => a.outputIndex - b.outputIndex));
    for (const slot of this.#free) this.#byIndex.set(slot.outputIndex, slot);
    this.#byCallId = this.#queues(({ item }) => nonEmptyString(item, 'call_id'));
    this.#byId = this.#queues(({ item }) => nonEmptyString(item, 'id'));
    this.#byIdWithoutCallId = this.#queues(({ item }) => withoutCallId(item, nonEmptyString(item, 'id')));
  }

  get size(): number {
    return this.#free.size;
  }

  some(test: (slot: Slot) => boolean): boolean {
    for (const slot of this.#free) if (test(slot)) return true;
    return false;
  }

  take(slot: Slot | undefined): Slot | undefined {
    if (slot !== undefined) this.#free.delete(slot);
    return slot;
  }

  /** By call id or id; by position; by equal content; by position, as a call under other ids. */
  readonly rules: readonly Rule[] = [
    ({ item, type }) => {
      const callId = nonEmptyString(item, 'call_id');
      const sameCall = callId === undefined ? undefined : this.#byCallId.first(type, callId);
      const id = nonEmptyString(item, 'id');
      const ids = callId === undefined ? this.#byId : this.#byIdWithoutCallId;
      const sameId = id === undefined ? undefined : ids.first(type, id);
      return sameCall !== undefined && sameId !== undefined && sameId.outputIndex < sameCall.outputIndex
        ? sameId
        : (sameCall ?? sameId);
    },
    (entry) => this.#at(entry, ({ item }) => !areDifferentCalls(entry.item, item)),
    ({ item, type }) => {
      // One with the same call id is taken already.
      if (nonEmptyString(item, 'call_id') === undefined) {
        this.#byContent ??= this.#queues((slot) => contentOf(slot.item));
        return this.#byContent.first(type, contentOf(item));
      }
      this.#byContentWithoutCallId ??= this.#queues((slot) => withoutCallId(slot.item, contentOf(slot.item)));
      return this.#byContentWithoutCallId.first(type, contentOf(item));
    },
    (entry) => this.#at(entry, ({ item }) => isRenamedCall(entry.item, item)),
  ];

  #at({ position, type }: MatchedItem, test: (slot: Slot) => boolean): Slot | undefined {
    const slot = this.#byIndex.get(position);
    return slot !== undefined && this.#free.has(slot) && slot.type === type && test(slot) ? slot : undefined;
  }

  #queues(keyOf: (slot: Slot) => string | undefined): Queues {
    return new Queues(this.#free, keyOf);
  }
}

/** Slot items of one type by a key, in their order. */
class Queues {
  readonly #free: ReadonlySet<Slot>;
  readonly #byType = new Map<string, Map<string, { readonly slots: Slot[]; next: number }>>();

  constructor(free: ReadonlySet<Slot>, keyOf: (slot: Slot) => string | undefined) {
    this.#free = free;
    for (const slot of free) {
      const key = keyOf(slot);
      if (key === undefined) continue;
      const queues = this.#byType.get(slot.type) ?? new Map<string, { readonly slots: Slot[]; next: number }>();
      this.#byType.set(slot.type, queues);
      const known = queues.get(key);
      if (known === undefined) queues.set(key, { slots: [slot], next: 0 });
      else known.slots.push(slot);
    }
  }

  /** The first that is free. What is taken stays so, and is passed over once. */
  first(type: string, key: string): Slot | undefined {
    const queue = this.#byType.get(type)?.get(key);
    if (queue === undefined) return undefined;
    for (; queue.next < queue.slots.length; queue.next += 1) {
      const slot = queue.slots[queue.next];
      if (slot !== undefined && this.#free.has(slot)) return slot;
    }
    return undefined;
  }
}

function withoutCallId(item: JsonObject, key: string | undefined): string | undefined {
  return nonEmptyString(item, 'call_id') === undefined ? key : undefined;
}

/** Output indices for items that only the terminal has, in its order: their position there, or the next index that is free. */
export function unusedIndices(taken: ReadonlyMap<number, unknown>): (position: number) => number {
  let next = 0;
  return (position) => {
    // All from an earlier position to the index that it got are taken by now.
    let index = Math.max(position, next);
    while (taken.has(index)) index += 1;
    next = index + 1;
    return index;
  };
}

/** Calls with different call ids are different calls, whatever their position. */
function areDifferentCalls(a: JsonObject, b: JsonObject): boolean {
  const left = nonEmptyString(a, 'call_id');
  const right = nonEmptyString(b, 'call_id');
  return left !== undefined && right !== undefined && left !== right;
}

/** The same call under another id and another call id: vLLM makes new ones for its terminal. */
function isRenamedCall(a: JsonObject, b: JsonObject): boolean {
  return areDifferentCalls(a, b) && a['id'] !== b['id'] && a['name'] === b['name'] && contentOf(a) === contentOf(b);
}

function contentOf(item: JsonObject): string {
  return JSON.stringify(item['content'] ?? item['arguments'] ?? item['input'] ?? item['result'] ?? item['summary'] ?? null);
}

/** Throws where the terminal's form of a finished item contradicts what was streamed. */
export function checkRestated(slot: Slot, repeated: JsonObject): void {
  if (slot.type === 'message') {
    const restated = messageText(repeated);
    // An output_item.done without content leaves what was streamed as it is.
    const streamed = messageText(slot.item) || slot.parts.map((part) => part?.item.text ?? '').join('');
    if (restated !== '' && restated !== streamed) throw contradiction(slot.type);
  } else if (slot.type === 'function_call' || slot.type === 'custom_tool_call') {
    const restated = nonEmptyString(repeated, inputMember(repeated));
    const finished = finalInput(slot.item, nonEmptyString(slot.item, inputMember(slot.item)) ?? streamedInput(slot));
    if (restated !== undefined && finalInput(repeated, restated) !== finished) throw contradiction(slot.type);
  }
}

/** The texts of a message's parts, as one. */
export function messageText(message: JsonObject): string {
  return arrayOrEmpty(message, 'content', 'message')
    .map((part) => (isObject(part) ? (nonEmptyString(part, 'text') ?? nonEmptyString(part, 'refusal') ?? '') : ''))
    .join('');
}
