/**
 * Completes the tool calls of a chat upstream so that official clients can merge them. These break where an entry has no index
 * (Mistral), where indices begin with 1 (Anthropic's compatible endpoint) or two calls share one, and where a call has no id,
 * type or arguments. The events of the decoder tell which call an entry belongs to. Correct members are left as they are.
 */
import { NO_ARGUMENTS } from '../../tools/arguments.ts';
import { upstreamFault } from '../../canonical/error.ts';
import type { CanonicalEvent } from '../../canonical/event.ts';
import type { OutputItem } from '../../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import type { JsonEdit } from '../../json/edit.ts';
import type { JsonPath } from '../../json/text.ts';
import { nonEmptyString } from '../wire.ts';
import { toolCallHead } from './encode-items.ts';

/** A call that a chunk begins or continues. */
interface ChunkCall {
  /** The index of its canonical item. */
  readonly item: number;
  /** Its id, if this chunk begins it. */
  readonly callId: string | undefined;
}

/** The calls of one stream. A call is known from its first entry on; its item may start later, when its name is whole. */
export class NativeCalls {
  /** Some index of the upstream differs from the client's index of the same call. */
  areRenumbered = false;
  /** Some call began with the arguments `{}`. Whether more follow has to be looked at. */
  hasPlaceholder = false;
  /** By the client's index, which is the number of the call in order of first entry. */
  readonly #calls: { hasItem: boolean; hasId: boolean; hasInput: boolean; isPlaceholder: boolean }[] = [];
  /** The client's index by the index of the canonical item. */
  readonly #byItem = new Map<number, number>();
  /** The client's index by the upstream's latest use of an index. */
  readonly #byUpstreamIndex = new Map<number, number>();
  /** The client's index of the latest entry. */
  #latest = 0;

  /** Adds the edits for the `tool_calls` of a delta at `path`. `events`: what the decoder read in its chunk. */
  complete(value: JsonValue | undefined, path: JsonPath, events: readonly CanonicalEvent[], edits: JsonEdit[]): void {
    const calls = this.#callsIn(events);
    if (isObject(value)) {
      // TGI streams its only call without the list.
      edits.push({ path, value: JSON.stringify([{ ...value, ...this.#missingMembers(value, calls.at(-1)) }]) });
      return;
    }
    if (!Array.isArray(value)) return;
    leaveOutNulls(value, path, edits);
    const entries = entriesOf(value);
    const callOf =
      calls.length === entries.length || entries.length === 1
        ? (place: number) => calls.at(place - entries.length)
        : callsById(entries, calls);
    for (const [place, { entry, index }] of entries.entries()) {
      const call = callOf(place);
      const at = [...path, index];
      addMembers(this.#missingMembers(entry, call), at, edits);
      completeArguments(entry, at, edits, this.#isNullInput(entry) ? '' : undefined);
    }
  }

  /** True for an entry whose text `null` stands for no arguments: its call, that of the latest entry, has none so far. */
  #isNullInput({ function: body }: JsonObject): boolean {
    const known = this.#calls[this.#latest];
    const given = isObject(body) ? body['arguments'] : undefined;
    if (known === undefined) return false;
    if (known.hasInput) {
      if (known.isPlaceholder && typeof given === 'string') refuseSecondInput(given);
      return false;
    }
    known.isPlaceholder = given === NO_ARGUMENTS;
    this.hasPlaceholder ||= known.isPlaceholder;
    // White space alone is no argument either: an object may follow it.
    known.hasInput =
      given !== NULL && given !== null && given !== undefined && !(typeof given === 'string' && given.trim() === '');
    return given === NULL;
  }

  /** Entries for calls that end without arguments: `events` of the last step give them an empty object. */
  lastPieces(events: readonly CanonicalEvent[]): readonly JsonObject[] {
    const pieces: JsonObject[] = [];
    for (const event of events) {
      if (event.type !== 'item.delta' || event.delta.kind !== 'input' || event.delta.text !== NO_ARGUMENTS) continue;
      const index = this.#byItem.get(event.index);
      if (index !== undefined && this.#calls[index]?.hasInput !== true)
        pieces.push({ index, function: { arguments: NO_ARGUMENTS } });
    }
    return pieces;
  }

  /**
   * Entries for calls, and the rest of calls, that the delta has in no `tool_calls`: they stand in the whole message, or in its
   * content.
   */
  fromMessage(events: readonly CanonicalEvent[]): readonly JsonObject[] {
    const pieces: JsonObject[] = [];
    const custom = new Set<number>();
    for (const event of events) {
      if (event.type === 'item.start' && event.head.kind === 'toolCall') {
        this.#byItem.set(event.index, this.#calls.length);
        pieces.push({ index: this.#calls.length, ...toolCallHead(event.head, '') });
        if (event.head.toolType === 'custom') custom.add(event.index);
        this.#calls.push({ hasItem: true, hasId: true, hasInput: false, isPlaceholder: false });
      }
      if (event.type !== 'item.delta' || event.delta.kind !== 'input') continue;
      const index = this.#byItem.get(event.index);
      const { text } = event.delta;
      const known = index === undefined ? undefined : this.#calls[index];
      if (known?.isPlaceholder === true) {
        refuseSecondInput(text);
        continue;
      }
      if (known !== undefined) known.hasInput = true;
      if (index !== undefined)
        pieces.push({ index, ...(custom.has(event.index) ? { custom: { input: text } } : { function: { arguments: text } }) });
    }
    return pieces;
  }

  /** The members that the entry lacks. `call` is undefined for an entry that produced no event (yet). */
  #missingMembers(entry: JsonObject, call: ChunkCall | undefined): Members {
    const index = typeof entry['index'] === 'number' ? entry['index'] : undefined;
    const number = this.#numberOf(index, call);
    const isFirst = number === this.#calls.length;
    const known = this.#calls[number] ?? { hasItem: false, hasId: false, hasInput: false, isPlaceholder: false };
    if (isFirst) this.#calls.push(known);
    this.#latest = number;
    if (index !== undefined) this.#byUpstreamIndex.set(index, number);
    this.areRenumbered ||= index !== undefined && index !== number;
    if (call !== undefined) {
      this.#byItem.set(call.item, number);
      known.hasItem = true;
    }
    const id = known.hasId ? undefined : call?.callId;
    const members = { ...(index === number ? {} : { index: number }), ...identity(entry, id, isFirst) };
    known.hasId ||= id !== undefined || nonEmptyString(entry['id']) !== undefined;
    return members;
  }

  /** The client's index of the call that an entry belongs to; the next free one for a new call. */
  #numberOf(index: number | undefined, call: ChunkCall | undefined): number {
    const started = call === undefined ? undefined : this.#byItem.get(call.item);
    if (started !== undefined) return started;
    const given = index === undefined ? this.#latest : this.#byUpstreamIndex.get(index);
    if (given === undefined) return this.#calls.length;
    // An index whose call has an item already is used for a second call.
    return call !== undefined && this.#calls[given]?.hasItem === true ? this.#calls.length : given;
  }

  /** The calls that the entries of a chunk begin or continue. A `{}` that only confirms an earlier one stands in no entry. */
  #callsIn(events: readonly CanonicalEvent[]): readonly ChunkCall[] {
    const calls: ChunkCall[] = [];
    for (const event of events) {
      if (event.type === 'item.start' && event.head.kind === 'toolCall')
        calls.push({ item: event.index, callId: event.head.callId });
      else if (event.type === 'item.delta' && event.delta.kind === 'input' && calls.at(-1)?.item !== event.index)
        if (event.delta.text !== NO_ARGUMENTS || !this.#hasPlaceholder(event.index))
          calls.push({ item: event.index, callId: undefined });
    }
    return calls;
  }

  #hasPlaceholder(item: number): boolean {
    const index = this.#byItem.get(item);
    return index !== undefined && this.#calls[index]?.isPlaceholder === true;
  }
}

interface Entry {
  readonly entry: JsonObject;
  /** Its place in the upstream's list, which may hold null. */
  readonly index: number;
}

function entriesOf(value: readonly JsonValue[]): Entry[] {
  return value.flatMap((entry, index) => (isObject(entry) ? [{ entry, index }] : []));
}

/** They say nothing, and official clients read members of every entry. */
function leaveOutNulls(value: readonly JsonValue[], path: JsonPath, edits: JsonEdit[]): void {
  for (const [index, entry] of value.entries()) if (entry === null) edits.push({ path: [...path, index], value: undefined });
}

/** For a chunk with more entries than calls: the name of one may not be whole yet. */
function callsById(entries: readonly Entry[], calls: readonly ChunkCall[]): (place: number) => ChunkCall | undefined {
  const byId = new Map(calls.toReversed().map((call) => [call.callId, call]));
  return (place) => {
    const id = nonEmptyString(entries[place]?.entry['id']);
    return id === undefined ? undefined : byId.get(id);
  };
}

/** Adds the edits for the `tool_calls` of a whole message at `path`. `items`: what the decoder read in it. */
export function completeCalls(
  value: JsonValue | undefined,
  path: JsonPath,
  items: readonly OutputItem[],
  edits: JsonEdit[],
): void {
  if (!Array.isArray(value)) return;
  leaveOutNulls(value, path, edits);
  const calls = items.filter((item) => item.kind === 'toolCall');
  const entries = entriesOf(value);
  for (const [place, { entry, index }] of entries.entries()) {
    const call = calls.length === entries.length ? calls[place] : undefined;
    addMembers(identity(entry, call?.callId, true), [...path, index], edits);
    completeArguments(entry, [...path, index], edits, call?.input === NO_ARGUMENTS ? NO_ARGUMENTS : undefined);
  }
}

type Members = Readonly<Record<string, string | number>>;

function identity(entry: JsonObject, callId: string | undefined, isFirst: boolean): Members {
  return {
    ...(nonEmptyString(entry['id']) === undefined && callId !== undefined ? { id: callId } : {}),
    ...(isFirst && nonEmptyString(entry['type']) === undefined
      ? { type: isObject(entry['custom']) ? 'custom' : 'function' }
      : {}),
  };
}

function addMembers(members: Members, path: JsonPath, edits: JsonEdit[]): void {
  for (const [key, value] of Object.entries(members)) edits.push({ path: [...path, key], value: JSON.stringify(value) });
}

/**
 * Arguments are text that official clients parse. Some vendors send the object itself (Ollama), others nothing, or the text
 * `null` (Groq), for a function without parameters. `none`: what to write for such an entry.
 */
function completeArguments({ function: body }: JsonObject, path: JsonPath, edits: JsonEdit[], none?: string): void {
  if (!isObject(body)) return;
  const given = body['arguments'];
  const text = isObject(given) ? JSON.stringify(given) : none;
  if (text !== undefined && text !== given) edits.push({ path: [...path, 'function', 'arguments'], value: JSON.stringify(text) });
}

/** The client has the placeholder `{}`, and would append to it. */
function refuseSecondInput(given: string): void {
  if (given.trim() === '' || given === NO_ARGUMENTS) return;
  throw upstreamFault('malformed_event', 'The upstream sent the arguments of a tool call twice.');
}

/** How some upstreams write that a call has no arguments. */
const NULL = 'null';
