/**
 * Canonical steps into chat-completions chunks: a role chunk, pieces in order of arrival, one finish chunk, the usage chunk
 * where the client asked, `[DONE]`. Chunks of a chat upstream go through `native-stream.ts`. A failure is an `error` frame
 * and nothing after it.
 */
import { grown } from '../canonical/grown.ts';
import { type GatewayError, upstreamFault } from '../canonical/error.ts';
import type { CanonicalEvent, ItemDelta, ItemHead, Step } from '../canonical/event.ts';
import type { Logprobs, MediaItem, OutputItem, ReasoningItem, TextItem } from '../canonical/item.ts';
import type { JsonObject } from '../canonical/json.ts';
import type { Opaque } from '../canonical/opaque.ts';
import type { Outcome } from '../canonical/outcome.ts';
import { mergeUsage, type Usage } from '../canonical/usage.ts';
import type { ClientEncoder, Frame, ResponseContext } from '../codec.ts';
import { GrowingLength } from '../answers/citations.ts';
import { writeLogprobs } from '../answers/logprobs.ts';
import { openAiErrorFrame } from '../errors/openai.ts';
import { writeTokenUsage } from '../answers/token-usage.ts';
import { type ItemEvent, OWN_KIND, Turns } from '../answers/turns.ts';
import { annotation } from './annotations.ts';
import { ChunkWriter } from './chunk-writer.ts';
import { imageSignatureId, sealedEntry } from './envelopes.ts';
import {
  callsReason,
  mediaMember,
  reasoningId,
  refuseSeveralAudios,
  refuseSeveralLegacyCalls,
  SUMMARY_SEPARATOR,
  summaryEntry,
  TEXT_SEPARATOR,
  toolCallHead,
  wantsLegacyCalls,
} from './message.ts';
import { NativeStream } from './native-stream.ts';
import { finishOf } from './outcome.ts';
import { textSignatureId } from './signed-texts.ts';
import { DONE } from './wire.ts';

interface Open {
  readonly head: ItemHead;
  /** Text, raw reasoning or input said so far. */
  said: string;
  readonly summary: string[];
  /** Tool call: its index. Reasoning: the index of its entries; -1 before the first of them. */
  index: number;
  /** Reasoning: the id of its entries. */
  id: string;
  /** Text: where it begins in the content, in code units, and in code points. */
  start: number;
  base: number;
}

export class ChatEncoder implements ClientEncoder {
  ended = false;
  readonly #context: ResponseContext;
  readonly #native: NativeStream;
  readonly #legacy: boolean;
  readonly #open = new Map<number, Open>();
  /**
   * Clients join what is said of one kind as it comes, so texts and thoughts that a responses upstream says side by side wait for their own
   * kind. Calls have an index and keep nobody waiting, nor do texts of other upstreams, which stay open for their citations alone.
   */
  readonly #turns: Turns<Frame[]>;
  readonly #annotations: JsonObject[] = [];
  readonly #chunks: ChunkWriter;
  #isNative = false;
  #content = '';
  readonly #length = new GrowingLength();
  /** The kind of the item that began last, and the phase of the text that did. */
  #last: ItemHead['kind'] | undefined;
  #phase: string | undefined;
  #toolCalls = 0;
  #details = 0;
  /** An item has said something in the display field `reasoning`. */
  #hasReasoning = false;
  #images = 0;
  #usage: Usage | undefined;
  #hasAudio = false;
  /** Where a good ending begins in the words of its batch. */
  #endsAt = 0;

  constructor(context: ResponseContext) {
    this.#context = context;
    this.#native = new NativeStream(context);
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
    // What native frames said, or will say at the end, is not said again.
    const isSaid = native !== undefined || (isEnd && this.#isNative);
    for (const event of step.events) {
      if (event.type === 'response.end') this.#finish(event.outcome, step.events, out);
      else if (isSaid) this.#note(event);
      else this.#encode(event, out);
    }
  }

  end(out: Frame[]): void {
    if (this.ended) return;
    this.fail(upstreamFault('truncated', 'The upstream ended before its answer was complete.'), out);
  }

  fail(error: GatewayError, out: Frame[]): void {
    if (this.ended) return;
    this.ended = true;
    out.push(openAiErrorFrame(error));
  }

  failInstead(error: GatewayError, out: Frame[]): void {
    out.length = this.#endsAt;
    this.ended = false;
    this.fail(error, out);
  }

  /** `events`: those that came with the end. */
  #finish(outcome: Outcome, events: readonly CanonicalEvent[], out: Frame[]): void {
    if (outcome.status === 'failed' || outcome.status === 'cancelled') {
      this.fail(outcome.error, out);
      return;
    }
    this.ended = true;
    this.#endsAt = out.length;
    if (this.#native.hasFinish) {
      this.#native.close(events, out);
      return;
    }
    this.#chunks.role(out);
    if (this.#annotations.length > 0) this.#chunks.delta({ annotations: this.#annotations }, out);
    const finish = finishOf(outcome, this.#toolCalls > 0 ? callsReason(this.#context) : undefined);
    const choice = { index: 0, delta: {}, logprobs: null, ...finish };
    this.#chunks.write([choice], undefined, out);
    if (this.#usage !== undefined && this.#context.request.includeUsage)
      this.#chunks.write([], writeTokenUsage(this.#usage), out);
    out.push({ event: undefined, data: DONE });
  }

  /** What native frames say: only what an ending in our own words would need is kept. */
  #note(event: CanonicalEvent): void {
    switch (event.type) {
      case 'response.start':
        this.#chunks.begun(event.createdAt);
        return;
      case 'item.start':
        if (event.head.kind === 'toolCall') this.#toolCalls += 1;
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
    const open: Open = { head, said: '', summary: [], index: -1, id: '', start: 0, base: 0 };
    this.#open.set(index, open);
    const before = this.#last;
    this.#last = head.kind;
    switch (head.kind) {
      case 'text': {
        const isParted = before !== 'text' || this.#phase !== head.phase;
        this.#phase = head.phase;
        if (this.#content !== '' && isParted) this.#say(TEXT_SEPARATOR, undefined, out);
        open.base = this.#length.of(this.#content);
        open.start = this.#content.length;
        break;
      }
      case 'toolCall': {
        open.index = this.#toolCalls++;
        if (this.#legacy && open.index > 0) refuseSeveralLegacyCalls();
        if (this.#legacy) this.#chunks.delta({ function_call: { name: head.tool.name, arguments: '' } }, out);
        else this.#chunks.delta({ tool_calls: [{ index: open.index, ...toolCallHead(head, '') }] }, out);
        break;
      }
    }
  }

  #piece(open: Open, delta: ItemDelta, out: Frame[]): void {
    switch (delta.kind) {
      case 'text':
        open.said = grown(open.said, delta.text);
        if (open.head.kind === 'refusal') this.#chunks.delta({ refusal: delta.text }, out);
        else this.#say(delta.text, delta.logprobs, out);
        return;
      case 'raw':
        open.said = grown(open.said, delta.text);
        this.#chunks.delta({ reasoning_content: delta.text }, out);
        return;
      case 'summary':
        this.#summary(open, delta.part, delta.text, out);
        return;
      case 'input':
        if (delta.text === '') return;
        open.said = grown(open.said, delta.text);
        this.#input(open, delta.text, out);
        return;
      case 'citation':
        // Said from the whole item, which is authoritative.
        return;
    }
  }

  /** Says what the deltas did not. */
  #close(open: Open, item: OutputItem, out: Frame[]): void {
    switch (item.kind) {
      case 'text':
        this.#closeText(open, item, out);
        return;
      case 'refusal': {
        const rest = item.text.slice(open.said.length);
        if (rest !== '') this.#chunks.delta({ refusal: rest }, out);
        return;
      }
      case 'reasoning':
        this.#closeReasoning(open, item, out);
        return;
      case 'toolCall': {
        const rest = item.input.slice(open.said.length);
        if (rest !== '') this.#input(open, rest, out);
        this.#signature(item.opaque, item.callId, out);
        return;
      }
      case 'media':
        this.#media(item, out);
        return;
      case 'native':
        return;
    }
  }

  #closeText(open: Open, item: TextItem, out: Frame[]): void {
    const rest = item.text.slice(open.said.length);
    // Logprobs describe the whole text: they fit only where nothing of it was said before.
    if (rest !== '') this.#say(rest, open.said === '' ? item.logprobs : undefined, out);
    for (const citation of item.citations) {
      const said = annotation(citation, open.base);
      if (said !== undefined) this.#annotations.push(said);
    }
    this.#signature(item.opaque, textSignatureId({ start: open.start, end: open.start + item.text.length }), out);
  }

  #closeReasoning(open: Open, item: ReasoningItem, out: Frame[]): void {
    const rest = (item.raw ?? '').slice(open.said.length);
    if (rest !== '') this.#chunks.delta({ reasoning_content: rest }, out);
    for (const [part, whole] of (item.summary ?? []).entries()) {
      const said = open.summary[part] ?? '';
      if (whole !== said && whole.startsWith(said)) this.#summary(open, part, whole.slice(said.length), out);
    }
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
    // Official clients put lists of several chunks together by the index of their entries.
    const index = this.#images++;
    this.#chunks.delta({ images: [{ ...member.images, index }] }, out);
    this.#signature(item.opaque, imageSignatureId(index), out);
  }

  /** The opaque value of what is no reasoning: a detail of its own, which says by its id what it belongs to. */
  #signature(opaque: Opaque | undefined, id: string, out: Frame[]): void {
    if (opaque === undefined) return;
    this.#chunks.delta({ reasoning_details: [sealedEntry(opaque, id, this.#details++, this.#context)] }, out);
  }

  /** Entries count from 0 without a hole: official clients put them together by their index. */
  #beginDetail(open: Open, id: string): void {
    open.id = id;
    open.index = this.#details++;
  }

  #summary(open: Open, part: number, text: string, out: Frame[]): void {
    const isFirst = open.summary.every((said) => said === '');
    let piece = text;
    if (part >= open.summary.length && open.summary.some((said) => said !== '')) piece = SUMMARY_SEPARATOR + text;
    while (open.summary.length <= part) open.summary.push('');
    open.summary[part] = grown(open.summary[part] ?? '', text);
    if (piece === '') return;
    if (open.index < 0) {
      const id = 'id' in open.head ? open.head.id : undefined;
      this.#beginDetail(open, id ?? this.#context.mint('rs_'));
    }
    const reasoning = isFirst && this.#hasReasoning ? SUMMARY_SEPARATOR + piece : piece;
    this.#hasReasoning = true;
    this.#chunks.delta({ reasoning, reasoning_details: [summaryEntry(piece, open.id, open.index)] }, out);
  }

  #input(open: Open, text: string, out: Frame[]): void {
    if (this.#legacy) {
      this.#chunks.delta({ function_call: { arguments: text } }, out);
      return;
    }
    const custom = open.head.kind === 'toolCall' && open.head.flavour === 'custom';
    const piece = custom ? { custom: { input: text } } : { function: { arguments: text } };
    this.#chunks.delta({ tool_calls: [{ index: open.index, ...piece }] }, out);
  }

  #say(text: string, logprobs: Logprobs | undefined, out: Frame[]): void {
    this.#content = grown(this.#content, text);
    if (text === '' && logprobs === undefined) return;
    if (logprobs === undefined) this.#chunks.text(text, out);
    else this.#chunks.delta({ content: text }, out, { content: writeLogprobs(logprobs), refusal: null });
  }
}
