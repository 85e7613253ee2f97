/**
 * What the client of one stream has been told: its output items, open and finished. Both ways of encoding keep it, so that a
 * stream which breaks off can always be closed in its own words: open parts and items end as incomplete, and the terminal
 * repeats exactly the items that were said.
 */
import { append } from '../append.ts';
import { grown } from '../canonical/grown.ts';
import type { ItemStatus } from '../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue, parseJson } from '../canonical/json.ts';
import { sliceJson } from '../json/text.ts';
import { type InputVerb, meaningOf, type PartVerb } from './lifecycle.ts';
import { OPAQUE_MEMBERS, nonEmptyString } from './wire.ts';

export type PartType = 'output_text' | 'refusal' | 'reasoning_text' | 'summary_text';

export interface ToldPart {
  readonly type: PartType;
  text: string;
  annotations: JsonObject[];
  logprobs: JsonObject[];
  /** Its whole text was said (`….done`). */
  isSaid: boolean;
  /** Its end was said (`….part.done`). */
  isClosed: boolean;
  /** The event that ends it, where its upstream has a name of its own for that. */
  readonly ending?: string;
}

export interface ToldItem {
  readonly outputIndex: number;
  readonly type: string;
  readonly id: string;
  /** The item as it was announced. */
  readonly announced: JsonObject;
  readonly content: ToldPart[];
  readonly summary: ToldPart[];
  /** Arguments or input of a call, as far as they were said, and whether they were said whole. */
  input: string;
  isInputSaid: boolean;
  /** `encrypted_content` of the finished item. */
  sealed: string | undefined;
  /** The finished item as JSON text; undefined while it is open. */
  final: string | undefined;
}

/** Says one event; the encoder adds type and sequence number. */
export type Emit = (name: string, body: JsonObject) => void;

/** As {@link Emit}, of a piece of text: the members as JSON text before and behind it. */
export type EmitPiece = (name: string, head: string, piece: string, tail: string) => void;

export function tellItem(outputIndex: number, announced: JsonObject): ToldItem {
  return {
    outputIndex,
    type: String(announced['type']),
    id: nonEmptyString(announced, 'id') ?? '',
    announced,
    content: [],
    summary: [],
    input: '',
    isInputSaid: false,
    sealed: undefined,
    final: undefined,
  };
}

function tellPart(type: PartType, ending?: string): ToldPart {
  return {
    ...(ending === undefined ? {} : { ending }),
    type,
    text: '',
    annotations: [],
    logprobs: [],
    isSaid: false,
    isClosed: false,
  };
}

function partObject(part: ToldPart): JsonObject {
  switch (part.type) {
    case 'output_text':
      return { type: part.type, annotations: part.annotations, logprobs: part.logprobs, text: part.text };
    case 'refusal':
      return { type: part.type, refusal: part.text };
    default:
      return { type: part.type, text: part.text };
  }
}

/** Where a part is: members that every event about it carries. */
export function placeOf(item: ToldItem, part: ToldPart): JsonObject {
  const place = { item_id: item.id, output_index: item.outputIndex };
  if (part.type === 'summary_text') return { ...place, summary_index: item.summary.indexOf(part) };
  return { ...place, content_index: item.content.indexOf(part) };
}

/** Begins a part of an item. `form`: as it is shown at its beginning. */
export function addPart(item: ToldItem, type: PartType, emit: Emit, form?: JsonObject): ToldPart {
  const part = tellPart(type);
  (type === 'summary_text' ? item.summary : item.content).push(part);
  const name = type === 'summary_text' ? 'response.reasoning_summary_part.added' : 'response.content_part.added';
  emit(name, { ...placeOf(item, part), part: form ?? partObject(part) });
  return part;
}

const UNBEGUN: ReadonlyMap<string, PartType> = new Map<string, PartType>([
  ['response.reasoning_text.delta', 'reasoning_text'],
  ['response.reasoning_text.done', 'reasoning_text'],
  ['response.reasoning_summary_text.delta', 'summary_text'],
  ['response.reasoning_summary_text.done', 'summary_text'],
]);

/** Begins the part of reasoning that an event speaks of, where its upstream has begun none. */
export function beginUnbegun(item: ToldItem, name: string, body: JsonObject, emit: Emit): void {
  const type = UNBEGUN.get(name);
  if (type === undefined) return;
  const known =
    type === 'summary_text' ? item.summary[Number(body['summary_index'])] : item.content[Number(body['content_index'])];
  if (known === undefined) addPart(item, type, emit);
}

/** Ends the parts that are still open. */
export function closeParts(item: ToldItem, emit: Emit): void {
  for (const part of item.summary) closePart(item, part, emit);
  for (const part of item.content) closePart(item, part, emit);
}

export function annotate(item: ToldItem, part: ToldPart, annotation: JsonObject, emit: Emit): void {
  const place = placeOf(item, part);
  emit('response.output_text.annotation.added', { ...place, annotation_index: part.annotations.length, annotation });
  part.annotations.push(annotation);
}

/** Says that a part is finished as it stands. */
export function closePart(item: ToldItem, part: ToldPart, emit: Emit): void {
  if (part.isClosed) return;
  const place = placeOf(item, part);
  if (!part.isSaid) {
    part.isSaid = true;
    if (part.type === 'output_text') emit('response.output_text.done', { ...place, text: part.text, logprobs: part.logprobs });
    else if (part.type === 'refusal') emit('response.refusal.done', { ...place, refusal: part.text });
    else if (part.type === 'reasoning_text') emit('response.reasoning_text.done', { ...place, text: part.text });
    else emit('response.reasoning_summary_text.done', { ...place, text: part.text });
  }
  part.isClosed = true;
  emit(endingOf(part), { ...place, part: partObject(part) });
}

export function endingOf({ type, ending }: ToldPart): string {
  return ending ?? (type === 'summary_text' ? 'response.reasoning_summary_part.done' : 'response.content_part.done');
}

/** Says what a call was called with, once: `named` is the item in a form that knows its name. */
export function sayWholeInput(item: ToldItem, input: string, named: JsonObject, emit: Emit): void {
  const place = { item_id: item.id, output_index: item.outputIndex };
  const { call_id: callId = '', name = '' } = named;
  if (item.type === 'function_call')
    emit('response.function_call_arguments.done', { ...place, arguments: input, name, call_id: callId });
  else if (item.type === 'custom_tool_call') emit('response.custom_tool_call_input.done', { ...place, input, call_id: callId });
}

/** Says that an item is finished as it stands, its open parts first. */
export function closeItem(item: ToldItem, status: ItemStatus, emit: Emit): void {
  if (item.final !== undefined) return;
  closeParts(item, emit);
  if (!item.isInputSaid) sayWholeInput(item, item.input, item.announced, emit);
  const final = finalObject(item, status);
  item.final = JSON.stringify(final);
  emit('response.output_item.done', { output_index: item.outputIndex, item: final });
}

function finalObject(item: ToldItem, status: ItemStatus): JsonObject {
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
      return { ...announced, status, arguments: item.input };
    case 'custom_tool_call':
      return { ...announced, status, input: item.input };
    case 'image_generation_call':
      return { ...announced, status: status === 'incomplete' ? 'failed' : status };
    default:
      return { ...announced, status };
  }
}

/** The finished items in output order, as JSON. Items that are still open are left out: close them first. */
export function finishedItems(items: Iterable<ToldItem>): JsonObject[] {
  const finished = [...items].filter((item) => item.final !== undefined).sort((a, b) => a.outputIndex - b.outputIndex);
  return finished.flatMap((item) => {
    const value = parseJson(item.final ?? 'null');
    return isObject(value) ? [value] : [];
  });
}

/** Notes an event that was sent as the upstream wrote it. `text` is what the client read. */
export function noteNative(items: Map<number, ToldItem>, name: string, body: JsonObject, text: string): void {
  const outputIndex = body['output_index'];
  if (typeof outputIndex !== 'number') return;
  const known = items.get(outputIndex);
  if (name === 'response.output_item.added' || name === 'response.output_item.done') {
    const announced = isObject(body['item']) ? withoutOpaque(body['item']) : {};
    const item = known ?? tellItem(outputIndex, announced);
    items.set(outputIndex, item);
    if (name === 'response.output_item.done') item.final = sliceJson(text, ['item']);
    return;
  }
  if (known !== undefined) noteChild(known, name, body);
}

/** The part that a native `output_text.delta` without logprobs belongs to; undefined for every other event. */
export function toldText(items: ReadonlyMap<number, ToldItem>, name: string, body: JsonObject): ToldPart | undefined {
  const { logprobs } = body;
  if (name !== 'response.output_text.delta' || (Array.isArray(logprobs) && logprobs.length > 0)) return undefined;
  return items.get(Number(body['output_index']))?.content[Number(body['content_index'])];
}

/** Notes an event within an item: what it means (`lifecycle.ts`) is what it does to the part or to the input. */
function noteChild(item: ToldItem, name: string, body: JsonObject): void {
  const { part: partVerb, input: inputVerb, text, isSummary } = meaningOf(name);
  const words = text === undefined ? '' : String(body[text]);
  if (inputVerb !== undefined) noteInput(item, inputVerb, words);
  if (partVerb === undefined) return;
  const parts = isSummary === true ? item.summary : item.content;
  const part = parts[Number(body[isSummary === true ? 'summary_index' : 'content_index'])];
  if (partVerb === 'added') parts.push(begunPart(name, body['part']));
  else if (part !== undefined) notePart(part, partVerb, words, body);
}

function noteInput(item: ToldItem, verb: InputVerb, words: string): void {
  item.input = verb === 'delta' ? grown(item.input, words) : words;
  item.isInputSaid = verb === 'said';
}

function begunPart(name: string, form: JsonValue | undefined): ToldPart {
  const type = isObject(form) ? form['type'] : undefined;
  const ending = name === 'response.reasoning_part.added' ? 'response.reasoning_part.done' : undefined;
  return tellPart(isPartType(type) ? type : 'output_text', ending);
}

function notePart(part: ToldPart, verb: PartVerb, words: string, body: JsonObject): void {
  const { logprobs, annotation } = body;
  switch (verb) {
    case 'delta':
      part.text = grown(part.text, words);
      if (Array.isArray(logprobs)) append(part.logprobs, logprobs.filter(isObject));
      return;
    case 'note':
      if (isObject(annotation)) part.annotations.push(annotation);
      return;
    case 'said':
      part.text = words;
      part.isSaid = true;
      return;
    case 'done':
      noteEnd(part, body['part']);
      return;
    case 'added':
    case 'bare':
      return;
  }
}

/** The end of a part may bring what its stream did not. */
function noteEnd(part: ToldPart, final: JsonValue | undefined): void {
  part.isClosed = true;
  if (!isObject(final)) return;
  const { annotations, logprobs } = final;
  if (Array.isArray(annotations) && annotations.length > 0) part.annotations = annotations.filter(isObject);
  if (Array.isArray(logprobs) && logprobs.length > 0) part.logprobs = logprobs.filter(isObject);
}

export function isPartType(type: unknown): type is PartType {
  return type === 'output_text' || type === 'refusal' || type === 'reasoning_text' || type === 'summary_text';
}

/** The item as it is announced: an opaque value is said with its end alone. */
export function withoutOpaque(item: JsonObject): JsonObject {
  if (item['type'] !== 'reasoning') return item;
  return Object.fromEntries(Object.entries(item).filter(([key]) => !OPAQUE_MEMBERS.some((member) => member === key)));
}
