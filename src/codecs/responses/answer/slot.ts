/**
 * One output item of an upstream stream while it is decoded: the facts of this dialect. What it has streamed is in its canonical
 * items.
 */
import type { ItemHead } from '../../canonical/event.ts';
import type { OpenItem } from '../../canonical/fold.ts';
import type { OutputItem, RefusalItem, TextItem } from '../../canonical/item.ts';
import type { JsonObject } from '../../canonical/json.ts';
import type { Written } from '../../answers/written.ts';
import { fitCitations } from '../../answers/citations.ts';
import { logprobsOf } from '../../answers/logprobs.ts';
import type { ItemTrack } from '../lifecycle.ts';
import { nonEmptyString } from '../wire.ts';

export interface TextPart {
  /** A text or a refusal. */
  readonly item: OpenItem;
  /** The annotations and logprobs that were streamed, as they came. */
  readonly annotations: JsonObject[];
  readonly logprobs: JsonObject[];
  /** The part as its `content_part.done` has it, once that came. */
  final: JsonObject | undefined;
  /** Its whole text; undefined until it has ended. */
  whole: string | undefined;
}

/** One output item. */
export interface Slot {
  readonly outputIndex: number;
  readonly type: string;
  /** What the order knows of it. */
  readonly track: ItemTrack;
  /** The latest form: as announced, then as finished. */
  item: JsonObject;
  /** The canonical item, once it has started. A message has none: each of its parts is a canonical item. */
  open: OpenItem | undefined;
  readonly parts: (TextPart | undefined)[];
  /** Parts that are done and have not ended, since the finished item may still bring annotations. */
  readonly doneParts: TextPart[];
  /** The raw texts of reasoning: places in the one text of its canonical item. */
  readonly raw: Written[];
  /** The input of a call that has not started, since its name or its call id is unknown. */
  held: string;
  closed: boolean;
  /** A call that the vendor itself ran, so that nobody is to answer it: it stays native. */
  readonly ranByVendor: boolean;
  /** Another item took its index (`repair-indices.ts`): the terminal may leave it out. */
  isDisplaced: boolean;
}

/** The input of a call as far as it was streamed. */
export function streamedInput({ open, held }: Slot): string {
  return open?.text ?? held;
}

export function reasoningHead(slot: Slot): ItemHead {
  const id = nonEmptyString(slot.item, 'id');
  return { kind: 'reasoning', ...(id === undefined ? {} : { id }) };
}

export function partHead(slot: Slot, kind: 'text' | 'refusal'): ItemHead {
  const id = nonEmptyString(slot.item, 'id');
  const facts = id === undefined ? {} : { id };
  if (kind === 'refusal') return { kind, ...facts };
  const phase = nonEmptyString(slot.item, 'phase');
  return { kind, role: 'assistant', ...(phase === undefined ? {} : { phase }), ...facts };
}

/** A part as a finished item: its final form where there is one, completed with what was streamed. */
export function finishedPart(slot: Slot, { item: streamed }: TextPart, read: OutputItem | undefined): TextItem | RefusalItem {
  const id = nonEmptyString(slot.item, 'id');
  const facts = id === undefined ? {} : { id };
  const text = read !== undefined && 'text' in read ? read.text : streamed.text;
  if (streamed.head.kind === 'refusal') return { kind: 'refusal', text, ...facts };
  const final = read?.kind === 'text' ? read : undefined;
  const cited = final !== undefined && final.citations.length > 0 ? final.citations : streamed.citations;
  const logprobs = final?.logprobs ?? logprobsOf(text, streamed.logprobs);
  const phase = nonEmptyString(slot.item, 'phase');
  return {
    kind: 'text',
    role: 'assistant',
    text,
    citations: fitCitations(text, [...cited]),
    ...(logprobs === undefined ? {} : { logprobs }),
    ...(phase === undefined ? {} : { phase }),
    ...facts,
  };
}
