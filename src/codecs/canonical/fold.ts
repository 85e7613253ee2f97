/**
 * Folds a stream of canonical events into the whole answer. A whole answer is a stream that arrived at once, so streams and whole
 * answers cannot differ (law 4).
 */
import { append } from '../append.ts';
import type { CanonicalEvent, FoldedTexts, ItemDelta, ItemHead, StreamedTexts } from './event.ts';
import type { NativeEventFeature } from './features.ts';
import { grown } from './grown.ts';
import type { Citation, ItemStatus, OutputItem, TokenLogprob } from './item.ts';
import type { Outcome } from './outcome.ts';
import { mergeUsage, type Served, type Usage } from './usage.ts';

export interface WholeItem {
  readonly item: OutputItem;
  readonly status: ItemStatus;
}

/** A finished answer. */
export interface Whole {
  /** The upstream's own time, in Unix seconds. */
  readonly createdAt?: number;
  readonly items: readonly WholeItem[];
  readonly usage?: Usage;
  /** As the start of the answer says it; that of a usage report comes with the usage. */
  readonly served?: Served;
  readonly outcome: Outcome;
  /** What stands in no item: which kinds of native events there were. Absent: none. */
  readonly events?: ReadonlySet<NativeEventFeature>;
}

/** What is known of an item while it is open: the concatenation of its deltas. */
export interface OpenItem extends StreamedTexts {
  readonly index: number;
  readonly head: ItemHead;
  text: string;
  readonly summary: string[];
  readonly citations: Citation[];
  logprobs: TokenLogprob[] | undefined;
}

/** An item is open at first, and whole after its end. */
interface Entry {
  readonly streamed: OpenItem;
  whole: WholeItem | undefined;
}

/** Accumulates events that the order has accepted. */
export class Fold implements FoldedTexts {
  #createdAt: number | undefined;
  #served: Served | undefined;
  #usage: Usage | undefined;
  /** Output has come since output was last counted. */
  #isAhead = false;
  #outcome: Outcome | undefined;
  #events: Set<NativeEventFeature> | undefined;
  readonly #items: Entry[] = [];

  /** Some of what was asked for is there. */
  get isBegun(): boolean {
    return this.#items.length > 0;
  }

  get usage(): Usage | undefined {
    return this.#usage;
  }
  /** True when output came after the last report of it: its tokens are then a placeholder, or those until then. */
  get isUsageEarly(): boolean {
    return this.#usage !== undefined && this.#isAhead;
  }
  /** As the start of the answer says it; that of a usage report comes with the usage. */
  get served(): Served | undefined {
    return this.#served;
  }
  get outcome(): Outcome | undefined {
    return this.#outcome;
  }

  /** The item at `index` while it is open. */
  open(index: number): OpenItem | undefined {
    const entry = this.#items[index];
    return entry?.whole === undefined ? entry?.streamed : undefined;
  }

  /** The texts of the item at `index`, for those who wrote its deltas. */
  texts(index: number): StreamedTexts | undefined {
    return this.#items[index]?.streamed;
  }

  push(event: CanonicalEvent): void {
    switch (event.type) {
      case 'response.start':
        this.#createdAt = event.createdAt;
        this.#served = event.served;
        return;
      case 'item.start':
        this.#items.push({ streamed: newlyOpen(event.index, event.head), whole: undefined });
        this.#isAhead = true;
        return;
      case 'item.delta': {
        // A citation belongs to a text that was counted already.
        if (event.delta.kind !== 'citation') this.#isAhead = true;
        const open = this.open(event.index);
        if (open !== undefined) extend(open, event.delta);
        return;
      }
      case 'item.end':
        this.#end(event);
        return;
      case 'usage.report':
        if (event.isOutputOlder !== true) this.#isAhead = false;
        this.#usage = mergeUsage(this.#usage, event.usage);
        return;
      case 'response.end':
        this.#outcome = event.outcome;
        return;
      case 'native.event':
        this.#events ??= new Set();
        this.#events.add(featureOfNative(event));
        return;
    }
  }

  #end({ index, item, status }: Extract<CanonicalEvent, { type: 'item.end' }>): void {
    const entry = this.#items[index];
    if (entry === undefined) return;
    entry.whole = { item, status };
    // The whole item has the text, so that one copy of it is enough.
    const { streamed } = entry;
    if (item.kind === 'toolCall') streamed.text = item.input;
    else if (item.kind === 'reasoning') streamed.text = item.raw ?? streamed.text;
    else if ('text' in item) streamed.text = item.text;
  }

  /** The answer so far; open items count as incomplete. `outcome` is used where the stream has not ended. */
  whole(outcome: Outcome): Whole {
    const items = this.#items.flatMap(closedItem);
    const createdAt = this.#createdAt === undefined ? {} : { createdAt: this.#createdAt };
    const usage = this.#usage === undefined ? {} : { usage: this.#usage };
    const served = this.#served === undefined ? {} : { served: this.#served };
    const events = this.#events === undefined ? {} : { events: this.#events };
    return { ...createdAt, items, ...usage, ...served, outcome: this.#outcome ?? outcome, ...events };
  }
}

/** Citations that came after their text had ended are events of chat. */
function featureOfNative({ dialect, name }: Extract<CanonicalEvent, { type: 'native.event' }>): NativeEventFeature {
  return dialect === 'chat' && name === 'annotations' ? 'citation of an ended text' : 'native event';
}

/** An item of which nothing was streamed yet. */
export function newlyOpen(index: number, head: ItemHead): OpenItem {
  return { index, head, text: '', summary: [], citations: [], logprobs: undefined };
}

function closedItem({ streamed, whole }: Entry): WholeItem[] {
  if (whole !== undefined) return [whole];
  const item = partialItem(streamed);
  return item === undefined ? [] : [{ item, status: 'incomplete' }];
}

/** Adds a delta to an open item. Its kind must fit that of the item. */
export function extend(open: OpenItem, delta: ItemDelta): void {
  switch (delta.kind) {
    case 'text':
      open.text = grown(open.text, delta.text);
      if (delta.logprobs !== undefined) {
        open.logprobs ??= [];
        append(open.logprobs, delta.logprobs);
      }
      return;
    case 'raw':
    case 'input':
      open.text = grown(open.text, delta.text);
      return;
    case 'summary':
      while (open.summary.length <= delta.part) open.summary.push('');
      open.summary[delta.part] = grown(open.summary[delta.part] ?? '', delta.text);
      return;
    case 'citation':
      open.citations.push(delta.citation);
      return;
  }
}

/** The item that its deltas amount to so far. Undefined for kinds without deltas. */
export function partialItem(open: OpenItem): OutputItem | undefined {
  const { head } = open;
  const id = head.id === undefined ? {} : { id: head.id };
  switch (head.kind) {
    case 'text':
      return {
        kind: 'text',
        role: head.role,
        text: open.text,
        citations: open.citations,
        ...(open.logprobs === undefined ? {} : { logprobs: open.logprobs }),
        ...(head.phase === undefined ? {} : { phase: head.phase }),
        ...id,
      };
    case 'refusal':
      return { kind: 'refusal', text: open.text, ...id };
    case 'reasoning':
      return {
        kind: 'reasoning',
        ...(open.text === '' ? {} : { raw: open.text }),
        ...(open.summary.length === 0 ? {} : { summary: open.summary }),
        ...id,
      };
    case 'toolCall':
      return { kind: 'toolCall', toolType: head.toolType, callId: head.callId, tool: head.tool, ...id, input: open.text };
    case 'media':
    case 'native':
      return undefined;
  }
}

/** Folds the events of a complete stream. Throws when they hold no `response.end`, which is a bug of the caller. */
export function fold(events: Iterable<CanonicalEvent>): Whole {
  const folded = new Fold();
  for (const event of events) folded.push(event);
  if (folded.outcome === undefined) throw new Error('fold: the events hold no response.end');
  return folded.whole(folded.outcome);
}
