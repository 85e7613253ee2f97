/**
 * Matches the output of a terminal event with the items that were streamed: by id, else by position, else by equal content, and only
 * within one item type, so that no item takes the identity of another. Routers give new ids in the terminal, others leave items out.
 */
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import { finalInput, inputMember } from './decode-items.ts';
import { contradiction, type Slot } from './slot.ts';
import { isKnownItem, arrayOrEmpty, malformed, needString, nonEmptyString } from '../wire.ts';

/** An item as it was streamed: as announced, then as finished. */
export interface StreamedItem {
  readonly outputIndex: number;
  readonly type: string;
  readonly item: JsonObject;
  readonly isDisplaced?: boolean;
}

export interface MatchedItem<Streamed extends StreamedItem> {
  readonly item: JsonObject;
  readonly type: string;
  readonly position: number;
  /** The streamed item that it is; undefined where it appears here for the first time. */
  streamed: Streamed | undefined;
}

export interface OutputMatch<Streamed extends StreamedItem> {
  readonly found: readonly MatchedItem<Streamed>[];
  /** The output repeats items but leaves one out that has a canonical reading. */
  readonly isMissing: boolean;
}

/** True when the terminal's entry is that streamed item. The rules are tried in their order. */
type Rule = (entry: MatchedItem<StreamedItem>, slot: StreamedItem) => boolean;

const RULES: readonly Rule[] = [
  (entry, slot) =>
    sameString(entry.item, slot.item, 'call_id') ||
    (sameString(entry.item, slot.item, 'id') && !areDifferentCalls(entry.item, slot.item)),
  (entry, slot) => entry.position === slot.outputIndex && !areDifferentCalls(entry.item, slot.item),
  (entry, slot) => !areDifferentCalls(entry.item, slot.item) && contentOf(entry.item) === contentOf(slot.item),
  (entry, slot) => entry.position === slot.outputIndex && isRenamedCall(entry.item, slot.item),
];

export function matchOutput<Streamed extends StreamedItem>(
  output: readonly JsonValue[],
  slots: ReadonlyMap<number, Streamed>,
): OutputMatch<Streamed> {
  const found = output.map((item, position): MatchedItem<Streamed> => {
    if (!isObject(item)) throw malformed('response output');
    return { item, type: needString(item, 'type', 'response output'), position, streamed: undefined };
  });
  const free = new Set([...slots.values()].sort((a, b) => a.outputIndex - b.outputIndex));
  for (const rule of RULES) {
    if (free.size === 0) break;
    for (const entry of found) {
      if (entry.streamed !== undefined) continue;
      for (const slot of free) {
        if (slot.type !== entry.type || !rule(entry, slot)) continue;
        entry.streamed = slot;
        free.delete(slot);
        break;
      }
    }
  }
  const isExpected = (slot: StreamedItem) => isKnownItem(slot.type) && slot.type !== 'reasoning' && slot.isDisplaced !== true;
  const isMissing = found.length > 0 && [...free].some(isExpected);
  return { found, isMissing };
}

/** The output index of an item that only the terminal has: its position there, or the next index that is free. */
export function unusedIndex(taken: ReadonlyMap<number, unknown>, position: number): number {
  let index = position;
  while (taken.has(index)) index += 1;
  return index;
}

function sameString(a: JsonObject, b: JsonObject, key: string): boolean {
  const word = nonEmptyString(a, key);
  return word !== undefined && word === nonEmptyString(b, key);
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
    const streamed = messageText(slot.item) || slot.parts.map((part) => part?.text ?? '').join('');
    if (restated !== '' && restated !== streamed) throw contradiction(slot.type);
  } else if (slot.type === 'function_call' || slot.type === 'custom_tool_call') {
    const restated = nonEmptyString(repeated, inputMember(repeated));
    if (restated !== undefined && finalInput(repeated, restated) !== slot.input) throw contradiction(slot.type);
  }
}

/** The texts of a message's parts, as one. */
export function messageText(message: JsonObject): string {
  return arrayOrEmpty(message, 'content', 'message')
    .map((part) => (isObject(part) ? (nonEmptyString(part, 'text') ?? nonEmptyString(part, 'refusal') ?? '') : ''))
    .join('');
}
