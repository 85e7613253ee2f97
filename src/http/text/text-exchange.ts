/**
 * An admitted request until it is settled: dispatch → relay → settle, whole or as a stream. It keeps only what the answer still needs of the
 * request, since a stream can stay open for a long time.
 */
import type { ErrorCode, GatewayError } from '../../codecs/canonical/error.ts';
import type { Whole } from '../../codecs/canonical/fold.ts';
import type { Owner } from '../../codecs/canonical/opaque.ts';
import type { Outcome } from '../../codecs/canonical/outcome.ts';
import { asSent, type CanonicalRequest, type SentRequest } from '../../codecs/canonical/request.ts';
import { totalInput, type Usage } from '../../codecs/canonical/usage.ts';
import type { ClientCodec, ResponseContext } from '../../codecs/codec.ts';
import { StreamError } from '../../streams/stream-error.ts';
import type { Admitted } from '../exchange/admit.ts';
import type { Channel } from '../config/config.ts';
import { dispatch, type Plan, type Target } from '../dispatch/dispatch.ts';
import type { Taken } from '../dispatch/taken.ts';
import { isUpstreamFault } from '../dispatch/verdict.ts';
import { clientGone, isClientGone, toGatewayError } from '../errors.ts';
import { completedUsage, countedUsage, withPictures } from '../exchange/estimate.ts';
import type { Committed, Reply } from '../exchange/reply.ts';
import type { CallContext } from '../gateway.ts';
import { type Remember, rememberBody, remembering, type RememberOptions } from '../history/remembering.ts';
import { type Ending, Meter } from '../exchange/meter.ts';
import type { PreparedRequest } from './prepared-request.ts';
import { logAnswerLosses } from './answer-losses.ts';
import { attemptStream, attemptWhole, type StreamStart, type TextAttemptOptions, type WholeAnswer } from './attempt.ts';
import { failureFrames, relay, type ClientOutput } from './relay.ts';

/** What it takes to find an upstream that answers. */
interface Search {
  readonly plan: Plan;
  readonly options: TextAttemptOptions;
}

export class TextExchange {
  readonly #call: CallContext;
  readonly #codec: ClientCodec;
  readonly #request: SentRequest;
  readonly #admitted: Admitted;
  readonly #meter: Meter;
  readonly #responseId: string;
  readonly #remember: Remember | undefined;
  readonly #reply: Reply;
  /** Dropped once an upstream has answered. */
  #search: Search | undefined;

  constructor(
    call: CallContext,
    codec: ClientCodec,
    request: CanonicalRequest,
    admitted: Admitted,
    plan: Plan,
    prepared: PreparedRequest,
    reply: Reply,
  ) {
    const { gateway, config } = call;
    this.#call = call;
    this.#codec = codec;
    this.#request = asSent(request);
    this.#admitted = admitted;
    this.#meter = new Meter(call, admitted, {
      stream: request.stream,
      ...(request.reasoning?.effort === undefined ? {} : { effort: request.reasoning.effort }),
    });
    this.#responseId = prepared.responseId ?? gateway.mint(codec.idPrefix);
    this.#remember = prepared.remember;
    this.#reply = reply;
    const options: TextAttemptOptions = {
      request,
      model: admitted.model,
      config,
      upstreams: gateway.upstreams,
      codecs: gateway.codecs,
      clientHeaders: call.request.headers,
      clock: gateway.clock,
      mint: gateway.mint,
      ...(prepared.stored === undefined ? {} : { stored: prepared.stored }),
      ...(call.trace === undefined ? {} : { trace: call.trace }),
    };
    this.#search = { plan, options };
  }

  /** Releases the reservation however it ends. */
  async run(): Promise<void> {
    try {
      const opened = this.#meter.open();
      if (opened !== undefined) await opened;
      await (this.#request.stream ? this.#stream() : this.#whole());
    } finally {
      this.#admitted.reservation.release();
    }
  }

  async #whole(): Promise<void> {
    let taken: Taken<WholeAnswer> | undefined;
    try {
      taken = await this.#dispatch(attemptWhole);
      const { whole, native, owner } = taken.answer;
      const { outcome } = whole;
      const failure = outcome.status === 'failed' || outcome.status === 'cancelled' ? outcome.error : undefined;
      if (failure !== undefined && this.#codec.dialect !== 'responses') throw failure;
      const body = this.#codec.encodeResponse(whole, native, this.#context(owner));
      if (failure === undefined) taken.succeeded();
      else taken.failed(failure);
      const usage = await this.#usageOf(taken.answer, failure);
      const ending = endingOf(failure, usage);
      const headers = this.#channelHeader(taken);
      const remember = this.#rememberOptions(taken.channel);
      await this.#meter.settleFirst(() => ending);
      if (remember !== undefined) await rememberBody(body, outcome.status, remember);
      this.#reply.answer({ status: 200, body, headers, writeStallMs: taken.channel.timeouts.writeStallMs });
      this.#meter.outputWritten();
      logAnswerLosses(this.#call, this.#codec, taken.channel, () => whole);
      await this.#meter.settle(ending);
    } catch (thrown) {
      const error = toGatewayError(thrown);
      taken?.failed(error);
      // An answer that the gateway could not encode was generated all the same; a failed one costs what it reported.
      const theirs = isUpstreamFault(error) ? error : undefined;
      const usage = taken === undefined ? undefined : await this.#usageOf(taken.answer, theirs);
      await this.#meter.settle({ ...endingOf(error, usage), status: error.status });
      throw error;
    }
  }

  async #stream(): Promise<void> {
    const started = await this.#start();
    if (started === undefined) return;
    const { taken, committed } = started;
    const { held, source, owner } = taken.answer;
    const encoder = this.#codec.encodeEvents(this.#context(owner));
    const remember = this.#rememberOptions(taken.channel);
    const recorder = remember === undefined ? undefined : remembering(encoder, remember);
    const output: ClientOutput = { encoder: recorder ?? encoder, errorFrame: (error) => this.#codec.errorFrame(error) };
    const failureOf = (told: GatewayError | undefined): GatewayError | undefined => {
      const { outcome } = source.fold;
      return outcome?.status === 'failed' || outcome?.status === 'cancelled' ? (told ?? outcome.error) : told;
    };
    let failure: GatewayError | undefined;
    try {
      failure = failureOf(
        await relay(held, source, output, committed, {
          onWords: () => this.#meter.outputWritten(),
          beforeEnd: (told) => {
            const settled = this.#meter.settleFirst(async () =>
              endingOf(failureOf(told), await this.#streamUsage(taken.answer, failureOf(told))),
            );
            return settled === undefined ? recorder?.remember() : settled.then(() => recorder?.remember());
          },
        }),
      );
    } catch (thrown) {
      failure = toGatewayError(thrown);
    }
    if (failure === undefined) taken.succeeded();
    else taken.failed(failure);
    logAnswerLosses(this.#call, this.#codec, taken.channel, () => source.fold.whole(cancelledBy(failure)));
    const usage = this.#streamUsage(taken.answer, failure);
    const settled = this.#meter.settle(endingOf(failure, usage instanceof Promise ? await usage : usage));
    if (settled !== undefined) await settled;
  }

  /** Undefined when no upstream answered and the failure was sent on the stream that had begun already. */
  async #start(): Promise<{ readonly taken: Taken<StreamStart>; readonly committed: Committed } | undefined> {
    const { gateway, config } = this.#call;
    let committed: Committed | undefined;
    const commit = (headers: Readonly<Record<string, string>> = {}): Committed => {
      committed ??= this.#reply.commit(
        { clock: gateway.clock, writeStallMs: config.writeStallMs, keepAlive: { intervalMs: config.keepAliveMs } },
        headers,
      );
      return committed;
    };
    // Keep-alives may flow while Channels are still tried: comments commit to no upstream.
    const early = gateway.clock.setTimeout(() => commit().flushHead(), config.commitAfterMs);
    let taken: Taken<StreamStart>;
    try {
      taken = await this.#dispatch(attemptStream);
    } catch (thrown) {
      const error = toGatewayError(thrown);
      const status = committed === undefined ? error.status : 200;
      await this.#meter.settle({ ...endingOf(error, undefined), status });
      if (committed === undefined) throw error;
      await this.#sendFailure(committed, error);
      return undefined;
    } finally {
      early.cancel();
    }
    const begun = commit(this.#channelHeader(taken));
    begun.writer.waitAtMost(taken.channel.timeouts.writeStallMs);
    return { taken, committed: begun };
  }

  async #sendFailure(committed: Committed, error: GatewayError): Promise<void> {
    const nobody: Owner = { channelType: 'chat_completion', scope: '', model: this.#request.model };
    try {
      await committed.writer.end(failureFrames(this.#codec.encodeEvents(this.#context(nobody)), error).map(committed.frame));
    } catch (thrown) {
      if (!isClientGone(toGatewayError(thrown))) throw thrown;
    }
  }

  async #dispatch<Answer extends StreamStart | WholeAnswer>(
    attempt: (target: Target, options: TextAttemptOptions) => Promise<Answer>,
  ): Promise<Taken<Answer>> {
    const search = this.#search;
    if (search === undefined) throw new Error('an exchange is dispatched once');
    const ask = (target: Target): Promise<Answer> => attempt(target, search.options);
    const taken = await dispatch(search.plan, ask, this.#call.gateway.dispatcher, this.#meter.attempts);
    this.#search = undefined;
    this.#meter.answeredBy(taken.channel, taken.upstreamModel, taken.affinityHit);
    const { losses } = taken.answer;
    if (losses.length > 0) this.#call.gateway.log.debug({ request_id: this.#call.requestId, losses }, 'conversion losses');
    return taken;
  }

  #context(owner: Owner): ResponseContext {
    const { gateway, startedAtMs } = this.#call;
    const accountId = this.#admitted.principal.account.id;
    return {
      responseId: this.#responseId,
      model: this.#request.model,
      createdAt: Math.floor(startedAtMs / 1000),
      now: () => Math.floor(gateway.clock.now() / 1000),
      request: this.#request,
      owner,
      seal: (opaque) => gateway.envelopes.seal(opaque, accountId),
      mint: gateway.mint,
    };
  }

  #rememberOptions(channel: Channel): RememberOptions | undefined {
    const remember = this.#remember;
    return remember === undefined ? undefined : { responseId: this.#responseId, channel, store: this.#request.store, remember };
  }

  #channelHeader(taken: Taken<unknown>): Record<string, string> {
    return this.#call.config.channelHeader ? { 'x-mizu-channel': taken.channel.id } : {};
  }

  /** The reported usage, else an estimate; a failed answer without a report costs nothing. */
  #usageOf({ whole }: WholeAnswer, failure: GatewayError | undefined): Usage | undefined | Promise<Usage> {
    if (failure !== undefined) return whole.usage;
    return this.#withPictures(
      completedUsage(whole.usage, this.#request, () => whole),
      () => whole,
    );
  }

  /** The same for a stream. Where the client left, or the gateway ended the answer, what the upstream had generated is billed. */
  #streamUsage({ source }: StreamStart, failure: GatewayError | undefined): Usage | undefined | Promise<Usage> {
    const { fold } = source;
    const isFinal = fold.outcome !== undefined && !fold.isUsageEarly;
    const isOurs = failure === undefined || isClientGone(failure) || OURS.has(failure.code) || isTooLong(failure);
    if (!isOurs) return fold.usage;
    const whole = () => fold.whole(cancelledBy(failure));
    if (isFinal) return this.#withPictures(completedUsage(fold.usage, this.#request, whole), whole);
    const counted = countedUsage(this.#request, whole()).then((usage) => withEarly(usage, fold.usage));
    return this.#withPictures(counted, whole);
  }

  #withPictures(usage: Usage | Promise<Usage>, whole: () => Whole): Usage | Promise<Usage> {
    if (!this.#admitted.rates.pieces.has('image')) return usage;
    return usage instanceof Promise ? usage.then((known) => withPictures(known, whole())) : withPictures(usage, whole());
  }
}

/** Failures by which the gateway ends an answer that the upstream would have continued. */
const OURS: ReadonlySet<ErrorCode> = new Set(['response_not_representable', 'shutting_down']);

/** Cut at `limits.answer_bytes`. */
function isTooLong({ details: { cause } }: GatewayError): boolean {
  return cause instanceof StreamError && cause.reason === 'too_many_bytes';
}

/** After the commit: the status is out. */
function endingOf(failure: GatewayError | undefined, usage: Usage | undefined): Ending {
  return {
    status: 200,
    ...(failure === undefined ? {} : { error: failure, clientGone: isClientGone(failure) }),
    ...(usage === undefined ? {} : { usage }),
  };
}

/** The outcome of an answer that broke off. */
function cancelledBy(failure: GatewayError | undefined): Outcome {
  return { status: 'cancelled', error: failure ?? clientGone() };
}

/**
 * Merges an early usage report into the estimate. It knows the input. Its output is a placeholder or what was generated until then; it may
 * include hidden reasoning, so it wins where it is larger.
 */
function withEarly(counted: Usage, early: Usage | undefined): Usage {
  if (early === undefined || totalInput(early) === 0) return counted;
  const { output = 0, reasoning: _reasoning, ...input } = early;
  return { ...counted, ...(output > (counted.output ?? 0) ? early : input) };
}
