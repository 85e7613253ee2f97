/**
 * One answer while it is being said: turns deltas, snapshots and whole messages of choice 0 into canonical events. Knows what
 * a delta means; does not know chunks, usage or how the stream ends.
 */
import { upstreamFault } from '../canonical/error.ts';
import type { CanonicalEvent } from '../canonical/event.ts';
import type { Citation, ItemStatus, Logprobs, TokenLogprob } from '../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import type { DecodeContext } from '../codec.ts';
import { logprobsOf, readLogprobs } from '../logprobs.ts';
import { joinBase64, mimeOfAudioFormat } from '../media.ts';
import { codePoints, place, readAnnotation, within } from './annotations.ts';
import { callOfBlock, joinText, thoughtOf } from './content-blocks.ts';
import { readDetail } from './details.ts';
import { readImage } from './images.ts';
import { ReasoningItems } from './reasoning.ts';
import { ToolCalls } from './tool-calls.ts';
import { list, object, text, word } from './wire.ts';

interface OpenText {
  readonly kind: 'text' | 'refusal';
  readonly index: number;
  text: string;
  readonly citations: Citation[];
  logprobs: TokenLogprob[] | undefined;
  /** Where the item begins in the whole content, in code points: annotations count from there. */
  readonly base: number;
}

interface Audio {
  readonly id: string | undefined;
  readonly data: string[];
  transcript: string;
}

export class Answer {
  readonly #context: DecodeContext;
  readonly #reasoning: ReasoningItems;
  readonly #tools: ToolCalls;
  #items = 0;
  #last: number | undefined;
  #text: OpenText | undefined;
  /** Texts that say no more: they end with the answer, since their citations may still come (with the last chunk). */
  readonly #said: OpenText[] = [];
  #content = '';
  #refusal = '';
  #audio: Audio | undefined;
  #citations: Citation[] = [];
  readonly #images = new Set<string>();
  readonly #cited = new Set<string>();

  constructor(context: DecodeContext) {
    this.#context = context;
    this.#reasoning = new ReasoningItems(context.owner, () => this.#nextItem());
    this.#tools = new ToolCalls(context, (out) => {
      this.#giveWay(out);
      return this.#nextItem();
    });
  }

  get hasToolCalls(): boolean {
    return this.#tools.any;
  }

  /** A delta, or with `whole` a complete message. `choice` carries the logprobs of its tokens. */
  push(delta: JsonObject, choice: JsonObject, whole: boolean, out: CanonicalEvent[]): void {
    this.#pushReasoning(delta, out);
    this.#pushContent(delta['content'], choice, whole, out);
    const refusal = text(delta['refusal'], 'refusal');
    if (refusal !== '') this.#say('refusal', refusal, refusalLogprobs(choice), out);
    this.#pushAudio(delta['audio']);
    for (const image of list(delta['images'], 'images')) this.#pushImage(image, out);
    const calls = list(delta['tool_calls'], 'tool_calls');
    if (calls.length > 0) this.#pushCalls(calls, whole, out);
    const legacy = delta['function_call'];
    if (legacy !== undefined && legacy !== null) {
      this.#tools.pushLegacy(legacy, out);
      this.#last = this.#tools.lastItem;
    }
    for (const annotation of list(delta['annotations'], 'annotations')) this.#cite(readAnnotation(annotation), out);
  }

  /** One more piece of the text that is open; false where none is. */
  continueText(piece: string, out: CanonicalEvent[]): boolean {
    if (this.#text?.kind !== 'text' || this.#text.logprobs !== undefined) return false;
    this.#say('text', piece, undefined, out);
    return true;
  }

  /** The whole message again beside or after its deltas: adds only what was not said yet. */
  complete(message: JsonObject, choice: JsonObject, out: CanonicalEvent[]): void {
    const content = message['content'];
    const rest: Record<string, JsonValue | undefined> = { ...message };
    if (typeof content === 'string') rest['content'] = suffix(this.#content, content, 'text');
    else if (Array.isArray(content) && this.#content !== '') rest['content'] = suffix(this.#content, joinText(content), 'text');
    if (typeof message['refusal'] === 'string') rest['refusal'] = suffix(this.#refusal, message['refusal'], 'refusal');
    this.#reasoning.beginSnapshot();
    const calls = list(message['tool_calls'], 'tool_calls');
    delete rest['tool_calls'];
    if (this.#tools.any) delete rest['function_call'];
    this.push(rest, { ...choice, logprobs: null }, false, out);
    this.#reasoning.endSnapshot();
    if (calls.length > 0) this.#tools.complete(calls, out);
  }

  /** Sources that are listed beside the answer (`citations`, `search_results`); a repeated one is said once. */
  citeSources(chunk: JsonObject): void {
    const titles = new Map<string, string>();
    for (const result of Array.isArray(chunk['search_results']) ? chunk['search_results'] : []) {
      if (isObject(result) && typeof result['url'] === 'string')
        titles.set(result['url'], text(result['title'], 'search_results'));
    }
    for (const url of Array.isArray(chunk['citations']) ? chunk['citations'] : []) {
      if (typeof url !== 'string' || this.#cited.has(url)) continue;
      this.#cited.add(url);
      const title = titles.get(url);
      this.#citations.push({ kind: 'url', url, ...(title === undefined || title === '' ? {} : { title }) });
    }
  }

  /** Ends every item. `cut`: the answer is incomplete, and the latest item is what was cut. */
  close(cut: boolean, out: CanonicalEvent[]): void {
    if (this.#audio !== undefined) this.#endAudio(this.#audio, out);
    // Sources without any text to stand in are kept in an empty one.
    if (this.#citations.length > 0 && this.#lastText() === undefined) this.#open('text', out);
    const last = cut ? this.#last : undefined;
    this.#reasoning.close(last, (id, opaque) => this.#tools.sign(id, opaque), out);
    const cutText = this.#text !== undefined && this.#text.index === last ? this.#text : undefined;
    this.#pauseText(cutText?.kind === 'refusal' ? 'incomplete' : 'completed', out);
    const latest = this.#lastText();
    for (const open of this.#said) this.#endText(open, open === cutText ? 'incomplete' : 'completed', open === latest, out);
    this.#tools.close(last, out);
  }

  #nextItem(): number {
    this.#last = this.#items;
    return this.#items++;
  }

  #pushCalls(entries: readonly JsonValue[], whole: boolean, out: CanonicalEvent[]): void {
    this.#tools.push(entries, whole, out);
    this.#last = this.#tools.lastItem;
  }

  #pushReasoning(delta: JsonObject, out: CanonicalEvent[]): void {
    const details = list(delta['reasoning_details'], 'reasoning_details');
    const readable = text(delta['reasoning_content'], 'reasoning_content') || text(delta['reasoning'], 'reasoning');
    // Beside readable details the scalar is their display copy; beside sealed ones it is all there is to read.
    const scalar = details.some((entry) => (readDetail(entry)?.text ?? '') !== '') ? '' : readable;
    const opaque = text(delta['reasoning_opaque'], 'reasoning_opaque');
    if (details.length === 0 && scalar === '' && opaque === '') return;
    const speaks = this.#reasoning.speaks(details) || this.#reasoning.unsaidRaw(scalar) !== '';
    if (speaks) this.#pauseText('completed', out);
    if (scalar !== '') this.#reasoning.pushRaw(scalar, out);
    if (details.length > 0) this.#reasoning.pushDetails(details, out);
    if (opaque !== '') this.#reasoning.pushScalarOpaque(opaque, out);
    this.#last = this.#reasoning.lastItem ?? this.#last;
  }

  #pushContent(content: JsonValue | undefined, choice: JsonObject, whole: boolean, out: CanonicalEvent[]): void {
    if (content === undefined || content === null) return;
    if (typeof content === 'string') {
      this.#sayContent(content, contentLogprobs(choice), out);
      return;
    }
    for (const block of list(content, 'content')) this.#pushBlock(object(block, 'content'), whole, out);
  }

  #pushBlock(block: JsonObject, whole: boolean, out: CanonicalEvent[]): void {
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
        if (thought === '') return;
        this.#pauseText('completed', out);
        this.#reasoning.pushRaw(thought, out);
        return;
      }
      case 'tool_call':
      case 'function_call':
      case 'tool_use':
        this.#pushCalls([callOfBlock(block)], whole, out);
        return;
      case 'image_url':
        this.#pushImage(block, out);
        return;
      default: {
        this.#giveWay(out);
        const index = this.#nextItem();
        out.push({ type: 'item.start', index, head: { kind: 'native', dialect: 'chat' } });
        out.push({ type: 'item.end', index, item: { kind: 'native', dialect: 'chat', body: block }, status: 'completed' });
      }
    }
  }

  #sayContent(piece: string, logprobs: Logprobs | undefined, out: CanonicalEvent[]): void {
    // A token that is a piece of a character comes with no text of its own.
    if (piece === '' && (logprobs === undefined || this.#text?.kind !== 'text')) return;
    this.#say('text', piece, logprobs, out);
  }

  #say(kind: OpenText['kind'], piece: string, logprobs: Logprobs | undefined, out: CanonicalEvent[]): void {
    if (piece === '' && logprobs === undefined) return;
    const open = this.#text?.kind === kind ? this.#text : this.#open(kind, out);
    open.text += piece;
    if (kind === 'text') this.#content += piece;
    else this.#refusal += piece;
    if (logprobs !== undefined && kind === 'text') {
      open.logprobs ??= [];
      open.logprobs.push(...logprobs);
    }
    const delta =
      logprobs === undefined ? { kind: 'text' as const, text: piece } : { kind: 'text' as const, text: piece, logprobs };
    out.push({ type: 'item.delta', index: open.index, delta });
    this.#last = open.index;
  }

  #open(kind: OpenText['kind'], out: CanonicalEvent[]): OpenText {
    this.#giveWay(out);
    const index = this.#nextItem();
    const base = this.#content === '' ? 0 : codePoints(this.#content);
    const open: OpenText = { kind, index, text: '', citations: [], logprobs: undefined, base };
    this.#text = open;
    out.push({ type: 'item.start', index, head: kind === 'text' ? { kind, role: 'assistant' } : { kind } });
    return open;
  }

  #cite(citation: Citation | undefined, out: CanonicalEvent[]): void {
    if (citation === undefined) return;
    const key = JSON.stringify(citation);
    if (this.#cited.has(key)) return;
    this.#cited.add(key);
    const open = this.#textOf(citation);
    if (open === undefined) {
      this.#citations.push(citation);
      return;
    }
    const placed = place(citation, open.base);
    open.citations.push(placed);
    // One that points beyond what has been said waits for the end of the text.
    if (within(placed, codePoints(open.text)) !== placed) return;
    out.push({ type: 'item.delta', index: open.index, delta: { kind: 'citation', citation: placed } });
  }

  #pushImage(value: JsonValue, out: CanonicalEvent[]): void {
    const media = readImage(value);
    const key = JSON.stringify(media.source);
    if (this.#images.has(key)) return;
    this.#images.add(key);
    this.#giveWay(out);
    const index = this.#nextItem();
    out.push({ type: 'item.start', index, head: { kind: 'media' } });
    out.push({ type: 'item.end', index, item: { kind: 'media', role: 'assistant', media }, status: 'completed' });
  }

  /** Audio comes in pieces of base64 and of transcript; it is one item at the end. */
  #pushAudio(value: JsonValue | undefined): void {
    if (value === undefined || value === null) return;
    const piece = object(value, 'audio');
    this.#audio ??= { id: word(piece['id']), data: [], transcript: '' };
    const data = text(piece['data'], 'audio');
    if (data !== '') this.#audio.data.push(data);
    this.#audio.transcript += text(piece['transcript'], 'audio');
  }

  #endAudio(audio: Audio, out: CanonicalEvent[]): void {
    this.#audio = undefined;
    if (audio.data.length === 0 && audio.transcript === '') return;
    this.#giveWay(out);
    const wanted = this.#context.request.json['audio'];
    const format = isObject(wanted) ? word(wanted['format']) : undefined;
    const source = { from: 'inline' as const, mime: mimeOfAudioFormat(format ?? 'pcm16'), data: joinBase64(audio.data) };
    const reported = audio.transcript === '' ? {} : { reported: { transcript: audio.transcript } };
    const id = audio.id === undefined ? {} : { id: audio.id };
    const index = this.#nextItem();
    out.push({ type: 'item.start', index, head: { kind: 'media', ...id } });
    out.push({
      type: 'item.end',
      index,
      item: { kind: 'media', role: 'assistant', media: { type: 'audio', source, ...reported }, ...id },
      status: 'completed',
    });
  }

  /** The text that a citation points into; one without a position belongs to the latest. */
  #textOf(citation: Citation): OpenText | undefined {
    const start = citation.kind === 'url' ? citation.start : undefined;
    const latest = this.#lastText();
    if (start === undefined || latest === undefined || start >= latest.base) return latest;
    return this.#said.findLast((open) => open.base <= start) ?? latest;
  }

  #lastText(): OpenText | undefined {
    return this.#text?.kind === 'text' ? this.#text : this.#said.at(-1);
  }

  /** Another kind begins: text and reasoning say no more. Tool calls go on, their deltas may interleave. */
  #giveWay(out: CanonicalEvent[]): void {
    this.#pauseText('completed', out);
    this.#reasoning.pause(out);
  }

  /** A refusal is over; a text is only said, its end comes with that of the answer. */
  #pauseText(status: ItemStatus, out: CanonicalEvent[]): void {
    const open = this.#text;
    if (open === undefined) return;
    this.#text = undefined;
    if (open.kind === 'text') this.#said.push(open);
    else out.push({ type: 'item.end', index: open.index, item: { kind: 'refusal', text: open.text }, status });
  }

  #endText(open: OpenText, status: ItemStatus, isLatest: boolean, out: CanonicalEvent[]): void {
    if (isLatest) for (const citation of this.#citations) open.citations.push(place(citation, open.base));
    const length = open.citations.length === 0 ? 0 : codePoints(open.text);
    const logprobs = logprobsOf(open.text, open.logprobs);
    out.push({
      type: 'item.end',
      index: open.index,
      item: {
        kind: 'text',
        role: 'assistant',
        text: open.text,
        citations: open.citations.map((citation) => within(citation, length)),
        ...(logprobs === undefined ? {} : { logprobs }),
      },
      status,
    });
  }
}

function suffix(said: string, whole: string, what: string): string {
  if (whole === '') return '';
  if (!whole.startsWith(said)) {
    throw upstreamFault('illegal_lifecycle', `The upstream's final ${what} contradicts what it streamed.`);
  }
  return whole.slice(said.length);
}

function contentLogprobs(choice: JsonObject): Logprobs | undefined {
  const { logprobs } = choice;
  return isObject(logprobs) ? readLogprobs(logprobs['content']) : undefined;
}

function refusalLogprobs(choice: JsonObject): Logprobs | undefined {
  const { logprobs } = choice;
  return isObject(logprobs) ? readLogprobs(logprobs['refusal']) : undefined;
}
