/**
 * What an answer loses at a client of another dialect, by that client's loss table: what the table drops is taken out before the
 * encoder sees it, what it refuses fails the answer, and all that does not arrive as it was is told to {@link
 * ResponseContext.lost}. Not for what is spliced.
 */
import { notRepresentable } from '../canonical/error.ts';
import type { Dialect } from '../canonical/dialect.ts';
import type { CanonicalEvent, ItemDelta, ItemHead } from '../canonical/event.ts';
import type { ResponseFeature, ResponseLosses } from '../canonical/features.ts';
import type { Whole } from '../canonical/fold.ts';
import type { Citation, NativeItem, OutputItem } from '../canonical/item.ts';
import type { IncompleteReason, Outcome } from '../canonical/outcome.ts';
import type { Usage } from '../canonical/usage.ts';
import type { ResponseContext } from '../codec.ts';
import { mapped, without } from '../entries.ts';

/**
 * Stands for an item that is left out: what came before it and what comes after it stay apart. Its dialect is one that no client
 * speaks.
 */
const NOTHING: Pick<NativeItem, 'kind' | 'dialect' | 'body'> = { kind: 'native', dialect: 'gemini', body: null };

export class AnswerLosses {
  readonly #table: ResponseLosses;
  readonly #dialect: Dialect;
  readonly #context: Pick<ResponseContext, 'lost'>;
  /** Indices of items that were left out as they began. */
  readonly #gone = new Set<number>();
  readonly #keepsMedia: boolean;
  #hasText = false;
  /** The client was told something that every dialect can say. */
  #isTold = false;
  #hasNative = false;

  /** `dialect`: the client's. */
  constructor(dialect: Dialect, table: ResponseLosses, context: Pick<ResponseContext, 'lost'>) {
    this.#dialect = dialect;
    this.#table = table;
    this.#context = context;
    this.#keepsMedia = (['image', 'audio', 'file'] as const).some((type) => table[type].does !== 'refuse');
  }

  /**
   * The events of a step as the table leaves them; the same list where it takes nothing out. Throws `response_not_representable`.
   */
  kept(events: readonly CanonicalEvent[]): readonly CanonicalEvent[] {
    // Most steps of a stream are one piece of text, of which no table decides anything.
    if (events.length === 1 && this.#gone.size === 0 && isPlainText(events[0])) return events;
    return mapped(events, (event) => this.#event(event));
  }

  /** The same for a whole answer. */
  keptWhole(whole: Whole): Whole {
    for (const feature of whole.events ?? []) this.#decide(feature);
    const items = mapped(whole.items, (entry) => {
      const isKept = this.#begins(headOf(entry.item));
      this.#note(entry.item);
      const item = isKept ? this.#item(entry.item) : NOTHING;
      return item === entry.item ? entry : { ...entry, item };
    });
    const usage = whole.usage === undefined ? undefined : this.#usage(whole.usage);
    this.#end(whole.outcome);
    return items === whole.items && usage === whole.usage
      ? whole
      : { ...whole, items, ...(usage === undefined ? {} : { usage }) };
  }

  #decide(feature: ResponseFeature): boolean {
    const decision = this.#table[feature];
    if (decision.does === 'refuse') throw notRepresentable(decision.why);
    if (decision.does !== 'keep') this.#context.lost?.(feature);
    return decision.does !== 'drop';
  }

  #event(event: CanonicalEvent): CanonicalEvent | undefined {
    switch (event.type) {
      case 'item.delta':
        if (this.#gone.size > 0 && this.#gone.has(event.index)) return undefined;
        return this.#delta(event, event.delta);
      case 'item.start': {
        if (!this.#begins(event.head)) {
          this.#gone.add(event.index);
          return { ...event, head: NOTHING };
        }
        const head = this.#head(event.head);
        return head === event.head ? event : { ...event, head };
      }
      case 'item.end': {
        this.#note(event.item);
        const item = this.#gone.delete(event.index) ? NOTHING : this.#item(event.item);
        return item === event.item ? event : { ...event, item };
      }
      case 'usage.report': {
        const usage = this.#usage(event.usage);
        return usage === event.usage ? event : { ...event, usage };
      }
      case 'native.event': {
        const isLate = event.dialect === 'chat' && event.name === 'annotations';
        if (event.dialect === this.#dialect && !isLate) return event;
        return this.#decide(isLate ? 'citation of an ended text' : 'native event') ? event : undefined;
      }
      case 'response.end':
        this.#end(event.outcome);
        return event;
      case 'response.start':
        return event;
    }
  }

  #drops(feature: ResponseFeature): boolean {
    return this.#table[feature].does === 'drop';
  }

  /** Pieces are named with their whole item. */
  #delta<Event extends CanonicalEvent>(event: Event, delta: ItemDelta): Event | undefined {
    switch (delta.kind) {
      case 'text':
        if (delta.logprobs === undefined || !this.#drops('logprobs')) return event;
        return { ...event, delta: without(delta, 'logprobs') };
      case 'raw':
        return this.#drops('reasoning: raw text') ? undefined : event;
      case 'summary':
        return this.#drops('reasoning: summary') ? undefined : event;
      case 'citation':
        return this.#drops(this.#citation(delta.citation)) ? undefined : event;
      case 'input':
        return event;
    }
  }

  /** False for an item that is left out. The kind of a media item is known at its end. */
  #begins(head: ItemHead): boolean {
    switch (head.kind) {
      case 'text': {
        const isFirst = !this.#hasText;
        this.#hasText = true;
        return this.#decide('text') && (isFirst || this.#decide('several texts'));
      }
      case 'refusal':
        return this.#decide('refusal');
      case 'toolCall':
        if (head.tool.namespace !== undefined) this.#decide('function call: namespace');
        return this.#decide(head.toolType === 'custom' ? 'custom tool call' : 'function call');
      case 'media':
        return this.#keepsMedia || this.#decide('image');
      case 'native':
        return head.dialect === this.#dialect || this.#decide('native item');
      case 'reasoning':
        return true;
    }
  }

  #head(head: ItemHead): ItemHead {
    if (head.kind === 'text' && head.phase !== undefined && this.#drops('text phase')) return without(head, 'phase');
    return this.#drops('function call: namespace') ? withoutNamespace(head) : head;
  }

  #item(item: OutputItem): OutputItem {
    switch (item.kind) {
      case 'text': {
        const citations = mapped(item.citations, (citation) => (this.#decide(this.#citation(citation)) ? citation : undefined));
        const cited = citations === item.citations ? item : { ...item, citations };
        const phased = item.phase === undefined || this.#decide('text phase') ? cited : without(cited, 'phase');
        const scored = item.logprobs === undefined || this.#decide('logprobs') ? phased : without(phased, 'logprobs');
        return item.opaque === undefined || this.#decide('text signature') ? scored : without(scored, 'opaque');
      }
      case 'reasoning': {
        const raw = item.raw === undefined || this.#decide('reasoning: raw text') ? item : without(item, 'raw');
        const readable = item.summary === undefined || this.#decide('reasoning: summary') ? raw : without(raw, 'summary');
        const opaque = item.opaque?.form === 'redacted' ? 'reasoning: redacted' : 'reasoning: opaque';
        return item.opaque === undefined || this.#decide(opaque) ? readable : without(readable, 'opaque');
      }
      case 'toolCall': {
        const call = this.#drops('function call: namespace') ? withoutNamespace(item) : item;
        return item.opaque === undefined || this.#decide('function call signature') ? call : without(call, 'opaque');
      }
      case 'media':
        // No upstream answers with a video of its own kind.
        if (!this.#decide(item.media.type === 'video' ? 'file' : item.media.type)) return NOTHING;
        return item.opaque === undefined || this.#decide('image signature') ? item : without(item, 'opaque');
      case 'refusal':
      case 'native':
        return item;
    }
  }

  #citation(citation: Citation): ResponseFeature {
    if (citation.kind === 'native') return citation.dialect === this.#dialect ? 'text' : 'native citation';
    return citation.start === undefined ? 'url citation without position' : 'url citation with position';
  }

  #usage(usage: Usage): Usage {
    const dropped: (keyof Usage)[] = [];
    const decide = (isThere: boolean, member: keyof Usage, feature: ResponseFeature) => {
      if (isThere && !this.#decide(feature)) dropped.push(member);
    };
    decide((usage.cacheRead ?? 0) > 0, 'cacheRead', 'usage: cache');
    decide((usage.reasoning ?? 0) > 0, 'reasoning', 'usage: reasoning');
    decide(usage.extra !== undefined, 'extra', 'usage: iterations');
    decide(usage.native !== undefined, 'native', 'usage: unknown members');
    decide(usage.serviceTier !== undefined, 'serviceTier', 'service tier');
    return dropped.reduce<Usage>(without, usage);
  }

  /** Notes an item as it came. Reasoning is no answer. */
  #note(item: OutputItem): void {
    if (item.kind === 'toolCall' || item.kind === 'media') this.#isTold = true;
    else if (item.kind === 'text') this.#isTold ||= item.text !== '' || item.citations.length > 0;
    else if (item.kind === 'refusal') this.#isTold ||= item.text !== '';
    else if (item.kind === 'native' && item.dialect === this.#dialect) this.#isTold = true;
    else if (item.kind === 'native') this.#hasNative = true;
  }

  #end(outcome: Outcome): void {
    this.#decide(featureOfOutcome(outcome));
    if (isGoodEnd(outcome) && this.#hasNative && !this.#isTold) this.#decide('native items alone');
  }
}

function isPlainText(event: CanonicalEvent | undefined): boolean {
  return event?.type === 'item.delta' && event.delta.kind === 'text' && event.delta.logprobs === undefined;
}

function headOf(item: OutputItem): ItemHead {
  return item.kind === 'media' ? { kind: 'media' } : item;
}

function withoutNamespace<T extends ItemHead | OutputItem>(item: T): T {
  if (item.kind !== 'toolCall' || item.tool.namespace === undefined) return item;
  return { ...item, tool: without(item.tool, 'namespace') };
}

const INCOMPLETE: Readonly<Record<IncompleteReason, ResponseFeature>> = {
  max_output: 'incomplete: max output',
  content_filter: 'incomplete: content filter',
  context_window: 'incomplete: context window',
  pause: 'incomplete: pause',
  compaction: 'incomplete: compaction',
  other: 'incomplete: max output',
};

/** A pause and a compaction are no cut: a client that cannot go on with them reads a finished answer. */
function isGoodEnd(outcome: Outcome): boolean {
  return outcome.status === 'completed' || (outcome.status === 'incomplete' && /^(pause|compaction)$/.test(outcome.reason));
}

function featureOfOutcome(outcome: Outcome): ResponseFeature {
  if (outcome.status === 'incomplete') return INCOMPLETE[outcome.reason];
  if (outcome.status !== 'completed') return outcome.status === 'failed' ? 'failed with partial output' : 'cancelled';
  if (outcome.stop === 'end') return 'text';
  return outcome.stop === 'toolUse' ? 'completed: tool use' : 'completed: stop sequence';
}
