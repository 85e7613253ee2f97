/**
 * Which items of a terminal event were streamed before: by id, else by position, else by equal content, always within one
 * item type, so that no item borrows the identity of another (routers give new ids in the terminal, others leave items out).
 */
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import { finalInput, inputMember } from './read-items.ts';
import { contradiction, type Slot } from './slot.ts';
import { isKnownItem, arrayOrEmpty, malformed, needString, nonEmptyString } from './wire.ts';

/** An item as it was streamed: as announced, then as finished. */
export interface StreamedItem {
  readonly outputIndex: number;
  readonly type: string;
  readonly item: JsonObject;
  readonly isDisplaced?: boolean;
}

export interface RepeatedItem<Streamed extends StreamedItem> {
  readonly item: JsonObject;
  readonly type: string;
  readonly position: number;
  /** The item as it was streamed; undefined: it appears here for the first time. */
  slot: Streamed | undefined;
}

export interface Repeated<Streamed extends StreamedItem> {
  readonly found: readonly RepeatedItem<Streamed>[];
  /** An item with a canonical reading was streamed and is not repeated, though others are. */
  readonly isMissing: boolean;
}

type Rule = (entry: RepeatedItem<StreamedItem>, slot: StreamedItem) => boolean;

const RULES: readonly Rule[] = [
  (entry, slot) =>
    sameWord(entry.item, slot.item, 'call_id') || (sameWord(entry.item, slot.item, 'id') && !otherCall(entry.item, slot.item)),
  (entry, slot) => entry.position === slot.outputIndex && !otherCall(entry.item, slot.item),
  (entry, slot) => !otherCall(entry.item, slot.item) && contentOf(entry.item) === contentOf(slot.item),
  (entry, slot) => entry.position === slot.outputIndex && isRenamedCall(entry.item, slot.item),
];

export function repeatedItems<Streamed extends StreamedItem>(
  output: readonly JsonValue[],
  slots: ReadonlyMap<number, Streamed>,
): Repeated<Streamed> {
  const found = output.map((item, position): RepeatedItem<Streamed> => {
    if (!isObject(item)) throw malformed('response output');
    return { item, type: needString(item, 'type', 'response output'), position, slot: undefined };
  });
  const free = new Set([...slots.values()].sort((a, b) => a.outputIndex - b.outputIndex));
  for (const rule of RULES) {
    if (free.size === 0) break;
    for (const entry of found) {
      if (entry.slot !== undefined) continue;
      for (const slot of free) {
        if (slot.type !== entry.type || !rule(entry, slot)) continue;
        entry.slot = slot;
        free.delete(slot);
        break;
      }
    }
  }
  const isOwed = (slot: StreamedItem) => isKnownItem(slot.type) && slot.type !== 'reasoning' && slot.isDisplaced !== true;
  const isMissing = found.length > 0 && [...free].some(isOwed);
  return { found, isMissing };
}

/** Where an item goes that stands only in the terminal: its place there, or the next that is free. */
export function unusedIndex(taken: ReadonlyMap<number, unknown>, position: number): number {
  let index = position;
  while (taken.has(index)) index += 1;
  return index;
}

function sameWord(a: JsonObject, b: JsonObject, key: string): boolean {
  const word = nonEmptyString(a, key);
  return word !== undefined && word === nonEmptyString(b, key);
}

/** Two calls with different call ids are two calls, wherever they stand. */
function otherCall(a: JsonObject, b: JsonObject): boolean {
  const left = nonEmptyString(a, 'call_id');
  const right = nonEmptyString(b, 'call_id');
  return left !== undefined && right !== undefined && left !== right;
}

/** The same call under another id and another call id: vLLM makes both anew for its terminal. */
function isRenamedCall(a: JsonObject, b: JsonObject): boolean {
  return otherCall(a, b) && a['id'] !== b['id'] && a['name'] === b['name'] && contentOf(a) === contentOf(b);
}

function contentOf(item: JsonObject): string {
  return JSON.stringify(item['content'] ?? item['arguments'] ?? item['input'] ?? item['result'] ?? item['summary'] ?? null);
}

/** Throws where a repetition of a finished item says something else than was said. */
export function checkRepeated(slot: Slot, repeated: JsonObject): void {
  if (slot.type === 'message') {
    const again = spoken(repeated);
    // A finished form without content leaves what was streamed as it is.
    const said = spoken(slot.item) || slot.parts.map((part) => part?.text ?? '').join('');
    if (again !== '' && again !== said) throw contradiction(slot.type);
  } else if (slot.type === 'function_call' || slot.type === 'custom_tool_call') {
    const again = nonEmptyString(repeated, inputMember(repeated));
    if (again !== undefined && finalInput(repeated, again) !== slot.input) throw contradiction(slot.type);
  }
}

/** All that a finished message says, its parts as one text. */
export function spoken(message: JsonObject): string {
  return arrayOrEmpty(message, 'content', 'message')
    .map((part) => (isObject(part) ? (nonEmptyString(part, 'text') ?? nonEmptyString(part, 'refusal') ?? '') : ''))
    .join('');
}
