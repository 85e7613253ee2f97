/**
 * Tool calls of a chat upstream as official clients can put them together. These break where an entry has no index (Mistral), where indices
 * begin with 1 (Anthropic's compatible endpoint) or two calls share one, and where a call has no id or no type. Which call an entry
 * belongs to is what the decoder found; what an entry has is left as it is.
 */
import type { CanonicalEvent } from '../canonical/event.ts';
import type { OutputItem } from '../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import type { JsonEdit, JsonPath } from '../json-text.ts';
import { word } from './wire.ts';

interface Called {
  /** The place of the call among the calls of the answer. */
  readonly number: number;
  readonly callId: string | undefined;
}

/** The calls of one stream. */
export class NativeCalls {
  /** An index of the upstream does not mean the call that it means to the client. */
  areRenumbered = false;
  readonly #byItem = new Map<number, number>();
  readonly #byIndex = new Map<number, number>();
  /** Calls of which the client has the first piece. */
  readonly #known = new Set<number>();
  #latest = 0;

  /** Edits for the `tool_calls` of a delta at `path`. `events`: what was read in its chunk. */
  complete(value: JsonValue | undefined, path: JsonPath, events: readonly CanonicalEvent[], edits: JsonEdit[]): void {
    const called = this.#calledIn(events);
    if (isObject(value)) {
      // TGI streams the one call without its list.
      edits.push({ path, value: JSON.stringify([{ ...value, ...this.#needed(value, called.at(-1)) }]) });
      return;
    }
    if (!Array.isArray(value)) return;
    const entries = value.filter(isObject);
    for (const [place, entry] of entries.entries()) {
      const call = called.length === entries.length ? called[place] : entries.length === 1 ? called.at(-1) : undefined;
      addMembers(this.#needed(entry, call), [...path, value.indexOf(entry)], edits);
      completeArguments(entry, [...path, value.indexOf(entry)], edits);
    }
  }

  #calledIn(events: readonly CanonicalEvent[]): readonly Called[] {
    const called: Called[] = [];
    for (const event of events) {
      if (event.type === 'item.start' && event.head.kind === 'toolCall') {
        const number = this.#byItem.size;
        this.#byItem.set(event.index, number);
        called.push({ number, callId: event.head.callId });
      } else if (event.type === 'item.delta' && event.delta.kind === 'input') {
        const number = this.#byItem.get(event.index);
        if (number !== undefined && called.at(-1)?.number !== number) called.push({ number, callId: undefined });
      }
    }
    return called;
  }

  /** `call` is undefined for an entry of which nothing was said (yet). */
  #needed(entry: JsonObject, call: Called | undefined): Members {
    const index = typeof entry['index'] === 'number' ? entry['index'] : undefined;
    const number = call?.number ?? (index === undefined ? this.#latest : (this.#byIndex.get(index) ?? this.#known.size));
    this.#latest = number;
    if (index !== undefined) this.#byIndex.set(index, number);
    this.areRenumbered ||= index !== undefined && index !== number;
    const isFirst = !this.#known.has(number);
    this.#known.add(number);
    return { ...(index === number ? {} : { index: number }), ...(isFirst ? identity(entry, call?.callId) : {}) };
  }
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
    const callId = calls.length === entries.length ? calls[place]?.callId : undefined;
    addMembers(identity(entry, callId), [...path, value.indexOf(entry)], edits);
    completeArguments(entry, [...path, value.indexOf(entry)], edits);
  }
}

type Members = Readonly<Record<string, string | number>>;

function identity(entry: JsonObject, callId: string | undefined): Members {
  return {
    ...(word(entry['id']) === undefined && callId !== undefined ? { id: callId } : {}),
    ...(word(entry['type']) === undefined ? { type: isObject(entry['custom']) ? 'custom' : 'function' } : {}),
  };
}

function addMembers(members: Members, path: JsonPath, edits: JsonEdit[]): void {
  for (const [key, value] of Object.entries(members)) edits.push({ path: [...path, key], value: JSON.stringify(value) });
}

/** Arguments are text; some vendors send them as the object (Ollama). */
function completeArguments({ function: called }: JsonObject, path: JsonPath, edits: JsonEdit[]): void {
  const input = isObject(called) ? called['arguments'] : undefined;
  if (!isObject(input)) return;
  edits.push({ path: [...path, 'function', 'arguments'], value: JSON.stringify(JSON.stringify(input)) });
}
