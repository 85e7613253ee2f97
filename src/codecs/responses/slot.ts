/** One output item of an upstream stream while it is being said, and the canonical heads, deltas and ends made from it. */
import { upstreamFault } from '../canonical/error.ts';
import type { ItemDelta, ItemHead } from '../canonical/event.ts';
import type { Citation, Logprobs, OutputItem, TokenLogprob } from '../canonical/item.ts';
import type { JsonObject } from '../canonical/json.ts';
import { fitCitations } from '../answers/citations.ts';
import type { DecodeContext } from '../codec.ts';
import { logprobsOf } from '../answers/logprobs.ts';
import { inputMember, joinRaw, readCall } from './read-items.ts';
import { nonEmptyString } from './wire.ts';

export interface TextPart {
  readonly index: number;
  readonly kind: 'text' | 'refusal';
  text: string;
  readonly citations: Citation[];
  readonly logprobs: TokenLogprob[];
  /** `content_part.done`, once it came. */
  done: JsonObject | undefined;
  ended: boolean;
}

/** One output item. `index` is its canonical index once it has started; the parts of a message have one each, and it has none. */
export interface Slot {
  readonly outputIndex: number;
  readonly type: string;
  /** The latest form: as announced, then as finished. */
  item: JsonObject;
  index: number | undefined;
  readonly parts: (TextPart | undefined)[];
  /** Parts that are done and wait for their end, since the whole item may still bring annotations. */
  readonly done: TextPart[];
  readonly raw: string[];
  readonly summary: string[];
  input: string;
  closed: boolean;
  /** A call that nobody is to answer (`ranByVendor`): other dialects are not told of it. */
  readonly isVendors: boolean;
  /** Another item took its index (`places.ts`): it has no end of its own, and no place in the terminal. */
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

/** What is known of an item when it begins, of one that is known whole. */
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

/** What a whole item says, as deltas: text once, then its citations. Other kinds need none, their end says all. */
export function wholeDeltas(item: OutputItem): ItemDelta[] {
  if (item.kind !== 'text' && item.kind !== 'refusal') return [];
  const logprobs = item.kind === 'text' ? item.logprobs : undefined;
  const citations = item.kind === 'text' ? item.citations : [];
  return [
    ...(item.text === '' ? [] : [textOf(item.text, logprobs)]),
    ...citations.map((citation) => ({ kind: 'citation', citation }) as const),
  ];
}

/** The reasoning or the call of an answer that was cut, as it stands. */
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

/** The end of a part: its last form where there is one, with what only the stream said. */
export function finishedPart(slot: Slot, part: TextPart, said: OutputItem | undefined): OutputItem {
  const id = nonEmptyString(slot.item, 'id');
  const facts = id === undefined ? {} : { id };
  if (part.kind === 'refusal') return { kind: 'refusal', text: part.text, ...facts };
  const final = said?.kind === 'text' ? said : undefined;
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
