/**
 * What a text answer has used: as the upstream reported it, else counted, and where its client left at least what was generated
 * in that time.
 */
import type { ErrorCode, GatewayError } from '../../codecs/canonical/error.ts';
import type { Whole } from '../../codecs/canonical/fold.ts';
import type { Outcome } from '../../codecs/canonical/outcome.ts';
import type { SentRequest } from '../../codecs/canonical/request.ts';
import { type Usage, wholeOutput } from '../../codecs/canonical/usage.ts';
import { StreamError } from '../../streams/stream-error.ts';
import type { Model } from '../config/config.ts';
import { isUpstreamFault } from '../dispatch/verdict.ts';
import { clientGone, isClientGone } from '../errors.ts';
import { completedUsage, countedUsage, inputOf, inputShares, outputShares, withPictures, withServed } from '../money/estimate.ts';
import { mayReason, withTime } from '../money/token-rates.ts';
import type { Gateway } from '../gateway.ts';
import type { StreamStart, WholeAnswer } from './attempt.ts';

export class TextUsage {
  readonly #gateway: Gateway;
  readonly #request: SentRequest;
  #model: Model;
  #channelId = '';
  #dispatchedAt = 0;

  constructor(gateway: Gateway, request: SentRequest, model: Model) {
    this.#gateway = gateway;
    this.#request = request;
    this.#model = model;
  }

  /** An attempt begins. The last one is the one that answers. */
  dispatched(channelId: string, model: Model): void {
    this.#channelId = channelId;
    this.#model = model;
    this.#dispatchedAt = this.#gateway.clock.monotonic();
  }

  /** An answer that failed costs what it reported. One that we could not encode was generated all the same. */
  ofWhole({ whole, generated = whole }: WholeAnswer, error: GatewayError | undefined): Usage | undefined | Promise<Usage> {
    const { status } = whole.outcome;
    const isFailure = error !== undefined && (status === 'failed' || status === 'cancelled' || isUpstreamFault(error));
    if (isFailure && error.details.byClient !== true) return whole.usage;
    if (error === undefined) this.#learnRate(whole.usage);
    const usage = completedUsage(this.#gateway.tokenizer, whole.usage, this.#request, () => generated);
    return this.#withPictures(withServed(usage, whole.served), () => whole);
  }

  /** The same for a stream. Where the client left, or the gateway ended the answer, what the upstream had generated is billed. */
  ofStream(
    { source: { fold }, generated, mayStop }: StreamStart,
    error: GatewayError | undefined,
  ): Usage | undefined | Promise<Usage> {
    const { tokenizer, tokenRates, clock } = this.#gateway;
    const ms = clock.monotonic() - this.#dispatchedAt;
    const isFinal = fold.outcome !== undefined && !fold.isUsageEarly;
    if (error !== undefined && !isClientGone(error) && !isOurs(error)) return fold.usage;
    if (error === undefined && isFinal) this.#learnRate(fold.usage);
    const whole = () => generated ?? fold.whole(cancelledBy(error));
    const billed = (usage: Usage | Promise<Usage>) => this.#withPictures(withServed(usage, fold.served), whole);
    const hasReport = fold.usage?.output !== undefined && !fold.isUsageEarly;
    const isStopped = error === undefined && mayStop && !hasReport && isAtStop(fold.outcome);
    if (isFinal && !isStopped) return billed(completedUsage(tokenizer, fold.usage, this.#request, whole));
    const isBroken = error !== undefined && error.code !== 'shutting_down';
    const isTimed = (isBroken || isStopped) && !hasReport && mayReason(this.#request, this.#model);
    const rate = isTimed ? tokenRates.of(this.#channelId, this.#model.name) : 0;
    const counted = countedUsage(tokenizer, this.#request, whole()).then((usage) => {
      const merged = withEarly(usage, fold.usage);
      return isTimed ? withTime(merged, { rate, ms }, this.#request, this.#model) : merged;
    });
    return billed(counted);
  }

  /** From a good answer that reported its usage. */
  #learnRate(usage: Usage | undefined): void {
    if (usage?.output === undefined) return;
    const { tokenRates, clock } = this.#gateway;
    const ms = clock.monotonic() - this.#dispatchedAt;
    tokenRates.learn(this.#channelId, this.#model.name, wholeOutput(usage.output, usage.reasoning ?? 0), ms);
  }

  #withPictures(usage: Usage | Promise<Usage>, whole: () => Whole): Usage | Promise<Usage> {
    if (this.#model.rates?.pieces.has('image') !== true) return usage;
    return usage instanceof Promise ? usage.then((known) => withPictures(known, whole())) : withPictures(usage, whole());
  }
}

/** An upstream that is let go at a stop sequence reports nothing. */
function isAtStop(outcome: Outcome | undefined): boolean {
  return outcome?.status === 'completed' && outcome.stop === 'stopSequence';
}

/** Failures by which the gateway ends an answer that the upstream would have continued. */
const OURS: ReadonlySet<ErrorCode> = new Set(['response_not_representable', 'shutting_down']);
/** Cut at `limits.answer_bytes`, too. */
function isOurs({ code, details: { cause, byClient } }: GatewayError): boolean {
  return byClient === true || OURS.has(code) || (cause instanceof StreamError && cause.reason === 'too_many_bytes');
}

/** The outcome of an answer that broke off. */
function cancelledBy(failure: GatewayError | undefined): Outcome {
  return { status: 'cancelled', error: failure ?? clientGone() };
}

/**
 * Merges an early usage report into the estimate. It knows the input. Its output is a placeholder or what was generated until
 * then; it may include hidden reasoning, so it wins where it is larger.
 */
function withEarly(counted: Usage, early: Usage | undefined): Usage {
  if (early === undefined) return counted;
  const { output: reported, reasoning = 0, ...rest } = early;
  const { reasoning: shown = 0 } = counted;
  // Reasoning without an output is beside the text that was counted.
  const output = reported ?? (counted.output ?? 0) - shown + reasoning;
  const isMore = output > (counted.output ?? 0);
  const input = inputOf(early, counted.input ?? 0);
  const { imageInput, audioInput, imageOutput, audioOutput, ...words } = counted;
  return {
    ...words,
    // Shares belong to the count that they are a part of.
    ...(input === early.input ? {} : inputShares(counted)),
    ...(isMore ? {} : outputShares(counted)),
    ...rest,
    input,
    ...(isMore ? { output, ...(reasoning === 0 ? {} : { reasoning }) } : {}),
  };
}
