/**
 * Builds canonical items from the parts of an answer. Neighbouring texts of one kind become one item, and a signature stays with
 * the part that carried it. An item stays open until another begins, because a later empty part may still bring its signature. An
 * unsigned text ends with the answer, because its citations arrive with the last chunk.
 */
import { append } from '../../append.ts';
import { upstreamFault } from '../../canonical/error.ts';
import type { CanonicalEvent } from '../../canonical/event.ts';
import type { OpenItem } from '../../canonical/fold.ts';
import type { ItemStatus, Logprobs, TokenLogprob } from '../../canonical/item.ts';
import { ItemEmitter } from '../../canonical/item-emitter.ts';
import type { JsonObject } from '../../canonical/json.ts';
import type { Opaque } from '../../canonical/opaque.ts';
import type { DecodeContext } from '../../codec.ts';
import { logprobsOf } from '../../answers/logprobs.ts';
import { customToolOf, unwrapFreeform } from '../../tools/freeform.ts';
import { essenceOf, joinBase64 } from '../../media.ts';
import { objectText } from '../../tools/call-inputs.ts';
import type { CitedSources } from './decode-citations.ts';
import { readMedia, malformed } from './decode-chunk.ts';
import { tokensOfParts } from './decode-logprobs.ts';
import type { PartialArguments } from './decode-arguments.ts';
import { formOf, type Span, sign } from '../opaque.ts';

interface OpenText {
  readonly kind: 'text' | 'thought';
  readonly item: OpenItem;
  signature: (Span & { readonly value: string; readonly form?: string }) | undefined;
  readonly tokens: TokenLogprob[];
  /** UTF-8 bytes of the visible text before it. */
  readonly base: number;
  /** The wire parts that it is made of, and the code unit of its text at which each begins. */
  readonly parts: { part: number; start: number }[];
}
interface OpenCall {
  readonly kind: 'call';
  readonly item: OpenItem;
  readonly callId: string;
  readonly isFreeform: boolean;
  signature: string | undefined;
  /** Arguments that arrive by path; undefined once they are whole. */
  partial: PartialArguments | undefined;
}
/** Raw audio samples, which may be spread over any number of parts. */
interface OpenAudio {
  readonly kind: 'audio';
  readonly item: OpenItem;
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
  readonly #lateTokens: TokenLogprob[] = [];
  readonly #items = new ItemEmitter();
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

  /**
   * `mayContinue`: the piece is the first of its chunk and may belong to the part before it, since a stream cuts parts anywhere.
   */
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
      open.parts.push({ part: this.#part, start: textOf(open).length });
    }
    const start = textOf(open).length;
    if (signature !== undefined) open.signature = { value: signature, start, end: start + text.length };
    if (kind === 'thought') this.#items.delta(open.item, { kind: 'summary', part: 0, text }, out);
    else if (logprobs === undefined) this.#items.delta(open.item, { kind, text }, out);
    else {
      append(open.tokens, logprobs);
      this.#items.delta(open.item, { kind, text, logprobs }, out);
    }
  }

  /**
   * The signature of an empty part. It belongs to the open item if that has none yet, else it becomes an item of its own: so
   * also behind parallel calls, of which the first alone has one.
   */
  addSignature(value: string, kind: 'text' | 'thought', out: CanonicalEvent[]): void {
    const open = this.#open;
    const isLaterCall = open?.kind === 'call' && this.#callIds.size > 1;
    if (open !== undefined && open.signature === undefined && !isLaterCall && (open.kind === 'thought' || kind === 'text')) {
      if (open.kind === 'call' || open.kind === 'audio') {
        open.signature = value;
      } else {
        const end = textOf(open).length;
        const form = open.kind === 'thought' && kind === 'text' ? 'thought+empty' : undefined;
        open.signature = { value, start: end, end, ...(form === undefined ? {} : { form }) };
      }
      return;
    }
    this.close(out);
    const opaque = sign(this.#context.owner, value, kind === 'thought' ? 'thought' : 'empty');
    this.#items.whole({ kind: 'reasoning', opaque }, 'completed', out);
  }

  /**
   * Tokens that could not be matched to the parts of their chunk. They are kept if they add up to the whole text of the item, or
   * to the texts that wait for the end of the answer.
   */
  addLogprobs(logprobs: Logprobs): void {
    append(this.#lateTokens, logprobs);
    if (this.#open?.kind === 'text') append(this.#open.tokens, logprobs);
  }

  /** The answer is over: its late tokens are those of the texts that have none. */
  #giveLateTokens(): void {
    if (this.#lateTokens.length === 0 || this.#awaitingCitations.length === 0) return;
    const open = this.#open?.kind === 'text' ? [this.#open] : [];
    const texts = [...this.#awaitingCitations, ...open].filter(({ item, tokens }) => logprobsOf(item.text, tokens) === undefined);
    const parts = texts.map(({ item }) => ({ text: item.text }));
    const byPart = tokensOfParts(parts, this.#lateTokens);
    for (const [at, { tokens }] of texts.entries()) {
      tokens.length = 0;
      append(tokens, byPart.get(parts[at] ?? {}) ?? []);
    }
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
    const toolType = custom === undefined ? 'function' : 'custom';
    this.#open = {
      kind: 'call',
      item: this.#items.start({ kind: 'toolCall', toolType, callId, tool }, out),
      callId,
      isFreeform: custom !== undefined && custom.inputSchema === undefined,
      signature: wire.signature,
      partial,
    };
    if (input !== undefined) this.completeCall(input, out);
  }

  /** The whole arguments of the open call. */
  completeCall(json: string, out: CanonicalEvent[]): void {
    const open = this.#open;
    if (open?.kind !== 'call') throw malformed('functionCall');
    const object = objectText(json);
    if (object === undefined) throw malformed('args');
    open.partial = undefined;
    this.#addInput(open, object, out);
  }

  #addInput({ item, isFreeform }: OpenCall, json: string, out: CanonicalEvent[]): void {
    const text = isFreeform ? unwrapFreeform(json) : json;
    if (text !== '') this.#items.delta(item, { kind: 'input', text }, out);
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
    this.#items.whole({ kind: 'media', role: 'assistant', media, ...opaque }, 'completed', out);
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
    this.#open = { kind: 'audio', item: this.#items.start({ kind: 'media' }, out), mime, pieces: [data], signature };
  }

  /** A part without a canonical form: executed code, server-side tools, images of a thought, parts of an unknown kind. */
  addNative(part: JsonObject, out: CanonicalEvent[]): void {
    this.close(out);
    this.#part += 1;
    this.#items.whole({ kind: 'native', dialect: 'gemini', body: part, role: 'assistant' }, 'completed', out);
  }

  /** Ends the open item because another begins. An unsigned text is complete too, but ends with the answer. */
  close(out: CanonicalEvent[]): void {
    this.#closeOpen('completed', false, out);
  }

  /** Ends every item, the open one with `status`. Citations that fit no text go to the last text, without a position. */
  finish(status: ItemStatus, out: CanonicalEvent[]): void {
    this.#giveLateTokens();
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
    else if (open?.kind === 'thought') this.#items.end(open.item, status, out, this.#opaqueOf(open));
    else if (open !== undefined) {
      this.#visibleBytes += Buffer.byteLength(open.item.text);
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

  #opaqueOf(open: OpenText): { readonly opaque?: Opaque } {
    const { kind, signature } = open;
    if (signature === undefined) return {};
    const form = signature.form ?? formOf(kind, signature, textOf(open).length);
    return { opaque: sign(this.#context.owner, signature.value, form) };
  }

  #closeText(open: OpenText, status: ItemStatus, isLast: boolean, out: CanonicalEvent[]): void {
    const { item, base, parts, tokens } = open;
    for (const citation of this.#sources.take({ text: item.text, base, parts }, isLast))
      this.#items.delta(item, { kind: 'citation', citation }, out);
    this.#items.end(item, status, out, { logprobs: logprobsOf(item.text, tokens), ...this.#opaqueOf(open) });
  }

  #closeCall(open: OpenCall, status: ItemStatus, out: CanonicalEvent[]): void {
    const { item, callId, partial, signature } = open;
    if (partial !== undefined && status === 'completed') {
      throw upstreamFault('illegal_lifecycle', 'The upstream went on before the arguments of a function call were whole.');
    }
    // Arguments that were cut off must not parse, so that no client runs the call.
    if (partial !== undefined) this.#addInput(open, partial.toJson().slice(0, -1), out);
    const opaque = signature === undefined ? {} : { opaque: sign(this.#context.owner, signature, 'functionCall', callId) };
    this.#items.end(item, partial === undefined ? 'completed' : status, out, opaque);
  }

  #closeAudio({ item, mime, pieces, signature }: OpenAudio, status: ItemStatus, out: CanonicalEvent[]): void {
    const media = { type: 'audio' as const, source: { from: 'inline' as const, mime, data: joinBase64(pieces) } };
    const opaque = signature === undefined ? {} : { opaque: sign(this.#context.owner, signature, 'inlineData') };
    this.#items.endAs(item, { kind: 'media', role: 'assistant', media, ...opaque }, status, out);
  }

  #begin(kind: 'text' | 'thought', out: CanonicalEvent[]): OpenText {
    this.#part += 1;
    const head = kind === 'thought' ? ({ kind: 'reasoning' } as const) : ({ kind: 'text', role: 'assistant' } as const);
    const open: OpenText = {
      kind,
      item: this.#items.start(head, out),
      signature: undefined,
      tokens: [],
      base: this.#visibleBytes,
      parts: [{ part: this.#part, start: 0 }],
    };
    this.#open = open;
    return open;
  }

  /** The upstream's id, or a new one where it gave none or gave it to another call of this answer. */
  #callId(given: string | undefined): string {
    const id = given === undefined || this.#callIds.has(given) ? this.#context.mint('call_') : given;
    this.#callIds.add(id);
    return id;
  }
}

function textOf({ kind, item }: OpenText): string {
  return kind === 'thought' ? (item.summary[0] ?? '') : item.text;
}

function isRawAudio(mime: string): boolean {
  return /^audio\/(?:l16|pcm)$/i.test(essenceOf(mime));
}

/** An item holds one signature. A second one begins the next item, as does text after the empty part that closed a thought. */
function isComplete({ signature }: OpenText, isSigned: boolean): boolean {
  return signature !== undefined && (isSigned || signature.form === 'thought+empty');
}
