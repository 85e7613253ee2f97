/**
 * The events that an upstream left out of an item: its beginning, the beginning of its parts, pieces of a text, whole texts,
 * ends. They lead from what its events have told so far to what its end tells. That the end adds to it, and does not contradict
 * it, is found behind this, when the events are decoded.
 */
import type { Native } from '../../canonical/event.ts';
import type { ItemStatus } from '../../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import { type PartTrack, specOf } from '../lifecycle.ts';
import { inputMember } from './decode-items.ts';
import { type Slot, streamedInput } from './slot.ts';
import {
  addPart,
  closeParts,
  type Emit,
  emitAnnotation,
  emitInputDone,
  emitPartAdded,
  emitPartDone,
  emitTextDone,
  inputEvents,
  itemPlace,
  newSentItem,
  newSentPart,
  notePartDone,
  partPlace,
  type PartType,
  type SentItem,
  type SentPart,
  TEXT_EVENTS,
  withoutOpaque,
} from './sent-items.ts';

/**
 * How an item ends whose end its upstream did not send: as it stands finished in the terminal, or as it was streamed. `open`: the
 * answer has failed, so that only clients of this dialect are told of an end.
 */
export interface Ending {
  readonly as: 'finished' | 'streamed' | 'open';
  readonly status: ItemStatus;
}

/** An event that the upstream left out. Its text is made when it is asked for, which only clients of this dialect do. */
export class InsertedEvent implements Native {
  readonly dialect = 'responses';
  readonly name: string;
  readonly json: JsonObject;
  /** Of an end. Undefined: as the item itself says. */
  readonly ending: Ending | undefined;

  constructor(name: string, body: JsonObject, ending?: Ending) {
    this.name = name;
    // The number stands where those of other events do.
    this.json = { type: name, sequence_number: 0, ...body };
    this.ending = ending;
  }

  get text(): string {
    return JSON.stringify(this.json);
  }
}

/** Inserts an event. */
export type Insert = (name: string, body: JsonObject, ending?: Ending) => void;

/** Announces an item in the form in which items of its type begin. */
function announceItem(outputIndex: number, final: JsonObject, emit: Emit): SentItem {
  const item = newSentItem(outputIndex, announcedForm(final));
  emit('response.output_item.added', { output_index: outputIndex, item: item.announced });
  return item;
}

function announcedForm(final: JsonObject): JsonObject {
  switch (final['type']) {
    case 'message':
      return { ...final, status: 'in_progress', content: [] };
    case 'reasoning':
      return { ...withoutOpaque(final), summary: [], ...(Array.isArray(final['content']) ? { content: [] } : {}) };
    case 'function_call':
      return { ...final, status: 'in_progress', arguments: '' };
    case 'custom_tool_call':
      return { ...final, status: 'in_progress', input: '' };
    case 'image_generation_call':
      return { ...final, status: 'in_progress', result: null };
    default:
      return final;
  }
}

/** An item as far as its events have told it. */
export function toldItem(slot: Slot): SentItem {
  const item = toldHead(slot);
  for (const index of slot.track.summary.keys()) item.summary.push(toldPart(slot, 'summary', index));
  for (const index of slot.track.content.keys()) item.content.push(toldPart(slot, 'content', index));
  return item;
}

/** The same without its parts. */
function toldHead(slot: Slot): SentItem {
  const texts = { text: streamedInput(slot), summary: [] };
  const item = newSentItem(slot.outputIndex, withoutOpaque(slot.item), texts);
  item.input.add(texts.text.length);
  item.isInputDone = slot.track.input === 'done';
  return item;
}

function toldPart({ type, track, open, parts, raw }: Slot, member: 'content' | 'summary', index: number): SentPart {
  const { begunBy, state } = track[member][index] ?? { begunBy: '', state: 'unseen' };
  const known = member === 'content' ? parts[index] : undefined;
  const own = type === 'reasoning' ? 'reasoning_text' : known?.item.head.kind === 'refusal' ? 'refusal' : 'output_text';
  const texts = known?.item ?? { text: member === 'content' ? (raw[index]?.text ?? '') : '', summary: open?.summary ?? [] };
  const part = newSentPart(member === 'summary' ? 'summary_text' : own, index, () => texts, begunBy);
  part.written.add((member === 'summary' ? texts.summary[index] : texts.text)?.length ?? 0);
  part.annotations = known?.annotations.slice() ?? [];
  part.logprobs = known?.logprobs.slice() ?? [];
  part.isTextDone = state === 'textDone' || state === 'restated' || state === 'closed';
  if (state === 'closed') notePartDone(part, known?.final);
  return part;
}

/** What is missing before the end of an item. `slot`: undefined where it was not announced. */
export function emitMissing(slot: Slot | undefined, outputIndex: number, final: JsonObject, emit: Emit): void {
  if (slot !== undefined && isToldWhole(slot, final)) return;
  const item = slot === undefined ? announceItem(outputIndex, final, emit) : toldItem(slot);
  emitContent(item, final, emit);
  closeParts(item, emit);
}

/** True where every part and the input have ended, and the finished item has no more parts: most upstreams leave nothing out. */
function isToldWhole({ type, track }: Slot, { content, summary }: JsonObject): boolean {
  if (type === 'function_call' || type === 'custom_tool_call') return track.input === 'done';
  return isToldTo(track.content, content) && isToldTo(track.summary, summary);
}

function isToldTo(parts: readonly PartTrack[], listed: JsonValue | undefined): boolean {
  return parts.length >= (Array.isArray(listed) ? listed.length : 0) && parts.every(({ state }) => state === 'closed');
}

/** The beginning of a part of reasoning, where the text that an event holds is the first that is told of it. */
export function emitMissingPart(slot: Slot, name: string, body: JsonObject, emit: Emit): void {
  const { textMember, fits, isSummary = false } = specOf(name);
  if (slot.type !== 'reasoning' || textMember === undefined || fits?.includes(slot.type) !== true) return;
  const { length } = isSummary ? slot.track.summary : slot.track.content;
  if (body[isSummary ? 'summary_index' : 'content_index'] !== length) return;
  emitPartAdded(toldHead(slot), isSummary ? 'summary_text' : 'reasoning_text', length, () => undefined, emit);
}

/** What the finished item holds and was not told, but not the end of the item. */
function emitContent(item: SentItem, final: JsonObject, emit: Emit): void {
  switch (item.type) {
    case 'message':
      emitParts(item, 'content', final, emit);
      break;
    case 'reasoning':
      emitParts(item, 'summary', final, emit);
      emitParts(item, 'content', final, emit);
      break;
    case 'function_call':
    case 'custom_tool_call':
      emitInput(item, final, emit);
      break;
  }
}

function emitParts(item: SentItem, member: 'content' | 'summary', { [member]: parts }: JsonObject, emit: Emit): void {
  const { [member]: announced } = item.announced;
  // Parts that came with the announcement are not told again.
  if (!Array.isArray(parts) || (Array.isArray(announced) && announced.length > 0)) return;
  for (const [index, final] of parts.entries()) {
    if (!isObject(final)) continue;
    const known = item[member][index];
    if (known?.isClosed === true) continue;
    const type = typeOfPart(item, member, final);
    const part = known ?? addPart(item, type ?? 'output_text', () => undefined, emit, type === undefined ? final : undefined);
    if (type !== undefined) emitText(item, part, final, emit);
    emitPartDone(item, part, final, emit);
  }
}

/** The type of a part that was not told; undefined for one of another type than those that are streamed. */
function typeOfPart(item: SentItem, member: 'content' | 'summary', { type }: JsonObject): PartType | undefined {
  if (member === 'summary') return 'summary_text';
  if (item.type === 'reasoning') return type === 'reasoning_text' ? type : undefined;
  return type === 'output_text' || type === 'refusal' ? type : undefined;
}

/** The whole text of a part that ends without it. */
export function emitMissingTextDone(slot: Slot, body: JsonObject, emit: Emit): void {
  const { part: final, summary_index: summary, content_index: content } = body;
  const member = summary === undefined ? 'content' : 'summary';
  const index = Number(summary ?? content);
  if (slot.track[member][index]?.state !== 'open' || !isObject(final)) return;
  const part = toldPart(slot, member, index);
  if (part.type === final['type']) emitText(toldHead(slot), part, final, emit);
}

/**
 * What an event with the whole text of a part, or with the whole input of a call, adds to its pieces: most clients read texts by
 * their pieces alone.
 */
export function emitMissingPiece(slot: Slot, name: string, body: JsonObject, emit: Emit): void {
  const { textMember, fits, part: verb, input, isSummary = false } = specOf(name);
  if (textMember === undefined || fits?.includes(slot.type) !== true) return;
  const { [textMember]: whole } = body;
  if (typeof whole !== 'string') return;
  // An input without any piece is the protocol's own form (LM Studio).
  if (input === 'done' && slot.track.input === 'open' && streamedInput(slot) !== '') emitInputRest(toldHead(slot), whole, emit);
  if (verb !== 'textDone') return;
  const member = isSummary ? 'summary' : 'content';
  const index = body[isSummary ? 'summary_index' : 'content_index'];
  // One that has no beginning gets it with this event.
  const { length } = slot.track[member];
  if (typeof index !== 'number' || !Number.isInteger(index) || index < 0 || index > length) return;
  const type = isSummary ? 'summary_text' : typeOfContent(slot, textMember);
  const part = index === length ? newSentPart(type, index, () => undefined, '') : toldPart(slot, member, index);
  if (part.type === type) emitRest(toldHead(slot), part, whole, tokensOf(part, body), emit);
}

function typeOfContent({ type }: Slot, textMember: string): PartType {
  if (type === 'reasoning') return 'reasoning_text';
  return textMember === 'refusal' ? 'refusal' : 'output_text';
}

function tokensOf(part: SentPart, { logprobs }: JsonObject): readonly JsonValue[] {
  return Array.isArray(logprobs) && logprobs.length > 0 ? logprobs : part.logprobs;
}

/** What the whole text of a part adds to its pieces. `tokens`: the logprobs of the whole text. */
function emitRest(item: SentItem, part: SentPart, whole: string, tokens: readonly JsonValue[], emit: Emit): void {
  const { length, text: streamed } = part.written;
  // A summary may be worded anew.
  const rest = part.isTextDone || !whole.startsWith(streamed) ? '' : whole.slice(length);
  if (rest === '') return;
  // Logprobs go with a text of which nothing was streamed; otherwise they would not fit its rest.
  const logprobs = part.type === 'output_text' ? { logprobs: length === 0 ? [...tokens] : [] } : {};
  emit(`${TEXT_EVENTS[part.type]}.delta`, { ...partPlace(item, part), delta: rest, ...logprobs });
}

function emitText(item: SentItem, part: SentPart, final: JsonObject, emit: Emit): void {
  const whole = String(final[part.type === 'refusal' ? 'refusal' : 'text'] ?? '');
  const isText = part.type === 'output_text';
  const tokens = tokensOf(part, final);
  emitRest(item, part, whole, tokens, emit);
  const annotations = isText && Array.isArray(final['annotations']) ? final['annotations'] : [];
  for (const [index, annotation] of annotations.entries()) {
    if (index >= part.annotations.length && isObject(annotation)) emitAnnotation(item, part, annotation, emit);
  }
  if (part.isTextDone) return;
  part.whole = whole;
  emitTextDone(item, part, tokens, emit);
}

function emitInput(item: SentItem, final: JsonObject, emit: Emit): void {
  if (item.isInputDone) return;
  const whole = String(final[inputMember(item.announced)] ?? item.input.text);
  emitInputRest(item, whole, emit);
  item.isInputDone = true;
  emitInputDone(item, whole, final, emit);
}

/** What the whole input of a call adds to its pieces. An input that came with the announcement is not told again. */
function emitInputRest(item: SentItem, whole: string, emit: Emit): void {
  const { length, text: streamed } = item.input;
  const rest = whole.startsWith(streamed) ? whole.slice(length) : '';
  if (rest !== '' && item.announced[inputMember(item.announced)] !== rest)
    emit(`${inputEvents(item.type)}.delta`, { ...itemPlace(item), delta: rest });
}
