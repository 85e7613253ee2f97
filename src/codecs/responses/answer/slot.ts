/** One output item of an upstream stream while it is decoded, and the canonical heads, deltas and ends made from it. */
import { upstreamFault } from '../../canonical/error.ts';
import type { ItemDelta, ItemHead } from '../../canonical/event.ts';
import type { Citation, Logprobs, OutputItem, TokenLogprob } from '../../canonical/item.ts';
import type { JsonObject } from '../../canonical/json.ts';
import { fitCitations } from '../../answers/citations.ts';
import type { DecodeContext } from '../../codec.ts';
import { logprobsOf } from '../../answers/logprobs.ts';
import { inputMember, joinRaw, readCall } from './decode-items.ts';
import { nonEmptyString } from '../wire.ts';

export interface TextPart {
  readonly index: number;
  readonly kind: 'text' | 'refusal';
  text: string;
  readonly citations: Citation[];
  readonly logprobs: TokenLogprob[];
  /** The part as its `content_part.done` has it, once that came. */
  final: JsonObject | undefined;
  ended: boolean;
}

/** One output item. */
export interface Slot {
  readonly outputIndex: number;
  readonly type: string;
  /** The latest form: as announced, then as finished. */
  item: JsonObject;
  /** The canonical index, once the item has started. A message has none: each of its parts is a canonical item. */
  index: number | undefined;
  readonly parts: (TextPart | undefined)[];
  /** Parts that are done and have not ended, since the finished item may still bring annotations. */
  readonly doneParts: TextPart[];
  readonly raw: string[];
  /** One of these texts has words. */
  hasRaw: boolean;
  readonly summary: string[];
  input: string;
  closed: boolean;
  /** A call that the vendor itself ran, so that nobody is to answer it: it stays native. */
  readonly ranByVendor: boolean;
  /** Another item took its index (`repair-indices.ts`): it gets no output_item.done, and the terminal may leave it out. */
  isDisplaced: boolean;
}

export function textOf(text: string, logprobs: Logprobs | undefined): Extract<ItemDelta, { kind: 'text' }> {
  return logprobs === undefined ? { kind: 'text', text } : { kind: 'text', text, logprobs };
}

export function reasoningHead(slot: Slot): ItemHead {
  const id = nonEmptyString(slot.item, 'id');
  return { kind: 'reasoning', ...(id === undefined ? {} : { id }) };
}

export function partHead(slot: Slot, kind: TextPart['kind']): ItemHead {
  const id = nonEmptyString(slot.item, 'id');
  const facts = id === undefined ? {} : { id };
  if (kind === 'refusal') return { kind, ...facts };
  const phase = nonEmptyString(slot.item, 'phase');
  return { kind, role: 'assistant', ...(phase === undefined ? {} : { phase }), ...facts };
}

export function headOf(call: ReturnType<typeof readCall>) {
  const { flavour, callId, tool, id } = call;
  return { flavour, callId, tool, ...(id === undefined ? {} : { id }) };
}

/** The head of an item that is known whole. */
export function wholeHead(item: OutputItem): ItemHead {
  const facts = item.id === undefined ? {} : { id: item.id };
  switch (item.kind) {
    case 'text':
      return { kind: 'text', role: item.role, ...(item.phase === undefined ? {} : { phase: item.phase }), ...facts };
    case 'refusal':
    case 'reasoning':
    case 'media':
      return { kind: item.kind, ...facts };
    case 'toolCall':
      return { kind: 'toolCall', ...headOf(item) };
    case 'native':
      return { kind: 'native', dialect: item.dialect, ...facts };
  }
}

/** The deltas of an item that is known whole: its text, then its citations. The other kinds need none, since the end has the whole item. */
export function wholeDeltas(item: OutputItem): ItemDelta[] {
  if (item.kind !== 'text' && item.kind !== 'refusal') return [];
  const logprobs = item.kind === 'text' ? item.logprobs : undefined;
  const citations = item.kind === 'text' ? item.citations : [];
  return [
    ...(item.text === '' ? [] : [textOf(item.text, logprobs)]),
    ...citations.map((citation) => ({ kind: 'citation', citation }) as const),
  ];
}

/** A reasoning item or a call as far as it was streamed, for an answer that was cut. */
export function partialOf(slot: Slot, context: DecodeContext): OutputItem {
  if (slot.type !== 'reasoning') {
    return readCall({ ...slot.item, status: 'incomplete', [inputMember(slot.item)]: slot.input }, context);
  }
  const raw = joinRaw(slot.raw);
  const id = nonEmptyString(slot.item, 'id');
  return {
    kind: 'reasoning',
    ...(raw === '' ? {} : { raw }),
    ...(slot.summary.length === 0 ? {} : { summary: [...slot.summary] }),
    ...(id === undefined ? {} : { id }),
  };
}

/** A part as a finished item: its final form where there is one, completed with what was streamed. */
export function finishedPart(slot: Slot, part: TextPart, read: OutputItem | undefined): OutputItem {
  const id = nonEmptyString(slot.item, 'id');
  const facts = id === undefined ? {} : { id };
  if (part.kind === 'refusal') return { kind: 'refusal', text: part.text, ...facts };
  const final = read?.kind === 'text' ? read : undefined;
  const cited = final !== undefined && final.citations.length > 0 ? final.citations : part.citations;
  const logprobs = final?.logprobs ?? logprobsOf(part.text, part.logprobs);
  const phase = nonEmptyString(slot.item, 'phase');
  return {
    kind: 'text',
    role: 'assistant',
    text: part.text,
    citations: fitCitations(part.text, [...cited]),
    ...(logprobs === undefined ? {} : { logprobs }),
    ...(phase === undefined ? {} : { phase }),
    ...facts,
  };
}

export function contradiction(type: string) {
  return upstreamFault('illegal_lifecycle', `The upstream's final ${type} contradicts what it streamed.`);
}
