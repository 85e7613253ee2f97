/**
 * Parts as items: neighbouring texts of one kind become one item, a signature stays with the part that it came on, a call
 * is whole when it ends. An item ends when another begins, so that a late empty part can still bring its signature; an
 * unsigned text ends with the answer, since its citations come with the last chunk.
 */
import { append } from '../append.ts';
import { grown } from '../canonical/grown.ts';
import { upstreamFault } from '../canonical/error.ts';
import type { CanonicalEvent } from '../canonical/event.ts';
import type { ItemStatus, Logprobs, OutputItem, TokenLogprob, ToolCallItem } from '../canonical/item.ts';
import type { JsonObject } from '../canonical/json.ts';
import type { Opaque } from '../canonical/opaque.ts';
import type { DecodeContext } from '../codec.ts';
import { logprobsOf } from '../answers/logprobs.ts';
import { customToolOf, unwrapFreeform } from '../tools/freeform.ts';
import { essenceOf, joinBase64 } from '../media.ts';
import { objectText } from './arguments.ts';
import type { CitedSources } from './cited-sources.ts';
import { readMedia } from './read-media.ts';
import type { PartialArguments } from './partial-arguments.ts';
import { malformed } from './read-chunk.ts';
import { formOf, type Span, sign } from './signatures.ts';

interface OpenText {
  readonly kind: 'text' | 'thought';
  readonly index: number;
  text: string;
  signature: (Span & { readonly value: string; readonly form?: string }) | undefined;
  readonly tokens: TokenLogprob[];
  /** UTF-8 bytes of the visible text before it. */
  readonly base: number;
  /** The parts of the wire that it is made of, and the code unit at which each begins in its text. */
  readonly parts: { place: number; start: number }[];
}
interface OpenCall {
  readonly kind: 'call';
  readonly index: number;
  readonly item: Omit<ToolCallItem, 'input' | 'opaque'>;
  readonly isFreeform: boolean;
  input: string;
  signature: string | undefined;
  /** Arguments that arrive by path; `undefined` once they are whole. */
  arriving: PartialArguments | undefined;
}
/** Samples without a frame of their own, which come in any number of parts. */
interface OpenAudio {
  readonly kind: 'audio';
  readonly index: number;
  readonly mime: string;
  readonly pieces: string[];
  signature: string | undefined;
}
type Open = OpenText | OpenCall | OpenAudio;

export class ItemComposer {
  readonly #context: DecodeContext;
  readonly #sources: CitedSources;
  #open: Open | undefined;
  /** Texts that say no more but may still be cited. */
  readonly #said: OpenText[] = [];
  #count = 0;
  /** The place of the latest part among all parts of the answer, as grounding counts them. */
  #place = -1;
  /** UTF-8 bytes of the texts that are not open any more. */
  #visibleBytes = 0;
  #calls = 0;
  readonly #callIds = new Set<string>();

  constructor(context: DecodeContext, sources: CitedSources) {
    this.#context = context;
    this.#sources = sources;
  }

  get calledTools(): boolean {
    return this.#calls > 0;
  }
  /** The call whose arguments are still arriving by path. */
  get arriving(): PartialArguments | undefined {
    return this.#open?.kind === 'call' ? this.#open.arriving : undefined;
  }

  /** `isContinued`: the piece may extend the part before it, since a stream cuts parts anywhere. */
  text(
    piece: { kind: 'text' | 'thought'; text: string; signature: string | undefined; logprobs: Logprobs | undefined },
    isContinued: boolean,
    out: CanonicalEvent[],
  ): void {
    const { kind, text, signature, logprobs } = piece;
    if (text === '') {
      if (signature !== undefined) this.signature(signature, kind, out);
      return;
    }
    let open = this.#open;
    if (open?.kind !== kind || isFull(open, signature !== undefined)) {
      this.close(out);
      open = this.#begin(kind, out);
    } else if (!isContinued) {
      this.#place += 1;
      open.parts.push({ place: this.#place, start: open.text.length });
    }
    const start = open.text.length;
    open.text = grown(open.text, text);
    if (signature !== undefined) open.signature = { value: signature, start, end: open.text.length };
    if (kind === 'thought') {
      out.push({ type: 'item.delta', index: open.index, delta: { kind: 'summary', part: 0, text } });
    } else if (logprobs === undefined) {
      out.push({ type: 'item.delta', index: open.index, delta: { kind: 'text', text } });
    } else {
      append(open.tokens, logprobs);
      out.push({ type: 'item.delta', index: open.index, delta: { kind: 'text', text, logprobs } });
    }
  }

  /** A signature on an empty part: of what is open and unsigned, else an item that holds nothing else. */
  signature(value: string, kind: 'text' | 'thought', out: CanonicalEvent[]): void {
    const open = this.#open;
    if (open !== undefined && open.signature === undefined && (open.kind === 'thought' || kind === 'text')) {
      if (open.kind === 'call' || open.kind === 'audio') {
        open.signature = value;
      } else {
        const end = open.text.length;
        const form = open.kind === 'thought' && kind === 'text' ? 'thought+empty' : undefined;
        open.signature = { value, start: end, end, ...(form === undefined ? {} : { form }) };
      }
      return;
    }
    this.close(out);
    const opaque = sign(this.#context.owner, value, kind === 'thought' ? 'thought' : 'empty');
    this.#whole({ kind: 'reasoning', opaque }, out);
  }

  /** Tokens that came beside no single piece of text: they count if they add up to the item's whole text. */
  lateLogprobs(logprobs: Logprobs): void {
    if (this.#open?.kind === 'text') append(this.#open.tokens, logprobs);
  }

  /** A call begins. `input` is whole JSON text, or undefined when the arguments will arrive by path. */
  call(
    wire: { name: string; id: string | undefined; signature: string | undefined },
    input: string | undefined,
    arriving: PartialArguments | undefined,
    out: CanonicalEvent[],
  ): void {
    this.close(out);
    this.#place += 1;
    this.#calls += 1;
    const tool = this.#context.toolNames.fromWire(wire.name);
    const custom = customToolOf(this.#context.request.tools, tool);
    const callId = this.#callId(wire.id);
    const flavour = custom === undefined ? 'function' : 'custom';
    const index = this.#next();
    this.#open = {
      kind: 'call',
      index,
      item: { kind: 'toolCall', flavour, callId, tool },
      isFreeform: custom !== undefined && custom.inputSchema === undefined,
      input: '',
      signature: wire.signature,
      arriving,
    };
    out.push({ type: 'item.start', index, head: { kind: 'toolCall', flavour, callId, tool } });
    if (input !== undefined) this.callInput(input, out);
  }

  /** The whole arguments of the open call. */
  callInput(json: string, out: CanonicalEvent[]): void {
    const open = this.#open;
    if (open?.kind !== 'call') throw malformed('functionCall');
    const object = objectText(json);
    if (object === undefined) throw malformed('args');
    open.arriving = undefined;
    open.input = open.isFreeform ? unwrapFreeform(object) : object;
    if (open.input !== '') out.push({ type: 'item.delta', index: open.index, delta: { kind: 'input', text: open.input } });
  }

  /** `inlineData` or `fileData`: media exists only whole, raw audio once its last part has come. */
  media(part: JsonObject, signature: string | undefined, out: CanonicalEvent[]): void {
    const media = readMedia(part);
    const { source } = media;
    if (source.from === 'inline' && isRawAudio(source.mime)) {
      this.#audio(source.mime, source.data, signature, out);
      return;
    }
    this.close(out);
    this.#place += 1;
    const opaque = signature === undefined ? {} : { opaque: sign(this.#context.owner, signature, 'inlineData') };
    this.#whole({ kind: 'media', role: 'assistant', media, ...opaque }, out);
  }

  #audio(mime: string, data: string, signature: string | undefined, out: CanonicalEvent[]): void {
    const open = this.#open;
    if (open?.kind === 'audio' && open.mime === mime && open.signature === undefined) {
      open.pieces.push(data);
      open.signature = signature;
      return;
    }
    this.close(out);
    this.#place += 1;
    const index = this.#next();
    this.#open = { kind: 'audio', index, mime, pieces: [data], signature };
    out.push({ type: 'item.start', index, head: { kind: 'media' } });
  }

  /** What only this protocol can read: executed code, server-side tools, pictures of a thought, parts of an unknown kind. */
  native(part: JsonObject, out: CanonicalEvent[]): void {
    this.close(out);
    this.#place += 1;
    this.#whole({ kind: 'native', dialect: 'gemini', body: part, role: 'assistant' }, out);
  }

  /** Something else begins: ends what is open. An unsigned text says no more, and ends with the answer. */
  close(out: CanonicalEvent[]): void {
    this.#closeOpen('completed', false, out);
  }

  /** The answer is over: ends every item, what is open with `status`. Citations that fit nowhere come to the last text without a position. */
  finish(status: ItemStatus, out: CanonicalEvent[]): void {
    const open = this.#open;
    this.#closeOpen(status, this.#said.length === 0, out);
    this.#closeTexts(open, status, out);
  }

  /** `isLastText`: a signed text that is open is the last one that citations may come to. */
  #closeOpen(status: ItemStatus, isLastText: boolean, out: CanonicalEvent[]): void {
    const open = this.#open;
    this.#open = undefined;
    if (open?.kind === 'call') this.#closeCall(open, status, out);
    else if (open?.kind === 'audio') this.#closeAudio(open, status, out);
    else if (open?.kind === 'thought') this.#closeThought(open, status, out);
    else if (open !== undefined) {
      this.#visibleBytes += Buffer.byteLength(open.text);
      if (open.signature === undefined) this.#said.push(open);
      else this.#closeText(open, status, isLastText, out);
    }
  }

  #closeTexts(open: Open | undefined, status: ItemStatus, out: CanonicalEvent[]): void {
    const latest = this.#said.at(-1);
    for (const text of this.#said) this.#closeText(text, text === open ? status : 'completed', text === latest, out);
    if (!this.#sources.areWaiting) return;
    // Sources without any text to stand in are kept in an empty one.
    this.#closeText(this.#begin('text', out), 'completed', true, out);
    this.#open = undefined;
  }

  #closeThought(open: OpenText, status: ItemStatus, out: CanonicalEvent[]): void {
    const { index, text } = open;
    out.push({ type: 'item.end', index, item: { kind: 'reasoning', summary: [text], ...this.#opaqueOf(open) }, status });
  }

  #opaqueOf({ kind, text, signature }: OpenText): { readonly opaque?: Opaque } {
    if (signature === undefined) return {};
    return { opaque: sign(this.#context.owner, signature.value, signature.form ?? formOf(kind, signature, text.length)) };
  }

  #closeText(open: OpenText, status: ItemStatus, isLast: boolean, out: CanonicalEvent[]): void {
    const { index, text } = open;
    const citations = this.#sources.take(open, isLast);
    for (const citation of citations) out.push({ type: 'item.delta', index, delta: { kind: 'citation', citation } });
    const logprobs = logprobsOf(text, open.tokens);
    const item: OutputItem = {
      kind: 'text',
      role: 'assistant',
      text,
      citations,
      ...(logprobs === undefined ? {} : { logprobs }),
      ...this.#opaqueOf(open),
    };
    out.push({ type: 'item.end', index, item, status });
  }

  #closeCall(open: OpenCall, status: ItemStatus, out: CanonicalEvent[]): void {
    const { index, item, arriving } = open;
    if (arriving !== undefined && status === 'completed') {
      throw upstreamFault('illegal_lifecycle', 'The upstream went on before the arguments of a function call were whole.');
    }
    // Arguments that were cut off stay unfinished text, so that nobody can run them.
    const cut = arriving?.toJson().slice(0, -1);
    const input = cut === undefined ? open.input : open.isFreeform ? unwrapFreeform(cut) : cut;
    const opaque =
      open.signature === undefined ? {} : { opaque: sign(this.#context.owner, open.signature, 'functionCall', item.callId) };
    const wholeStatus = arriving === undefined ? 'completed' : status;
    out.push({ type: 'item.end', index, item: { ...item, input, ...opaque }, status: wholeStatus });
  }

  #closeAudio({ index, mime, pieces, signature }: OpenAudio, status: ItemStatus, out: CanonicalEvent[]): void {
    const media = { type: 'audio' as const, source: { from: 'inline' as const, mime, data: joinBase64(pieces) } };
    const opaque = signature === undefined ? {} : { opaque: sign(this.#context.owner, signature, 'inlineData') };
    out.push({ type: 'item.end', index, item: { kind: 'media', role: 'assistant', media, ...opaque }, status });
  }

  #begin(kind: 'text' | 'thought', out: CanonicalEvent[]): OpenText {
    this.#place += 1;
    const index = this.#next();
    const open: OpenText = {
      kind,
      index,
      text: '',
      signature: undefined,
      tokens: [],
      base: this.#visibleBytes,
      parts: [{ place: this.#place, start: 0 }],
    };
    this.#open = open;
    const head = kind === 'thought' ? ({ kind: 'reasoning' } as const) : ({ kind: 'text', role: 'assistant' } as const);
    out.push({ type: 'item.start', index, head });
    return open;
  }

  #whole(item: OutputItem & { kind: 'reasoning' | 'media' | 'native' }, out: CanonicalEvent[]): void {
    const index = this.#next();
    const head = item.kind === 'native' ? ({ kind: 'native', dialect: 'gemini' } as const) : ({ kind: item.kind } as const);
    out.push({ type: 'item.start', index, head }, { type: 'item.end', index, item, status: 'completed' });
  }

  #next(): number {
    this.#count += 1;
    return this.#count - 1;
  }

  /** The upstream's id, unless it has none or repeats one: two calls of one answer are never the same call. */
  #callId(given: string | undefined): string {
    const id = given === undefined || this.#callIds.has(given) ? this.#context.mint('call_') : given;
    this.#callIds.add(id);
    return id;
  }
}

function isRawAudio(mime: string): boolean {
  return /^audio\/(?:l16|pcm)$/i.test(essenceOf(mime));
}

/** One signature an item: a second one, or more thought behind the empty part that closed it, begins the next. */
function isFull({ signature }: OpenText, brings: boolean): boolean {
  return signature !== undefined && (brings || signature.form === 'thought+empty');
}
