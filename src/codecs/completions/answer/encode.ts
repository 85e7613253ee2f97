/** Canonical steps into `text_completion` chunks: text only, one finish chunk, usage where asked, `[DONE]`. */
import { type GatewayError, upstreamFault } from '../../canonical/error.ts';
import type { CanonicalEvent, ItemEvent, Step } from '../../canonical/event.ts';
import type { Outcome } from '../../canonical/outcome.ts';
import { mergeUsage, shownUsage, type Usage } from '../../canonical/usage.ts';
import type { ClientEncoder, OutFrame, ResponseContext } from '../../codec.ts';
import { openAiErrorFrame } from '../../errors/openai.ts';
import { writeTokenUsage } from '../../answers/token-usage.ts';
import { AnswerLosses } from '../../answers/losses.ts';
import { TextJoin } from '../../answers/text-join.ts';
import { responseLosses } from '../losses.ts';

const NOTHING: readonly string[] = [];

export class CompletionsEncoder implements ClientEncoder {
  ended = false;
  readonly #context: ResponseContext;
  readonly #writer = new TextWriter();
  readonly #losses: AnswerLosses;
  #usage: Usage | undefined;
  /** Where a good ending begins in the frames of its batch. */
  #endsAt = 0;

  constructor(context: ResponseContext) {
    this.#context = context;
    this.#losses = new AnswerLosses('completions', responseLosses, context);
  }

  push(step: Step, out: OutFrame[]): void {
    if (this.ended) return;
    for (const event of this.#losses.kept(step.events)) this.#encode(event, out);
  }

  end(out: OutFrame[]): void {
    this.fail(upstreamFault('truncated', 'The upstream ended before its answer was complete.'), out);
  }

  fail(error: GatewayError, out: OutFrame[]): void {
    if (this.ended) return;
    this.ended = true;
    out.push(openAiErrorFrame(error));
  }

  failInstead(error: GatewayError, out: OutFrame[]): void {
    out.length = this.#endsAt;
    this.ended = false;
    this.fail(error, out);
  }

  #encode(event: CanonicalEvent, out: OutFrame[]): void {
    switch (event.type) {
      case 'item.start':
      case 'item.delta':
      case 'item.end':
        for (const text of this.#writer.write(event))
          this.#chunk([{ text, index: 0, logprobs: null, finish_reason: null }], null, out);
        return;
      case 'usage.report':
        this.#usage = mergeUsage(this.#usage, event.usage);
        return;
      case 'response.end':
        this.#finish(event.outcome, out);
        return;
      default:
        return;
    }
  }

  #finish(outcome: Outcome, out: OutFrame[]): void {
    if (outcome.status === 'failed' || outcome.status === 'cancelled') {
      this.fail(outcome.error, out);
      return;
    }
    this.#endsAt = out.length;
    this.#chunk([{ text: '', index: 0, logprobs: null, finish_reason: finishReason(outcome) }], null, out);
    const usage = shownUsage(this.#usage);
    if (usage !== undefined && this.#context.request.includeUsage) this.#chunk([], writeTokenUsage(usage), out);
    out.push({ event: undefined, data: '[DONE]' });
    this.ended = true;
  }

  #chunk(choices: readonly object[], usage: object | null, out: OutFrame[]): void {
    const { responseId: id, createdAt: created, model } = this.#context;
    const counted = this.#context.request.includeUsage ? { usage } : {};
    out.push({ event: undefined, data: JSON.stringify({ id, object: 'text_completion', created, model, choices, ...counted }) });
  }
}

/** Writes texts and refusals as one text. */
export class TextWriter {
  readonly #join = new TextJoin();
  /** Whether anything of each open text was written; items of other kinds are not here. */
  readonly #written = new Map<number, boolean>();

  /** What an event adds to the text, piece by piece. */
  write(event: ItemEvent): readonly string[] {
    switch (event.type) {
      case 'item.start': {
        const { head, index } = event;
        this.#join.begin(head.kind, head.kind === 'text' ? head.phase : undefined);
        if (head.kind === 'text' || head.kind === 'refusal') this.#written.set(index, false);
        return NOTHING;
      }
      case 'item.delta': {
        const isWritten = this.#written.get(event.index);
        if (isWritten === undefined || event.delta.kind !== 'text' || event.delta.text === '') return NOTHING;
        this.#written.set(event.index, true);
        const [first = '', ...rest] = event.delta.pieces ?? [event.delta.text];
        return [isWritten ? first : this.#join.separator() + first, ...rest];
      }
      case 'item.end':
        this.#written.delete(event.index);
        return NOTHING;
    }
  }
}

export function finishReason(outcome: Outcome): 'stop' | 'length' | 'content_filter' {
  if (outcome.status === 'completed') return 'stop';
  if (outcome.status !== 'incomplete') throw outcome.error;
  switch (outcome.reason) {
    case 'content_filter':
      return 'content_filter';
    case 'pause':
    case 'compaction':
      return 'stop';
    default:
      return 'length';
  }
}
