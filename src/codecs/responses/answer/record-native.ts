/** Records the events that a client gets as its upstream wrote them, so that {@link SentItem}s know what was sent. */
import { append } from '../../append.ts';
import { grown } from '../../canonical/grown.ts';
import type { CanonicalEvent, FoldedTexts } from '../../canonical/event.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import { nonEmptyString } from '../wire.ts';
import { sliceJson } from '../../json/text.ts';
import { type EventSpec, type PartVerb, specOf } from '../lifecycle.ts';
import { isPartType, newSentItem, newSentPart, notePartDone, type SentItem, type SentPart, withoutOpaque } from './sent-items.ts';

/** What the decoder read in an event, and the fold of the answer. */
export interface Read {
  readonly events: readonly CanonicalEvent[];
  readonly fold: FoldedTexts | undefined;
}

/** `text` is the event as the client reads it. */
export function recordNative(items: Map<number, SentItem>, name: string, body: JsonObject, text: string, read: Read): void {
  const outputIndex = body['output_index'];
  if (typeof outputIndex !== 'number') return;
  const known = items.get(outputIndex);
  if (name === 'response.output_item.added' || name === 'response.output_item.done') {
    const announced = isObject(body['item']) ? withoutOpaque(body['item']) : {};
    const item = known ?? newSentItem(outputIndex, announced);
    items.set(outputIndex, item);
    if (name === 'response.output_item.done') {
      item.final = sliceJson(text, ['item']);
      item.source = isObject(body['item']) ? body['item'] : undefined;
    }
    return;
  }
  if (known !== undefined) recordChild(known, name, body, read);
}

/** Records an event within an item: what it does to a part or to the input is what its spec says (`lifecycle.ts`). */
function recordChild(item: SentItem, name: string, body: JsonObject, read: Read): void {
  const spec = specOf(name);
  const text = spec.textMember === undefined ? '' : String(body[spec.textMember]);
  for (const event of read.events) if (event.type === 'item.delta') recordDelta(item, event, read.fold);
  if (spec.input === 'delta') recordInput(item, text, read.events);
  else if (spec.input === 'done') recordInput(item, text.slice(item.input.length), read.events);
  if (spec.input !== undefined) item.isInputDone = spec.input === 'done';
  if (spec.part === undefined) return;
  const parts = partsOf(item, spec);
  const part = parts[partIndex(spec, body)];
  if (spec.part === 'added') parts.push(addedPart(item, name, body['part'], parts.length, read));
  else if (part !== undefined) recordPart(item, part, spec.part, text, body);
}

/** The texts of a message are items of their own, which its parts know. */
function recordDelta(
  item: SentItem,
  { index, delta }: Extract<CanonicalEvent, { type: 'item.delta' }>,
  fold: FoldedTexts | undefined,
): void {
  if (item.type === 'message') return;
  item.texts = fold?.texts(index) ?? item.texts;
  if (delta.kind === 'raw') item.rawLength += delta.text.length;
}

/** The input of a call that is no canonical item is kept here: the vendor ran it, or its name is not known yet. */
function recordInput(item: SentItem, text: string, events: readonly CanonicalEvent[]): void {
  if (!events.some(({ type }) => type === 'item.delta')) item.texts = { text: grown(item.texts?.text ?? '', text), summary: [] };
  item.input.add(text.length);
}

function partsOf(item: SentItem, { isSummary }: EventSpec): SentPart[] {
  return isSummary === true ? item.summary : item.content;
}

function partIndex({ isSummary }: EventSpec, body: JsonObject): number {
  return Number(body[isSummary === true ? 'summary_index' : 'content_index']);
}

function addedPart(item: SentItem, name: string, form: JsonValue | undefined, index: number, { events, fold }: Read): SentPart {
  const type = isObject(form) ? form['type'] : undefined;
  const begun = events.findLast(
    (event) => event.type === 'item.start' && (event.head.kind === 'text' || event.head.kind === 'refusal'),
  );
  const own = begun !== undefined && 'index' in begun ? fold?.texts(begun.index) : undefined;
  return newSentPart(isPartType(type) ? type : 'output_text', index, () => own ?? item.texts, name);
}

function recordPart(item: SentItem, part: SentPart, verb: PartVerb, text: string, body: JsonObject): void {
  const { logprobs, annotation } = body;
  switch (verb) {
    case 'delta':
      part.written.add(text.length, part.type === 'reasoning_text' ? item.rawLength - text.length : undefined);
      if (Array.isArray(logprobs)) append(part.logprobs, logprobs.filter(isObject));
      return;
    case 'annotation':
      if (isObject(annotation)) part.annotations.push(annotation);
      return;
    case 'textDone':
      part.whole = text;
      part.isTextDone = true;
      return;
    case 'done':
      notePartDone(part, body['part']);
      return;
    case 'added':
    case 'implicit':
      return;
  }
}

/** The part that a native `output_text.delta` without logprobs belongs to; undefined for every other event. */
export function sentTextPart(items: ReadonlyMap<number, SentItem>, name: string, body: JsonObject): SentPart | undefined {
  const { logprobs } = body;
  if (name !== 'response.output_text.delta' || (Array.isArray(logprobs) && logprobs.length > 0)) return undefined;
  return items.get(Number(body['output_index']))?.content[Number(body['content_index'])];
}

/**
 * True where the client is to get the item of a terminal as its own end had it: the terminal left it out, or has it under other
 * ids or none. A finished item that is no call may stand there under another id when the answer is complete (routers give new
 * ones): then only its id is put right. `isStrict`: where it may not.
 */
export function isSentOtherwise(item: JsonValue, { id, announced, source }: SentItem, isStrict: boolean): boolean {
  if (!isObject(item) || item === source) return true;
  const callId = announced['call_id'];
  if (callId !== undefined && callId !== item['call_id']) return true;
  const isOther = isStrict || callId !== undefined ? item['id'] !== id : nonEmptyString(item, 'id') === undefined;
  return id !== '' && isOther;
}
