/**
 * An exchange of one request and one whole answer that is passed on almost as it came: dispatched, billed, answered. Knows no endpoint: the
 * caller brings the attempt and the usage of answers that report none.
 */
import type { GatewayError } from '../../codecs/canonical/error.ts';
import type { Usage } from '../../codecs/canonical/usage.ts';
import type { UpstreamAnswer } from '../../codecs/codec.ts';
import { namingField } from '../../codecs/errors/upstream.ts';
import type { Admitted } from './admit.ts';
import type { Channel } from '../config/config.ts';
import { callUpstream } from '../dispatch/call-upstream.ts';
import { type Attempt, dispatch, type Plan, type Target } from '../dispatch/dispatch.ts';
import type { Outgoing } from '../dispatch/upstream.ts';
import { readWhole } from '../dispatch/upstream-body.ts';
import { isClientGone, toGatewayError } from '../errors.ts';
import { Waiting } from './reply.ts';
import type { Call } from '../gateway.ts';
import { Meter } from './meter.ts';

export interface WholeText {
  /** For the client, complete. */
  readonly body: string;
}

export interface Forwarding<Answer extends WholeText>
  extends Pick<Plan, 'channels' | 'model' | 'circuit' | 'conversation' | 'carries'> {
  readonly attempt: Attempt<Answer>;
  /** The upstream's name of the model, where the Channel's `models` do not say it. */
  upstreamModelOf?(channel: Channel): string;
  /** The usage of an answer: as reported, with missing counts estimated. */
  usageOf(answer: Answer): Usage | Promise<Usage>;
}

/** Settles and releases the reservation however it ends. Throws the error for the client. */
export async function forward<Answer extends WholeText>(
  call: Call,
  admitted: Admitted,
  forwarding: Forwarding<Answer>,
): Promise<void> {
  const { gateway, config, gone } = call;
  const { attempt, upstreamModelOf, usageOf, ...plan } = forwarding;
  const { maxAttempts, maxRetryWaitMs } = config.dispatch;
  try {
    const meter = new Meter(call, admitted, { stream: false });
    await meter.open();
    try {
      const whole = { ...plan, maxAttempts, maxRetryWaitMs, signal: gone };
      const taken = await dispatch(whole, attempt, gateway.dispatcher, meter.attempts);
      taken.succeeded();
      const { answer, channel } = taken;
      meter.answeredBy(channel, upstreamModelOf?.(channel) ?? taken.upstreamModel, taken.affinityHit);
      const headers = config.channelHeader ? { 'x-mizu-channel': channel.id } : {};
      const ending = { status: 200, usage: await usageOf(answer) };
      await meter.settleFirst(() => ending);
      new Waiting(call).answer({ status: 200, body: answer.body, headers, writeStallMs: channel.timeouts.writeStallMs });
      meter.outputWritten();
      await meter.settle(ending);
    } catch (thrown) {
      const error = toGatewayError(thrown);
      await meter.settle({ status: error.status, error, clientGone: isClientGone(error) });
      throw error;
    }
  } finally {
    admitted.reservation.release();
  }
}

/** How the answer of an upstream is read. */
export interface WholeCodec<Answer> {
  decode(text: string): Answer;
  decodeError(answer: UpstreamAnswer): GatewayError;
}

/** One request of an attempt in the client's own dialect, and its whole answer. */
export function ask<Answer>(call: Call, target: Target, outgoing: Outgoing, codec: WholeCodec<Answer>): Promise<Answer> {
  const { gateway, config, request, trace } = call;
  return callUpstream(
    target,
    outgoing,
    {
      upstreams: gateway.upstreams,
      clock: gateway.clock,
      clientHeaders: request.headers,
      stream: false,
      ...(trace === undefined ? {} : { trace }),
      decodeError: (refused) => namingField(codec.decodeError(refused)),
    },
    async (head) => codec.decode(await readWhole(head.body, config.limits.answerBytes)),
  );
}
