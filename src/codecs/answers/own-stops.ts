/**
 * Stop sequences that an upstream was not sent, because its vendor takes fewer, or none: the gateway ends the answer itself where
 * a text of the assistant holds one. An upstream that still generates is let go, and what it had written is counted. Stands
 * behind a decoder of another dialect than the client's, ahead of the order, so that streams, whole answers and the history end
 * alike.
 */
import { notRepresentable } from '../canonical/error.ts';
import type { CanonicalEvent, ItemDelta, Step } from '../canonical/event.ts';
import { Fold, partialItem } from '../canonical/fold.ts';
import type { Logprobs, OutputItem } from '../canonical/item.ts';
import type { EventDecoder } from '../codec.ts';
import { codePointLength, fitCitations, spanOf } from './citations.ts';
import { RewritingDecoder, type Rewriter } from './rewriting-decoder.ts';
import { StopMachine, type StopTree, stopTree } from './stop-tree.ts';

/** The decoder itself where nothing is enforced. */
export function stoppingDecoder(decoder: EventDecoder, stops: readonly string[] | undefined): EventDecoder {
  return stops === undefined || stops.length === 0 ? decoder : new RewritingDecoder(decoder, new Cutter(stopTree(stops)));
}

/** The same for a whole answer, whose usage stays as it was reported. */
export function stoppedStep(step: Step, stops: readonly string[] | undefined): Step {
  if (stops === undefined || stops.length === 0) return step;
  const cutter = new Cutter(stopTree(stops));
  const { events } = cutter.step(step);
  if (!cutter.stopped) return step;
  const at = events.findLastIndex(({ type }) => type === 'response.end');
  const usage = step.events.filter(({ type }) => type === 'usage.report' && !events.some((event) => event.type === type));
  return { events: events.toSpliced(at, 0, ...usage) };
}

type TextDelta = Extract<ItemDelta, { kind: 'text' }>;

/** A text that is open. */
interface OpenText {
  readonly machine: StopMachine;
  /** What the machine has read. */
  read: number;
  /** Deltas that are not sent yet: a stop sequence may have begun in them. `at`: where the delta begins. */
  held: { readonly at: number; readonly delta: TextDelta }[];
}

/** What is sent of a step, and all that it holds. */
interface Around {
  readonly out: CanonicalEvent[];
  readonly events: Step['events'];
}

class Cutter implements Rewriter {
  /** A sequence was found: the answer has ended, and nothing follows. */
  stopped = false;
  readonly #tree: StopTree;
  readonly #texts = new Map<number, OpenText>();
  /** What was let through, for items that are still open when the answer ends. */
  readonly #fold = new Fold();
  readonly #open = new Set<number>();

  constructor(tree: StopTree) {
    this.#tree = tree;
  }

  step({ events }: Step): Step {
    const kept: CanonicalEvent[] = [];
    for (const event of events) this.#push(event, kept, events);
    return { events: kept };
  }

  #push(event: CanonicalEvent, out: CanonicalEvent[], events: Step['events']): void {
    if (this.stopped) return;
    if (event.type === 'item.start' && event.head.kind === 'text' && event.head.role === 'assistant')
      this.#texts.set(event.index, { machine: new StopMachine(this.#tree), read: 0, held: [] });
    if (event.type === 'item.delta' && event.delta.kind === 'text') {
      const text = this.#texts.get(event.index);
      if (text === undefined) this.#emit(event, out);
      else this.#delta(event.index, event.delta, text, { out, events });
    } else if (event.type === 'item.end') {
      const text = this.#texts.get(event.index);
      if (text === undefined) this.#emit(event, out);
      else this.#end(event, text, out);
    } else this.#emit(event, out);
  }

  #delta(index: number, delta: TextDelta, text: OpenText, { out, events }: Around): void {
    text.held.push({ at: text.read, delta });
    const found = text.machine.read(delta.text);
    text.read += delta.text.length;
    if (found === undefined) {
      this.#release(index, text, text.read - text.machine.pending, out);
      return;
    }
    const end = found.start;
    for (const { at, delta: each } of text.held.splice(0)) {
      if (at >= end) break;
      const cut = at + each.text.length <= end ? each : cutDelta(each, end - at);
      this.#emit({ type: 'item.delta', index, delta: cut }, out);
    }
    const item = this.#itemOf(index, events);
    if (item !== undefined)
      this.#emit({ type: 'item.end', index, item: item.kind === 'text' ? cutText(item, end) : item, status: 'completed' }, out);
    this.#stop(found.sequence, out);
  }

  /** As its own end tells it, if that came in the same step: a whole answer tells citations nowhere else. */
  #itemOf(index: number, events: Step['events']): OutputItem | undefined {
    const told = events.find((event) => event.type === 'item.end' && event.index === index);
    if (told?.type === 'item.end') return told.item;
    const open = this.#fold.open(index);
    return open === undefined ? undefined : partialItem(open);
  }

  /** Sends the deltas that end before `safe`, where the part begins that may become a stop sequence. */
  #release(index: number, text: OpenText, safe: number, out: CanonicalEvent[]): void {
    let count = 0;
    for (const { at, delta } of text.held) {
      if (at + delta.text.length > safe) break;
      this.#emit({ type: 'item.delta', index, delta }, out);
      count += 1;
    }
    if (count > 0) text.held.splice(0, count);
  }

  #end(event: Extract<CanonicalEvent, { type: 'item.end' }>, text: OpenText, out: CanonicalEvent[]): void {
    const { index, item } = event;
    if (item.kind !== 'text') throw notRepresentable('A text ended as something else.');
    const found = text.machine.read(item.text.slice(text.read));
    if (found === undefined) {
      this.#release(index, text, Number.POSITIVE_INFINITY, out);
      this.#emit(event, out);
      return;
    }
    this.#release(index, text, found.start, out);
    this.#emit({ ...event, item: cutText(item, found.start), status: 'completed' }, out);
    this.#stop(found.sequence, out);
  }

  #stop(sequence: string, out: CanonicalEvent[]): void {
    for (const index of [...this.#open].sort((a, b) => a - b)) {
      const open = this.#fold.open(index);
      const item = open === undefined ? undefined : partialItem(open);
      if (item !== undefined) this.#emit({ type: 'item.end', index, item, status: 'incomplete' }, out);
    }
    this.#emit({ type: 'response.end', outcome: { status: 'completed', stop: 'stopSequence', stopSequence: sequence } }, out);
    this.stopped = true;
  }

  #emit(event: CanonicalEvent, out: CanonicalEvent[]): void {
    if (event.type === 'item.start') this.#open.add(event.index);
    if (event.type === 'item.end') this.#open.delete(event.index);
    this.#fold.push(event);
    out.push(event);
  }
}

function cutDelta({ text, logprobs, kind }: TextDelta, length: number): TextDelta {
  const tokens = logprobs === undefined ? undefined : within(logprobs, length);
  return { kind, text: text.slice(0, length), ...(tokens === undefined ? {} : { logprobs: tokens }) };
}

/** Citations of what is cut off go with it. */
function cutText(item: Extract<OutputItem, { kind: 'text' }>, length: number): OutputItem {
  const { logprobs, citations, ...rest } = item;
  const text = item.text.slice(0, length);
  const tokens = logprobs === undefined ? undefined : within(logprobs, length);
  const end = citations.length === 0 ? 0 : codePointLength(text);
  const said = citations.filter((citation) => (spanOf(citation)?.start ?? -1) < end);
  return { ...rest, text, citations: fitCitations(text, said), ...(tokens === undefined ? {} : { logprobs: tokens }) };
}

/** The tokens that make up the first `length` characters; undefined where the end stands within a token. */
function within(logprobs: Logprobs, length: number): Logprobs | undefined {
  let at = 0;
  let count = 0;
  for (const { token } of logprobs) {
    if (at >= length) break;
    at += token.length;
    count += 1;
  }
  return at === length ? logprobs.slice(0, count) : undefined;
}
