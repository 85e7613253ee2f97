/**
 * Checks that a decoder's events follow the canonical tables. It is the second check: each decoder has checked the order of its
 * own dialect before. An illegal event is the upstream's fault and changes nothing. Accepted events are folded for settlement,
 * history and whole answers. What the deltas of an item lack is inserted before its end, so that behind this stage the deltas of
 * an item add up to the item.
 */
import { advance, LifecycleError } from '../../streams/lifecycle.ts';
import type { Stage } from '../../streams/stage.ts';
import { type GatewayError, upstreamFault } from './error.ts';
import type { CanonicalEvent, ItemDelta, Step } from './event.ts';
import { extend, Fold, type OpenItem } from './fold.ts';
import { FITS, ITEM, type ItemState, RESPONSE, type ResponseState, type ResponseVerb } from './lifecycle.ts';
import { missingDeltas } from './missing-deltas.ts';

/**
 * The delta that was accepted last. It changed no state, so the next one of its item and kind is legal, too: most events of a
 * stream are.
 */
interface LegalDelta {
  readonly index: number;
  readonly kind: ItemDelta['kind'];
  readonly item: OpenItem;
}

export class Order implements Stage<Step, Step> {
  readonly fold = new Fold();
  ended = false;
  #response: ResponseState = 'idle';
  readonly #items: ItemState[] = [];
  /** Undefined unless the last event was a delta. */
  #legalDelta: LegalDelta | undefined;
  readonly #word: ((error: GatewayError) => GatewayError) | undefined;

  /** `word`: puts an error that the answer reports into the words of the client. */
  constructor(word?: (error: GatewayError) => GatewayError) {
    this.#word = word;
  }

  push(step: Step, out: Step[]): void {
    try {
      out.push(this.#checked(step));
    } catch (error) {
      if (error instanceof LifecycleError)
        throw upstreamFault('illegal_lifecycle', `The upstream's stream is out of order (${error.message}).`);
      throw error;
    }
  }

  /**
   * The step with what its items still lacked: a delta before the end of the item. Its native text stays, and does not hold them.
   */
  #checked(step: Step): Step {
    const given = step.events;
    let events: CanonicalEvent[] | undefined;
    let begins = false;
    for (let at = 0; at < given.length; at++) {
      const decoded = given[at];
      if (decoded === undefined) continue;
      const event = decoded.type === 'response.end' ? this.#worded(decoded) : decoded;
      if (event !== decoded) events ??= given.slice(0, at);
      if (!this.#continues(event)) {
        begins ||= event.type === 'item.start';
        if (event.type === 'item.end') {
          for (const delta of this.#missing(event)) {
            const inserted = { type: 'item.delta', index: event.index, delta } as const;
            this.#accept(inserted);
            events ??= given.slice(0, at);
            events.push(inserted);
          }
        }
        this.#accept(event);
      }
      events?.push(event);
    }
    if (begins) return { ...step, events: events ?? given, fold: this.fold };
    return events === undefined ? step : { ...step, events };
  }

  #worded(end: Extract<CanonicalEvent, { type: 'response.end' }>): typeof end {
    const { outcome } = end;
    if (this.#word === undefined || !('error' in outcome)) return end;
    const error = this.#word(outcome.error);
    return error === outcome.error ? end : { ...end, outcome: { ...outcome, error } };
  }

  /** Nothing for an item that is not open: its end is refused. */
  #missing({ index, item }: Extract<CanonicalEvent, { type: 'item.end' }>): readonly ItemDelta[] {
    const open = this.fold.open(index);
    return open === undefined ? [] : missingDeltas(open, item);
  }

  end(): void {
    if (!this.ended) throw upstreamFault('truncated', 'The upstream ended before its answer was complete.');
  }

  /** Folds a delta that is like the one before and needs no check; false for every other event. */
  #continues(event: CanonicalEvent): boolean {
    const last = this.#legalDelta;
    if (last === undefined || event.type !== 'item.delta' || event.index !== last.index || event.delta.kind !== last.kind)
      return false;
    extend(last.item, event.delta);
    return true;
  }

  #accept(event: CanonicalEvent): void {
    this.#legalDelta = undefined;
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
        if (unmoved && item !== undefined) this.#legalDelta = { index, kind: delta.kind, item };
        break;
      }
      case 'item.end': {
        const closed = advance('item', ITEM, this.#items[event.index] ?? 'unseen', 'end');
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
        // The table is all that decides about these.
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
