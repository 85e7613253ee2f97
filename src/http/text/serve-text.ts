/**
 * A text endpoint from the request to the settled end: authenticate → read → decode → admit → dispatch → relay → settle. The same for
 * every client dialect; what differs is the codec.
 */
import type { GatewayError } from '../../codecs/canonical/error.ts';
import type { Owner } from '../../codecs/canonical/opaque.ts';
import type { Outcome } from '../../codecs/canonical/outcome.ts';
import type { CanonicalRequest } from '../../codecs/canonical/request.ts';
import type { JsonObject } from '../../codecs/canonical/json.ts';
import { totalInput, type Usage } from '../../codecs/canonical/usage.ts';
import type { ClientCodec, ResponseContext } from '../../codecs/codec.ts';
import type { Principal } from '../../store/keys.ts';
import { type Admitted, checkModel, reserve } from '../admit.ts';
import { identify } from '../authenticate.ts';
import type { Channel } from '../config/config.ts';
import { conversationOf } from '../dispatch/affinity.ts';
import { eligibleChannels } from '../dispatch/candidates.ts';
import { type AttemptNote, dispatch, type Plan, type Taken, type Target } from '../dispatch/dispatch.ts';
import { clientGone, isClientGone, toGatewayError } from '../errors.ts';
import { completedUsage, countedUsage, estimateInput, estimateOutput } from '../estimate.ts';
import { type Committed, type Reply, Waiting } from '../exchange.ts';
import type { Asking, Call } from '../gateway.ts';
import { atClientPath, type OwnInput } from '../history/client-path.ts';
import { type Remember, rememberBody, remembering, type RememberOptions } from '../history/remembering.ts';
import { type Ending, Meter } from '../meter.ts';
import { receiveJson } from '../receive-json.ts';
import { noteAnswerLosses } from './answer-losses.ts';
import { attemptStream, attemptWhole, type StreamStart, type TextAttemptOptions, type WholeAnswer } from './attempt.ts';
import { carriesOpaque, needOf } from './need.ts';
import { failureFrames, relay } from './relay.ts';
import { checkMeters } from './unpriced-tools.ts';

/** A request in hand: who asks, and what exactly. */
export interface Asked {
  readonly principal: Principal;
  /** The body, with the history that it named in it. */
  readonly text: string;
  readonly json: JsonObject;
  /** The response that it continues: shown in the answer. */
  readonly previousResponseId?: string;
  readonly responseId?: string;
  /** The transport implies a stream, whatever the body says. */
  readonly stream?: true;
  /** Which items a Channel stored itself. */
  readonly stored?: (channelId: string) => (itemId: string) => boolean;
  readonly remember?: Remember;
  /** Where the client's own input stands in `text`, when it is not all of it. */
  readonly own?: OwnInput;
}

/** What an endpoint does with a body that was read, before anything else looks at it. */
export type Prepare = (call: Asking, principal: Principal, text: string, json: JsonObject) => Asked | Promise<Asked>;

/** Throws what happened before anything was said; once words went out, nothing is thrown any more. */
export async function serveText(call: Call, codec: ClientCodec, prepare: Prepare = asItCame): Promise<void> {
  const principal = await identify(call);
  const { text, json } = await receiveJson(call, principal);
  await answerText(call, codec, await prepare(call, principal, text, json), new Waiting(call.response));
}

const asItCame: Prepare = (_call, principal, text, json) => ({ principal, text, json });

/** From the decoded request to the settled end, whatever carries the words. Throws as {@link serveText} does. */
export function answerText(call: Asking, codec: ClientCodec, asked: Asked, reply: Reply): Promise<void> {
  const answered = answer(call, codec, asked, reply);
  return asked.own === undefined ? answered : answered.catch((thrown) => Promise.reject(atClientPath(thrown, asked.own)));
}

async function answer(call: Asking, codec: ClientCodec, asked: Asked, reply: Reply): Promise<void> {
  const { gateway, config } = call;
  const { principal, text, json } = asked;
  const accountId = principal.account.id;
  const decoded = codec.decodeRequest(text, json, { open: (sealed) => gateway.envelopes.open(sealed, accountId) });
  const request = asCarried(decoded, asked);
  call.notes.model = request.model;
  call.notes.stream = request.stream;
  const model = checkModel(config, principal, request.model);
  const channels = eligibleChannels(config, needOf(gateway.codecs, request, principal.account.class, model));
  checkMeters(request, { codecs: gateway.codecs, channels, rates: model.rates, unpricedTools: config.unpricedTools });
  const estimate = { input: estimateInput(request), output: estimateOutput(request, model) };
  const admitted = await reserve(gateway.store, principal, model, estimate, gateway.clock.now());
  try {
    const meter = new Meter(call, admitted, {
      stream: request.stream,
      ...(request.reasoning?.effort === undefined ? {} : { effort: request.reasoning.effort }),
    });
    const opened = meter.open();
    if (opened !== undefined) await opened;
    const plan: Plan = {
      channels,
      model: request.model,
      // The whole conversation, and not the id of its last turn: the next turn is to meet the same Channel.
      conversation: conversationOf(principal.key.id, decoded),
      carriesOpaque: carriesOpaque(request),
      maxAttempts: config.dispatch.maxAttempts,
      maxRetryWaitMs: config.dispatch.maxRetryWaitMs,
      signal: call.gone,
    };
    const exchange = new TextExchange(call, codec, request, admitted, meter, asked, reply);
    await (request.stream ? exchange.stream(plan) : exchange.whole(plan));
  } finally {
    admitted.reservation.release();
  }
}

function asCarried(decoded: CanonicalRequest, { previousResponseId, stream }: Asked): CanonicalRequest {
  if (previousResponseId === undefined && stream === undefined) return decoded;
  return {
    ...decoded,
    stream: stream ?? decoded.stream,
    ...(previousResponseId === undefined ? {} : { previousResponseId }),
  };
}

class TextExchange {
  readonly #call: Asking;
  readonly #codec: ClientCodec;
  readonly #request: CanonicalRequest;
  readonly #admitted: Admitted;
  readonly #meter: Meter;
  readonly #options: TextAttemptOptions;
  readonly #responseId: string;
  readonly #remember: Remember | undefined;
  readonly #reply: Reply;
  /** Of every attempt, as the upstreams say it. */
  readonly #notes: AttemptNote[] = [];

  constructor(
    call: Asking,
    codec: ClientCodec,
    request: CanonicalRequest,
    admitted: Admitted,
    meter: Meter,
    asked: Asked,
    reply: Reply,
  ) {
    const { gateway, config } = call;
    this.#call = call;
    this.#codec = codec;
    this.#request = request;
    this.#admitted = admitted;
    this.#meter = meter;
    this.#responseId = asked.responseId ?? gateway.mint(codec.idPrefix);
    this.#remember = asked.remember;
    this.#reply = reply;
    this.#options = {
      request,
      model: admitted.model,
      config,
      upstreams: gateway.upstreams,
      codecs: gateway.codecs,
      clientHeaders: call.request.headers,
      clock: gateway.clock,
      mint: gateway.mint,
      ...(asked.stored === undefined ? {} : { stored: asked.stored }),
      ...(call.trace === undefined ? {} : { trace: call.trace }),
    };
  }

  async whole(plan: Plan): Promise<void> {
    let taken: Taken<WholeAnswer> | undefined;
    try {
      taken = await dispatch(
        plan,
        (target) => attemptWhole(this.#noted(target), this.#options),
        this.#call.gateway.dispatcher,
        this.#meter.attempts,
      );
      this.#took(taken);
      const { whole, native, owner } = taken.answer;
      const { outcome } = whole;
      const broken = outcome.status === 'failed' || outcome.status === 'cancelled' ? outcome.error : undefined;
      if (broken !== undefined && this.#codec.dialect !== 'responses') throw broken;
      const body = this.#codec.encodeResponse(whole, native, this.#context(owner));
      if (broken === undefined) taken.succeeded();
      else taken.failed(broken);
      const usage = await this.#usageOf(taken.answer, broken);
      const ending = endingOf(broken, usage);
      const headers = this.#channelHeader(taken);
      const remember = this.#rememberOptions(taken.channel);
      if (remember !== undefined) await rememberBody(body, outcome.status, remember);
      await this.#meter.settleFirst(() => ending);
      this.#reply.answer({ status: 200, body, headers });
      this.#meter.words();
      noteAnswerLosses(this.#call, this.#codec, taken.channel, () => whole);
      await this.#meter.settle(ending);
    } catch (thrown) {
      const error = toGatewayError(thrown);
      taken?.failed(error);
      // An answer that the gateway itself could not say was made all the same; a failed one costs what it reported.
      const theirs = error.blame === 'upstream' && error.code !== 'response_not_representable' ? error : undefined;
      const usage = taken === undefined ? this.#usageUnanswered() : await this.#usageOf(taken.answer, theirs);
      await this.#meter.settle({ ...endingOf(error, usage), status: error.status });
      throw error;
    }
  }

  async stream(plan: Plan): Promise<void> {
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
      taken = await dispatch(
        plan,
        (target) => attemptStream(this.#noted(target), this.#options),
        gateway.dispatcher,
        this.#meter.attempts,
      );
    } catch (thrown) {
      const error = toGatewayError(thrown);
      const status = committed === undefined ? error.status : 200;
      await this.#meter.settle({ ...endingOf(error, this.#usageUnanswered()), status });
      if (committed === undefined) throw error;
      await this.#sayFailure(committed, error);
      return;
    } finally {
      early.cancel();
    }
    this.#took(taken);
    await this.#relay(taken, commit(this.#channelHeader(taken)));
  }

  async #relay(taken: Taken<StreamStart>, committed: Committed): Promise<void> {
    const { held, source, owner } = taken.answer;
    const encoder = this.#codec.encodeEvents(this.#context(owner));
    const remember = this.#rememberOptions(taken.channel);
    const heard = remember === undefined ? undefined : remembering(encoder, remember);
    const failureOf = (told: GatewayError | undefined): GatewayError | undefined => {
      const { outcome } = source.fold;
      return outcome?.status === 'failed' || outcome?.status === 'cancelled' ? (told ?? outcome.error) : told;
    };
    let failure: GatewayError | undefined;
    try {
      failure = failureOf(
        await relay(held, source, heard ?? encoder, committed, {
          onWords: () => this.#meter.words(),
          beforeWords: () => heard?.takePending(),
          beforeEnd: (told) =>
            this.#meter.settleFirst(async () =>
              endingOf(failureOf(told), await this.#streamUsage(taken.answer, failureOf(told))),
            ),
        }),
      );
    } catch (thrown) {
      failure = toGatewayError(thrown);
    }
    if (failure === undefined) taken.succeeded();
    else taken.failed(failure);
    noteAnswerLosses(this.#call, this.#codec, taken.channel, () => source.fold.whole(cancelledBy(failure)));
    const usage = this.#streamUsage(taken.answer, failure);
    const settled = this.#meter.settle(endingOf(failure, usage instanceof Promise ? await usage : usage));
    if (settled !== undefined) await settled;
  }

  async #sayFailure(committed: Committed, error: GatewayError): Promise<void> {
    const nobody: Owner = { channelType: 'chat_completion', scope: '', model: this.#request.model };
    try {
      await committed.end(failureFrames(this.#codec.encodeEvents(this.#context(nobody)), error).map(committed.frame));
    } catch (thrown) {
      if (!isClientGone(toGatewayError(thrown))) throw thrown;
    }
  }

  #took(taken: Taken<StreamStart | WholeAnswer>): void {
    this.#meter.took(taken.channel, taken.upstreamModel, taken.affinityHit);
    if (taken.answer.losses.length > 0) {
      this.#call.gateway.log.debug({ request_id: this.#call.requestId, losses: taken.answer.losses }, 'conversion losses');
    }
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

  #noted(target: Target): Target {
    this.#notes.push(target.note);
    return target;
  }

  /** What the last attempt that told said that it used: it costs that where no other answered. */
  #usageUnanswered(): Usage | undefined {
    return this.#notes.findLast(({ usage }) => usage !== undefined)?.usage;
  }

  /** Reported usage, or a counted estimate for an answer that reported none; a failed one without a report costs nothing. */
  #usageOf({ whole }: WholeAnswer, failure: GatewayError | undefined): Usage | undefined | Promise<Usage> {
    return failure === undefined ? completedUsage(whole.usage, this.#request, () => whole) : whole.usage;
  }

  /** The same for a stream; a client that left, and words that we refused to say, are billed as what the upstream had said. */
  #streamUsage({ source }: StreamStart, failure: GatewayError | undefined): Usage | undefined | Promise<Usage> {
    const { fold: said } = source;
    const isFinal = (said.outcome !== undefined || failure === undefined) && !said.isUsageEarly;
    const ours = failure === undefined || isClientGone(failure) || failure.code === 'response_not_representable';
    if (!ours) return said.usage;
    const whole = () => said.whole(cancelledBy(failure));
    if (isFinal) return completedUsage(said.usage, this.#request, whole);
    return countedUsage(this.#request, whole()).then((counted) => ({ ...counted, ...onlyInput(said.usage) }));
  }
}

/** After the commit: the status is out. */
function endingOf(failure: GatewayError | undefined, usage: Usage | undefined): Ending {
  return {
    status: 200,
    ...(failure === undefined ? {} : { error: failure, clientGone: isClientGone(failure) }),
    ...(usage === undefined ? {} : { usage }),
  };
}

/** How an answer without an ending of its own ended. */
function cancelledBy(failure: GatewayError | undefined): Outcome {
  return { status: 'cancelled', error: failure ?? clientGone() };
}

/** An early usage report knows the input; what it says of the output is a placeholder. */
function onlyInput(usage: Usage | undefined): Partial<Usage> {
  if (usage === undefined) return {};
  const { output: _output, reasoning: _reasoning, ...input } = usage;
  return totalInput(usage) > 0 ? input : {};
}
