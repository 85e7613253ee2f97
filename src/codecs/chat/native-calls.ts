/**
 * Tool calls of a chat upstream as official clients can put them together. These break where an entry has no index (Mistral), where indices
 * begin with 1 (Anthropic's compatible endpoint) or two calls share one, and where a call has no id, no type or no arguments. The
 * decoder has found which call an entry belongs to; members that an entry has are left as they are.
 */
import type { CanonicalEvent } from '../canonical/event.ts';
import type { OutputItem } from '../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import type { JsonEdit, JsonPath } from '../json/text.ts';
import { word } from './wire.ts';

/** A call of which a chunk said something. */
interface Called {
  /** Its canonical item. */
  readonly item: number;
  /** Its id, if this chunk began it. */
  readonly callId: string | undefined;
}

/** The calls of one stream. A call has a number, its place among them, from its first entry on; its item begins when its name is whole. */
export class NativeCalls {
  /** An index of the upstream does not mean the call that it means to the client. */
  areRenumbered = false;
  readonly #byItem = new Map<number, number>();
  readonly #byIndex = new Map<number, number>();
  /** Calls of which the client has the first piece. */
  readonly #known = new Set<number>();
  /** Calls whose item has begun. */
  readonly #begun = new Set<number>();
  /** Calls whose id the client has. */
  readonly #identified = new Set<number>();
  #latest = 0;

  /** Edits for the `tool_calls` of a delta at `path`. `events`: what was read in its chunk. */
  complete(value: JsonValue | undefined, path: JsonPath, events: readonly CanonicalEvent[], edits: JsonEdit[]): void {
    const called = calledIn(events);
    if (isObject(value)) {
      // TGI streams the one call without its list.
      edits.push({ path, value: JSON.stringify([{ ...value, ...this.#needed(value, called.at(-1)) }]) });
      return;
    }
    if (!Array.isArray(value)) return;
    const entries = value.filter(isObject);
    for (const [place, entry] of entries.entries()) {
      const call =
        called.length === entries.length ? called[place] : entries.length === 1 ? called.at(-1) : calledBy(entry, called);
      addMembers(this.#needed(entry, call), [...path, value.indexOf(entry)], edits);
      completeArguments(entry, [...path, value.indexOf(entry)], edits);
    }
  }

  /** Pieces for the calls that end without arguments. `events`: what was read at the end, where such calls get an empty object. */
  lastPieces(events: readonly CanonicalEvent[]): readonly JsonObject[] {
    const pieces: JsonObject[] = [];
    for (const event of events) {
      if (event.type !== 'item.delta' || event.delta.kind !== 'input' || event.delta.text !== NO_ARGUMENTS) continue;
      const index = this.#byItem.get(event.index);
      if (index !== undefined) pieces.push({ index, function: { arguments: NO_ARGUMENTS } });
    }
    return pieces;
  }

  /** `call` is undefined for an entry of which nothing was said (yet). */
  #needed(entry: JsonObject, call: Called | undefined): Members {
    const index = typeof entry['index'] === 'number' ? entry['index'] : undefined;
    const number = this.#numberOf(index, call);
    this.#latest = number;
    if (index !== undefined) this.#byIndex.set(index, number);
    this.areRenumbered ||= index !== undefined && index !== number;
    const id = this.#identified.has(number) ? undefined : call?.callId;
    const members = { ...(index === number ? {} : { index: number }), ...identity(entry, id, !this.#known.has(number)) };
    this.#known.add(number);
    if (id !== undefined || word(entry['id']) !== undefined) this.#identified.add(number);
    return members;
  }

  #numberOf(index: number | undefined, call: Called | undefined): number {
    const begun = call === undefined ? undefined : this.#byItem.get(call.item);
    if (begun !== undefined) return begun;
    const told = index === undefined ? this.#latest : this.#byIndex.get(index);
    if (call === undefined) return told ?? this.#known.size;
    // An index that is told of another call, which has begun, is that of two.
    const number = told === undefined || !this.#known.has(told) || this.#begun.has(told) ? this.#known.size : told;
    this.#byItem.set(call.item, number);
    this.#begun.add(number);
    return number;
  }
}

function calledIn(events: readonly CanonicalEvent[]): readonly Called[] {
  const called: Called[] = [];
  for (const event of events) {
    if (event.type === 'item.start' && event.head.kind === 'toolCall')
      called.push({ item: event.index, callId: event.head.callId });
    else if (event.type === 'item.delta' && event.delta.kind === 'input' && called.at(-1)?.item !== event.index)
      called.push({ item: event.index, callId: undefined });
  }
  return called;
}

/** Where a chunk says more entries than it says calls: one may still wait for its name. */
function calledBy(entry: JsonObject, called: readonly Called[]): Called | undefined {
  const id = word(entry['id']);
  return id === undefined ? undefined : called.find(({ callId }) => callId === id);
}

/** Edits for the `tool_calls` of a whole message at `path`, which were read as `items`. */
export function completeCalls(
  value: JsonValue | undefined,
  path: JsonPath,
  items: readonly OutputItem[],
  edits: JsonEdit[],
): void {
  if (!Array.isArray(value)) return;
  const calls = items.filter((item) => item.kind === 'toolCall');
  const entries = value.filter(isObject);
  for (const [place, entry] of entries.entries()) {
    const call = calls.length === entries.length ? calls[place] : undefined;
    addMembers(identity(entry, call?.callId, true), [...path, value.indexOf(entry)], edits);
    completeArguments(entry, [...path, value.indexOf(entry)], edits, call?.input);
  }
}

type Members = Readonly<Record<string, string | number>>;

function identity(entry: JsonObject, callId: string | undefined, isFirst: boolean): Members {
  return {
    ...(word(entry['id']) === undefined && callId !== undefined ? { id: callId } : {}),
    ...(isFirst && word(entry['type']) === undefined ? { type: isObject(entry['custom']) ? 'custom' : 'function' } : {}),
  };
}

function addMembers(members: Members, path: JsonPath, edits: JsonEdit[]): void {
  for (const [key, value] of Object.entries(members)) edits.push({ path: [...path, key], value: JSON.stringify(value) });
}

/**
 * Arguments are text that official clients parse. Some vendors send them as the object (Ollama), others say nothing for a function without
 * parameters. `input` is how the whole call was read.
 */
function completeArguments({ function: called }: JsonObject, path: JsonPath, edits: JsonEdit[], input?: string): void {
  if (!isObject(called)) return;
  const given = called['arguments'];
  const text = isObject(given) ? JSON.stringify(given) : saysNothing(given) && input === NO_ARGUMENTS ? input : undefined;
  if (text !== undefined) edits.push({ path: [...path, 'function', 'arguments'], value: JSON.stringify(text) });
}

function saysNothing(given: JsonValue | undefined): boolean {
  return given === undefined || given === null || (typeof given === 'string' && given.trim() === '');
}

/** How calls that say no arguments are read. */
const NO_ARGUMENTS = '{}';
