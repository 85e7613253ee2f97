/**
 * Encodes canonical steps as chat-completions chunks: a role chunk, pieces in order of arrival, one finish chunk, the usage chunk if the
 * client asked for it, `[DONE]`. Chunks of a chat upstream go through `splice.ts`. A failure is an `error` frame and ends the stream.
 */
import { GatewayError, upstreamFault } from '../../canonical/error.ts';
import type { CanonicalEvent, ItemDelta, ItemEvent, ItemHead, Step } from '../../canonical/event.ts';
import type { Logprobs, MediaItem, OutputItem, ReasoningItem, TextItem } from '../../canonical/item.ts';
import type { JsonObject } from '../../canonical/json.ts';
import type { Opaque } from '../../canonical/opaque.ts';
import type { Outcome } from '../../canonical/outcome.ts';
import { mergeUsage, type Usage } from '../../canonical/usage.ts';
import type { ClientEncoder, Frame, ResponseContext } from '../../codec.ts';
import { CodePointCounter } from '../../answers/citations.ts';
import { writeLogprobs } from '../../answers/logprobs.ts';
import { openAiErrorFrame } from '../../errors/openai.ts';
import { TextJoin } from '../../answers/text-join.ts';
import { writeTokenUsage } from '../../answers/token-usage.ts';
import { OWN_KIND, Turns } from '../../answers/turns.ts';
import { AnswerLosses } from '../../answers/losses.ts';
import { writeAnnotation } from './annotations.ts';
import { ChunkWriter } from './chunk-writer.ts';
import { imageSignatureId, sealedEntry, textSignatureId } from '../opaque.ts';
import {
  callsReason,
  mediaMember,
  reasoningId,
  refuseSeveralAudios,
  refuseSeveralLegacyCalls,
  SUMMARY_SEPARATOR,
  summaryEntry,
  toolCallHead,
  wantsLegacyCalls,
} from './encode-message.ts';
import { responseLosses } from '../losses.ts';
import { NativeStream } from './splice.ts';
import { finishOf } from './outcome.ts';
import { DONE } from '../wire.ts';

interface OpenItem {
  readonly head: ItemHead;
  /** Reasoning: how many parts of its summary have begun, and whether one of them has words. */
  parts: number;
  hasSummary: boolean;
  /** Tool call: its index. Reasoning: the index of its entries; -1 before the first of them. */
  index: number;
  /** Reasoning: the id of its entries. */
  id: string;
  /** Text: where it begins in the content, in code units; -1 until its first words. */
  start: number;
  /** The same in code points. */
  base: number;
}

export class ChatEncoder implements ClientEncoder {
  ended = false;
  readonly #context: ResponseContext;
  readonly #native: NativeStream;
  readonly #legacy: boolean;
  readonly #open = new Map<number, OpenItem>();
  /**
   * Clients join all pieces of one kind in order of arrival, so texts and reasoning that a responses upstream interleaves wait for items of
   * their own kind. Calls have an index and wait for nothing. Texts of other upstreams only stay open for their citations.
   */
  readonly #turns: Turns<Frame[]>;
  readonly #annotations: JsonObject[] = [];
  readonly #losses: AnswerLosses;
  readonly #chunks: ChunkWriter;
  /** The upstream speaks chat: its chunks are passed on. */
  #isNative = false;
  /** All text so far, in code points and in code units. */
  readonly #length = new CodePointCounter();
  #contentUnits = 0;
  readonly #join = new TextJoin();
  #toolCallCount = 0;
  #detailCount = 0;
  /** Something was written to the display field `reasoning`. */
  #hasReasoning = false;
  #imageCount = 0;
  #usage: Usage | undefined;
  #hasAudio = false;
  /** Where a good ending begins in the words of its batch. */
  #endsAt = 0;
  /** A step is being written. Still true after one that threw: its frames were cut off, so nothing may continue them. */
  #isWriting = false;

  constructor(context: ResponseContext) {
    this.#context = context;
    this.#native = new NativeStream(context);
    this.#losses = new AnswerLosses('chat', responseLosses, context);
    this.#legacy = wantsLegacyCalls(context);
    this.#chunks = new ChunkWriter(context);
    const holds = context.owner.channelType === 'responses' ? OWN_KIND : {};
    this.#turns = new Turns(holds, 'start', (event, out) => this.#item(event, out));
  }

  push(step: Step, out: Frame[]): void {
    if (this.ended) return;
    const native = step.native?.dialect === 'chat' ? step.native : undefined;
    if (native !== undefined) this.#isNative = true;
    const isEnd = step.events.at(-1)?.type === 'response.end';
    if (native !== undefined && !isEnd) this.#native.push(native, step.events, out);
    // The content of native frames is not encoded again.
    const isWritten = native !== undefined || (isEnd && this.#isNative);
    this.#isWriting = true;
    const events = isWritten ? step.events : this.#losses.kept(step.events);
    for (const event of events) {
      if (event.type === 'response.end') this.#finish(event.outcome, step.events, out);
      else if (isWritten) this.#note(event);
      else this.#encode(event, out);
    }
    this.#isWriting = false;
  }

  end(out: Frame[]): void {
    if (this.ended) return;
    this.fail(upstreamFault('truncated', 'The upstream ended before its answer was complete.'), out);
  }

  fail(error: GatewayError, out: Frame[]): void {
    if (this.ended) return;
    if (!this.#isWriting) this.#drain(out);
    this.ended = true;
    out.push(openAiErrorFrame(error));
  }

  /** Writes what waits for its turn: the answer fails, and the turn will not come. */
  #drain(out: Frame[]): void {
    try {
      for (const event of this.#turns.rest()) this.#item(event, out);
    } catch (refused) {
      // What this protocol refuses to write is left out: the failure that follows is the one that matters.
      if (!(refused instanceof GatewayError)) throw refused;
    }
  }

  failInstead(error: GatewayError, out: Frame[]): void {
    out.length = this.#endsAt;
    this.ended = false;
    this.fail(error, out);
  }

  /** `events`: those of the last step. */
  #finish(outcome: Outcome, events: readonly CanonicalEvent[], out: Frame[]): void {
    if (outcome.status === 'failed' || outcome.status === 'cancelled') {
      this.#drain(out);
      this.fail(outcome.error, out);
      return;
    }
    this.ended = true;
    this.#endsAt = out.length;
    if (this.#native.hasFinish) {
      this.#native.close(events, out);
      return;
    }
    // An upstream that need not finish: the finish is the gateway's, all before it the upstream's.
    if (this.#isNative) this.#native.writeRest(events, out);
    this.#chunks.role(out);
    if (this.#annotations.length > 0) this.#chunks.delta({ annotations: this.#annotations }, out);
    const finish = finishOf(outcome, this.#toolCallCount > 0 ? callsReason(this.#context) : undefined);
    const choice = { index: 0, delta: {}, logprobs: null, ...finish };
    this.#chunks.write([choice], undefined, out);
    if (this.#usage !== undefined && this.#context.request.includeUsage)
      this.#chunks.write([], writeTokenUsage(this.#usage), out);
    out.push({ event: undefined, data: DONE });
  }

  /** An event whose native frame was passed on: keeps only what the gateway's own ending would need. */
  #note(event: CanonicalEvent): void {
    switch (event.type) {
      case 'response.start':
        this.#chunks.markBegun(event.createdAt);
        return;
      case 'item.start':
        if (event.head.kind === 'toolCall') this.#toolCallCount += 1;
        return;
      case 'usage.report':
        this.#usage = mergeUsage(this.#usage, event.usage);
        return;
      default:
        return;
    }
  }

  #encode(event: CanonicalEvent, out: Frame[]): void {
    switch (event.type) {
      case 'response.start':
        this.#chunks.role(out);
        return;
      case 'usage.report':
        this.#usage = mergeUsage(this.#usage, event.usage);
        return;
      case 'item.start':
      case 'item.delta':
      case 'item.end':
        this.#turns.push(event, out);
        return;
      default:
        return;
    }
  }

  #item(event: ItemEvent, out: Frame[]): void {
    switch (event.type) {
      case 'item.start':
        this.#start(event.index, event.head, out);
        return;
      case 'item.delta': {
        const open = this.#open.get(event.index);
        if (open !== undefined) this.#piece(open, event.delta, out);
        return;
      }
      case 'item.end': {
        const open = this.#open.get(event.index);
        this.#open.delete(event.index);
        if (open !== undefined) this.#close(open, event.item, out);
        return;
      }
    }
  }

  #start(index: number, head: ItemHead, out: Frame[]): void {
    const open: OpenItem = { head, parts: 0, hasSummary: false, index: -1, id: '', start: -1, base: 0 };
    this.#open.set(index, open);
    this.#join.begin(head.kind, head.kind === 'text' ? head.phase : undefined);
    if (head.kind !== 'toolCall') return;
    open.index = this.#toolCallCount++;
    if (this.#legacy && open.index > 0) refuseSeveralLegacyCalls();
    if (this.#legacy) this.#chunks.delta({ function_call: { name: head.tool.name, arguments: '' } }, out);
    else this.#chunks.delta({ tool_calls: [{ index: open.index, ...toolCallHead(head, '') }] }, out);
  }

  /** Begins a text in the content, when its first words are known or that it has none. */
  #place(open: OpenItem, words: string, out: Frame[]): void {
    if (open.start >= 0) return;
    if (words !== '') this.#writeText(this.#join.beforeWords(), undefined, out);
    open.base = this.#length.length;
    open.start = this.#contentUnits;
  }

  #piece(open: OpenItem, delta: ItemDelta, out: Frame[]): void {
    switch (delta.kind) {
      case 'text':
        if (open.head.kind === 'refusal') {
          this.#chunks.delta({ refusal: delta.text }, out);
          return;
        }
        if (delta.text !== '') this.#place(open, delta.text, out);
        this.#writeText(delta.text, delta.logprobs, out);
        return;
      case 'raw':
        this.#chunks.delta({ reasoning_content: delta.text }, out);
        return;
      case 'summary':
        this.#summary(open, delta.part, delta.text, out);
        return;
      case 'input':
        if (delta.text !== '') this.#input(open, delta.text, out);
        return;
      case 'citation':
        // Written from the whole item, which is authoritative.
        return;
    }
  }

  /** Writes what comes with the whole item only. */
  #close(open: OpenItem, item: OutputItem, out: Frame[]): void {
    switch (item.kind) {
      case 'text':
        this.#closeText(open, item, out);
        return;
      case 'reasoning':
        this.#closeReasoning(open, item, out);
        return;
      case 'toolCall':
        this.#signature(item.opaque, item.callId, out);
        return;
      case 'media':
        this.#media(item, out);
        return;
      case 'refusal':
      case 'native':
        return;
    }
  }

  #closeText(open: OpenItem, item: TextItem, out: Frame[]): void {
    this.#place(open, '', out);
    for (const citation of item.citations) {
      const written = writeAnnotation(citation, open.base);
      if (written !== undefined) this.#annotations.push(written);
    }
    this.#signature(item.opaque, textSignatureId({ start: open.start, end: open.start + item.text.length }), out);
  }

  #closeReasoning(open: OpenItem, item: ReasoningItem, out: Frame[]): void {
    if (item.opaque === undefined) return;
    if (open.index < 0) this.#beginDetail(open, reasoningId(item, this.#context));
    this.#chunks.delta({ reasoning_details: [sealedEntry(item.opaque, open.id, open.index, this.#context)] }, out);
  }

  #media(item: MediaItem, out: Frame[]): void {
    const member = mediaMember(item, this.#context);
    if ('audio' in member) {
      if (this.#hasAudio) refuseSeveralAudios();
      this.#hasAudio = true;
      this.#chunks.delta(member, out);
      return;
    }
    // Official clients merge lists across chunks by the index of their entries.
    const index = this.#imageCount++;
    this.#chunks.delta({ images: [{ ...member.images, index }] }, out);
    this.#signature(item.opaque, imageSignatureId(index), out);
  }

  /** The opaque value of an item that is no reasoning: an entry of its own, whose id tells what it belongs to. */
  #signature(opaque: Opaque | undefined, id: string, out: Frame[]): void {
    if (opaque === undefined) return;
    this.#chunks.delta({ reasoning_details: [sealedEntry(opaque, id, this.#detailCount++, this.#context)] }, out);
  }

  /** Indices are consecutive from 0: official clients merge entries by index. */
  #beginDetail(open: OpenItem, id: string): void {
    open.id = id;
    open.index = this.#detailCount++;
  }

  #summary(open: OpenItem, part: number, text: string, out: Frame[]): void {
    const isFirst = !open.hasSummary;
    const piece = part >= open.parts && !isFirst ? SUMMARY_SEPARATOR + text : text;
    open.parts = Math.max(open.parts, part + 1);
    if (piece === '') return;
    open.hasSummary ||= text !== '';
    if (open.index < 0) {
      const id = 'id' in open.head ? open.head.id : undefined;
      this.#beginDetail(open, id ?? this.#context.mint('rs_'));
    }
    const reasoning = isFirst && this.#hasReasoning ? SUMMARY_SEPARATOR + piece : piece;
    this.#hasReasoning = true;
    this.#chunks.delta({ reasoning, reasoning_details: [summaryEntry(piece, open.id, open.index)] }, out);
  }

  #input(open: OpenItem, text: string, out: Frame[]): void {
    if (this.#legacy) {
      this.#chunks.delta({ function_call: { arguments: text } }, out);
      return;
    }
    const custom = open.head.kind === 'toolCall' && open.head.flavour === 'custom';
    const piece = custom ? { custom: { input: text } } : { function: { arguments: text } };
    this.#chunks.delta({ tool_calls: [{ index: open.index, ...piece }] }, out);
  }

  #writeText(text: string, logprobs: Logprobs | undefined, out: Frame[]): void {
    this.#length.add(text);
    this.#contentUnits += text.length;
    if (text === '' && logprobs === undefined) return;
    if (logprobs === undefined) this.#chunks.text(text, out);
    else this.#chunks.delta({ content: text }, out, { content: writeLogprobs(logprobs), refusal: null });
  }
}
