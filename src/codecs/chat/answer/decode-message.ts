/**
 * Reads the deltas and whole messages of choice 0 into canonical events. Knows what a delta means; does not know chunks, usage or
 * how the stream ends.
 */
import type { CanonicalEvent } from '../../canonical/event.ts';
import type { OpenItem } from '../../canonical/fold.ts';
import type { ItemStatus, Logprobs, OutputItem } from '../../canonical/item.ts';
import { headOf, ItemEmitter, type StartItem } from '../../canonical/item-emitter.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import { contradiction } from '../../canonical/missing-deltas.ts';
import type { DecodeContext } from '../../codec.ts';
import { readLogprobs } from '../../answers/logprobs.ts';
import { joinBase64, mimeOfAudioFormat } from '../../media.ts';
import { readAnnotation } from './annotations.ts';
import { callOfBlock, joinText, jsonText, summaryOf, thoughtOf } from './content-blocks.ts';
import { detailsOfBlocks, readDetail } from '../details.ts';
import { readImage, listAt, objectAt, textAt, nonEmptyString } from '../wire.ts';
import { finishReason } from './outcome.ts';
import { ReasoningItems } from './decode-reasoning.ts';
import { Texts } from './decode-texts.ts';
import { ToolCalls } from './decode-calls.ts';
import { callEntries } from './call-pieces.ts';

interface Audio {
  /** Undefined until its first piece. */
  item: OpenItem | undefined;
  readonly id: string | undefined;
  readonly data: string[];
  transcript: string;
}

/** The members of a delta that mostly arrive in runs of pieces. */
export type PieceMember = 'content' | 'reasoning_content' | 'tool_calls';

/** Whether what is read is one piece of the answer, or the complete message. */
type Form = 'piece' | 'whole';

export class Answer {
  readonly #context: DecodeContext;
  readonly #reasoning: ReasoningItems;
  /** Made with the first call, since most answers have none. */
  #calls: ToolCalls | undefined;
  readonly #texts: Texts;
  readonly #items = new ItemEmitter();
  readonly #start: StartItem = (head, out) => {
    const item = this.#items.start(head, out);
    this.#lastItem = item.index;
    return item;
  };
  /** Ends what a new item ends, and starts it. */
  readonly #begin: StartItem = (head, out) => {
    this.#completeOpen(out);
    return this.#start(head, out);
  };
  /** The item with the latest content: an answer that is cut was cut in it. */
  #lastItem: number | undefined;
  #audio: Audio | undefined;
  /** An audio has begun, and perhaps ended. */
  #hasAudio = false;
  /** Sources of the images so far: the whole message repeats them. */
  #images: Set<string> | undefined;

  /** `keepsTextsOpen`: texts wait for citations that may arrive at the end of the answer. */
  constructor(context: DecodeContext, keepsTextsOpen: boolean) {
    this.#context = context;
    this.#reasoning = new ReasoningItems(context.owner, this.#items, this.#start);
    this.#texts = new Texts(keepsTextsOpen, this.#items, this.#begin);
  }

  /** The calls, made when the first one arrives. */
  get #tools(): ToolCalls {
    this.#calls ??= new ToolCalls(this.#context, this.#items, this.#begin);
    return this.#calls;
  }

  get hasToolCalls(): boolean {
    return this.#calls?.any === true;
  }

  /** Reads a delta, or a complete message. `choice` holds the logprobs of its tokens. */
  push(delta: JsonObject, choice: JsonObject, form: Form, out: CanonicalEvent[]): void {
    const isLast = form === 'piece' && finishReason(choice) !== undefined;
    this.#reasoning.beginDelta(isLast);
    this.#pushReasoning(delta, out);
    this.#pushContent(delta['content'], choice, form, out);
    const refusal = textAt(delta['refusal'], 'refusal');
    if (refusal !== '') this.#addText('refusal', refusal, logprobsIn(choice, 'refusal'), out);
    for (const image of listAt(delta['images'], 'images')) this.#pushImage(image, out);
    this.#pushAudio(delta['audio'], out);
    const calls = callEntries(delta['tool_calls']);
    if (calls.length > 0) this.#pushCalls(calls, isLast ? 'last' : form, out);
    // A call in both forms is one call.
    const legacy = calls.length > 0 ? null : (delta['function_call'] ?? null);
    if (legacy !== null && this.#tools.pushLegacy(legacy, out)) this.#lastItem = this.#tools.lastItem;
    for (const annotation of listAt(delta['annotations'], 'annotations'))
      this.#texts.addCitation(readAnnotation(annotation), out);
  }

  /** One more piece of the member that the delta before continued; undefined where there is nothing to emit. */
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

  /** The whole message, beside or after its deltas: adds only what was not streamed yet. */
  complete(message: JsonObject, choice: JsonObject, out: CanonicalEvent[]): void {
    const content = message['content'];
    const rest: Record<string, JsonValue | undefined> = { ...message };
    if (typeof content === 'string') rest['content'] = this.#texts.rest('text', content);
    else if (Array.isArray(content) && this.#texts.any) rest['content'] = this.#texts.rest('text', joinText(content));
    if (typeof message['refusal'] === 'string') rest['refusal'] = this.#texts.rest('refusal', message['refusal']);
    // An open text is continued before reasoning that only the message has, so that the reasoning does not split it.
    if (this.#texts.any && typeof rest['content'] === 'string') {
      this.#addContent(rest['content'], undefined, out);
      delete rest['content'];
    }
    this.#completeAudio(rest);
    this.#reasoning.beginSnapshot();
    const calls = callEntries(message['tool_calls']);
    delete rest['tool_calls'];
    if (this.hasToolCalls) delete rest['function_call'];
    this.push(rest, { ...choice, logprobs: null }, 'piece', out);
    this.#reasoning.endSnapshot();
    if (calls.length > 0) this.#tools.complete(calls, out);
  }

  /** Adds the sources that a chunk or body lists beside the answer. */
  addSources(chunk: JsonObject): void {
    this.#texts.addSources(chunk);
  }

  /**
   * Emits what was held back, since no more content arrives. This comes before the usage that follows the finish: usage that is
   * reported before the first item counts as a placeholder.
   */
  flush(out: CanonicalEvent[]): void {
    this.#calls?.beginAllHeld(out);
    if (this.#audio !== undefined) this.#endAudio(this.#audio, out);
  }

  /** Ends every item. An incomplete answer was cut in the latest one, which is then incomplete, too. */
  close(status: ItemStatus, out: CanonicalEvent[]): void {
    this.flush(out);
    this.#texts.assignCitations(out);
    const cut = status === 'incomplete' ? this.#lastItem : undefined;
    this.#reasoning.close(cut, (id, opaque) => this.#tools.sign(id, opaque), out);
    this.#texts.close(cut, out);
    this.#calls?.close(cut, out);
  }

  #pushCalls(entries: readonly JsonValue[], form: Form | 'last', out: CanonicalEvent[]): void {
    this.#tools.push(entries, form, out);
    this.#lastItem = this.#tools.lastItem;
  }

  #pushReasoning(delta: JsonObject, out: CanonicalEvent[]): void {
    const blocks = detailsOfBlocks(listAt(delta['thinking_blocks'], 'thinking_blocks'));
    const details = blocks.length > 0 ? blocks : listAt(delta['reasoning_details'], 'reasoning_details');
    const readable =
      textAt(delta['reasoning_content'], 'reasoning_content') ||
      textAt(delta['reasoning'], 'reasoning') ||
      textAt(delta['reasoning_text'], 'reasoning_text');
    // Beside readable details the scalar is a copy of them for display; beside opaque ones it is the only readable text.
    const scalar = details.some((entry) => (readDetail(entry)?.text ?? '') !== '') ? '' : readable;
    const opaque = textAt(delta['reasoning_opaque'], 'reasoning_opaque');
    if (details.length === 0 && scalar === '' && opaque === '') return;
    if (this.#reasoning.hasNewText(details) || this.#reasoning.newScalarText(scalar) !== '') {
      this.#calls?.beginHeld(out);
      this.#texts.completeOpen(out);
    }
    if (scalar !== '') this.#reasoning.pushScalar(scalar, out);
    if (details.length > 0) this.#reasoning.pushDetails(details, out);
    if (opaque !== '') this.#reasoning.pushScalarOpaque(opaque, out);
    this.#lastItem = this.#reasoning.lastItem ?? this.#lastItem;
  }

  #pushContent(content: JsonValue | undefined, choice: JsonObject, form: Form, out: CanonicalEvent[]): void {
    if (content === undefined || content === null) return;
    const value = form === 'whole' ? (jsonText(content) ?? content) : content;
    if (typeof value === 'string') {
      this.#addContent(value, logprobsIn(choice, 'content'), out);
      return;
    }
    for (const block of listAt(value, 'content')) {
      if (typeof block === 'string') this.#addContent(block, undefined, out);
      else this.#pushBlock(objectAt(block, 'content'), form, out);
    }
  }

  #pushBlock(block: JsonObject, form: Form, out: CanonicalEvent[]): void {
    switch (block['type']) {
      case 'text':
      case 'output_text':
        this.#addContent(textAt(block['text'], 'content'), undefined, out);
        return;
      case 'refusal':
        this.#addText('refusal', textAt(block['refusal'], 'content'), undefined, out);
        return;
      case 'thinking':
      case 'reasoning': {
        const thought = thoughtOf(block);
        const summary = summaryOf(block);
        if (thought === '' && summary === '') return;
        this.#calls?.beginHeld(out);
        this.#texts.completeOpen(out);
        if (thought !== '') this.#reasoning.pushScalar(thought, out);
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
      default:
        // A native block ends nothing: a reference may stand in the middle of a word (Mistral).
        this.#items.whole({ kind: 'native', dialect: 'chat', body: block }, 'completed', out);
    }
  }

  #addContent(piece: string, logprobs: Logprobs | undefined, out: CanonicalEvent[]): void {
    if (piece !== '') this.#addText('text', piece, logprobs, out);
    // A token that is a piece of a character arrives without text.
    else if (logprobs !== undefined) this.#texts.holdTokens(logprobs);
  }

  #addText(kind: 'text' | 'refusal', piece: string, logprobs: Logprobs | undefined, out: CanonicalEvent[]): void {
    this.#calls?.beginHeld(out);
    if (piece !== '') this.#lastItem = this.#texts.add(kind, piece, logprobs, out);
  }

  #pushImage(value: JsonValue, out: CanonicalEvent[]): void {
    const media = readImage(value);
    const key = JSON.stringify(media.source);
    this.#images ??= new Set();
    if (this.#images.has(key)) return;
    this.#images.add(key);
    this.#calls?.beginHeld(out);
    const item: OutputItem = { kind: 'media', role: 'assistant', media };
    this.#items.endAs(this.#begin(headOf(item), out), item, 'completed', out);
  }

  /**
   * Audio arrives in pieces of base64 and of transcript. They are one item, which starts with the first piece and ends with the
   * answer.
   */
  #pushAudio(value: JsonValue | undefined, out: CanonicalEvent[]): void {
    if (value === undefined || value === null) return;
    const piece = objectAt(value, 'audio');
    this.#audio ??= { item: undefined, id: nonEmptyString(piece['id']), data: [], transcript: '' };
    const data = textAt(piece['data'], 'audio');
    const transcript = textAt(piece['transcript'], 'audio');
    if (data === '' && transcript === '') return;
    this.#audio.item ??= this.#beginAudio(this.#audio, out);
    if (data !== '') this.#audio.data.push(data);
    this.#audio.transcript += transcript;
  }

  /** The whole message repeats the audio: it takes the place of its pieces. */
  #completeAudio(rest: Record<string, JsonValue | undefined>): void {
    const whole = rest['audio'];
    if (!isObject(whole) || !this.#hasAudio) return;
    delete rest['audio'];
    const audio = this.#audio;
    if (audio === undefined) return;
    const data = textAt(whole['data'], 'audio');
    const transcript = textAt(whole['transcript'], 'audio');
    if (!joinBase64([data]).startsWith(withoutEnd(joinBase64(audio.data)))) throw contradiction('audio');
    if (data !== '') audio.data.splice(0, audio.data.length, data);
    if (transcript.startsWith(audio.transcript)) audio.transcript = transcript;
  }

  #beginAudio({ id }: Audio, out: CanonicalEvent[]): OpenItem {
    this.#hasAudio = true;
    this.#calls?.beginHeld(out);
    return this.#begin({ kind: 'media', ...(id === undefined ? {} : { id }) }, out);
  }

  #endAudio({ item, id, data, transcript }: Audio, out: CanonicalEvent[]): void {
    this.#audio = undefined;
    if (item === undefined) return;
    const wanted = this.#context.request.json['audio'];
    const format = isObject(wanted) ? nonEmptyString(wanted['format']) : undefined;
    const source = { from: 'inline' as const, mime: mimeOfAudioFormat(format ?? 'pcm16'), data: joinBase64(data) };
    const media = { type: 'audio' as const, source, ...(transcript === '' ? {} : { reported: { transcript } }) };
    const whole: OutputItem = { kind: 'media', role: 'assistant', media, ...(id === undefined ? {} : { id }) };
    this.#items.endAs(item, whole, 'completed', out);
  }

  /** Completes open texts and reasoning because another item begins. Tool calls stay open, since their deltas may interleave. */
  #completeOpen(out: CanonicalEvent[]): void {
    this.#texts.completeOpen(out);
    this.#reasoning.completeOpen(out);
  }
}

function logprobsIn(choice: JsonObject, member: 'content' | 'refusal'): Logprobs | undefined {
  const { logprobs } = choice;
  return isObject(logprobs) ? readLogprobs(logprobs[member]) : undefined;
}

/** Base64 without its padding and the three characters before it, which change where more follows. */
function withoutEnd(base64: string): string {
  let end = base64.length;
  while (base64[end - 1] === '=') end -= 1;
  return base64.slice(0, Math.max(0, end - 3));
}
