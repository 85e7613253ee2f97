/**
 * Checks that a decoder's events follow the canonical tables, after each upstream dialect's own table was checked before
 * them: two nets. An illegal event is the upstream's fault and changes nothing. What passed is folded for settlement,
 * history and whole answers.
 */
import { advance, LifecycleError } from '../../streams/lifecycle.ts';
import type { Stage } from '../../streams/stage.ts';
import { upstreamFault } from './error.ts';
import type { CanonicalEvent, ItemDelta, Step } from './event.ts';
import { extend, Fold, type OpenItem } from './fold.ts';
import type { OutputItem } from './item.ts';
import { FITS, ITEM, type ItemState, RESPONSE, type ResponseState, type ResponseVerb } from './lifecycle.ts';

/** A delta that moved nothing: the next like it moves nothing either. Most of a stream is that. */
interface Flow {
  readonly index: number;
  readonly kind: ItemDelta['kind'];
  readonly item: OpenItem;
}

export class Order implements Stage<Step, Step> {
  readonly fold = new Fold();
  ended = false;
  #response: ResponseState = 'idle';
  readonly #items: ItemState[] = [];
  /** The event before, where it was a delta. */
  #flow: Flow | undefined;

  push(step: Step, out: Step[]): void {
    try {
      for (const event of step.events) if (!this.#flows(event)) this.#accept(event);
    } catch (error) {
      if (error instanceof LifecycleError)
        throw upstreamFault('illegal_lifecycle', `The upstream's stream is out of order (${error.message}).`);
      throw error;
    }
    out.push(step);
  }

  end(): void {
    if (!this.ended) throw upstreamFault('truncated', 'The upstream ended before its answer was complete.');
  }

  /** True for a delta that is accepted and folded, since the tables have answered the same one in this very state. */
  #flows(event: CanonicalEvent): boolean {
    const flow = this.#flow;
    if (flow === undefined || event.type !== 'item.delta' || event.index !== flow.index || event.delta.kind !== flow.kind)
      return false;
    extend(flow.item, event.delta);
    return true;
  }

  #accept(event: CanonicalEvent): void {
    this.#flow = undefined;
    const next = advance('response', RESPONSE, this.#response, verbOf(event));
    switch (event.type) {
      case 'item.start':
        if (event.index !== this.#items.length)
          throw new LifecycleError('item', `${this.#items.length} items`, `start of item ${event.index}`, []);
        this.#items.push(advance('item', ITEM, 'unseen', 'start'));
        break;
      case 'item.delta': {
        const { index, delta } = event;
        const state = this.#items[index] ?? 'unseen';
        const unmoved = advance('item', ITEM, state, 'delta') === state && next === this.#response;
        const item = this.fold.open(index);
        const kind = item?.head.kind ?? 'native';
        if (!FITS[kind][delta.kind]) throw new LifecycleError('item', `open ${kind}`, `${delta.kind} delta`, []);
        if (unmoved && item !== undefined) this.#flow = { index, kind: delta.kind, item };
        break;
      }
      case 'item.end': {
        const closed = advance('item', ITEM, this.#items[event.index] ?? 'unseen', 'end');
        const open = this.fold.open(event.index);
        if (open !== undefined) checkExtends(open, event.item);
        this.#items[event.index] = closed;
        break;
      }
      case 'response.end':
        if (verbOf(event) === 'end' && this.#items.includes('open')) {
          throw new LifecycleError('response', 'open item', 'end', ['item.end']);
        }
        break;
      case 'response.start':
      case 'usage.report':
      case 'native.event':
        // The table says all there is to say of them.
        break;
    }
    this.#response = next;
    this.ended = next === 'ended';
    this.fold.push(event);
  }
}

function verbOf(event: CanonicalEvent): ResponseVerb {
  switch (event.type) {
    case 'response.start':
      return 'start';
    case 'item.start':
    case 'item.delta':
    case 'item.end':
      return 'item';
    case 'usage.report':
      return 'usage';
    case 'native.event':
      return 'native';
    case 'response.end':
      return event.outcome.status === 'failed' || event.outcome.status === 'cancelled' ? 'fail' : 'end';
  }
}

/** A whole item may add to what its deltas said, never contradict it (summaries excepted: the final one wins). */
function checkExtends(open: OpenItem, item: OutputItem): void {
  if (open.head.kind !== item.kind) throw new LifecycleError('item', `open ${open.head.kind}`, `end as ${item.kind}`, []);
  if (!textOf(item).startsWith(open.text)) {
    throw upstreamFault('illegal_lifecycle', `The upstream's final ${item.kind} contradicts what it streamed.`);
  }
}

/** What the text deltas of an item said in pieces; empty for kinds that take none. */
function textOf(item: OutputItem): string {
  switch (item.kind) {
    case 'text':
    case 'refusal':
      return item.text;
    case 'reasoning':
      return item.raw ?? '';
    case 'toolCall':
      return item.input;
    case 'media':
    case 'native':
      return '';
  }
}
