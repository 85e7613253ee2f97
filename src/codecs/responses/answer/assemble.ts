/**
 * Assembles the items of one upstream stream: what each has streamed, and what its final form adds. The order was checked before
 * (`lifecycle.ts`). A final text must extend what was streamed, and only the missing suffix becomes a delta; any other final text is
 * an error. The final form of a summary wins.
 */
import { append } from '../../append.ts';
import { grown } from '../../canonical/grown.ts';
import type { CanonicalEvent, ItemHead } from '../../canonical/event.ts';
import type { ItemStatus, Logprobs, OutputItem, ReasoningItem } from '../../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import type { DecodeContext } from '../../codec.ts';
import { readLogprobs } from '../../answers/logprobs.ts';
import { readAnnotation } from '../annotations.ts';
import {
  callHead,
  inputMember,
  joinRaw,
  nativeItem,
  PARAGRAPH,
  ranByVendor,
  readCall,
  readPart,
  readReasoning,
  readWholeItem,
} from './decode-items.ts';
import {
  contradiction,
  finishedPart,
  headOf,
  partHead,
  partialOf,
  reasoningHead,
  type Slot,
  type TextPart,
  textOf,
  wholeDeltas,
  wholeHead,
} from './slot.ts';
import { arrayOrEmpty, malformed, nonEmptyString } from '../wire.ts';

type Events = CanonicalEvent[];

export class Assembler {
  readonly slots = new Map<number, Slot>();
  readonly #context: DecodeContext;
  /** Announced reasoning without any content: it starts with its first content, or before the next item of another kind. */
  readonly #unstarted = new Set<Slot>();
  /** The next canonical index. */
  #next = 0;
  hasCalls = false;
  hasAudio = false;
  /** The tools of the request, as the response repeats them. */
  tools: JsonValue | undefined;

  constructor(context: DecodeContext) {
    this.#context = context;
  }

  added(outputIndex: number, type: string, item: JsonObject, events: Events): Slot {
    const slot: Slot = {
      outputIndex,
      type,
      item,
      index: undefined,
      parts: [],
      doneParts: [],
      raw: [],
      hasRaw: false,
      summary: [],
      input: '',
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
    slot.parts[contentIndex] = this.#startPart(slot, part['type'] === 'refusal' ? 'refusal' : 'text', events);
  }

  /** `content_part.done`. The part ends with its item or before the next part, since the finished item may still bring annotations. */
  partDone(slot: Slot, contentIndex: number, part: JsonObject, events: Events): void {
    if (slot.type === 'reasoning') {
      const text = nonEmptyString(part, 'text');
      if (text !== undefined) this.rawDone(slot, contentIndex, text, events);
      return;
    }
    const open = slot.parts[contentIndex];
    if (open === undefined) return;
    const read = readPart(part, slot.item);
    if (read.kind !== open.kind || !read.text.startsWith(open.text)) throw contradiction(slot.type);
    open.final = part;
    slot.doneParts.push(open);
  }

  textDelta(slot: Slot, contentIndex: number, text: string, logprobs: JsonValue | undefined, events: Events): void {
    const part = slot.parts[contentIndex];
    if (part === undefined) return;
    part.text = grown(part.text, text);
    const tokens = part.kind === 'text' ? readLogprobs(logprobs) : undefined;
    if (tokens !== undefined) append(part.logprobs, tokens);
    if (text === '' && tokens === undefined) return;
    events.push({ type: 'item.delta', index: part.index, delta: textOf(text, tokens) });
  }

  annotation(slot: Slot, contentIndex: number, annotation: JsonValue, events: Events): void {
    const part = slot.parts[contentIndex];
    if (part?.kind !== 'text') return;
    const citation = readAnnotation(annotation);
    part.citations.push(citation);
    events.push({ type: 'item.delta', index: part.index, delta: { kind: 'citation', citation } });
  }

  /** `output_text.done` and `refusal.done`. */
  textDone(slot: Slot, contentIndex: number, text: string, logprobs: JsonValue | undefined, events: Events): void {
    const part = slot.parts[contentIndex];
    if (part === undefined) return;
    if (!text.startsWith(part.text)) throw contradiction(slot.type);
    const isWhole = part.text === '' && part.kind === 'text';
    this.#suffix(part, text, isWhole ? readLogprobs(logprobs) : undefined, events);
  }

  rawDelta(slot: Slot, contentIndex: number, text: string, events: Events): void {
    if (text === '') return;
    const index = this.#startReasoning(slot, events);
    const isNew = (slot.raw[contentIndex] ?? '') === '';
    const isLater = isNew && slot.hasRaw;
    slot.hasRaw = true;
    while (slot.raw.length < contentIndex) slot.raw.push('');
    slot.raw[contentIndex] = grown(slot.raw[contentIndex] ?? '', text);
    events.push({ type: 'item.delta', index, delta: { kind: 'raw', text: isLater ? PARAGRAPH + text : text } });
  }

  rawDone(slot: Slot, contentIndex: number, text: string, events: Events): void {
    const streamed = slot.raw[contentIndex] ?? '';
    if (!text.startsWith(streamed)) throw contradiction(slot.type);
    this.rawDelta(slot, contentIndex, text.slice(streamed.length), events);
  }

  summaryDelta(slot: Slot, part: number, text: string, events: Events): void {
    if (text === '') return;
    const index = this.#startReasoning(slot, events);
    while (slot.summary.length <= part) slot.summary.push('');
    slot.summary[part] = grown(slot.summary[part] ?? '', text);
    events.push({ type: 'item.delta', index, delta: { kind: 'summary', part, text } });
  }

  summaryDone(slot: Slot, part: number, text: string, events: Events): void {
    const streamed = slot.summary[part] ?? '';
    if (text.startsWith(streamed)) this.summaryDelta(slot, part, text.slice(streamed.length), events);
  }

  inputDelta(slot: Slot, text: string, events: Events): void {
    slot.input = grown(slot.input, text);
    if (slot.index !== undefined && text !== '') {
      events.push({ type: 'item.delta', index: slot.index, delta: { kind: 'input', text } });
    }
  }

  inputDone(slot: Slot, text: string, events: Events): void {
    if (!text.startsWith(slot.input)) throw contradiction(slot.type);
    this.inputDelta(slot, text.slice(slot.input.length), events);
  }

  /** The finished item: emits what was not streamed, and ends it. `status` overrides the item's own (an answer that was cut). */
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

  /** Ends an open item as it stands. */
  cut(slot: Slot, status: ItemStatus, events: Events): void {
    slot.closed = true;
    if (slot.type === 'message') {
      for (const part of slot.parts) if (part !== undefined && !part.ended) this.#endPart(slot, part, part.final, status, events);
    } else if (slot.index !== undefined) {
      events.push({ type: 'item.end', index: slot.index, item: partialOf(slot, this.#context), status });
    }
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
    if (read !== undefined && (read.kind !== part.kind || !read.text.startsWith(part.text))) throw contradiction(slot.type);
    if (part.ended) {
      if (read !== undefined && 'text' in read && read.text !== part.text) throw contradiction(slot.type);
      return;
    }
    part.ended = true;
    if (read !== undefined && 'text' in read) {
      this.#suffix(part, read.text, read.kind === 'text' ? read.logprobs : undefined, events);
    }
    events.push({ type: 'item.end', index: part.index, item: finishedPart(slot, part, read), status });
  }

  /** Emits what `whole` adds to the text of the part. */
  #suffix(part: TextPart, whole: string, logprobs: Logprobs | undefined, events: Events): void {
    const suffix = whole.slice(part.text.length);
    if (suffix === '') return;
    // Logprobs go with a text of which nothing was streamed; otherwise they would not fit its suffix.
    const tokens = part.text === '' ? logprobs : undefined;
    part.text = whole;
    if (tokens !== undefined) append(part.logprobs, tokens);
    events.push({ type: 'item.delta', index: part.index, delta: textOf(suffix, tokens) });
  }

  #finishReasoning(slot: Slot, item: JsonObject, status: ItemStatus, events: Events): void {
    const final = readReasoning(item, this.#context);
    if (slot.index === undefined && final === undefined) {
      this.#unstarted.delete(slot);
      return;
    }
    const index = this.#startReasoning(slot, events);
    const streamed = joinRaw(slot.raw);
    const raw = final?.raw ?? streamed;
    if (!raw.startsWith(streamed)) throw contradiction(slot.type);
    if (raw.length > streamed.length) {
      events.push({ type: 'item.delta', index, delta: { kind: 'raw', text: raw.slice(streamed.length) } });
    }
    for (const [part, text] of (final?.summary ?? []).entries()) this.summaryDone(slot, part, text, events);
    const summary = final?.summary ?? slot.summary;
    const id = nonEmptyString(slot.item, 'id') ?? final?.id;
    const ended: ReasoningItem = {
      kind: 'reasoning',
      ...(raw === '' ? {} : { raw }),
      ...(summary.length === 0 ? {} : { summary: [...summary] }),
      ...(final?.opaque === undefined ? {} : { opaque: final.opaque }),
      ...(id === undefined ? {} : { id }),
    };
    events.push({ type: 'item.end', index, item: ended, status });
  }

  #finishCall(slot: Slot, item: JsonObject, status: ItemStatus, events: Events): void {
    const member = inputMember(item);
    const whole = readCall({ ...item, status, [member]: item[member] ?? slot.input }, this.#context);
    if (slot.index === undefined) {
      const before = slot.input;
      slot.index = this.#start({ kind: 'toolCall', ...headOf(whole) }, events);
      slot.input = '';
      this.inputDelta(slot, before, events);
    }
    this.hasCalls = true;
    this.inputDone(slot, whole.input, events);
    const id = nonEmptyString(slot.item, 'id') ?? whole.id;
    const ended = { ...whole, ...(id === undefined ? {} : { id }) };
    events.push({ type: 'item.end', index: slot.index, item: ended, status });
  }

  #startCall(slot: Slot, events: Events): void {
    const head = callHead(slot.item, this.#context);
    if (head === undefined) return;
    this.hasCalls = true;
    slot.index = this.#start({ kind: 'toolCall', ...head }, events);
  }

  #startReasoning(slot: Slot, events: Events): number {
    if (slot.index !== undefined) return slot.index;
    this.#unstarted.delete(slot);
    slot.index = this.#start(reasoningHead(slot), events);
    return slot.index;
  }

  #startPart(slot: Slot, kind: TextPart['kind'], events: Events): TextPart {
    const index = this.#start(partHead(slot, kind), events);
    return { index, kind, text: '', citations: [], logprobs: [], final: undefined, ended: false };
  }

  /** An item that was not streamed: its start, its content in one delta each, its end. */
  emitWhole(item: OutputItem, status: ItemStatus, events: Events): void {
    this.hasAudio ||= item.kind === 'media' && item.media.type === 'audio';
    const index = this.#start(wholeHead(item), events);
    for (const delta of wholeDeltas(item)) events.push({ type: 'item.delta', index, delta });
    events.push({ type: 'item.end', index, item, status });
  }

  #start(head: ItemHead, events: Events): number {
    if (head.kind !== 'reasoning') {
      for (const slot of this.#unstarted) {
        slot.index = this.#next++;
        events.push({ type: 'item.start', index: slot.index, head: reasoningHead(slot) });
      }
      this.#unstarted.clear();
    }
    const index = this.#next++;
    events.push({ type: 'item.start', index, head });
    return index;
  }
}
