/**
 * One answer while it is being said: turns deltas, snapshots and whole messages of choice 0 into canonical events. Knows what
 * a delta means; does not know chunks, usage or how the stream ends.
 */
import type { CanonicalEvent } from '../canonical/event.ts';
import type { ItemStatus, Logprobs } from '../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import type { DecodeContext } from '../codec.ts';
import { readLogprobs } from '../answers/logprobs.ts';
import { joinBase64, mimeOfAudioFormat } from '../media.ts';
import { readAnnotation } from './annotations.ts';
import { callOfBlock, joinText, spelled, summaryOf, thoughtOf } from './content-blocks.ts';
import { readDetail } from './details.ts';
import { readImage } from './images.ts';
import { finishReason } from './outcome.ts';
import { ReasoningItems } from './reasoning.ts';
import { Texts } from './texts.ts';
import { ToolCalls } from './tool-calls.ts';
import { callEntries } from './tool-pieces.ts';
import { list, object, text, word } from './wire.ts';

interface Audio {
  /** The index of its item; undefined until a piece of it was said. */
  index: number | undefined;
  readonly id: string | undefined;
  readonly data: string[];
  transcript: string;
}

/** The members of a delta whose pieces follow one another without anything else between them. */
export type PieceMember = 'content' | 'reasoning_content' | 'tool_calls';

/** What says something of an answer: one piece of it, or the complete message. */
type Form = 'piece' | 'whole';

export class Answer {
  readonly #context: DecodeContext;
  readonly #reasoning: ReasoningItems;
  /** Made for the first call, since most open streams have none. */
  #calls: ToolCalls | undefined;
  readonly #texts: Texts;
  /** Makes way for a new item and counts it. */
  readonly #begin: (out: CanonicalEvent[]) => number;
  #items = 0;
  /** The item that was said last: an answer that is cut was cut in it. */
  #last: number | undefined;
  #audio: Audio | undefined;
  /** Sources of the images so far, since the whole message repeats them. */
  #images: Set<string> | undefined;

  /** `awaitsCitations`: texts wait for the citations that may come at the end of the answer. */
  constructor(context: DecodeContext, awaitsCitations: boolean) {
    this.#context = context;
    this.#reasoning = new ReasoningItems(context.owner, () => this.#nextItem());
    this.#begin = (out) => {
      this.#giveWay(out);
      return this.#nextItem();
    };
    this.#texts = new Texts(awaitsCitations, this.#begin);
  }

  get #tools(): ToolCalls {
    this.#calls ??= new ToolCalls(this.#context, this.#begin);
    return this.#calls;
  }

  get hasToolCalls(): boolean {
    return this.#calls?.any === true;
  }

  /** A delta, or a complete message. `choice` carries the logprobs of its tokens. */
  push(delta: JsonObject, choice: JsonObject, form: Form, out: CanonicalEvent[]): void {
    this.#pushReasoning(delta, out);
    this.#pushContent(delta['content'], choice, form, out);
    const refusal = text(delta['refusal'], 'refusal');
    if (refusal !== '') this.#say('refusal', refusal, logprobsIn(choice, 'refusal'), out);
    for (const image of list(delta['images'], 'images')) this.#pushImage(image, out);
    this.#pushAudio(delta['audio'], out);
    const calls = callEntries(delta['tool_calls']);
    if (calls.length > 0) this.#pushCalls(calls, form === 'piece' && finishReason(choice) !== undefined ? 'last' : form, out);
    // A call in both spellings is one call.
    const legacy = calls.length > 0 ? null : (delta['function_call'] ?? null);
    if (legacy !== null && this.#tools.pushLegacy(legacy, out)) this.#last = this.#tools.lastItem;
    for (const annotation of list(delta['annotations'], 'annotations')) this.#texts.cite(readAnnotation(annotation), out);
  }

  /** One more piece of what the delta before said, and nothing else; undefined where it says nothing yet. */
  continue(member: PieceMember, piece: string): CanonicalEvent | undefined {
    switch (member) {
      case 'content':
        return this.#texts.extend(piece);
      case 'reasoning_content':
        return this.#reasoning.extend(piece);
      case 'tool_calls':
        return this.#calls?.extend(piece);
    }
  }

  /** The whole message again beside or after its deltas: adds only what was not said yet. */
  complete(message: JsonObject, choice: JsonObject, out: CanonicalEvent[]): void {
    const content = message['content'];
    const rest: Record<string, JsonValue | undefined> = { ...message };
    if (typeof content === 'string') rest['content'] = this.#texts.unsaid('text', content);
    else if (Array.isArray(content) && this.#texts.content !== '')
      rest['content'] = this.#texts.unsaid('text', joinText(content));
    if (typeof message['refusal'] === 'string') rest['refusal'] = this.#texts.unsaid('refusal', message['refusal']);
    // A text that was begun goes on before thoughts that only the message has, so that they do not stand in it.
    if (this.#texts.content !== '' && typeof rest['content'] === 'string') {
      this.#sayContent(rest['content'], undefined, out);
      delete rest['content'];
    }
    this.#reasoning.beginSnapshot();
    const calls = callEntries(message['tool_calls']);
    delete rest['tool_calls'];
    if (this.hasToolCalls) delete rest['function_call'];
    this.push(rest, { ...choice, logprobs: null }, 'piece', out);
    this.#reasoning.endSnapshot();
    if (calls.length > 0) this.#tools.complete(calls, out);
  }

  /** Sources that are listed beside the answer. */
  citeSources(chunk: JsonObject): void {
    this.#texts.citeSources(chunk);
  }

  /**
   * Nothing more is said: begins what waited to be said whole. Before the usage that follows, which would otherwise seem to have come
   * before the first word.
   */
  settle(out: CanonicalEvent[]): void {
    this.#calls?.settleAll(out);
    if (this.#audio !== undefined) this.#endAudio(this.#audio, out);
  }

  /** Ends every item, the latest with `status`: what an incomplete answer said last was cut. */
  close(status: ItemStatus, out: CanonicalEvent[]): void {
    this.settle(out);
    this.#texts.settleSources(out);
    const cut = status === 'incomplete' ? this.#last : undefined;
    this.#reasoning.close(cut, (id, opaque) => this.#tools.sign(id, opaque), out);
    this.#texts.close(cut, out);
    this.#calls?.close(cut, out);
  }

  #nextItem(): number {
    this.#last = this.#items;
    return this.#items++;
  }

  #pushCalls(entries: readonly JsonValue[], form: Form | 'last', out: CanonicalEvent[]): void {
    this.#tools.push(entries, form, out);
    this.#last = this.#tools.lastItem;
  }

  #pushReasoning(delta: JsonObject, out: CanonicalEvent[]): void {
    const details = list(delta['reasoning_details'], 'reasoning_details');
    const readable =
      text(delta['reasoning_content'], 'reasoning_content') ||
      text(delta['reasoning'], 'reasoning') ||
      text(delta['reasoning_text'], 'reasoning_text');
    // Beside readable details the scalar is their display copy; beside sealed ones it is all there is to read.
    const scalar = details.some((entry) => (readDetail(entry)?.text ?? '') !== '') ? '' : readable;
    const opaque = text(delta['reasoning_opaque'], 'reasoning_opaque');
    if (details.length === 0 && scalar === '' && opaque === '') return;
    const speaks = this.#reasoning.speaks(details) || this.#reasoning.unsaidRaw(scalar) !== '';
    if (speaks) {
      this.#calls?.settle(out);
      this.#texts.pause(out);
    }
    if (scalar !== '') this.#reasoning.pushRaw(scalar, out);
    if (details.length > 0) this.#reasoning.pushDetails(details, out);
    if (opaque !== '') this.#reasoning.pushScalarOpaque(opaque, out);
    this.#last = this.#reasoning.lastItem ?? this.#last;
  }

  #pushContent(content: JsonValue | undefined, choice: JsonObject, form: Form, out: CanonicalEvent[]): void {
    if (content === undefined || content === null) return;
    const said = form === 'whole' ? (spelled(content) ?? content) : content;
    if (typeof said === 'string') {
      this.#sayContent(said, logprobsIn(choice, 'content'), out);
      return;
    }
    for (const block of list(said, 'content')) {
      if (typeof block === 'string') this.#sayContent(block, undefined, out);
      else this.#pushBlock(object(block, 'content'), form, out);
    }
  }

  #pushBlock(block: JsonObject, form: Form, out: CanonicalEvent[]): void {
    switch (block['type']) {
      case 'text':
      case 'output_text':
        this.#sayContent(text(block['text'], 'content'), undefined, out);
        return;
      case 'refusal':
        this.#say('refusal', text(block['refusal'], 'content'), undefined, out);
        return;
      case 'thinking':
      case 'reasoning': {
        const thought = thoughtOf(block);
        const summary = summaryOf(block);
        if (thought === '' && summary === '') return;
        this.#calls?.settle(out);
        this.#texts.pause(out);
        if (thought !== '') this.#reasoning.pushRaw(thought, out);
        if (summary !== '') this.#reasoning.pushDetails([{ type: 'reasoning.summary', summary }], out);
        return;
      }
      case 'tool_call':
      case 'function_call':
      case 'tool_use':
        this.#pushCalls([callOfBlock(block)], form, out);
        return;
      case 'image_url':
        this.#pushImage(block, out);
        return;
      default: {
        // Nothing gives way to what only this dialect can read: a reference may stand in the middle of a word (Mistral).
        const index = this.#nextItem();
        out.push({ type: 'item.start', index, head: { kind: 'native', dialect: 'chat' } });
        out.push({ type: 'item.end', index, item: { kind: 'native', dialect: 'chat', body: block }, status: 'completed' });
      }
    }
  }

  #sayContent(piece: string, logprobs: Logprobs | undefined, out: CanonicalEvent[]): void {
    if (piece !== '') this.#say('text', piece, logprobs, out);
    // A token that is a piece of a character comes with no text of its own.
    else if (logprobs !== undefined) this.#texts.hold(logprobs);
  }

  #say(kind: 'text' | 'refusal', piece: string, logprobs: Logprobs | undefined, out: CanonicalEvent[]): void {
    this.#calls?.settle(out);
    this.#last = this.#texts.say(kind, piece, logprobs, out) ?? this.#last;
  }

  #pushImage(value: JsonValue, out: CanonicalEvent[]): void {
    const media = readImage(value);
    const key = JSON.stringify(media.source);
    this.#images ??= new Set();
    if (this.#images.has(key)) return;
    this.#images.add(key);
    this.#calls?.settle(out);
    this.#giveWay(out);
    const index = this.#nextItem();
    out.push({ type: 'item.start', index, head: { kind: 'media' } });
    out.push({ type: 'item.end', index, item: { kind: 'media', role: 'assistant', media }, status: 'completed' });
  }

  /** Audio comes in pieces of base64 and of transcript: one item, which is begun with the first of them and whole at the end. */
  #pushAudio(value: JsonValue | undefined, out: CanonicalEvent[]): void {
    if (value === undefined || value === null) return;
    const piece = object(value, 'audio');
    this.#audio ??= { index: undefined, id: word(piece['id']), data: [], transcript: '' };
    const data = text(piece['data'], 'audio');
    const transcript = text(piece['transcript'], 'audio');
    if (data === '' && transcript === '') return;
    this.#audio.index ??= this.#beginAudio(this.#audio, out);
    if (data !== '') this.#audio.data.push(data);
    this.#audio.transcript += transcript;
  }

  #beginAudio({ id }: Audio, out: CanonicalEvent[]): number {
    this.#calls?.settle(out);
    const index = this.#begin(out);
    out.push({ type: 'item.start', index, head: { kind: 'media', ...(id === undefined ? {} : { id }) } });
    return index;
  }

  #endAudio({ index, id, data, transcript }: Audio, out: CanonicalEvent[]): void {
    this.#audio = undefined;
    if (index === undefined) return;
    const wanted = this.#context.request.json['audio'];
    const format = isObject(wanted) ? word(wanted['format']) : undefined;
    const source = { from: 'inline' as const, mime: mimeOfAudioFormat(format ?? 'pcm16'), data: joinBase64(data) };
    const media = { type: 'audio' as const, source, ...(transcript === '' ? {} : { reported: { transcript } }) };
    const item = { kind: 'media' as const, role: 'assistant' as const, media, ...(id === undefined ? {} : { id }) };
    out.push({ type: 'item.end', index, item, status: 'completed' });
  }

  /** Another kind begins: text and reasoning say no more. Tool calls go on, their deltas may interleave. */
  #giveWay(out: CanonicalEvent[]): void {
    this.#texts.pause(out);
    this.#reasoning.pause(out);
  }
}

function logprobsIn(choice: JsonObject, member: 'content' | 'refusal'): Logprobs | undefined {
  const { logprobs } = choice;
  return isObject(logprobs) ? readLogprobs(logprobs[member]) : undefined;
}
