/**
 * Assembles the items of one upstream stream. The order of their events was checked before (`lifecycle.ts`). What a finished item
 * adds to what was streamed of it, or contradicts, is found behind this (`canonical/order.ts`).
 */
import { append } from '../../append.ts';
import { Written } from '../../answers/written.ts';
import { grown } from '../../canonical/grown.ts';
import type { CanonicalEvent, ItemHead } from '../../canonical/event.ts';
import type { OpenItem } from '../../canonical/fold.ts';
import type { ItemStatus, OutputItem, ReasoningItem } from '../../canonical/item.ts';
import { headOf, ItemEmitter } from '../../canonical/item-emitter.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import { contradiction, restOf } from '../../canonical/missing-deltas.ts';
import type { DecodeContext } from '../../codec.ts';
import { defined } from '../../defined.ts';
import { readLogprobs } from '../../answers/logprobs.ts';
import { readAnnotation } from '../annotations.ts';
import type { ItemTrack } from '../lifecycle.ts';
import {
  callHead,
  inputMember,
  nativeItem,
  PARAGRAPH,
  ranByVendor,
  readCall,
  readPart,
  readReasoning,
  readWholeItem,
} from './decode-items.ts';
import { finishedPart, partHead, reasoningHead, type Slot, streamedInput, type TextPart } from './slot.ts';
import { arrayOrEmpty, malformed, nonEmptyString } from '../wire.ts';

type Events = CanonicalEvent[];

export class Assembler {
  readonly slots = new Map<number, Slot>();
  readonly #context: DecodeContext;
  /** Announced reasoning without any content: it starts with its first content, or before the next item of another kind. */
  readonly #unstarted = new Set<Slot>();
  readonly #items = new ItemEmitter();
  hasCalls = false;
  hasAudio = false;
  /** The tools of the request, as the response repeats them. */
  tools: JsonValue | undefined;

  constructor(context: DecodeContext) {
    this.#context = context;
  }

  added(track: ItemTrack, item: JsonObject, events: Events): Slot {
    const { outputIndex, type } = track;
    const slot: Slot = {
      outputIndex,
      type,
      track,
      item,
      open: undefined,
      parts: [],
      doneParts: [],
      raw: [],
      held: '',
      closed: false,
      ranByVendor: ranByVendor(item, this.tools),
      isDisplaced: false,
    };
    this.slots.set(outputIndex, slot);
    if (type === 'reasoning') this.#unstarted.add(slot);
    if (!slot.ranByVendor && (type === 'function_call' || type === 'custom_tool_call')) this.#startCall(slot, events);
    return slot;
  }

  partAdded(slot: Slot, contentIndex: number, part: JsonObject, events: Events): void {
    if (slot.type !== 'message') return;
    // A part that is done ends before the next one starts, so that the next text can be streamed in every dialect.
    for (const earlier of slot.doneParts.splice(0)) this.#endPart(slot, earlier, earlier.final, 'completed', events);
    if (part['type'] !== 'output_text' && part['type'] !== 'refusal') return;
    const head = partHead(slot, part['type'] === 'refusal' ? 'refusal' : 'text');
    slot.parts[contentIndex] = {
      item: this.#start(head, events),
      annotations: [],
      logprobs: [],
      final: undefined,
      whole: undefined,
    };
  }

  /**
   * `content_part.done`. The part ends with its item or before the next part, since the finished item may still bring
   * annotations.
   */
  partDone(slot: Slot, contentIndex: number, part: JsonObject, events: Events): void {
    if (slot.type === 'reasoning') {
      const text = nonEmptyString(part, 'text');
      if (text !== undefined) this.rawDone(slot, contentIndex, text, events);
      return;
    }
    const open = slot.parts[contentIndex];
    if (open === undefined) return;
    const read = readPart(part, slot.item);
    if (read.kind !== open.item.head.kind || !('text' in read)) throw contradiction(slot.type);
    restOf(read.text, open.item.text, slot.type);
    open.final = part;
    slot.doneParts.push(open);
  }

  textDelta(slot: Slot, contentIndex: number, text: string, logprobs: JsonValue | undefined, events: Events): void {
    const part = slot.parts[contentIndex];
    if (part === undefined) return;
    const tokens = part.item.head.kind === 'text' ? readLogprobs(logprobs) : undefined;
    if (tokens !== undefined) {
      this.#items.delta(part.item, { kind: 'text', text, logprobs: tokens }, events);
      if (Array.isArray(logprobs)) append(part.logprobs, logprobs.filter(isObject));
    } else if (text !== '') this.#items.delta(part.item, { kind: 'text', text }, events);
  }

  annotation(slot: Slot, contentIndex: number, annotation: JsonValue, events: Events): void {
    const part = slot.parts[contentIndex];
    if (part?.item.head.kind !== 'text') return;
    this.#items.delta(part.item, { kind: 'citation', citation: readAnnotation(annotation) }, events);
    if (isObject(annotation)) part.annotations.push(annotation);
  }

  /** `output_text.done` and `refusal.done`. */
  textDone(slot: Slot, contentIndex: number, text: string, logprobs: JsonValue | undefined, events: Events): void {
    const part = slot.parts[contentIndex];
    if (part === undefined) return;
    const { text: streamed } = part.item;
    const rest = restOf(text, streamed, slot.type);
    // Logprobs go with a text of which nothing was streamed; otherwise they would not fit its rest.
    if (rest !== '') this.textDelta(slot, contentIndex, rest, streamed === '' ? logprobs : undefined, events);
  }

  rawDelta(slot: Slot, contentIndex: number, text: string, events: Events): void {
    if (text === '') return;
    const open = this.#startReasoning(slot, events);
    while (slot.raw.length <= contentIndex) slot.raw.push(new Written(() => open.text));
    const part = slot.raw[contentIndex];
    const isLater = part?.length === 0 && open.text !== '';
    part?.add(text.length, open.text.length + (isLater ? PARAGRAPH.length : 0));
    this.#items.delta(open, { kind: 'raw', text: isLater ? PARAGRAPH + text : text }, events);
  }

  rawDone(slot: Slot, contentIndex: number, text: string, events: Events): void {
    this.rawDelta(slot, contentIndex, restOf(text, slot.raw[contentIndex]?.text ?? '', slot.type), events);
  }

  summaryDelta(slot: Slot, part: number, text: string, events: Events): void {
    if (text !== '') this.#items.delta(this.#startReasoning(slot, events), { kind: 'summary', part, text }, events);
  }

  /** The final wording of a summary wins, in the finished item. */
  summaryDone(slot: Slot, part: number, text: string, events: Events): void {
    const streamed = slot.open?.summary[part] ?? '';
    if (text.startsWith(streamed)) this.summaryDelta(slot, part, text.slice(streamed.length), events);
  }

  inputDelta(slot: Slot, text: string, events: Events): void {
    if (slot.open === undefined) slot.held = grown(slot.held, text);
    else if (text !== '') this.#items.delta(slot.open, { kind: 'input', text }, events);
  }

  inputDone(slot: Slot, text: string, events: Events): void {
    this.inputDelta(slot, restOf(text, streamedInput(slot), slot.type), events);
  }

  /** The finished item, which ends. `status` overrides the item's own (an answer that was cut). */
  finish(slot: Slot, item: JsonObject, status: ItemStatus, events: Events): void {
    slot.closed = true;
    switch (slot.type) {
      case 'message':
        this.#finishMessage(slot, item, status, events);
        break;
      case 'reasoning':
        this.#finishReasoning(slot, item, status, events);
        break;
      case 'function_call':
      case 'custom_tool_call':
        if (slot.ranByVendor) this.emitWhole(nativeItem(item), status, events);
        else this.#finishCall(slot, item, status, events);
        break;
      default:
        this.whole(item, status, events);
    }
    slot.item = item;
  }

  /** An item without deltas (an image, or native): reads it and emits it as a whole. */
  whole(item: JsonObject, status: ItemStatus, events: Events): void {
    this.emitWhole(readWholeItem(item), status, events);
  }

  /** Ends an open item as it was streamed. `item`: what its client is told of its end. */
  cut(slot: Slot, item: JsonObject, status: ItemStatus, events: Events): void {
    slot.closed = true;
    slot.item = item;
    if (slot.type === 'message') {
      for (const part of slot.parts)
        if (part !== undefined && part.whole === undefined) this.#endPart(slot, part, part.final, status, events);
    } else if (slot.open !== undefined) this.#items.end(slot.open, status, events);
  }

  #finishMessage(slot: Slot, finished: JsonObject, status: ItemStatus, events: Events): void {
    const id = nonEmptyString(slot.item, 'id');
    // Where ids rotate, the announced one counts (known failure R19).
    const item = id === undefined ? finished : { ...finished, id };
    const parts = arrayOrEmpty(item, 'content', 'message');
    for (const [contentIndex, part] of parts.entries()) {
      const open = slot.parts[contentIndex];
      if (!isObject(part)) throw malformed('message');
      if (open === undefined) this.emitWhole(readPart(part, item), status, events);
      else this.#endPart({ ...slot, item }, open, part, status, events);
    }
    for (const [contentIndex, open] of slot.parts.entries()) {
      if (open === undefined || contentIndex < parts.length) continue;
      if (parts.length > 0) throw contradiction(slot.type);
      this.#endPart({ ...slot, item }, open, open.final, status, events);
    }
  }

  /** `final`: the part as finished; undefined where only what was streamed is known. */
  #endPart(slot: Slot, part: TextPart, final: JsonObject | undefined, status: ItemStatus, events: Events): void {
    const read = final === undefined ? undefined : readPart(final, slot.item);
    if (read !== undefined && read.kind !== part.item.head.kind) throw contradiction(slot.type);
    const whole = finishedPart(slot, part, read);
    if (part.whole === undefined) {
      part.whole = whole.text;
      this.#items.endAs(part.item, whole, status, events);
    } else if (read !== undefined && part.whole !== whole.text) throw contradiction(slot.type);
  }

  #finishReasoning(slot: Slot, item: JsonObject, status: ItemStatus, events: Events): void {
    const final = readReasoning(item, this.#context);
    if (slot.open === undefined && final === undefined) {
      this.#unstarted.delete(slot);
      return;
    }
    const open = this.#startReasoning(slot, events);
    const { raw = open.text, summary = open.summary, opaque, id } = final ?? {};
    const whole: ReasoningItem = {
      kind: 'reasoning',
      ...(raw === '' ? {} : { raw }),
      ...(summary.length === 0 ? {} : { summary }),
      ...defined({ opaque, id: nonEmptyString(slot.item, 'id') ?? id }),
    };
    this.#items.endAs(open, whole, status, events);
  }

  #finishCall(slot: Slot, item: JsonObject, status: ItemStatus, events: Events): void {
    const member = inputMember(item);
    const whole = readCall({ ...item, status, [member]: item[member] ?? streamedInput(slot) }, this.#context);
    if (slot.open === undefined) {
      slot.open = this.#start(headOf(whole), events);
      this.inputDelta(slot, slot.held, events);
    }
    this.hasCalls = true;
    const id = nonEmptyString(slot.item, 'id');
    this.#items.endAs(slot.open, id === undefined ? whole : { ...whole, id }, status, events);
  }

  #startCall(slot: Slot, events: Events): void {
    const head = callHead(slot.item, this.#context);
    if (head === undefined) return;
    this.hasCalls = true;
    slot.open = this.#start({ kind: 'toolCall', ...head }, events);
  }

  #startReasoning(slot: Slot, events: Events): OpenItem {
    this.#unstarted.delete(slot);
    slot.open ??= this.#start(reasoningHead(slot), events);
    return slot.open;
  }

  /** An item that was not streamed. */
  emitWhole(item: OutputItem, status: ItemStatus, events: Events): void {
    this.hasAudio ||= item.kind === 'media' && item.media.type === 'audio';
    this.#startWaiting(events);
    this.#items.whole(item, status, events);
  }

  #start(head: ItemHead, events: Events): OpenItem {
    if (head.kind !== 'reasoning') this.#startWaiting(events);
    return this.#items.start(head, events);
  }

  /** An item of another kind begins. */
  #startWaiting(events: Events): void {
    for (const slot of this.#unstarted) this.#startReasoning(slot, events);
  }
}
