/**
 * Writes canonical items as pieces of a chat message, in order of arrival. Streams and whole bodies differ in the sink alone
 * (`delta-sinks.ts`). Knows nothing of the role, of usage and of endings.
 */
import { notRepresentable } from '../../canonical/error.ts';
import { type Growth, type ItemDelta, type ItemEvent, type ItemHead, piecesOf } from '../../canonical/event.ts';
import type {
  Logprobs,
  MediaItem,
  OutputItem,
  ReasoningItem,
  TextItem,
  TokenLogprob,
  ToolCallItem,
} from '../../canonical/item.ts';
import type { JsonObject } from '../../canonical/json.ts';
import type { Opaque } from '../../canonical/opaque.ts';
import type { ResponseContext } from '../../codec.ts';
import { append } from '../../append.ts';
import { CodePointCounter } from '../../answers/citations.ts';
import { logprobsOf, restOf, writeLogprobs } from '../../answers/logprobs.ts';
import { TextJoin } from '../../answers/text-join.ts';
import { UNKNOWN_FORMAT } from '../details.ts';
import { imageSignatureId, sealedEntry, textSignatureId } from '../opaque.ts';
import { writeAnnotation } from './annotations.ts';
import type { DeltaSink } from './delta-sinks.ts';
import { mediaMember } from './encode-media.ts';
import { wantsLegacyCalls } from './outcome.ts';

const SUMMARY_SEPARATOR = '\n\n';

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
  /** Text: the tokens that were written with their logprobs. */
  readonly tokens: TokenLogprob[];
}

export class ItemWriter {
  /** The annotations of all texts so far. They are written last, since their texts may not have ended. */
  readonly annotations: JsonObject[] = [];
  readonly #context: ResponseContext;
  readonly #sink: DeltaSink;
  readonly #legacy: boolean;
  readonly #open = new Map<number, OpenItem>();
  /** All text so far, in code points and in code units. */
  readonly #length = new CodePointCounter();
  #contentUnits = 0;
  /** Where the text begins whose logprobs were written last: theirs have the order of the texts. */
  #scored = 0;
  readonly #join = new TextJoin();
  #toolCallCount = 0;
  #detailCount = 0;
  /** Something was written to the display field `reasoning`. */
  #hasReasoning = false;
  #imageCount = 0;
  #hasAudio = false;

  constructor(context: ResponseContext, sink: DeltaSink) {
    this.#context = context;
    this.#sink = sink;
    this.#legacy = wantsLegacyCalls(context);
  }

  get hasCalls(): boolean {
    return this.#toolCallCount > 0;
  }

  write(event: ItemEvent): void {
    switch (event.type) {
      case 'item.start':
        this.#start(event.index, event.head);
        return;
      case 'item.delta': {
        const open = this.#open.get(event.index);
        if (open !== undefined) this.#delta(open, event.delta);
        return;
      }
      case 'item.end': {
        const open = this.#open.get(event.index);
        this.#open.delete(event.index);
        if (open !== undefined) this.#close(open, event.item);
        return;
      }
    }
  }

  #start(index: number, head: ItemHead): void {
    const open: OpenItem = { head, parts: 0, hasSummary: false, index: -1, id: '', start: -1, base: 0, tokens: [] };
    this.#open.set(index, open);
    this.#join.begin(head.kind, head.kind === 'text' ? head.phase : undefined);
    if (head.kind !== 'toolCall') return;
    open.index = this.#toolCallCount++;
    if (this.#legacy && open.index > 0)
      throw notRepresentable('A client of the deprecated function calls can take one call only.');
    if (this.#legacy) this.#sink.delta({ function_call: { name: head.tool.name, arguments: '' } });
    else this.#sink.delta({ tool_calls: [{ index: open.index, ...toolCallHead(head, '') }] });
  }

  /** Begins a text in the content, when its first words are known or that it has none. */
  #place(open: OpenItem, text: string): void {
    if (open.start >= 0) return;
    if (text !== '') this.#writeText({ text: this.#join.separator() }, undefined);
    open.base = this.#length.length;
    open.start = this.#contentUnits;
  }

  #delta(open: OpenItem, delta: ItemDelta): void {
    switch (delta.kind) {
      case 'text':
        if (open.head.kind === 'refusal') {
          for (const refusal of piecesOf(delta)) this.#sink.delta({ refusal });
          return;
        }
        if (delta.text !== '') this.#place(open, delta.text);
        this.#writeText(delta, delta.logprobs);
        if (delta.logprobs !== undefined) this.#noteScored(open, delta.logprobs);
        return;
      case 'raw':
        for (const reasoning_content of piecesOf(delta)) this.#sink.delta({ reasoning_content });
        return;
      case 'summary':
        for (const piece of piecesOf(delta)) this.#summary(open, delta.part, piece);
        return;
      case 'input':
        if (delta.text !== '') for (const piece of piecesOf(delta)) this.#input(open, piece);
        return;
      case 'citation':
        // Written from the whole item, which is authoritative.
        return;
    }
  }

  /** Writes what comes with the whole item only. */
  #close(open: OpenItem, item: OutputItem): void {
    switch (item.kind) {
      case 'text':
        this.#closeText(open, item);
        return;
      case 'reasoning':
        this.#closeReasoning(open, item);
        return;
      case 'toolCall':
        this.#signature(item.opaque, item.callId);
        return;
      case 'media':
        this.#media(item);
        return;
      case 'refusal':
      case 'native':
        return;
    }
  }

  #noteScored(open: OpenItem, logprobs: Logprobs): void {
    append(open.tokens, logprobs);
    this.#scored = Math.max(this.#scored, open.start);
  }

  /** Logprobs that came behind their text, or with the whole of it. */
  #writeLateLogprobs(open: OpenItem, { text, logprobs }: TextItem): void {
    const late = restOf(logprobsOf(text, logprobs) ?? [], open.tokens);
    if (late.length === 0 || open.start < this.#scored) return;
    this.#writeText({ text: '' }, late);
    this.#noteScored(open, late);
  }

  #closeText(open: OpenItem, item: TextItem): void {
    this.#place(open, '');
    this.#writeLateLogprobs(open, item);
    for (const citation of item.citations) {
      const written = writeAnnotation(citation, open.base);
      if (written !== undefined) this.annotations.push(written);
    }
    this.#signature(item.opaque, textSignatureId({ start: open.start, end: open.start + item.text.length }));
  }

  #closeReasoning(open: OpenItem, item: ReasoningItem): void {
    if (item.opaque === undefined) return;
    if (open.index < 0) this.#beginDetail(open, item.id ?? item.opaque.itemId ?? this.#context.mint('rs_'));
    this.#sink.delta({ reasoning_details: [sealedEntry(item.opaque, open.id, open.index, this.#context)] });
  }

  #media(item: MediaItem): void {
    const member = mediaMember(item, this.#context);
    if ('audio' in member) {
      // A client would join the pieces of two.
      if (this.#hasAudio) throw notRepresentable('The answer holds several audios, and a chat message can hold one.');
      this.#hasAudio = true;
      this.#sink.delta(member);
      return;
    }
    // Official clients merge lists across chunks by the index of their entries.
    const index = this.#imageCount++;
    this.#sink.delta({ images: [{ ...member.images, index }] });
    this.#signature(item.opaque, imageSignatureId(index));
  }

  /** The opaque value of an item that is no reasoning: an entry of its own, whose id tells what it belongs to. */
  #signature(opaque: Opaque | undefined, id: string): void {
    if (opaque === undefined) return;
    this.#sink.delta({ reasoning_details: [sealedEntry(opaque, id, this.#detailCount++, this.#context)] });
  }

  /** Indices are consecutive from 0: official clients merge entries by index. */
  #beginDetail(open: OpenItem, id: string): void {
    open.id = id;
    open.index = this.#detailCount++;
  }

  #summary(open: OpenItem, part: number, text: string): void {
    const isFirst = !open.hasSummary;
    const piece = part >= open.parts && !isFirst ? SUMMARY_SEPARATOR + text : text;
    open.parts = Math.max(open.parts, part + 1);
    if (piece === '') return;
    open.hasSummary ||= text !== '';
    if (open.index < 0) {
      this.#beginDetail(open, open.head.id ?? this.#context.mint('rs_'));
    }
    const reasoning = isFirst && this.#hasReasoning ? SUMMARY_SEPARATOR + piece : piece;
    this.#hasReasoning = true;
    const entry = { type: 'reasoning.summary', summary: piece, id: open.id, format: UNKNOWN_FORMAT, index: open.index };
    this.#sink.delta({ reasoning, reasoning_details: [entry] });
  }

  #input(open: OpenItem, text: string): void {
    if (this.#legacy) {
      this.#sink.delta({ function_call: { arguments: text } });
      return;
    }
    const custom = open.head.kind === 'toolCall' && open.head.toolType === 'custom';
    const piece = custom ? { custom: { input: text } } : { function: { arguments: text } };
    this.#sink.delta({ tool_calls: [{ index: open.index, ...piece }] });
  }

  #writeText(said: Growth, logprobs: Logprobs | undefined): void {
    const { text } = said;
    this.#length.add(text);
    this.#contentUnits += text.length;
    if (text === '' && logprobs === undefined) return;
    if (logprobs === undefined) this.#sink.text(said);
    else this.#sink.delta({ content: text }, { content: writeLogprobs(logprobs), refusal: null });
  }
}

export function toolCallHead(item: Pick<ToolCallItem, 'toolType' | 'callId' | 'tool'>, input: string): JsonObject {
  const { toolType, callId: id, tool } = item;
  if (toolType === 'custom') return { id, type: 'custom', custom: { name: tool.name, input } };
  return { id, type: 'function', function: { name: tool.name, arguments: input } };
}
