/**
 * The items of an upstream's terminal event against what its client has read. An item that stands only there, or of which only
 * a beginning was streamed, gets its missing events first: agents build their answer from item events alone (design, decisions).
 * Announced items that only the vendor can read end as it ended them, with the terminal if need be.
 */
import { isObject, type JsonObject, type JsonValue, parseJson } from '../canonical/json.ts';
import type { Outcome } from '../canonical/outcome.ts';
import type { Mint } from '../codec.ts';
import { sliceElements } from '../json-text.ts';
import { repeatedItems } from './repeated.ts';
import { announceItem, sayItem } from './say-item.ts';
import { closeItem, type Emit, type ToldItem } from './told.ts';
import { isKnownItem, missingId, wordOf } from './wire.ts';

/** An item as the client read it, for the comparison with those of the terminal. */
interface Streamed {
  readonly outputIndex: number;
  readonly type: string;
  readonly item: JsonObject;
  readonly told: ToldItem;
}

/** True when the terminal's `response` says more of its items than was streamed, or less. */
export function owesItems(told: ReadonlyMap<number, ToldItem>, response: JsonObject, outcome: Outcome): boolean {
  const output = Array.isArray(response['output']) ? response['output'] : [];
  const isSame = (item: JsonValue, index: number) => {
    const known = told.get(index);
    if (known === undefined || !isObject(item)) return false;
    return known.type === item['type'] && !isRenamed(item, known, outcome.status !== 'completed');
  };
  if (output.length !== told.size || !output.every(isSame)) return true;
  return [...told.values()].some((item) => item.final === undefined && isKnownItem(item.type));
}

/**
 * The terminal knows the item by other ids than the client does, or by none. Of a finished item that is no call SDKs take another
 * id where all is complete (routers give new ones); `isStrict` where they do not.
 */
function isRenamed(item: JsonObject, told: ToldItem, isStrict: boolean): boolean {
  const callId = told.announced['call_id'];
  if (callId !== undefined && callId !== item['call_id']) return true;
  const isOther = isStrict || callId !== undefined ? item['id'] !== told.id : wordOf(item, 'id') === undefined;
  return told.id !== '' && isOther;
}

/** The item as the terminal has it, by the ids that the client knows. */
function asTold(item: JsonObject, { id, announced }: ToldItem): JsonObject {
  const callId = announced['call_id'];
  return { ...item, id, ...(callId === undefined ? {} : { call_id: callId }) };
}

/**
 * Says what is missing and returns the JSON text that `response.output` must have instead of its own, undefined where its own
 * is right. `text` is the terminal event as the client will read it. What a failure leaves out of its output is kept
 * (spec rule 8).
 */
export function settleItems(
  told: Map<number, ToldItem>,
  text: string,
  outcome: Outcome,
  emit: Emit,
  mint: Mint,
): string | undefined {
  const listed = sliceElements(text, ['response', 'output']) ?? [];
  const streamed = new Map([...told].map(([index, item]) => [index, streamedOf(item)]));
  const { found } = repeatedItems(
    listed.map((item) => parseJson(item)),
    streamed,
  );
  const matched = new Map(found.flatMap((entry) => (entry.slot === undefined ? [] : [[entry.slot.told, entry] as const])));
  const isCut = outcome.status !== 'completed';
  const finals = new Map<number, string | undefined>();
  /** The terminal leaves a message out, or names an item otherwise than the client knows it. */
  let isAmended = false;
  let latest = -1;
  for (const item of [...told.values()].sort((a, b) => a.outputIndex - b.outputIndex)) {
    const entry = matched.get(item);
    const isSaid = item.final !== undefined;
    const isOurs = entry === undefined || ((isSaid || isKnownItem(item.type)) && isRenamed(entry.item, item, isCut || !isSaid));
    isAmended ||= isOurs && (entry !== undefined || item.type === 'message');
    if (!isSaid) {
      if (entry === undefined) closeItem(item, isCut ? 'incomplete' : 'completed', emit);
      else if (isKnownItem(item.type)) {
        const final = isOurs ? asTold(entry.item, item) : entry.item;
        sayItem(item, final, isOurs ? JSON.stringify(final) : (listed[entry.position] ?? 'null'), emit);
      }
    }
    finals.set(item.outputIndex, isOurs ? item.final : listed[entry.position]);
    if (entry === undefined) continue;
    // The list has the order in which the client met its items.
    isAmended ||= entry.position < latest;
    latest = entry.position;
  }
  for (const entry of found) {
    if (entry.slot !== undefined) continue;
    const id = missingId(entry.item, mint);
    const final = id === undefined ? entry.item : { ...entry.item, id };
    isAmended ||= id !== undefined;
    const item = announceItem(unusedIndex(told, entry.position), final, emit);
    told.set(item.outputIndex, item);
    sayItem(item, final, id === undefined ? (listed[entry.position] ?? 'null') : JSON.stringify(final), emit);
    finals.set(item.outputIndex, item.final);
  }
  const isComplete = listed.length === finals.size || (listed.length > 0 && !isCut);
  if (isComplete && !isAmended) return undefined;
  const inOrder = [...finals].sort(([a], [b]) => a - b).flatMap(([, final]) => (final === undefined ? [] : [final]));
  return `[${inOrder.join(',')}]`;
}

function streamedOf(told: ToldItem): Streamed {
  const final = told.final === undefined ? undefined : parseJson(told.final);
  return { outputIndex: told.outputIndex, type: told.type, item: isObject(final) ? final : told.announced, told };
}

function unusedIndex(told: ReadonlyMap<number, ToldItem>, position: number): number {
  let index = position;
  while (told.has(index)) index += 1;
  return index;
}
