/**
 * Encodes steps as a messages client's stream. Events of a messages upstream are spliced (`splice.ts`). For other upstreams the
 * stream is written: message_start, one block after another (`encode-blocks.ts`), one message_delta, message_stop. A failure is
 * an `error` event, and nothing follows it.
 */
import { type GatewayError, notRepresentable } from '../../canonical/error.ts';
import type { CanonicalEvent, Step } from '../../canonical/event.ts';
import type { Outcome } from '../../canonical/outcome.ts';
import { mergeUsage, type Usage } from '../../canonical/usage.ts';
import type { ClientEncoder, OutFrame, ResponseContext } from '../../codec.ts';
import { type Holds, OWN_KIND, Turns } from '../../answers/turns.ts';
import { AnswerLosses } from '../../answers/losses.ts';
import { FrameSink, frame } from './block-sinks.ts';
import { BlockWriter } from './encode-blocks.ts';
import { errorFrame } from '../errors.ts';
import { NO_FACTS, unfinishedCall } from '../message-parts.ts';
import { responseLosses } from '../losses.ts';
import { AnswerSplicer } from './splice.ts';
import { encodeStop, stopMembers } from './outcome.ts';
import { encodeUsage } from './usage.ts';
import { CUTTING_STOPS } from '../wire.ts';

/**
 * While a call is open, every other item waits (M4). A responses upstream may stream several texts, or several reasoning items,
 * at the same time: those also wait for the one before. Other upstreams leave a text open only for its citations, so nothing
 * waits for it.
 */
const HOLDS: Holds = { toolCall: ['text', 'refusal', 'reasoning', 'toolCall', 'media', 'native'] };
const AND_OWN_KIND: Holds = { ...HOLDS, ...OWN_KIND };

export function encodeEvents(context: ResponseContext): ClientEncoder {
  return new EventEncoder(context);
}

class EventEncoder implements ClientEncoder {
  ended = false;
  readonly #context: ResponseContext;
  readonly #sink = new FrameSink();
  readonly #writer: BlockWriter;
  readonly #turns: Turns;
  #splicer: AnswerSplicer | undefined;
  readonly #losses: AnswerLosses;
  #usage: Usage | undefined;
  /** message_start waits for the first item or the end, so that early usage can be in it. */
  #startWaits = false;
  #isStarted = false;
  /** Where a good ending begins in the frames of its batch. */
  #endsAt = 0;
  /** A step is being written. Still true after one that threw: its frames were cut off, so nothing may continue them. */
  #isWriting = false;

  constructor(context: ResponseContext) {
    this.#context = context;
    this.#writer = new BlockWriter(context, this.#sink);
    this.#losses = new AnswerLosses('messages', responseLosses, context);
    const holds = context.owner.channelType === 'responses' ? AND_OWN_KIND : HOLDS;
    this.#turns = new Turns(holds, 'start', (event) => this.#writer.write(event));
  }

  push(step: Step, out: OutFrame[]): void {
    if (this.ended) return;
    const native = step.native;
    if (native !== undefined && native.dialect === 'messages' && native.name !== 'response') {
      this.#splicer ??= new AnswerSplicer(this.#context);
      this.#endsAt = out.length;
      this.#splicer.push(native, step, out);
      if (native.name === 'message_stop' || native.name === 'error') this.ended = true;
      return;
    }
    if (this.#splicer !== undefined && step.events.length > 0) {
      throw notRepresentable('An answer that was passed through cannot be continued in another form.');
    }
    this.#isWriting = true;
    this.#sink.out = out;
    this.#writer.fold ??= step.fold;
    const events = this.#losses.kept(step.events);
    if (!this.#isStarted) this.#readUsage(events);
    for (const event of events) this.#encode(event, out);
    if (this.#startWaits && !this.ended) this.#start(out);
    this.#isWriting = false;
  }

  end(out: OutFrame[]): void {
    if (!this.ended) this.fail(notRepresentable('The answer ended without an ending.'), out);
  }

  fail(failure: GatewayError, out: OutFrame[]): void {
    if (this.ended) return;
    this.#sink.out = out;
    if (!this.#isWriting) this.#turns.drain();
    this.ended = true;
    out.push(errorFrame(failure));
  }

  failInstead(failure: GatewayError, out: OutFrame[]): void {
    out.length = this.#endsAt;
    this.ended = false;
    this.fail(failure, out);
  }

  /** The usage that comes with the first item, in the same event of the upstream, is known before it. */
  #readUsage(events: readonly CanonicalEvent[]): void {
    for (const event of events) if (event.type === 'usage.report') this.#usage = mergeUsage(this.#usage, event.usage);
  }

  #encode(event: CanonicalEvent, out: OutFrame[]): void {
    switch (event.type) {
      case 'response.start':
        this.#startWaits = true;
        return;
      case 'usage.report':
        this.#usage = mergeUsage(this.#usage, event.usage);
        return;
      case 'native.event':
        return;
      case 'item.start':
        this.#start(out);
        this.#turns.push(event);
        return;
      case 'item.delta':
      case 'item.end':
        this.#turns.push(event);
        return;
      case 'response.end':
        this.#finish(event.outcome, out);
        return;
    }
  }

  #start(out: OutFrame[]): void {
    if (!this.#startWaits) return;
    this.#startWaits = false;
    this.#isStarted = true;
    const message = {
      id: this.#context.responseId,
      type: 'message',
      role: 'assistant',
      model: this.#context.model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      stop_details: null,
      ...NO_FACTS,
      usage: encodeUsage(this.#usage, this.#context.inputEstimate),
    };
    out.push(frame({ type: 'message_start', message }));
  }

  #finish(outcome: Outcome, out: OutFrame[]): void {
    if (outcome.status === 'failed' || outcome.status === 'cancelled') {
      this.#turns.drain();
      this.fail(outcome.error, out);
      return;
    }
    this.#start(out);
    this.#writer.finish();
    const stop = encodeStop(outcome, { toolUse: this.#writer.calledTool, refusal: this.#writer.refused });
    // Spec rule 11: only a limit may leave arguments unfinished.
    const isCut = CUTTING_STOPS.has(stop.reason) && stop.native === undefined;
    if (this.#writer.leftUnfinished && !isCut) throw unfinishedCall();
    this.#endsAt = out.length;
    const usage = encodeUsage(this.#usage, this.#context.inputEstimate);
    out.push(frame({ type: 'message_delta', delta: { ...stopMembers(stop), container: null }, usage }));
    out.push(frame({ type: 'message_stop' }));
    this.ended = true;
  }
}
