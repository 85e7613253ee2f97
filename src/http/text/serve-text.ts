/**
 * A text endpoint: authenticate → read → decode → admit, then the exchange. The same for every client dialect; only the codec
 * differs.
 */
import type { CanonicalRequest } from '../../codecs/canonical/request.ts';
import type { ClientCodec } from '../../codecs/codec.ts';
import { asksForCompaction } from '../../codecs/responses/summary.ts';
import type { Principal } from '../../store/keys.ts';
import { checkModel } from '../exchange/admit.ts';
import { fallbacksOf, inService } from '../exchange/candidates.ts';
import { Exchange } from '../exchange/exchange.ts';
import type { Channel, Model } from '../config/config.ts';
import { identify } from '../request/authenticate.ts';
import { conversationOf } from '../dispatch/affinity.ts';
import { eligibleChannels } from '../dispatch/candidates.ts';
import { estimateInSteps, estimateOutput } from '../money/estimate.ts';
import { type Reply, Waiting } from '../exchange/reply.ts';
import type { CallContext, Call } from '../gateway.ts';
import { atClientPath } from '../history/client-path.ts';
import { type ReceivedJson, receiveJson } from '../request/receive-json.ts';
import type { PreparedRequest } from './prepared-request.ts';
import { endUserOf } from '../exchange/end-user.ts';
import { requestContext } from './codec-contexts.ts';
import { bySummary, circuitOf, needOf, refusablesIn } from './need.ts';
import { checkMembers, memberPolicy } from '../money/unpriced-members.ts';
import { checkMeters } from '../money/unpriced-tools.ts';
import { TextAnswer } from './text-answer.ts';

/** What an endpoint does with a body before it is decoded. */
export type Prepare = (
  call: CallContext,
  principal: Principal,
  received: ReceivedJson,
) => PreparedRequest | Promise<PreparedRequest>;

/** Throws only before anything was sent to the client. */
export async function serveText(call: Call, codec: ClientCodec, prepare: Prepare = unchanged): Promise<void> {
  const principal = await identify(call);
  const preparing = prepare(call, principal, await receiveJson(call, principal));
  const prepared = preparing instanceof Promise ? await preparing : preparing;
  // Returned without `await`: a suspended frame would keep the body in memory for as long as the answer lasts.
  return answerText(call, codec, prepared, new Waiting(call));
}

const unchanged: Prepare = (_call, principal, { text, json }) => ({ principal, text, json });

/** Answers a prepared request over HTTP or WebSocket. Throws as {@link serveText} does. */
export function answerText(call: CallContext, codec: ClientCodec, prepared: PreparedRequest, reply: Reply): Promise<void> {
  const answered = answer(call, codec, prepared, reply);
  return prepared.own === undefined ? answered : answered.catch((thrown) => Promise.reject(atClientPath(thrown, prepared.own)));
}

/** No `async`, for the same reason. */
function answer(call: CallContext, codec: ClientCodec, prepared: PreparedRequest, reply: Reply): Promise<void> {
  return prepareExchange(call, codec, prepared, reply).then(({ answer, exchange }) => answer.run(exchange));
}

/** What answers is made before the exchange is admitted: from there to its owner nothing can throw. */
async function prepareExchange(
  call: CallContext,
  codec: ClientCodec,
  prepared: PreparedRequest,
  reply: Reply,
): Promise<{ readonly answer: TextAnswer; readonly exchange: Exchange }> {
  const steps = planInSteps(call, codec, prepared, reply);
  const planned = call.gateway.largeWork.of(prepared.text, steps, call.gone);
  const { answer, asked } = planned instanceof Promise ? await planned : planned;
  return { answer, exchange: await Exchange.admit(call, asked) };
}

/** What is asked of which Channels, and what answers. */
function* planInSteps(call: CallContext, codec: ClientCodec, prepared: PreparedRequest, reply: Reply) {
  const { gateway, config } = call;
  const { principal, text, json } = prepared;
  const decoded = yield* codec.decodeInSteps(text, json, requestContext(gateway, prepared));
  yield;
  prepared.inspect?.(decoded);
  const request = withTransport(decoded, prepared);
  call.notes.model = request.model;
  call.notes.stream = request.stream;
  const model = checkModel(config, principal, request.model, 'text');
  const input = yield* estimateInSteps(request);
  yield;
  const isCompaction = asksForCompaction(request);
  const estimateFor = (its: Model, channels: readonly Channel[]) => {
    const isSummary = isCompaction && channels.some((channel) => bySummary(channel, its));
    return { input, output: estimateOutput(request, its, isSummary) };
  };
  const candidate = (its: Model) => {
    const need = needOf(gateway.codecs, { ...request, model: its.name }, principal.account.class);
    const channels = eligibleChannels(config, need);
    return { channels, flags: checkPrices(call, request, its, channels), estimate: estimateFor(its, channels) };
  };
  const own = inService(model, () => candidate(model)) ?? { channels: [], flags: [], estimate: estimateFor(model, []) };
  yield;
  const { channels, flags, estimate } = own;
  const fallbacks = fallbacksOf(config, principal, model, candidate);
  yield;
  const preferred = prepared.link?.preferred;
  const search = {
    channels,
    model: request.model,
    circuit: circuitOf(request),
    ...(preferred === undefined ? {} : { preferred }),
    // By the whole conversation and not by the id of its last turn, so that the next turn meets the same Channel.
    conversation: conversationOf(principal.key.id, decoded),
    carries: refusablesIn(request, [...channels, ...fallbacks.flatMap((fallback) => fallback.channels)]),
  };
  const answer = new TextAnswer({ call, codec, request, model, search, prepared, reply, inputEstimate: estimate.input });
  const { stream, reasoning } = request;
  const asked = { principal, model, estimate, stream, effort: reasoning?.effort, flags, fallbacks, endUser: endUserOf(request) };
  return { answer, asked };
}

/** Returns flags for the charge. Throws `model_pricing_required` for what the request asks and this model has no price for. */
function checkPrices(
  { gateway, config }: CallContext,
  request: CanonicalRequest,
  model: Model,
  channels: readonly Channel[],
): readonly string[] {
  const { codecs } = gateway;
  const { name, rates } = model;
  checkMeters({ ...request, model: name }, { codecs, channels, rates, unpricedTools: config.unpricedTools });
  return checkMembers(request, memberPolicy(codecs, config, model, channels));
}

function withTransport(decoded: CanonicalRequest, { previousResponseId, stream }: PreparedRequest): CanonicalRequest {
  if (previousResponseId === undefined && stream === undefined) return decoded;
  return {
    ...decoded,
    stream: stream ?? decoded.stream,
    ...(previousResponseId === undefined ? {} : { previousResponseId }),
  };
}
