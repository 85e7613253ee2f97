/**
 * How a text exchange is answered: dispatch → relay or encode → end, whole or as a stream. It keeps only what the answer still
 * needs of the request, since a stream can stay open for a long time.
 */
import type { GatewayError } from '../../codecs/canonical/error.ts';
import type { Owner } from '../../codecs/canonical/opaque.ts';
import { asSent, type CanonicalRequest, type SentRequest } from '../../codecs/canonical/request.ts';
import type { ClientCodec, ClientEncoder, Frame, ResponseContext } from '../../codecs/codec.ts';
import { type Timer, within } from '../../streams/clock.ts';
import type { Channel, Model } from '../config/config.ts';
import type { Accepted } from '../dispatch/accepted.ts';
import type { Attempt, Target } from '../dispatch/plan.ts';
import { isClientGone, toGatewayError } from '../errors.ts';
import type { Billing, Exchange, Search } from '../exchange/exchange.ts';
import type { Committed, Reply } from '../exchange/reply.ts';
import { answerWhole, type WholeBody } from '../exchange/whole-answer.ts';
import type { CallContext } from '../gateway.ts';
import { isLarge } from '../request/large-work.ts';
import { rememberBody, remembering, type RememberOptions } from '../history/remembering.ts';
import type { PreparedRequest } from './prepared-request.ts';
import { attemptStream, attemptWhole, type StreamStart, type TextAttemptOptions, type WholeAnswer } from './attempt.ts';
import { failureFrames, relay, type ClientOutput } from './relay.ts';
import { TextUsage } from './text-usage.ts';

/** An answer is not held back for longer by the history that it is to be kept in. */
const REMEMBER_MS = 5_000;

/** What it takes to find an upstream that answers. */
interface Upstreams {
  readonly search: Search;
  readonly options: TextAttemptOptions;
}

export interface TextAnswerOptions {
  readonly call: CallContext;
  readonly codec: ClientCodec;
  readonly request: CanonicalRequest;
  readonly model: Model;
  readonly search: Search;
  readonly prepared: PreparedRequest;
  readonly reply: Reply;
  /** {@link ResponseContext.inputEstimate} */
  readonly inputEstimate: number;
}

export class TextAnswer {
  readonly #call: CallContext;
  readonly #codec: ClientCodec;
  readonly #request: SentRequest;
  readonly #responseId: string;
  readonly #accountId: string;
  readonly #keyId: string;
  readonly #usage: TextUsage;
  readonly #remember: PreparedRequest['remember'];
  readonly #reply: Reply;
  readonly #inputEstimate: number;
  readonly #isLarge: boolean;
  /** Dropped once an upstream has answered. */
  #upstreams: Upstreams | undefined;

  constructor({ call, codec, request, model, search, prepared, reply, inputEstimate }: TextAnswerOptions) {
    const { gateway } = call;
    this.#call = call;
    this.#codec = codec;
    this.#request = asSent(request);
    this.#responseId = prepared.responseId ?? gateway.mint(codec.idPrefix);
    this.#accountId = prepared.principal.account.id;
    this.#keyId = prepared.principal.key.id;
    this.#usage = new TextUsage(gateway, this.#request, model);
    this.#remember = prepared.remember;
    this.#reply = reply;
    this.#inputEstimate = inputEstimate;
    this.#isLarge = isLarge(request.text);
    const options: TextAttemptOptions = {
      call,
      request,
      model,
      party: this.#keyId,
      seal: (opaque) => gateway.envelopes.seal(opaque, this.#accountId),
      ...(prepared.stored === undefined ? {} : { stored: prepared.stored }),
      link: prepared.link,
    };
    this.#upstreams = { search, options };
  }

  /** Owns the exchange from here on. Throws the error for the client, where nothing was sent. */
  async run(admitted: Exchange): Promise<void> {
    await using exchange = admitted;
    await (this.#request.stream ? this.#stream(exchange) : this.#whole(exchange));
  }

  #whole(exchange: Exchange): Promise<void> {
    const { search, options } = this.#takeUpstreams();
    return answerWhole<WholeAnswer>(
      exchange,
      {
        search,
        attempt: (target) => {
          const model = this.#modelOf(target);
          this.#usage.dispatched(target.channel.id, model);
          return attemptWhole(target, { ...options, model });
        },
        usageOf: (answer, error) => this.#usage.ofWhole(answer, error),
        encode: (accepted) => this.#encode(accepted, exchange),
      },
      this.#reply,
    );
  }

  #encode({ answer, channel }: Accepted<WholeAnswer>, exchange: Exchange): WholeBody | Promise<WholeBody> {
    const { whole, native, owner } = answer;
    const { outcome } = whole;
    const failure = outcome.status === 'failed' || outcome.status === 'cancelled' ? outcome.error : undefined;
    if (failure !== undefined && this.#codec.dialect !== 'responses') throw failure;
    const options = this.#rememberOptions(channel, answer.generated !== undefined);
    const answered = (body: string): WholeBody => ({
      body,
      failure,
      remember: () => this.#keep(() => options && rememberBody(body, outcome.status, options)),
    });
    const steps = this.#codec.encodeResponseInSteps(whole, native, this.#context(owner, exchange));
    const body = this.#call.gateway.largeWork.of(answer, steps, this.#call.gone);
    return body instanceof Promise ? body.then(answered) : answered(body);
  }

  async #stream(exchange: Exchange): Promise<void> {
    const { gateway, config } = this.#call;
    let committed: Committed | undefined;
    const commit = (headers: Readonly<Record<string, string>> = {}): Committed => {
      committed ??= this.#reply.commit(
        {
          ...{ clock: gateway.clock, turns: gateway.streamTurns, party: this.#keyId },
          ...{ writeStallMs: config.writeStallMs, keepAlive: { intervalMs: config.keepAliveMs } },
        },
        headers,
      );
      return committed;
    };
    let accepted: Accepted<StreamStart> | undefined;
    let output: ClientOutput;
    let recorder: ReturnType<typeof remembering> | undefined;
    let early: Timer | undefined;
    try {
      // Keep-alives may flow while Channels are still tried: comments commit to no upstream.
      early = gateway.clock.setTimeout(() => commit().flushHead(), config.commitAfterMs);
      accepted = await this.#dispatchStream(exchange);
      const { owner } = accepted.answer;
      // The events of such an upstream bring what they repeat.
      const repeats = this.#isLarge && owner.channelType !== 'responses';
      const made = this.#encoder(this.#context(owner, exchange), repeats);
      const encoder = made instanceof Promise ? await made : made;
      const remember = this.#rememberOptions(accepted.channel, accepted.answer.generated !== undefined);
      recorder = remember === undefined ? undefined : remembering(encoder, remember);
      output = { encoder: recorder ?? encoder, errorFrame: (error) => this.#codec.errorFrame(error) };
      committed = commit(exchange.answerHeaders());
      committed.writer.waitAtMost(accepted.channel.timeouts.writeStallMs);
    } catch (thrown) {
      accepted?.answer.source.cancel(thrown);
      return await this.#fail(exchange, toGatewayError(thrown), committed);
    } finally {
      early?.cancel();
    }
    const { held, source } = accepted.answer;
    const failureOf = (told: GatewayError | undefined): GatewayError | undefined => {
      const { outcome } = source.fold;
      return outcome?.status === 'failed' || outcome?.status === 'cancelled' ? (told ?? outcome.error) : told;
    };
    const remember = (): Promise<void> | undefined => this.#keep(() => recorder?.remember());
    const failure = await relay(held, source, output, committed, {
      turns: gateway.streamTurns,
      party: this.#keyId,
      onOutput: () => exchange.outputWritten(),
      beforeEnd: (told) => {
        const ended = exchange.endFirst({ error: failureOf(told), status: 200 });
        return ended === undefined ? remember() : ended.then(remember);
      },
    }).then(failureOf, toGatewayError);
    const ended = exchange.end({ error: failure, status: 200 });
    if (ended !== undefined) await ended;
  }

  /** No `async`: a frame that lasts as long as the stream would keep the request in memory. */
  #dispatchStream(exchange: Exchange): Promise<Accepted<StreamStart>> {
    const { search, options } = this.#takeUpstreams();
    const attempt: Attempt<StreamStart> = (target) => {
      const model = this.#modelOf(target);
      this.#usage.dispatched(target.channel.id, model);
      return attemptStream(target, { ...options, model });
    };
    return exchange.dispatch(search, attempt, this.#billing());
  }

  /** A closure made where the request is in scope would keep it as long as the exchange keeps the closure. */
  #billing(): Billing<StreamStart> {
    return { usageOf: (answer, error) => this.#usage.ofStream(answer, error) };
  }

  /** Throws the error where the status is not out yet; else it becomes the end of the stream. */
  async #fail(exchange: Exchange, error: GatewayError, committed: Committed | undefined): Promise<void> {
    await exchange.end({ error, ...(committed === undefined ? {} : { status: 200 }) });
    if (committed === undefined) throw error;
    try {
      const frames = await this.#failureFrames(error);
      await committed.writer.end(committed.framed(frames));
    } catch (thrown) {
      if (!isClientGone(toGatewayError(thrown))) throw thrown;
    }
  }

  async #failureFrames(error: GatewayError): Promise<Frame[]> {
    const nobody: Owner = { channelType: 'chat_completion', scope: '', model: this.#request.model };
    try {
      return failureFrames(await this.#encoder(this.#context(nobody), this.#isLarge), error);
    } catch (thrown) {
      this.#tell(thrown, 'a failure could not be encoded');
      return [this.#codec.errorFrame(error)];
    }
  }

  /** The model that is tried: the one that was asked for, or a fallback of it. */
  #modelOf({ model = this.#request.model }: Target): Model {
    const found = this.#call.config.models.get(model);
    if (found === undefined) throw new Error(`no model ${model}`);
    return found;
  }

  #takeUpstreams(): Upstreams {
    const upstreams = this.#upstreams;
    if (upstreams === undefined) throw new Error('an exchange is dispatched once');
    this.#upstreams = undefined;
    return upstreams;
  }

  #encoder(context: ResponseContext, repeatsMuch: boolean): ClientEncoder | Promise<ClientEncoder> {
    const steps = repeatsMuch ? this.#codec.encodeEventsInSteps?.(context) : undefined;
    return steps === undefined ? this.#codec.encodeEvents(context) : this.#call.gateway.largeWork.run(steps);
  }

  #context(owner: Owner, exchange?: Exchange): ResponseContext {
    const { gateway, startedAtMs } = this.#call;
    return {
      responseId: this.#responseId,
      model: this.#request.model,
      createdAt: Math.floor(startedAtMs / 1000),
      now: () => Math.floor(gateway.clock.now() / 1000),
      request: this.#request,
      inputEstimate: this.#inputEstimate,
      owner,
      seal: (opaque) => gateway.envelopes.seal(opaque, this.#accountId),
      mint: gateway.mint,
      ...(exchange === undefined ? {} : { lost: (feature) => exchange.answerLosses.add(feature) }),
    };
  }

  /** No upstream stores a compaction that the gateway makes of a summary. */
  #rememberOptions(channel: Channel, isCompaction: boolean): RememberOptions | undefined {
    const remember = this.#remember;
    if (remember === undefined) return undefined;
    const stores = isCompaction ? 'never' : this.#request.store;
    return {
      ...{ responseId: this.#responseId, channel, store: stores, remember },
      work: this.#call.gateway.largeWork,
    };
  }

  /** An answer that cannot be remembered is unknown later on, and is sent all the same. */
  #keep(remember: () => Promise<void> | undefined): Promise<void> | undefined {
    try {
      const kept = remember();
      if (kept === undefined) return undefined;
      const late = (): Error => new Error(`not kept within ${REMEMBER_MS} ms`);
      return within(this.#call.gateway.clock, REMEMBER_MS, kept, late).catch((thrown: unknown) => this.#forgotten(thrown));
    } catch (thrown) {
      this.#forgotten(thrown);
      return undefined;
    }
  }

  #forgotten(thrown: unknown): void {
    this.#tell(thrown, 'an answer could not be kept in the history');
  }

  #tell(err: unknown, what: string): void {
    this.#call.gateway.log.error({ request_id: this.#call.requestId, err }, what);
  }
}
