/**
 * The events that an upstream left out of an item: its beginning, the beginning of its parts, pieces of a text, whole texts, ends.
 * They lead from what its events have told so far to what its end tells. That the end adds to it, and does not contradict it, is
 * found behind this, when the events are decoded.
 */
import type { StreamedTexts } from '../../canonical/event.ts';
import type { ItemStatus } from '../../canonical/item.ts';
import { isObject, type JsonObject } from '../../canonical/json.ts';
import { type PartTrack, specOf } from '../lifecycle.ts';
import { inputMember } from './decode-items.ts';
import { type Slot, streamedInput } from './slot.ts';
import {
  addPart,
  closeParts,
  type Emit,
  emitAnnotation,
  emitInputDone,
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
  const { type, track } = slot;
  const texts = { text: streamedInput(slot), summary: slot.open?.summary ?? [] };
  const item = newSentItem(slot.outputIndex, withoutOpaque(slot.item), texts);
  item.input.add(texts.text.length);
  item.isInputDone = track.input === 'done';
  for (const [index, part] of track.summary.entries()) item.summary.push(toldPart(part, 'summary_text', index, texts));
  for (const [index, part] of track.content.entries()) {
    const known = slot.parts[index];
    const form = type === 'reasoning' ? 'reasoning_text' : known?.item.head.kind === 'refusal' ? 'refusal' : 'output_text';
    const told = toldPart(part, form, index, known?.item ?? { text: slot.raw[index]?.text ?? '', summary: [] });
    told.annotations = known?.annotations.slice() ?? [];
    told.logprobs = known?.logprobs.slice() ?? [];
    if (told.isClosed) notePartDone(told, known?.final);
    item.content.push(told);
  }
  return item;
}

function toldPart({ begunBy, state }: PartTrack, type: PartType, index: number, texts: StreamedTexts): SentPart {
  const part = newSentPart(type, index, () => texts, begunBy);
  part.written.add((type === 'summary_text' ? texts.summary[index] : texts.text)?.length ?? 0);
  part.isTextDone = state === 'textDone' || state === 'restated' || state === 'closed';
  part.isClosed = state === 'closed';
  return part;
}

/** What is missing before the end of an item. `slot`: undefined where it was not announced. */
export function emitMissing(slot: Slot | undefined, outputIndex: number, final: JsonObject, emit: Emit): void {
  const item = slot === undefined ? announceItem(outputIndex, final, emit) : toldItem(slot);
  emitContent(item, final, emit);
  closeParts(item, emit);
}

/** The beginning of a part of reasoning, where the text that an event holds is the first that is told of it. */
export function emitMissingPart(slot: Slot, name: string, body: JsonObject, emit: Emit): void {
  const { textMember, fits, isSummary = false } = specOf(name);
  if (slot.type !== 'reasoning' || textMember === undefined || fits?.includes(slot.type) !== true) return;
  const item = toldItem(slot);
  const [type, index] = isSummary ? (['summary_text', 'summary_index'] as const) : (['reasoning_text', 'content_index'] as const);
  const { length } = isSummary ? item.summary : item.content;
  if (body[index] === length) addPart(item, type, () => undefined, emit);
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
  if (!isObject(final)) return;
  const item = toldItem(slot);
  const part = summary === undefined ? item.content[Number(content)] : item.summary[Number(summary)];
  if (part !== undefined && !part.isTextDone && part.type === final['type']) emitText(item, part, final, emit);
}

function emitText(item: SentItem, part: SentPart, final: JsonObject, emit: Emit): void {
  const whole = String(final[part.type === 'refusal' ? 'refusal' : 'text'] ?? '');
  const isText = part.type === 'output_text';
  const given = Array.isArray(final['logprobs']) ? final['logprobs'] : [];
  const tokens = given.length === 0 ? part.logprobs : given;
  const { length } = part.written;
  // A summary may be worded anew.
  if (!part.isTextDone && whole.length > length && whole.startsWith(part.written.text)) {
    // Logprobs go with a text of which nothing was streamed; otherwise they would not fit its suffix.
    const logprobs = isText ? { logprobs: length === 0 ? tokens : [] } : {};
    emit(`${TEXT_EVENTS[part.type]}.delta`, { ...partPlace(item, part), delta: whole.slice(length), ...logprobs });
  }
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
  const member = inputMember(item.announced);
  const whole = String(final[member] ?? item.input.text);
  const { length } = item.input;
  const isAnnounced = length === 0 && item.announced[member] === whole;
  if (whole.length > length && !isAnnounced)
    emit(`${inputEvents(item.type)}.delta`, { ...itemPlace(item), delta: whole.slice(length) });
  item.isInputDone = true;
  emitInputDone(item, whole, final, emit);
}
