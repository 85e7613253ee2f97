/**
 * The output items that a client has been sent in one stream, open and finished. Both ways of encoding keep them, so that a
 * stream which breaks off can still be closed properly: open parts and items end as incomplete, and the terminal repeats exactly
 * what was sent.
 */
import type { Growth, StreamedTexts } from '../../canonical/event.ts';
import type { ItemStatus } from '../../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue, parseJson } from '../../canonical/json.ts';
import { Written } from '../../answers/written.ts';
import { OPAQUE_MEMBERS, nonEmptyString } from '../wire.ts';

export type PartType = 'output_text' | 'refusal' | 'reasoning_text' | 'summary_text';

export interface SentPart {
  readonly type: PartType;
  /** Its place among the parts of its kind. */
  readonly index: number;
  /** What was sent of its text in pieces. */
  readonly written: Written;
  /** Its text as it ended, which may differ from its pieces in a summary alone. */
  whole: string | undefined;
  annotations: JsonObject[];
  logprobs: JsonObject[];
  /** The event with its whole text was sent (`response.output_text.done` and its like). */
  isTextDone: boolean;
  /** The event that ends the part was sent (`response.content_part.done` and its like). */
  isClosed: boolean;
  /** The name of that event. */
  readonly doneEvent: string;
}

export interface SentItem {
  readonly outputIndex: number;
  readonly type: string;
  readonly id: string;
  /** The item as its `response.output_item.added` had it. */
  readonly announced: JsonObject;
  readonly content: SentPart[];
  readonly summary: SentPart[];
  /** What its canonical item streams, once that has begun. The texts of a message are items of their own. */
  texts: StreamedTexts | undefined;
  /** How much raw text of reasoning it has streamed. */
  rawLength: number;
  /** What was sent of a call's arguments or input in pieces. */
  readonly input: Written;
  /** The event with its whole input was sent. */
  isInputDone: boolean;
  /** `encrypted_content` of the finished item. */
  sealed: string | undefined;
  /** The finished item as JSON text; undefined while it is open. */
  final: string | JsonObject | undefined;
  /** The finished item as its upstream's event of its end has it, where that speaks this dialect. */
  source: JsonObject | undefined;
}

/** The text of a part, as far as it was sent. */
function textOf({ whole, written }: SentPart): string {
  return whole ?? written.text;
}

/** Sends one event; the encoder adds type and sequence number. */
export type Emit = (name: string, body: JsonObject) => void;

/** {@link Emit} for the deltas of a text: the text, and the other members as JSON text before and after each piece of it. */
export type EmitDelta = (name: string, head: string, said: Growth, tail: string) => void;

/** The events about the text of a part, without their last word (`delta`, `done`). */
export const TEXT_EVENTS: Readonly<Record<PartType, string>> = {
  output_text: 'response.output_text',
  refusal: 'response.refusal',
  reasoning_text: 'response.reasoning_text',
  summary_text: 'response.reasoning_summary_text',
};

/** The events about the input of a call, without their last word. */
export function inputEvents(callType: string): string {
  return callType === 'custom_tool_call' ? 'response.custom_tool_call_input' : 'response.function_call_arguments';
}

export function isPartType(type: unknown): type is PartType {
  return type === 'output_text' || type === 'refusal' || type === 'reasoning_text' || type === 'summary_text';
}

export function newSentItem(outputIndex: number, announced: JsonObject, texts?: StreamedTexts): SentItem {
  const item: SentItem = {
    outputIndex,
    type: String(announced['type']),
    id: nonEmptyString(announced, 'id') ?? '',
    announced,
    content: [],
    summary: [],
    texts,
    rawLength: 0,
    input: new Written(() => item.texts?.text ?? ''),
    isInputDone: false,
    sealed: undefined,
    final: undefined,
    source: undefined,
  };
  return item;
}

/** What the canonical item of a part streams; undefined for a part that is sent whole. */
export type TextsOfPart = () => StreamedTexts | undefined;

/** `begunBy`: the event that began it. */
export function newSentPart(type: PartType, index: number, texts: TextsOfPart, begunBy: string): SentPart {
  const record = type === 'summary_text' ? () => texts()?.summary[index] ?? '' : () => texts()?.text ?? '';
  return {
    doneEvent: begunBy.replace(/added$/, 'done'),
    type,
    index,
    written: new Written(record),
    whole: undefined,
    annotations: [],
    logprobs: [],
    isTextDone: false,
    isClosed: false,
  };
}

function partObject(part: SentPart): JsonObject {
  switch (part.type) {
    case 'output_text':
      return { type: part.type, annotations: [...part.annotations], logprobs: part.logprobs, text: textOf(part) };
    case 'refusal':
      return { type: part.type, refusal: textOf(part) };
    default:
      return { type: part.type, text: textOf(part) };
  }
}

/** The members that name an item in the events about it. */
export function itemPlace(item: SentItem): JsonObject {
  return { item_id: item.id, output_index: item.outputIndex };
}

/** The members that name a part in the events about it. */
export function partPlace(item: SentItem, part: SentPart): JsonObject {
  if (part.type === 'summary_text') return { ...itemPlace(item), summary_index: part.index };
  return { ...itemPlace(item), content_index: part.index };
}

/** Begins a part of an item. `form`: how its first event shows it, where that is not an empty part. */
export function addPart(item: SentItem, type: PartType, texts: TextsOfPart, emit: Emit, form?: JsonObject): SentPart {
  const parts = type === 'summary_text' ? item.summary : item.content;
  const part = emitPartAdded(item, type, parts.length, texts, emit, form);
  parts.push(part);
  return part;
}

/** The same for a part at `index` of an item whose parts are not at hand. */
export function emitPartAdded(
  item: SentItem,
  type: PartType,
  index: number,
  texts: TextsOfPart,
  emit: Emit,
  form?: JsonObject,
): SentPart {
  const name = type === 'summary_text' ? 'response.reasoning_summary_part.added' : 'response.content_part.added';
  const part = newSentPart(type, index, texts, name);
  emit(name, { ...partPlace(item, part), part: form ?? partObject(part) });
  return part;
}

export function emitAnnotation(item: SentItem, part: SentPart, annotation: JsonObject, emit: Emit): void {
  const place = partPlace(item, part);
  emit('response.output_text.annotation.added', { ...place, annotation_index: part.annotations.length, annotation });
  part.annotations.push(annotation);
}

/** Sends the whole text of a part. */
export function emitTextDone(item: SentItem, part: SentPart, logprobs: readonly JsonValue[], emit: Emit): void {
  part.isTextDone = true;
  const text = part.type === 'refusal' ? { refusal: textOf(part) } : { text: textOf(part) };
  const scored = part.type === 'output_text' ? { logprobs } : {};
  emit(`${TEXT_EVENTS[part.type]}.done`, { ...partPlace(item, part), ...text, ...scored });
}

/** Sends the whole input of a call; nothing for other items. `named`: the call in a form that has its name. */
export function emitInputDone(item: SentItem, input: string, named: JsonObject, emit: Emit): void {
  const { call_id: callId = '', name = '' } = named;
  const event = `${inputEvents(item.type)}.done`;
  if (item.type === 'function_call') emit(event, { ...itemPlace(item), arguments: input, name, call_id: callId });
  else if (item.type === 'custom_tool_call') emit(event, { ...itemPlace(item), input, call_id: callId });
}

/** Sends the event that ends a part. */
export function emitPartDone(item: SentItem, part: SentPart, final: JsonObject, emit: Emit): void {
  part.isClosed = true;
  emit(part.doneEvent, { ...partPlace(item, part), part: final });
}

/** Notes the end of a part, which may bring annotations and logprobs that were not streamed. */
export function notePartDone(part: SentPart, final: JsonValue | undefined): void {
  part.isClosed = true;
  if (!isObject(final)) return;
  const { annotations, logprobs, [part.type === 'refusal' ? 'refusal' : 'text']: text } = final;
  if (typeof text === 'string') part.whole = text;
  if (Array.isArray(annotations) && annotations.length > 0) part.annotations = annotations.filter(isObject);
  if (Array.isArray(logprobs) && logprobs.length > 0) part.logprobs = logprobs.filter(isObject);
}

/** Ends a part as it stands. */
export function closePart(item: SentItem, part: SentPart, emit: Emit): void {
  if (part.isClosed) return;
  if (!part.isTextDone) emitTextDone(item, part, part.logprobs, emit);
  emitPartDone(item, part, partObject(part), emit);
}

/** Ends the parts that are still open. */
export function closeParts(item: SentItem, emit: Emit): void {
  for (const part of item.summary) closePart(item, part, emit);
  for (const part of item.content) closePart(item, part, emit);
}

/** Ends an item as it stands, its open parts first. */
export function closeItem(item: SentItem, status: ItemStatus, emit: Emit): void {
  if (item.final !== undefined) return;
  closeParts(item, emit);
  if (!item.isInputDone) emitInputDone(item, inputOf(item), item.announced, emit);
  const final = finalForm(item, status);
  item.final = final;
  emit('response.output_item.done', { output_index: item.outputIndex, item: final });
}

/** The input of a call as far as it was sent: in pieces, or whole with the announcement. */
function inputOf({ input: { text }, announced }: SentItem): string {
  const { arguments: given, input = given } = announced;
  return text === '' && typeof input === 'string' ? input : text;
}

function finalForm(item: SentItem, status: ItemStatus): JsonObject {
  const { announced } = item;
  switch (item.type) {
    case 'message':
      return { ...announced, status, content: item.content.map(partObject) };
    case 'reasoning':
      return {
        ...announced,
        ...(status === 'incomplete' ? { status } : {}),
        summary: item.summary.map(partObject),
        ...(item.content.length === 0 ? {} : { content: item.content.map(partObject) }),
        ...(item.sealed === undefined ? {} : { encrypted_content: item.sealed }),
      };
    case 'function_call':
      return { ...announced, status, arguments: inputOf(item) };
    case 'custom_tool_call':
      return { ...announced, status, input: inputOf(item) };
    case 'image_generation_call':
      return { ...announced, status: status === 'incomplete' ? 'failed' : status };
    default:
      return { ...announced, status };
  }
}

/** The finished items in output order. Items that are still open are left out: close them first. */
export function finishedItems(items: Iterable<SentItem>): JsonObject[] {
  const inOrder = [...items].sort((a, b) => a.outputIndex - b.outputIndex);
  return inOrder.flatMap(({ final = 'null' }) => {
    const value = typeof final === 'string' ? parseJson(final) : final;
    return isObject(value) ? [value] : [];
  });
}

/** The finished item as JSON text. */
export function finalText({ final = 'null' }: SentItem): string {
  return typeof final === 'string' ? final : JSON.stringify(final);
}

/** The form in which an item is announced: without its opaque value, which comes with its end. */
export function withoutOpaque(item: JsonObject): JsonObject {
  if (item['type'] !== 'reasoning') return item;
  return Object.fromEntries(Object.entries(item).filter(([key]) => !OPAQUE_MEMBERS.some((member) => member === key)));
}
