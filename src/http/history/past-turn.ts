/**
 * One turn of a conversation as it is stored: its own input and output, and the turn before it. A conversation is a chain of
 * turns, so each item is stored once. Items are the exact JSON text that the client sent and read.
 */
import { isObject, type JsonObject, type JsonValue, parseJson } from '../../codecs/canonical/json.ts';
import { readUtf8, UTF8_STEP } from '../../codecs/bodies/utf8.ts';
import { editJson } from '../../codecs/json/edit.ts';
import { sliceElementsInSteps, sliceJson, skipSpace } from '../../codecs/json/text.ts';
import { type Steps, whole } from '../../codecs/steps.ts';
import type { JsonBody } from '../request/body.ts';
import { textPieces } from '../../streams/text-pieces.ts';

/**
 * Items as one text: JSON values with commas between them, in bytes of their own (a slice would keep its whole message alive).
 */
export interface ItemTexts {
  readonly bytes: Buffer;
  readonly count: number;
}

export interface PastTurn {
  readonly parent: PastTurn | undefined;
  readonly input: ItemTexts;
  readonly output: ItemTexts;
  /** The memory that the whole chain takes. */
  readonly totalBytes: number;
  /** Of the whole chain. */
  readonly totalItems: number;
  /** The items of this turn that its Channel stored, with that Channel's id. */
  readonly storedItems: ReadonlyMap<string, string>;
  /** Of the items in `output` that have one: a client may name them by it. */
  readonly itemIds: readonly string[];
}

/** A rough figure for the overhead of a turn with an item or two: objects, map entries, buffers. */
export const TURN_BYTES = 512;
/** Of a turn with more, what finds an item by its id, and what tells who stored it: entries of maps and their keys. */
const ITEM_ID_BYTES = 160;
const STORED_ITEM_BYTES = 96;

export const NO_ITEMS: ItemTexts = { bytes: Buffer.alloc(0), count: 0 };

/** The texts of JSON items as one buffer of their own. */
export const itemTexts = whole(itemTextsInSteps);

export function* itemTextsInSteps(items: readonly string[]): Steps<ItemTexts> {
  if (items.length === 0) return NO_ITEMS;
  const text = items.length === 1 ? (items[0] ?? '') : items.join(',');
  // Not from Node's buffer pool: a small slice would keep the whole pool alive.
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  let size = 0;
  for (const piece of textPieces(text)) {
    if (size > 0) yield;
    size += bytes.write(piece, size);
  }
  return { bytes, count: items.length };
}

export interface TurnParts {
  readonly parent: PastTurn | undefined;
  readonly input: ItemTexts;
  readonly output: ItemTexts;
  readonly storedItems?: ReadonlyMap<string, string>;
  readonly itemIds?: readonly string[];
}

const NOTHING_STORED: ReadonlyMap<string, string> = new Map();
const NO_IDS: readonly string[] = [];

export function pastTurn({ parent, input, output, storedItems = NOTHING_STORED, itemIds = NO_IDS }: TurnParts): PastTurn {
  // An answer of tiny items takes more for their ids than for their texts. Each id is kept twice beside its text.
  const ids = itemIds.reduce((sum, id) => sum + ITEM_ID_BYTES + 2 * id.length, 0) + storedItems.size * STORED_ITEM_BYTES;
  const own = Math.max(TURN_BYTES, ids) + input.bytes.length + output.bytes.length;
  return {
    parent,
    input,
    output,
    totalBytes: (parent?.totalBytes ?? 0) + own,
    totalItems: (parent?.totalItems ?? 0) + input.count + output.count,
    storedItems,
    itemIds,
  };
}

/** The memory that the turn takes, without the turns before it. */
export function ownBytes({ totalBytes, parent }: PastTurn): number {
  return totalBytes - (parent?.totalBytes ?? 0);
}

/** The output items of the turn. */
export function outputItems({ output }: PastTurn): readonly JsonObject[] {
  const items = parseJson(`[${output.bytes.toString()}]`);
  return Array.isArray(items) ? items.filter(isObject) : [];
}

/** The items of a request's own input. */
export function* inputItems(body: JsonBody): Steps<ItemTexts> {
  const items = yield* inputTexts(body);
  yield;
  return yield* itemTextsInSteps(items);
}

/** The text of each item of a request's own input. A string is one user message, as the protocol defines it. */
export function* inputTexts({ text, json: { input }, ends }: JsonBody): Steps<readonly string[]> {
  if (Array.isArray(input)) return (yield* sliceElementsInSteps(text, ['input'], ends)) ?? [];
  if (typeof input !== 'string') return [];
  // Of a text that was put together the first look makes a copy.
  skipSpace(text, 0);
  yield;
  return [messageOf(sliceJson(text, ['input'], ends) ?? JSON.stringify(input))];
}

/** `content` is JSON. */
const messageOf = (content: string): string => `{"type":"message","role":"user","content":${content}}`;

/** What {@link inputTexts} would parse to. */
export function inputValues(input: JsonValue | undefined): readonly JsonValue[] {
  if (typeof input === 'string') return [{ type: 'message', role: 'user', content: input }];
  return Array.isArray(input) ? input : [];
}

/** The request's text with the history in front of its own input, and without `previous_response_id`. */
export function* withHistory({ text, ends }: Omit<JsonBody, 'json'>, own: ItemTexts, past: PastTurn): Steps<string> {
  const { bytes } = joinItems([...itemsOf(past), own]);
  yield;
  const isLong = bytes.length > UTF8_STEP;
  const items = isLong ? yield* readUtf8([bytes], new TextDecoder('utf-8', { ignoreBOM: true })) : bytes.toString();
  yield;
  const edits = [
    { path: ['input'], value: `[${items}]` },
    { path: ['previous_response_id'], value: undefined },
  ];
  return editJson(text, edits, ends);
}

/** All items of a conversation, first to last. */
export function allItems(past: PastTurn): ItemTexts {
  return joinItems(itemsOf(past));
}

function itemsOf(past: PastTurn): ItemTexts[] {
  const pieces: ItemTexts[] = [];
  for (let turn: PastTurn | undefined = past; turn !== undefined; turn = turn.parent) pieces.push(turn.output, turn.input);
  return pieces.reverse();
}

const COMMA = Buffer.from(',');

export function joinItems(pieces: readonly ItemTexts[]): ItemTexts {
  const bytes: Buffer[] = [];
  let count = 0;
  for (const piece of pieces) {
    if (piece.count === 0) continue;
    if (count > 0) bytes.push(COMMA);
    bytes.push(piece.bytes);
    count += piece.count;
  }
  return { bytes: Buffer.concat(bytes), count };
}

/** The stored items of a whole conversation, with the Channel that stored each. */
export function storedItemsOf(past: PastTurn): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (let turn: PastTurn | undefined = past; turn !== undefined; turn = turn.parent) {
    for (const [itemId, channelId] of turn.storedItems) if (!found.has(itemId)) found.set(itemId, channelId);
  }
  return found;
}
