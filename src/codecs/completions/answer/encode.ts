/** Canonical steps into `text_completion` chunks: text only, one finish chunk, usage where asked, `[DONE]`. */
import { type GatewayError, upstreamFault } from '../../canonical/error.ts';
import type { CanonicalEvent, Step } from '../../canonical/event.ts';
import type { Outcome } from '../../canonical/outcome.ts';
import { mergeUsage, type Usage } from '../../canonical/usage.ts';
import type { ClientEncoder, Frame, ResponseContext } from '../../codec.ts';
import { openAiErrorFrame } from '../../errors/openai.ts';
import { writeTokenUsage } from '../../answers/token-usage.ts';
import { AnswerLosses } from '../../answers/losses.ts';
import { TextJoin } from '../../answers/text-join.ts';
import { responseLosses } from '../losses.ts';
import { finishReason } from './whole.ts';

export class CompletionsEncoder implements ClientEncoder {
  readonly #context: ResponseContext;
  readonly #join = new TextJoin();
  /** Whether anything of each open text was written; items of other kinds are not here. */
  readonly #written = new Map<number, boolean>();
  readonly #losses: AnswerLosses;
  #usage: Usage | undefined;
  #ended = false;
  /** Where a good ending begins in the frames of its batch. */
  #endsAt = 0;

  constructor(context: ResponseContext) {
    this.#context = context;
    this.#losses = new AnswerLosses('completions', responseLosses, context);
  }

  get ended(): boolean {
    return this.#ended;
  }

  push(step: Step, out: Frame[]): void {
    if (this.#ended) return;
    for (const event of this.#losses.kept(step.events)) {
      if (this.#ended) return;
      this.#encode(event, out);
    }
  }

  end(out: Frame[]): void {
    this.fail(upstreamFault('truncated', 'The upstream ended before its answer was complete.'), out);
  }

  fail(error: GatewayError, out: Frame[]): void {
    if (this.#ended) return;
    this.#ended = true;
    out.push(openAiErrorFrame(error));
  }

  failInstead(error: GatewayError, out: Frame[]): void {
    out.length = this.#endsAt;
    this.#ended = false;
    this.fail(error, out);
  }

  #encode(event: CanonicalEvent, out: Frame[]): void {
    switch (event.type) {
      case 'item.start': {
        const { head, index } = event;
        this.#join.begin(head.kind, head.kind === 'text' ? head.phase : undefined);
        if (head.kind === 'text' || head.kind === 'refusal') this.#written.set(index, false);
        return;
      }
      case 'item.delta': {
        const written = this.#written.get(event.index);
        if (written === undefined || event.delta.kind !== 'text') return;
        if (event.delta.text !== '') this.#written.set(event.index, true);
        this.#write(event.delta.text, !written, out);
        return;
      }
      case 'item.end':
        this.#written.delete(event.index);
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

  #finish(outcome: Outcome, out: Frame[]): void {
    if (outcome.status === 'failed' || outcome.status === 'cancelled') {
      this.fail(outcome.error, out);
      return;
    }
    this.#endsAt = out.length;
    this.#chunk([{ text: '', index: 0, logprobs: null, finish_reason: finishReason(outcome) }], null, out);
    if (this.#usage !== undefined && this.#context.request.includeUsage) this.#chunk([], writeTokenUsage(this.#usage), out);
    out.push({ event: undefined, data: '[DONE]' });
    this.#ended = true;
  }

  #write(piece: string, isFirst: boolean, out: Frame[]): void {
    if (piece === '') return;
    const text = isFirst ? this.#join.beforeWords() + piece : piece;
    this.#chunk([{ text, index: 0, logprobs: null, finish_reason: null }], null, out);
  }

  #chunk(choices: readonly object[], usage: object | null, out: Frame[]): void {
    const { responseId: id, createdAt: created, model } = this.#context;
    const counted = this.#context.request.includeUsage ? { usage } : {};
    out.push({ event: undefined, data: JSON.stringify({ id, object: 'text_completion', created, model, choices, ...counted }) });
  }
}
