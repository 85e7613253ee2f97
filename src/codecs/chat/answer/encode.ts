/**
 * Encodes canonical steps as chat-completions chunks: a role chunk, pieces in order of arrival, one finish chunk, the usage chunk
 * if the client asked for it, `[DONE]`. Chunks of a chat upstream go through `splice.ts`. A failure is an `error` frame and ends
 * the stream.
 */
import { type GatewayError, upstreamFault } from '../../canonical/error.ts';
import type { CanonicalEvent, Step } from '../../canonical/event.ts';
import type { Outcome } from '../../canonical/outcome.ts';
import { mergeUsage, shownUsage, type Usage } from '../../canonical/usage.ts';
import type { ClientEncoder, OutFrame, ResponseContext } from '../../codec.ts';
import { openAiErrorFrame } from '../../errors/openai.ts';
import { writeTokenUsage } from '../../answers/token-usage.ts';
import { OWN_KIND, Turns } from '../../answers/turns.ts';
import { AnswerLosses } from '../../answers/losses.ts';
import { ChunkSink } from './delta-sinks.ts';
import { ItemWriter } from './encode-items.ts';
import { responseLosses } from '../losses.ts';
import { NativeStream } from './splice.ts';
import { finishOf } from './outcome.ts';
import { DONE } from '../wire.ts';

export class ChatEncoder implements ClientEncoder {
  ended = false;
  readonly #context: ResponseContext;
  readonly #native: NativeStream;
  /**
   * Clients join all pieces of one kind in order of arrival, so texts and reasoning that a responses upstream interleaves wait
   * for items of their own kind. Calls have an index and wait for nothing. Texts of other upstreams only stay open for their
   * citations.
   */
  readonly #turns: Turns;
  readonly #losses: AnswerLosses;
  readonly #chunks: ChunkSink;
  readonly #writer: ItemWriter;
  /** The upstream speaks chat: its chunks are passed on. */
  #isNative = false;
  /** A chunk that was passed on began a call. */
  #hasNativeCalls = false;
  #usage: Usage | undefined;
  /** Where a good ending begins in the frames of its batch. */
  #endsAt = 0;
  /** A step is being written. Still true after one that threw: its frames were cut off, so nothing may continue them. */
  #isWriting = false;

  constructor(context: ResponseContext) {
    this.#context = context;
    this.#native = new NativeStream(context);
    this.#losses = new AnswerLosses('chat', responseLosses, context);
    this.#chunks = new ChunkSink(context);
    this.#writer = new ItemWriter(context, this.#chunks);
    const holds = context.owner.channelType === 'responses' ? OWN_KIND : {};
    this.#turns = new Turns(holds, 'start', (event) => this.#writer.write(event));
  }

  push(step: Step, out: OutFrame[]): void {
    if (this.ended) return;
    const native = step.native?.dialect === 'chat' ? step.native : undefined;
    if (native !== undefined) this.#isNative = true;
    const isEnd = step.events.at(-1)?.type === 'response.end';
    if (native !== undefined && !isEnd) this.#native.push(native, step.events, out);
    // The content of native frames is not encoded again.
    const isWritten = native !== undefined || (isEnd && this.#isNative);
    this.#isWriting = true;
    this.#chunks.out = out;
    const events = isWritten ? step.events : this.#losses.kept(step.events);
    for (const event of events) {
      if (event.type === 'response.end') this.#finish(event.outcome, step.events, out);
      else if (isWritten) this.#note(event);
      else this.#encode(event);
    }
    this.#isWriting = false;
  }

  end(out: OutFrame[]): void {
    if (this.ended) return;
    this.fail(upstreamFault('truncated', 'The upstream ended before its answer was complete.'), out);
  }

  fail(error: GatewayError, out: OutFrame[]): void {
    if (this.ended) return;
    this.#chunks.out = out;
    if (!this.#isWriting) this.#turns.drain();
    this.ended = true;
    out.push(openAiErrorFrame(error));
  }

  failInstead(error: GatewayError, out: OutFrame[]): void {
    out.length = this.#endsAt;
    this.ended = false;
    this.fail(error, out);
  }

  /** `events`: those of the last step. */
  #finish(outcome: Outcome, events: readonly CanonicalEvent[], out: OutFrame[]): void {
    if (outcome.status === 'failed' || outcome.status === 'cancelled') {
      this.#turns.drain();
      this.fail(outcome.error, out);
      return;
    }
    this.ended = true;
    this.#endsAt = out.length;
    if (this.#native.hasFinish) {
      this.#native.close(events, out);
      return;
    }
    // An upstream that need not finish: the finish is the gateway's, all before it the upstream's.
    if (this.#isNative) this.#native.writeRest(events, out);
    this.#chunks.role();
    const { annotations, hasCalls } = this.#writer;
    if (annotations.length > 0) this.#chunks.delta({ annotations });
    const finish = finishOf(outcome, hasCalls || this.#hasNativeCalls, this.#context);
    this.#chunks.write([{ index: 0, delta: {}, logprobs: null, ...finish }]);
    const usage = shownUsage(this.#usage);
    if (usage !== undefined && this.#context.request.includeUsage) this.#chunks.write([], writeTokenUsage(usage));
    out.push({ event: undefined, data: DONE });
  }

  /** An event whose native frame was passed on: keeps only what the gateway's own ending would need. */
  #note(event: CanonicalEvent): void {
    switch (event.type) {
      case 'response.start':
        this.#chunks.markBegun(event.createdAt);
        return;
      case 'item.start':
        if (event.head.kind === 'toolCall') this.#hasNativeCalls = true;
        return;
      case 'usage.report':
        this.#usage = mergeUsage(this.#usage, event.usage);
        return;
      default:
        return;
    }
  }

  #encode(event: CanonicalEvent): void {
    switch (event.type) {
      case 'response.start':
        this.#chunks.role();
        return;
      case 'usage.report':
        this.#usage = mergeUsage(this.#usage, event.usage);
        return;
      case 'item.start':
      case 'item.delta':
      case 'item.end':
        this.#turns.push(event);
        return;
      default:
        return;
    }
  }
}
