/**
 * Canonical events as the dialect's own item events. Indices and ids are made here, in the order in which items first say
 * something: an item without anything to say is left out and takes no index. Neighbouring texts and refusals of one phase
 * share a message. Only items of this very dialect keep the ids that they came with (a whole answer to a client that streams, and the
 * reverse): their upstream may know them by no other.
 *
 * An opaque value that belongs to a text, a call or an image (a gemini signature) has no place on those items. It follows in
 * a reasoning item of its own, behind the finished item, whose envelope names that item (`itemId`: the call id, or the id of
 * the message or image): `request.ts` gives it back to its item.
 */
import { append } from '../append.ts';
import { grown } from '../canonical/grown.ts';
import type { ItemDelta, ItemHead } from '../canonical/event.ts';
import type { ItemStatus, MediaItem, OutputItem, ReasoningItem, TextItem, ToolCallItem } from '../canonical/item.ts';
import { isObject, type JsonObject } from '../canonical/json.ts';
import type { Opaque } from '../canonical/opaque.ts';
import type { ResponseContext } from '../codec.ts';
import { logprobsOf, writeLogprobs } from '../answers/logprobs.ts';
import { type Holds, type ItemEvent, Turns } from '../answers/turns.ts';
import { writeCitation, writeCitations } from './annotations.ts';
import { endingInOrder } from './ending-order.ts';
import { checkRepresentable, finishedImage, sayImageProgress } from './images.ts';
import { PieceWriter } from './pieces.ts';
import {
  addPart,
  annotate,
  closeItem,
  closePart,
  type Emit,
  type EmitPiece,
  type ToldItem,
  type ToldPart,
  tellItem,
} from './told.ts';
import { ID_PREFIX, type KnownItemType } from './wire.ts';

/**
 * A call begins after the call before it has ended, as the vendor has it: agents that go by the item that began last (pi) would run one
 * call with the arguments of another. All else may be open side by side here.
 */
const HOLDS: Holds = { toolCall: ['toolCall'] };

/** One canonical item while it is open. */
interface Handle {
  readonly head: ItemHead;
  item: ToldItem | undefined;
  part: ToldPart | undefined;
}

/** A message that texts join while nothing else is said. */
interface Run {
  readonly item: ToldItem;
  readonly phase: string | undefined;
  /** The message that it was, where this very dialect said it: another one is another message. */
  readonly id: string | undefined;
  /** How many of its texts have not ended. */
  open: number;
  /** `incomplete` once one of its texts ended so. */
  status: ItemStatus;
}

export class ItemWriter {
  readonly told: ToldItem[] = [];
  readonly #context: ResponseContext;
  readonly #emit: Emit;
  /** As `#emit`, for what ends an item. */
  readonly #ending: Emit;
  readonly #pieces: PieceWriter;
  readonly #turns = new Turns(HOLDS, 'word', (event) => this.#write(event));
  readonly #handles = new Map<number, Handle>();
  /** The message that neighbouring texts still join. */
  #run: Run | undefined;

  constructor(context: ResponseContext, emit: Emit, emitPiece: EmitPiece) {
    this.#context = context;
    this.#emit = emit;
    this.#pieces = new PieceWriter(emitPiece);
    this.#ending = endingInOrder(emit);
  }

  write(event: ItemEvent): void {
    this.#turns.push(event);
  }

  #write(event: ItemEvent): void {
    switch (event.type) {
      case 'item.start': {
        const handle: Handle = { head: event.head, item: undefined, part: undefined };
        this.#handles.set(event.index, handle);
        if (event.head.kind === 'toolCall') this.#startCall(handle, event.head);
        return;
      }
      case 'item.delta': {
        const handle = this.#handles.get(event.index);
        if (handle !== undefined) this.#delta(handle, event.delta);
        return;
      }
      case 'item.end': {
        const handle = this.#handles.get(event.index);
        this.#handles.delete(event.index);
        if (handle !== undefined) this.#end(handle, event.item, event.status);
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
    for (const item of this.told) {
      const isRun = this.#run?.item === item;
      const cut = item.content.some((part) => !part.isClosed) || item.summary.some((part) => !part.isClosed);
      const status = isRun && !cut ? (this.#run?.status ?? 'completed') : 'incomplete';
      closeItem(item, status, this.#ending);
    }
    this.#run = undefined;
    this.#handles.clear();
  }

  /** Nothing more is said of a call that has not ended. */
  #cutCalls(): void {
    for (const [index, { head, item }] of this.#handles) {
      if (head.kind !== 'toolCall' || item === undefined) continue;
      this.#handles.delete(index);
      closeItem(item, 'incomplete', this.#ending);
    }
  }

  #delta(handle: Handle, delta: ItemDelta): void {
    switch (delta.kind) {
      case 'text': {
        if (delta.text === '' && delta.logprobs === undefined) return;
        const { item, part } = this.#openText(handle);
        const logprobs = delta.logprobs === undefined ? [] : writeLogprobs(delta.logprobs);
        append(part.logprobs, logprobs);
        this.#say(item, part, delta.text, logprobs);
        return;
      }
      case 'citation': {
        const annotation = writeCitation(delta.citation);
        if (annotation === undefined) return;
        const { item, part } = this.#openText(handle);
        annotate(item, part, annotation, this.#emit);
        return;
      }
      case 'raw':
        if (delta.text !== '') this.#sayReasoning(handle, 'reasoning_text', 0, delta.text);
        return;
      case 'summary':
        if (delta.text !== '') this.#sayReasoning(handle, 'summary_text', delta.part, delta.text);
        return;
      case 'input':
        this.#sayInput(handle, delta.text);
        return;
    }
  }

  #end(handle: Handle, item: OutputItem, status: ItemStatus): void {
    switch (item.kind) {
      case 'text':
      case 'refusal':
        this.#endText(handle, item.text, item.kind === 'text' ? item : undefined, status);
        return;
      case 'reasoning':
        this.#endReasoning(handle, item, status);
        return;
      case 'toolCall':
        this.#endCall(handle, item, status);
        return;
      case 'media':
        this.#writeImage(item);
        return;
      case 'native':
        if (item.dialect === 'responses' && isObject(item.body)) this.#writeNative(item.body);
        return;
    }
  }

  #add(type: KnownItemType, members: JsonObject, given?: string): ToldItem {
    const isOurs = this.#context.owner.channelType !== 'responses' || this.told.some(({ id }) => id === given);
    const id = isOurs || given === undefined ? this.#context.mint(ID_PREFIX[type]) : given;
    return this.#announce({ id, type, ...members });
  }

  #announce(announced: JsonObject): ToldItem {
    const item = tellItem(this.told.length, announced);
    this.told.push(item);
    this.#emit('response.output_item.added', { output_index: item.outputIndex, item: announced });
    return item;
  }

  #say(item: ToldItem, part: ToldPart, text: string, logprobs: readonly JsonObject[]): void {
    if (part.type !== 'output_text' || logprobs.length === 0) {
      this.#pieces.sayText(item, part, text);
      return;
    }
    part.text = grown(part.text, text);
    const place = { item_id: item.id, output_index: item.outputIndex, content_index: item.content.indexOf(part) };
    this.#emit('response.output_text.delta', { ...place, delta: text, logprobs });
  }

  /** The message that the text belongs to, and its part, made when it first says something. */
  #openText(handle: Handle): { readonly item: ToldItem; readonly part: ToldPart } {
    if (handle.item !== undefined && handle.part !== undefined) return { item: handle.item, part: handle.part };
    const phase = handle.head.kind === 'text' ? handle.head.phase : this.#run?.phase;
    const id = this.#context.owner.channelType === 'responses' ? idOf(handle) : undefined;
    if (this.#run === undefined || this.#run.phase !== phase || this.#run.id !== id) {
      this.#endRun();
      const members = { status: 'in_progress', role: 'assistant', content: [], ...(phase === undefined ? {} : { phase }) };
      this.#run = { item: this.#add('message', members, idOf(handle)), phase, id, open: 0, status: 'completed' };
    }
    this.#run.open += 1;
    handle.item = this.#run.item;
    handle.part = addPart(handle.item, handle.head.kind === 'refusal' ? 'refusal' : 'output_text', this.#emit);
    return { item: handle.item, part: handle.part };
  }

  #endText(handle: Handle, text: string, whole: TextItem | undefined, status: ItemStatus): void {
    if (text !== '' || handle.item !== undefined) {
      const { item, part } = this.#openText(handle);
      const logprobs = writeLogprobs(logprobsOf(text, whole?.logprobs) ?? []);
      if (text.length > part.text.length) this.#say(item, part, text.slice(part.text.length), part.text === '' ? logprobs : []);
      const annotations = writeCitations(whole?.citations ?? []);
      const known = new Set(part.annotations.map((annotation) => JSON.stringify(annotation)));
      for (const annotation of annotations)
        if (!known.has(JSON.stringify(annotation))) annotate(item, part, annotation, this.#emit);
      part.annotations = annotations;
      part.logprobs = logprobs;
      closePart(item, part, this.#emit);
      this.#textEnded(item, status);
    }
    if (whole?.opaque !== undefined) this.#carry(whole.opaque, handle.item?.id);
  }

  #textEnded(item: ToldItem, status: ItemStatus): void {
    if (this.#run?.item !== item) {
      // Its run had ended while it was open: the message waited for it.
      if (item.content.every((part) => part.isClosed)) closeItem(item, status, this.#ending);
      return;
    }
    this.#run.open -= 1;
    if (status === 'incomplete') this.#run.status = status;
  }

  /** Nothing joins the current message any more. */
  #endRun(): void {
    const run = this.#run;
    this.#run = undefined;
    if (run !== undefined && run.open === 0) closeItem(run.item, run.status, this.#ending);
  }

  #openReasoning(handle: Handle): ToldItem {
    if (handle.item === undefined) {
      this.#endRun();
      handle.item = this.#add('reasoning', { summary: [] }, idOf(handle));
    }
    return handle.item;
  }

  #sayReasoning(handle: Handle, type: 'reasoning_text' | 'summary_text', index: number, text: string): void {
    const item = this.#openReasoning(handle);
    const parts = type === 'summary_text' ? item.summary : item.content;
    for (let missing = parts.length; missing <= index; missing += 1) {
      if (type === 'summary_text') for (const part of parts) closePart(item, part, this.#emit);
      addPart(item, type, this.#emit);
    }
    const part = parts[index];
    if (part === undefined) return;
    // A part that ended when its successor began is not reopened: the finished item says it.
    if (part.isClosed) part.text = grown(part.text, text);
    else this.#say(item, part, text, []);
  }

  #endReasoning(handle: Handle, whole: ReasoningItem, status: ItemStatus): void {
    const raw = whole.raw ?? '';
    const streamed = handle.item?.content[0]?.text ?? '';
    if (raw.length > streamed.length) this.#sayReasoning(handle, 'reasoning_text', 0, raw.slice(streamed.length));
    for (const [index, text] of (whole.summary ?? []).entries()) {
      const known = handle.item?.summary[index];
      const said = known?.text ?? '';
      if (text === said) continue;
      if (text.startsWith(said)) this.#sayReasoning(handle, 'summary_text', index, text.slice(said.length));
      else if (known !== undefined) known.text = text;
    }
    if (whole.opaque !== undefined) this.#openReasoning(handle).sealed = this.#context.seal(whole.opaque);
    if (handle.item !== undefined) closeItem(handle.item, status, this.#ending);
  }

  #startCall(handle: Handle, head: Extract<ItemHead, { kind: 'toolCall' }>): void {
    this.#endRun();
    const { name, namespace } = head.tool;
    const identity = { call_id: head.callId, name, ...(namespace === undefined ? {} : { namespace }) };
    handle.item =
      head.flavour === 'custom'
        ? this.#add('custom_tool_call', { status: 'in_progress', input: '', ...identity }, head.id)
        : this.#add('function_call', { status: 'in_progress', arguments: '', ...identity }, head.id);
  }

  #sayInput(handle: Handle, text: string): void {
    if (handle.item !== undefined && text !== '') this.#pieces.sayInput(handle.item, text);
  }

  #endCall(handle: Handle, whole: ToolCallItem, status: ItemStatus): void {
    if (handle.item === undefined) this.#startCall(handle, { ...whole, kind: 'toolCall' });
    const { item } = handle;
    if (item === undefined) return;
    this.#sayInput(handle, whole.input.slice(item.input.length));
    closeItem(item, status, this.#ending);
    if (whole.opaque !== undefined) this.#carry(whole.opaque, whole.callId);
  }

  #writeImage(whole: MediaItem): void {
    checkRepresentable(whole);
    this.#endRun();
    const item = this.#add('image_generation_call', { status: 'in_progress' }, whole.id);
    sayImageProgress(item, this.#emit);
    this.#finishAs(item, finishedImage(item, whole.media));
    if (whole.opaque !== undefined) this.#carry(whole.opaque, item.id);
  }

  #writeNative(body: JsonObject): void {
    this.#endRun();
    this.#finishAs(this.#announce(body), body);
  }

  #finishAs(item: ToldItem, final: JsonObject): void {
    item.final = JSON.stringify(final);
    this.#ending('response.output_item.done', { output_index: item.outputIndex, item: final });
  }

  /** A value of another item, in a reasoning item of its own. */
  #carry(opaque: Opaque, itemId: string | undefined): void {
    this.#endRun();
    const item = this.#add('reasoning', { summary: [] });
    item.sealed = this.#context.seal(itemId === undefined ? opaque : { ...opaque, itemId });
    closeItem(item, 'completed', this.#ending);
  }
}

function idOf({ head }: Handle): string | undefined {
  return 'id' in head ? head.id : undefined;
}
