/** One picture of a request: dispatched through the attempt loop, and settled once whatever came of it. */
import type { GatewayError } from '../../codecs/canonical/error.ts';
import type { ImageAnswer, ImageRequest } from '../../codecs/images/index.ts';
import type { Admitted } from '../exchange/admit.ts';
import type { Channel } from '../config/config.ts';
import { dispatch } from '../dispatch/dispatch.ts';
import { isClientGone, toGatewayError } from '../errors.ts';
import type { Call } from '../gateway.ts';
import { Meter } from '../exchange/meter.ts';
import { imageAttempts } from './attempt.ts';
import { imageUsage } from './billing.ts';

export class PictureRun {
  readonly #call: Call;
  readonly #request: ImageRequest;
  readonly #channels: readonly Channel[];
  readonly #admitted: Admitted;
  readonly #meter: Meter;
  #answer: ImageAnswer | undefined;
  #failure: GatewayError | undefined;
  #channel: Channel | undefined;

  constructor(call: Call, request: ImageRequest, channels: readonly Channel[], admitted: Admitted) {
    this.#call = call;
    this.#request = request;
    this.#channels = channels;
    this.#admitted = admitted;
    this.#meter = new Meter(call, admitted, { stream: request.stream });
  }

  /** The picture, once it is drawn. */
  get answer(): ImageAnswer | undefined {
    return this.#answer;
  }

  get failure(): GatewayError | undefined {
    return this.#failure;
  }

  get headers(): Readonly<Record<string, string>> {
    return this.#call.config.channelHeader && this.#channel !== undefined ? { 'x-mizu-channel': this.#channel.id } : {};
  }

  /** How long the client may take nothing of the picture; undefined where none was drawn. */
  get writeStallMs(): number | undefined {
    return this.#channel?.timeouts.writeStallMs;
  }

  /** Never throws: what goes wrong is `failure`. */
  async draw(): Promise<void> {
    const { gateway, config, gone } = this.#call;
    try {
      await this.#meter.open();
      const taken = await dispatch(
        {
          channels: this.#channels,
          model: this.#request.model,
          maxAttempts: config.dispatch.maxAttempts,
          maxRetryWaitMs: config.dispatch.maxRetryWaitMs,
          signal: gone,
        },
        imageAttempts({
          request: this.#request,
          upstreams: gateway.upstreams,
          limits: config.limits,
          clientHeaders: this.#call.request.headers,
          ...(this.#call.trace === undefined ? {} : { trace: this.#call.trace }),
          clock: gateway.clock,
          mint: gateway.mint,
        }),
        gateway.dispatcher,
        this.#meter.attempts,
      );
      taken.succeeded();
      this.#meter.answeredBy(taken.channel, taken.upstreamModel, taken.affinityHit);
      this.#channel = taken.channel;
      this.#answer = taken.answer.answer;
      const { losses } = taken.answer;
      if (losses.length > 0) gateway.log.debug({ request_id: this.#call.requestId, losses }, 'conversion losses');
    } catch (thrown) {
      this.#failure = toGatewayError(thrown);
    }
  }

  /** The picture, or the words of its failure, went to the client. */
  said(): void {
    if (this.#answer !== undefined) this.#meter.outputWritten();
  }

  /** The client left before it had the picture, which is paid all the same. */
  left(reason: GatewayError): void {
    this.#failure ??= reason;
  }

  /** Before the picture goes out; does nothing unless durability is `strict`. */
  settleFirst(): Promise<void> | undefined {
    return this.#meter.settleFirst(() => this.#ending());
  }

  settle(): PromiseLike<unknown> | undefined {
    return this.#meter.settle(this.#ending());
  }

  #ending(): Parameters<Meter['settle']>[0] {
    const failure = this.#failure;
    const usage = this.#answer === undefined ? {} : { usage: imageUsage(this.#request, this.#answer, this.#admitted.rates) };
    const status = failure === undefined || this.#request.stream ? 200 : failure.status;
    const ending = failure === undefined ? {} : { error: failure, clientGone: isClientGone(failure) };
    return { status, ...ending, ...usage };
  }
}
