/**
 * Builds canonical items from the parts of an answer. Neighbouring texts of one kind become one item, and a signature stays with the part
 * that carried it. An item stays open until another begins, because a later empty part may still bring its signature. An unsigned text ends
 * with the answer, because its citations arrive with the last chunk.
 */
import { append } from '../../append.ts';
import { grown } from '../../canonical/grown.ts';
import { upstreamFault } from '../../canonical/error.ts';
import type { CanonicalEvent } from '../../canonical/event.ts';
import type { ItemStatus, Logprobs, OutputItem, TokenLogprob, ToolCallItem } from '../../canonical/item.ts';
import type { JsonObject } from '../../canonical/json.ts';
import type { Opaque } from '../../canonical/opaque.ts';
import type { DecodeContext } from '../../codec.ts';
import { logprobsOf } from '../../answers/logprobs.ts';
import { customToolOf, unwrapFreeform } from '../../tools/freeform.ts';
import { essenceOf, joinBase64 } from '../../media.ts';
import { objectText } from '../wire.ts';
import type { CitedSources } from './decode-citations.ts';
import { readMedia, malformed } from './decode-chunk.ts';
import type { PartialArguments } from './decode-arguments.ts';
import { formOf, type Span, sign } from '../signatures.ts';

interface OpenText {
  readonly kind: 'text' | 'thought';
  readonly index: number;
  text: string;
  signature: (Span & { readonly value: string; readonly form?: string }) | undefined;
  readonly tokens: TokenLogprob[];
  /** UTF-8 bytes of the visible text before it. */
  readonly base: number;
  /** The wire parts that it is made of, and the code unit of its text at which each begins. */
  readonly parts: { part: number; start: number }[];
}
interface OpenCall {
  readonly kind: 'call';
  readonly index: number;
  readonly item: Omit<ToolCallItem, 'input' | 'opaque'>;
  readonly isFreeform: boolean;
  input: string;
  signature: string | undefined;
  /** Arguments that arrive by path; undefined once they are whole. */
  partial: PartialArguments | undefined;
}
/** Raw audio samples, which may be spread over any number of parts. */
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
  /** Complete texts that wait for their citations. */
  readonly #awaitingCitations: OpenText[] = [];
  #itemCount = 0;
  /** The index of the latest part among all parts of the answer, as grounding counts them. */
  #part = -1;
  /** UTF-8 bytes of the texts before the open item. */
  #visibleBytes = 0;
  #hasToolCalls = false;
  readonly #callIds = new Set<string>();

  constructor(context: DecodeContext, sources: CitedSources) {
    this.#context = context;
    this.#sources = sources;
  }

  get hasToolCalls(): boolean {
    return this.#hasToolCalls;
  }
  /** The arguments of the open call, while they arrive by path. */
  get partialArguments(): PartialArguments | undefined {
    return this.#open?.kind === 'call' ? this.#open.partial : undefined;
  }

  /** `mayContinue`: the piece is the first of its chunk and may belong to the part before it, since a stream cuts parts anywhere. */
  addText(
    piece: { kind: 'text' | 'thought'; text: string; signature: string | undefined; logprobs: Logprobs | undefined },
    mayContinue: boolean,
    out: CanonicalEvent[],
  ): void {
    const { kind, text, signature, logprobs } = piece;
    if (text === '') {
      if (signature !== undefined) this.addSignature(signature, kind, out);
      return;
    }
    let open = this.#open;
    if (open?.kind !== kind || isComplete(open, signature !== undefined)) {
      this.close(out);
      open = this.#begin(kind, out);
    } else if (!mayContinue) {
      this.#part += 1;
      open.parts.push({ part: this.#part, start: open.text.length });
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

  /** The signature of an empty part. It belongs to the open item if that has none yet, else it becomes an item of its own. */
  addSignature(value: string, kind: 'text' | 'thought', out: CanonicalEvent[]): void {
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
    this.#emitWhole({ kind: 'reasoning', opaque }, out);
  }

  /** Tokens that could not be matched to the parts of their chunk. They are kept if they add up to the whole text of the item. */
  addLogprobs(logprobs: Logprobs): void {
    if (this.#open?.kind === 'text') append(this.#open.tokens, logprobs);
  }

  /** A call begins. Either `input` holds its whole arguments as JSON text, or `partial` will collect them. */
  beginCall(
    wire: { name: string; id: string | undefined; signature: string | undefined },
    input: string | undefined,
    partial: PartialArguments | undefined,
    out: CanonicalEvent[],
  ): void {
    this.close(out);
    this.#part += 1;
    this.#hasToolCalls = true;
    const tool = this.#context.toolNames.fromWire(wire.name);
    const custom = customToolOf(this.#context.request.tools, tool);
    const callId = this.#callId(wire.id);
    const flavour = custom === undefined ? 'function' : 'custom';
    const index = this.#nextIndex();
    this.#open = {
      kind: 'call',
      index,
      item: { kind: 'toolCall', flavour, callId, tool },
      isFreeform: custom !== undefined && custom.inputSchema === undefined,
      input: '',
      signature: wire.signature,
      partial,
    };
    out.push({ type: 'item.start', index, head: { kind: 'toolCall', flavour, callId, tool } });
    if (input !== undefined) this.completeCall(input, out);
  }

  /** The whole arguments of the open call. */
  completeCall(json: string, out: CanonicalEvent[]): void {
    const open = this.#open;
    if (open?.kind !== 'call') throw malformed('functionCall');
    const object = objectText(json);
    if (object === undefined) throw malformed('args');
    open.partial = undefined;
    open.input = open.isFreeform ? unwrapFreeform(object) : object;
    if (open.input !== '') out.push({ type: 'item.delta', index: open.index, delta: { kind: 'input', text: open.input } });
  }

  /** A part with `inlineData` or `fileData`. Media is one whole item; raw audio is joined until something else begins. */
  addMedia(part: JsonObject, signature: string | undefined, out: CanonicalEvent[]): void {
    const media = readMedia(part);
    const { source } = media;
    if (source.from === 'inline' && isRawAudio(source.mime)) {
      this.#addAudio(source.mime, source.data, signature, out);
      return;
    }
    this.close(out);
    this.#part += 1;
    const opaque = signature === undefined ? {} : { opaque: sign(this.#context.owner, signature, 'inlineData') };
    this.#emitWhole({ kind: 'media', role: 'assistant', media, ...opaque }, out);
  }

  #addAudio(mime: string, data: string, signature: string | undefined, out: CanonicalEvent[]): void {
    const open = this.#open;
    if (open?.kind === 'audio' && open.mime === mime && open.signature === undefined) {
      open.pieces.push(data);
      open.signature = signature;
      return;
    }
    this.close(out);
    this.#part += 1;
    const index = this.#nextIndex();
    this.#open = { kind: 'audio', index, mime, pieces: [data], signature };
    out.push({ type: 'item.start', index, head: { kind: 'media' } });
  }

  /** A part without a canonical form: executed code, server-side tools, images of a thought, parts of an unknown kind. */
  addNative(part: JsonObject, out: CanonicalEvent[]): void {
    this.close(out);
    this.#part += 1;
    this.#emitWhole({ kind: 'native', dialect: 'gemini', body: part, role: 'assistant' }, out);
  }

  /** Ends the open item because another begins. An unsigned text is complete too, but ends with the answer. */
  close(out: CanonicalEvent[]): void {
    this.#closeOpen('completed', false, out);
  }

  /** Ends every item, the open one with `status`. Citations that fit no text go to the last text, without a position. */
  finish(status: ItemStatus, out: CanonicalEvent[]): void {
    const open = this.#open;
    this.#closeOpen(status, this.#awaitingCitations.length === 0, out);
    this.#closeTexts(open, status, out);
  }

  /** `isLastText`: if a signed text is open, it takes all citations that are left. */
  #closeOpen(status: ItemStatus, isLastText: boolean, out: CanonicalEvent[]): void {
    const open = this.#open;
    this.#open = undefined;
    if (open?.kind === 'call') this.#closeCall(open, status, out);
    else if (open?.kind === 'audio') this.#closeAudio(open, status, out);
    else if (open?.kind === 'thought') this.#closeThought(open, status, out);
    else if (open !== undefined) {
      this.#visibleBytes += Buffer.byteLength(open.text);
      if (open.signature === undefined) this.#awaitingCitations.push(open);
      else this.#closeText(open, status, isLastText, out);
    }
  }

  #closeTexts(open: Open | undefined, status: ItemStatus, out: CanonicalEvent[]): void {
    const latest = this.#awaitingCitations.at(-1);
    for (const text of this.#awaitingCitations) this.#closeText(text, text === open ? status : 'completed', text === latest, out);
    if (!this.#sources.hasPending) return;
    // Sources of an answer without text are kept in an empty text.
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
    const { index, item, partial } = open;
    if (partial !== undefined && status === 'completed') {
      throw upstreamFault('illegal_lifecycle', 'The upstream went on before the arguments of a function call were whole.');
    }
    // Arguments that were cut off must not parse, so that no client runs the call.
    const cut = partial?.toJson().slice(0, -1);
    const input = cut === undefined ? open.input : open.isFreeform ? unwrapFreeform(cut) : cut;
    const opaque =
      open.signature === undefined ? {} : { opaque: sign(this.#context.owner, open.signature, 'functionCall', item.callId) };
    const wholeStatus = partial === undefined ? 'completed' : status;
    out.push({ type: 'item.end', index, item: { ...item, input, ...opaque }, status: wholeStatus });
  }

  #closeAudio({ index, mime, pieces, signature }: OpenAudio, status: ItemStatus, out: CanonicalEvent[]): void {
    const media = { type: 'audio' as const, source: { from: 'inline' as const, mime, data: joinBase64(pieces) } };
    const opaque = signature === undefined ? {} : { opaque: sign(this.#context.owner, signature, 'inlineData') };
    out.push({ type: 'item.end', index, item: { kind: 'media', role: 'assistant', media, ...opaque }, status });
  }

  #begin(kind: 'text' | 'thought', out: CanonicalEvent[]): OpenText {
    this.#part += 1;
    const index = this.#nextIndex();
    const open: OpenText = {
      kind,
      index,
      text: '',
      signature: undefined,
      tokens: [],
      base: this.#visibleBytes,
      parts: [{ part: this.#part, start: 0 }],
    };
    this.#open = open;
    const head = kind === 'thought' ? ({ kind: 'reasoning' } as const) : ({ kind: 'text', role: 'assistant' } as const);
    out.push({ type: 'item.start', index, head });
    return open;
  }

  #emitWhole(item: OutputItem & { kind: 'reasoning' | 'media' | 'native' }, out: CanonicalEvent[]): void {
    const index = this.#nextIndex();
    const head = item.kind === 'native' ? ({ kind: 'native', dialect: 'gemini' } as const) : ({ kind: item.kind } as const);
    out.push({ type: 'item.start', index, head }, { type: 'item.end', index, item, status: 'completed' });
  }

  #nextIndex(): number {
    return this.#itemCount++;
  }

  /** The upstream's id, or a new one where it gave none or gave it to another call of this answer. */
  #callId(given: string | undefined): string {
    const id = given === undefined || this.#callIds.has(given) ? this.#context.mint('call_') : given;
    this.#callIds.add(id);
    return id;
  }
}

function isRawAudio(mime: string): boolean {
  return /^audio\/(?:l16|pcm)$/i.test(essenceOf(mime));
}

/** An item holds one signature. A second one begins the next item, as does text after the empty part that closed a thought. */
function isComplete({ signature }: OpenText, isSigned: boolean): boolean {
  return signature !== undefined && (isSigned || signature.form === 'thought+empty');
}
