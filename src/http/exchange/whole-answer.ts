/**
 * An exchange whose answer is one whole body: dispatched, encoded, settled, answered. Knows no endpoint: the caller brings the
 * attempt, what an answer costs and how the client reads it.
 */
import type { GatewayError } from '../../codecs/canonical/error.ts';
import type { UpstreamAnswer } from '../../codecs/codec.ts';
import { namingField } from '../../codecs/errors/upstream.ts';
import type { Accepted } from '../dispatch/accepted.ts';
import { callUpstream } from '../dispatch/call-upstream.ts';
import type { Attempt, Target } from '../dispatch/plan.ts';
import type { Outgoing } from '../dispatch/outgoing.ts';
import { readWhole } from '../dispatch/upstream-body.ts';
import { toGatewayError } from '../errors.ts';
import type { Call } from '../gateway.ts';
import type { Answered, Billing, Exchange, Search } from './exchange.ts';
import type { Reply } from './reply.ts';

/** The body as the client reads it. */
export interface WholeBody {
  readonly body: string;
  /** What the body itself tells of: the answer is sent, and the exchange has failed. */
  readonly failure?: GatewayError | undefined;
  /** Stores the answer for later requests. Called once it is certain that the client gets it. */
  readonly remember?: () => Promise<void> | undefined;
}

export interface WholeExchange<Answer> extends Billing<Answer> {
  readonly search: Search;
  readonly attempt: Attempt<Answer>;
  encode(accepted: Accepted<Answer>): WholeBody | Promise<WholeBody>;
}

/** Throws the error for the client, once the exchange is settled. */
export async function answerWhole<Answer extends Answered>(
  exchange: Exchange,
  { search, attempt, encode, ...billing }: WholeExchange<Answer>,
  reply: Reply,
): Promise<void> {
  try {
    const accepted = await exchange.dispatch(search, attempt, billing);
    const encoded = encode(accepted);
    const { body, failure, remember } = encoded instanceof Promise ? await encoded : encoded;
    const ending = { error: failure, status: 200 };
    const settled = exchange.endFirst(ending);
    if (settled !== undefined) await settled;
    const remembered = remember?.();
    if (remembered !== undefined) await remembered;
    const { writeStallMs } = accepted.channel.timeouts;
    const written = reply.answer({ status: 200, body, headers: exchange.answerHeaders(), writeStallMs });
    exchange.outputWritten();
    const ended = exchange.end(ending);
    if (ended !== undefined) await ended;
    if (written !== undefined) await written;
  } catch (thrown) {
    const error = toGatewayError(thrown);
    await exchange.end({ error });
    throw error;
  }
}

/** How the answer of an upstream is read. */
export interface WholeCodec<Answer> {
  decode(text: string): Answer | Promise<Answer>;
  decodeError(answer: UpstreamAnswer): GatewayError;
}

/** One request of an attempt in the client's own dialect, and its whole answer. */
export function ask<Answer>(call: Call, target: Target, outgoing: Outgoing, codec: WholeCodec<Answer>): Promise<Answer> {
  return callUpstream(
    call,
    target,
    outgoing,
    { stream: false, decodeError: (refused) => namingField(codec.decodeError(refused)) },
    async (head) => codec.decode(await readWhole(head, call.config.limits.answerBytes, call.gateway.largeWork)),
  );
}
