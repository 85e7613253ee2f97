/**
 * Writes canonical items as output items. Indices and ids are made here, in the order in which items get their first content; an
 * item without content is left out. Neighbouring texts and refusals of one phase share a message. Ids are kept only where the
 * upstream speaks this dialect too (a whole answer to a client that streams, and the reverse), since it may know its items by
 * them.
 *
 * The signature of a text, a call or an image (gemini) has no member in those items. It follows the finished item in a reasoning
 * item of its own, the carrier, whose envelope names the item that it signs (`itemId`: the call id, or the id of the message or
 * image). `request.ts` puts it back.
 */
import { append } from '../../append.ts';
import type { FoldedTexts, Growth, ItemDelta, ItemEvent, ItemHead, StreamedTexts } from '../../canonical/event.ts';
import type { ItemStatus, MediaItem, OutputItem, ReasoningItem, TextItem, ToolCallItem } from '../../canonical/item.ts';
import { isObject, type JsonObject } from '../../canonical/json.ts';
import type { Opaque } from '../../canonical/opaque.ts';
import type { ResponseContext } from '../../codec.ts';
import { areWritten, logprobsOf, writeLogprobs } from '../../answers/logprobs.ts';
import { type Holds, Turns } from '../../answers/turns.ts';
import { writeCitation, writeCitations } from '../annotations.ts';
import { emitDoneInOrder } from './done-order.ts';
import { checkRepresentable, finishedImage, emitImageProgress } from './encode-images.ts';
import { DeltaWriter } from './delta-writer.ts';
import {
  addPart,
  emitAnnotation,
  closeItem,
  closePart,
  type Emit,
  type EmitDelta,
  type SentItem,
  type SentPart,
  newSentItem,
} from './sent-items.ts';
import { ID_PREFIX, type KnownItemType } from '../wire.ts';

/**
 * A call begins after the call before it has ended, as the vendor has it: agents that go by the item that began last (pi) would
 * run one call with the arguments of another. All other items may be open at the same time.
 */
const HOLDS: Holds = { toolCall: ['toolCall'] };

/** One canonical item while it is open: the output item and the part that it is written to. */
interface Entry {
  readonly head: ItemHead;
  readonly texts: StreamedTexts | undefined;
  item: SentItem | undefined;
  part: SentPart | undefined;
}

/** The message that texts join while no other item begins. */
interface OpenMessage {
  readonly item: SentItem;
  readonly phase: string | undefined;
  /** The upstream's id of the message, where it speaks this dialect: a text with another id is in another message. */
  readonly id: string | undefined;
  /** How many of its texts have not ended. */
  open: number;
  /** `incomplete` once one of its texts ended so. */
  status: ItemStatus;
}

export class ItemWriter {
  readonly sent: SentItem[] = [];
  /** The fold of the answer, once an item has begun. */
  fold: FoldedTexts | undefined;
  readonly #ids = new Set<string>();
  readonly #context: ResponseContext;
  readonly #emit: Emit;
  /** {@link Emit} for events that may end an item (`done-order.ts`). */
  readonly #emitInOrder: Emit;
  readonly #deltas: DeltaWriter;
  readonly #turns = new Turns(HOLDS, 'delta', (event) => this.#write(event));
  readonly #entries = new Map<number, Entry>();
  #message: OpenMessage | undefined;

  constructor(context: ResponseContext, emit: Emit, emitDelta: EmitDelta) {
    this.#context = context;
    this.#emit = emit;
    this.#deltas = new DeltaWriter(emitDelta);
    this.#emitInOrder = emitDoneInOrder(emit);
  }

  write(event: ItemEvent): void {
    this.#turns.push(event);
  }

  #write(event: ItemEvent): void {
    switch (event.type) {
      case 'item.start': {
        const entry: Entry = { head: event.head, texts: this.fold?.texts(event.index), item: undefined, part: undefined };
        this.#entries.set(event.index, entry);
        if (event.head.kind === 'toolCall') this.#startCall(entry, event.head);
        return;
      }
      case 'item.delta': {
        const entry = this.#entries.get(event.index);
        if (entry !== undefined) this.#delta(entry, event.delta);
        return;
      }
      case 'item.end': {
        const entry = this.#entries.get(event.index);
        this.#entries.delete(event.index);
        if (entry !== undefined) this.#end(entry, event.item, event.status);
        return;
      }
    }
  }

  /** Closes everything: what is still open ends as incomplete. */
  finish(): void {
    for (const event of this.#turns.rest()) {
      if (event.type === 'item.start') this.#cutCalls();
      this.#write(event);
    }
    this.#cutCalls();
    for (const item of this.sent) {
      const isOpenMessage = this.#message?.item === item;
      const cut = item.content.some((part) => !part.isClosed) || item.summary.some((part) => !part.isClosed);
      const status = isOpenMessage && !cut ? (this.#message?.status ?? 'completed') : 'incomplete';
      closeItem(item, status, this.#emitInOrder);
    }
    this.#message = undefined;
    this.#entries.clear();
  }

  /** Ends the open calls as incomplete. */
  #cutCalls(): void {
    for (const [index, { head, item }] of this.#entries) {
      if (head.kind !== 'toolCall' || item === undefined) continue;
      this.#entries.delete(index);
      closeItem(item, 'incomplete', this.#emitInOrder);
    }
  }

  #delta(entry: Entry, delta: ItemDelta): void {
    switch (delta.kind) {
      case 'text': {
        if (delta.text === '' && delta.logprobs === undefined) return;
        const { item, part } = this.#openText(entry);
        const logprobs = delta.logprobs === undefined ? [] : writeLogprobs(delta.logprobs);
        append(part.logprobs, logprobs);
        this.#writeText(item, part, delta, logprobs);
        return;
      }
      case 'citation': {
        const annotation = writeCitation(delta.citation);
        if (annotation === undefined) return;
        const { item, part } = this.#openText(entry);
        emitAnnotation(item, part, annotation, this.#emit);
        return;
      }
      case 'raw':
        if (delta.text !== '') this.#writeReasoning(entry, 'reasoning_text', 0, delta);
        return;
      case 'summary':
        if (delta.text !== '') this.#writeReasoning(entry, 'summary_text', delta.part, delta);
        return;
      case 'input':
        if (entry.item !== undefined && delta.text !== '') this.#deltas.writeInput(entry.item, delta);
        return;
    }
  }

  #end(entry: Entry, item: OutputItem, status: ItemStatus): void {
    switch (item.kind) {
      case 'text':
      case 'refusal':
        this.#endText(entry, item.kind === 'text' ? item : undefined, status);
        return;
      case 'reasoning':
        this.#endReasoning(entry, item, status);
        return;
      case 'toolCall':
        this.#endCall(entry, item, status);
        return;
      case 'media':
        this.#addImage(item);
        return;
      case 'native':
        if (item.dialect === 'responses' && isObject(item.body)) this.#addNative(item.body);
        return;
    }
  }

  #add(type: KnownItemType, members: JsonObject, given?: string, texts?: StreamedTexts): SentItem {
    const isOurs = this.#context.owner.channelType !== 'responses' || (given !== undefined && this.#ids.has(given));
    const id = isOurs || given === undefined ? this.#context.mint(ID_PREFIX[type]) : given;
    return this.#announce({ id, type, ...members }, texts);
  }

  #announce(announced: JsonObject, texts?: StreamedTexts): SentItem {
    const item = newSentItem(this.sent.length, announced, texts);
    this.sent.push(item);
    this.#ids.add(item.id);
    this.#emit('response.output_item.added', { output_index: item.outputIndex, item: announced });
    return item;
  }

  #writeText(item: SentItem, part: SentPart, said: Growth, logprobs: readonly JsonObject[]): void {
    if (part.type !== 'output_text' || logprobs.length === 0) {
      this.#deltas.writeText(item, part, said);
      return;
    }
    part.written.add(said.text.length);
    const place = { item_id: item.id, output_index: item.outputIndex, content_index: part.index };
    this.#emit('response.output_text.delta', { ...place, delta: said.text, logprobs });
  }

  /** The message and the part of a text. They are made for its first content. */
  #openText(entry: Entry): { readonly item: SentItem; readonly part: SentPart } {
    if (entry.item !== undefined && entry.part !== undefined) return { item: entry.item, part: entry.part };
    const phase = entry.head.kind === 'text' ? entry.head.phase : this.#message?.phase;
    const id = this.#context.owner.channelType === 'responses' ? idOf(entry) : undefined;
    if (this.#message === undefined || this.#message.phase !== phase || this.#message.id !== id) {
      this.#endMessage();
      const members = { status: 'in_progress', role: 'assistant', content: [], ...(phase === undefined ? {} : { phase }) };
      this.#message = { item: this.#add('message', members, idOf(entry)), phase, id, open: 0, status: 'completed' };
    }
    this.#message.open += 1;
    entry.item = this.#message.item;
    entry.part = addPart(entry.item, entry.head.kind === 'refusal' ? 'refusal' : 'output_text', () => entry.texts, this.#emit);
    return { item: entry.item, part: entry.part };
  }

  /** `whole`: undefined for a refusal. */
  #endText(entry: Entry, whole: TextItem | undefined, status: ItemStatus): void {
    const { item, part } = entry;
    if (item !== undefined && part !== undefined) {
      part.annotations = writeCitations(whole?.citations ?? []);
      const logprobs = whole === undefined ? [] : (logprobsOf(whole.text, whole.logprobs) ?? []);
      // Those that were sent with the pieces are not written a second time.
      if (!areWritten(logprobs, part.logprobs)) part.logprobs = writeLogprobs(logprobs);
      closePart(item, part, this.#emit);
      this.#textEnded(item, status);
    }
    if (whole?.opaque !== undefined) this.#addCarrier(whole.opaque, entry.item?.id);
  }

  #textEnded(item: SentItem, status: ItemStatus): void {
    if (this.#message?.item !== item) {
      // Another item began while the text was open, so its message has waited for it.
      if (item.content.every((part) => part.isClosed)) closeItem(item, status, this.#emitInOrder);
      return;
    }
    this.#message.open -= 1;
    if (status === 'incomplete') this.#message.status = status;
  }

  /** No further text joins the current message. */
  #endMessage(): void {
    const message = this.#message;
    this.#message = undefined;
    if (message !== undefined && message.open === 0) closeItem(message.item, message.status, this.#emitInOrder);
  }

  #openReasoning(entry: Entry): SentItem {
    if (entry.item === undefined) {
      this.#endMessage();
      entry.item = this.#add('reasoning', { summary: [] }, idOf(entry));
    }
    return entry.item;
  }

  #writeReasoning(entry: Entry, type: 'reasoning_text' | 'summary_text', index: number, said: Growth): void {
    const item = this.#openReasoning(entry);
    const parts = type === 'summary_text' ? item.summary : item.content;
    for (let missing = parts.length; missing <= index; missing += 1) {
      // The parts before it were closed when it began.
      const last = parts.at(-1);
      if (type === 'summary_text' && last !== undefined) closePart(item, last, this.#emit);
      addPart(item, type, () => entry.texts, this.#emit);
    }
    const part = parts[index];
    if (part === undefined) return;
    // A part that ended when the next one began is not reopened: the finished item has the text.
    if (part.isClosed) part.written.add(said.text.length);
    else this.#writeText(item, part, said, []);
  }

  #endReasoning(entry: Entry, whole: ReasoningItem, status: ItemStatus): void {
    // The final wording of a summary may differ from what was streamed.
    for (const [index, text] of (whole.summary ?? []).entries()) {
      const part = entry.item?.summary[index];
      if (part !== undefined) part.whole = text;
    }
    if (whole.opaque !== undefined) this.#openReasoning(entry).sealed = this.#context.seal(whole.opaque);
    if (entry.item !== undefined) closeItem(entry.item, status, this.#emitInOrder);
  }

  #startCall(entry: Entry, head: Extract<ItemHead, { kind: 'toolCall' }>): void {
    this.#endMessage();
    const { name, namespace } = head.tool;
    const identity = { call_id: head.callId, name, ...(namespace === undefined ? {} : { namespace }) };
    entry.item =
      head.toolType === 'custom'
        ? this.#add('custom_tool_call', { status: 'in_progress', input: '', ...identity }, head.id, entry.texts)
        : this.#add('function_call', { status: 'in_progress', arguments: '', ...identity }, head.id, entry.texts);
  }

  #endCall(entry: Entry, whole: ToolCallItem, status: ItemStatus): void {
    const { item } = entry;
    if (item === undefined) return;
    closeItem(item, status, this.#emitInOrder);
    if (whole.opaque !== undefined) this.#addCarrier(whole.opaque, whole.callId);
  }

  #addImage(whole: MediaItem): void {
    checkRepresentable(whole);
    this.#endMessage();
    const item = this.#add('image_generation_call', { status: 'in_progress', result: null }, whole.id);
    emitImageProgress(item, this.#emit);
    this.#finishAs(item, finishedImage(item, whole.media));
    if (whole.opaque !== undefined) this.#addCarrier(whole.opaque, item.id);
  }

  #addNative(body: JsonObject): void {
    this.#endMessage();
    this.#finishAs(this.#announce(body), body);
  }

  #finishAs(item: SentItem, final: JsonObject): void {
    item.final = final;
    this.#emitInOrder('response.output_item.done', { output_index: item.outputIndex, item: final });
  }

  /** Adds a carrier: a reasoning item with the opaque value of another item. */
  #addCarrier(opaque: Opaque, itemId: string | undefined): void {
    this.#endMessage();
    const item = this.#add('reasoning', { summary: [] });
    item.sealed = this.#context.seal(itemId === undefined ? opaque : { ...opaque, itemId });
    closeItem(item, 'completed', this.#emitInOrder);
  }
}

function idOf({ head }: Entry): string | undefined {
  return 'id' in head ? head.id : undefined;
}
