/**
 * `POST /v1/responses/compact`: the client's own body to the upstream endpoint of the same name, and the answer as it came. Of
 * the body only the gateway's is changed: the model, a `previous_response_id` of ours, sealed reasoning. No parameters of a
 * Channel are set: they are made for another endpoint.
 */
import { invalid } from '../../codecs/canonical/error.ts';
import { fold } from '../../codecs/canonical/fold.ts';
import type { JsonObject } from '../../codecs/canonical/json.ts';
import type { CanonicalRequest } from '../../codecs/canonical/request.ts';
import type { ClientCodec, ModelFacts } from '../../codecs/codec.ts';
import { type Compaction, readCompaction } from '../../codecs/responses/answer/compact.ts';
import { compactionOf, summaryRequest } from '../../codecs/responses/summary.ts';
import { checkModel } from '../exchange/admit.ts';
import { endUserOf } from '../exchange/end-user.ts';
import { Exchange } from '../exchange/exchange.ts';
import { Waiting } from '../exchange/reply.ts';
import { identify } from '../request/authenticate.ts';
import { type Channel, COMPACT_SUFFIX } from '../config/config.ts';
import { factsByName } from '../config/thinking-by-name.ts';
import { conversationOf } from '../dispatch/affinity.ts';
import { channelsOfModel, eligibleChannels } from '../dispatch/candidates.ts';
import type { Target } from '../dispatch/plan.ts';
import { applyParameters } from '../dispatch/upstream.ts';
import { completedUsage, estimateInSteps, estimateOutput, withServed } from '../money/estimate.ts';
import { checkMembers, memberPolicy } from '../money/unpriced-members.ts';
import { answerWhole, ask, type WholeExchange } from '../exchange/whole-answer.ts';
import type { Call, Handler } from '../gateway.ts';
import { atClientPath } from '../history/client-path.ts';
import { findPrevious, recall } from '../history/recall.ts';
import { receiveJson } from '../request/receive-json.ts';
import { codecTarget, decodeContext, requestContext } from '../text/codec-contexts.ts';
import { bySummary, needOf, refusablesIn } from '../text/need.ts';
import type { PreparedRequest } from '../text/prepared-request.ts';

export const compact: Handler = async (call) => {
  const prepared = await receive(call);
  try {
    await compactPrepared(call, prepared);
  } catch (thrown) {
    throw atClientPath(thrown, prepared.own);
  }
};

async function compactPrepared(call: Call, prepared: PreparedRequest): Promise<void> {
  const { gateway, config } = call;
  const client = gateway.codecs.client('responses');
  const { principal } = prepared;
  const decoding = client.decodeInSteps(prepared.text, prepared.json, requestContext(gateway, prepared));
  const request = await gateway.largeWork.of(prepared.text, decoding, call.gone);
  call.notes.model = request.model;
  call.notes.stream = false;
  const model = checkModel(config, principal, request.model, 'text');
  const need = needOf(gateway.codecs, request, principal.account.class);
  const native = gateway.codecs.typesOf('responses');
  const canSummarise = (channel: Channel): boolean => gateway.codecs.textTypes.has(channel.type) && bySummary(channel, model);
  const maySummarise = channelsOfModel(config, model.name, principal.account.class).some(canSummarise);
  const types = maySummarise ? gateway.codecs.textTypes : native;
  const isCapable = (channel: Channel): boolean => native.has(channel.type) || canSummarise(channel);
  const channels = eligibleChannels(config, { ...need, types, isCapable });
  const flags = checkMembers(request, memberPolicy(gateway.codecs, config, model, channels));
  const input = await gateway.largeWork.of(prepared.text, estimateInSteps(request), call.gone);
  const estimate = { input, output: estimateOutput(request, model, maySummarise) };
  const whole: WholeExchange<Compaction> = {
    search: {
      channels,
      model: request.model,
      circuit: request.model + COMPACT_SUFFIX,
      conversation: conversationOf(principal.key.id, request),
      carries: refusablesIn(request, channels),
    },
    attempt: (target) =>
      bySummary(target.channel, model)
        ? summarise(target, call, { client, prepared, facts: model.facts })
        : attempt(target, call, request, prepared),
    upstreamModelOf: (channel) => (bySummary(channel, model) ? undefined : wireModel(channel, request.model)),
    usageOf: ({ usage, generated, served }) =>
      withServed(
        completedUsage(gateway.tokenizer, usage, request, () => generated),
        served,
      ),
    encode: ({ answer }) => answer,
  };
  const asked = { principal, model, estimate, stream: false, flags, endUser: endUserOf(request) };
  await using exchange = await Exchange.admit(call, asked);
  await answerWhole(exchange, whole, new Waiting(call));
}

async function receive(call: Call): Promise<PreparedRequest> {
  const { gateway } = call;
  const principal = await identify(call);
  const received = await receiveJson(call, principal);
  refuseStream(received.json);
  const past = await findPrevious(gateway, principal, received.json);
  const recalled = await recall({ gateway, principal, body: received, slot: received.slot, past });
  return recalled.item === undefined ? recalled : { ...recalled, item: lookedUpOnce(recalled.item) };
}

/** The body may be decoded for several Channels, and each item can be looked up once. */
function lookedUpOnce(item: ItemLookup): ItemLookup {
  const known = new Map<string, JsonObject | undefined>();
  return (id) => {
    if (!known.has(id)) known.set(id, item(id));
    return known.get(id);
  };
}

type ItemLookup = NonNullable<PreparedRequest['item']>;

function refuseStream(json: JsonObject): void {
  if (json['stream'] === true) throw invalid('stream', 'Compaction has no stream form.');
}

interface Summarising {
  readonly client: ClientCodec;
  readonly prepared: PreparedRequest;
  readonly facts: ModelFacts;
}

/** Asks the model of the conversation for a summary of it. */
async function summarise(target: Target, call: Call, { client, prepared, facts }: Summarising): Promise<Compaction> {
  const { gateway, startedAtMs } = call;
  const { channel, upstreamModel } = target;
  const codec = gateway.codecs.upstream(channel.type);
  const accountId = prepared.principal.account.id;
  const asking = summaryRequest(prepared.text, prepared.json);
  const { text, json } = await gateway.largeWork.of(prepared.text, asking, target.signal);
  const decoding = client.decodeInSteps(text, json, requestContext(gateway, prepared));
  const request = await gateway.largeWork.of(text, decoding, target.signal);
  const goal = codecTarget(target, factsByName(facts, channel.type, upstreamModel), prepared.stored);
  const encoded = await gateway.largeWork.of(text, codec.encodeInSteps(request, goal), target.signal);
  const context = decodeContext(gateway, goal, request, encoded);
  const { owner, mint } = context;
  const { path, headers } = encoded;
  return await ask(
    call,
    target,
    { path, headers, body: applyParameters(encoded.body, channel) },
    {
      decode: async (answer) => {
        const summary = await gateway.largeWork.of(answer, codec.decodeResponseInSteps(answer, context), target.signal);
        const steps = compactionOf(fold(summary.events), prepared, {
          responseId: prepared.responseId ?? mint(client.idPrefix),
          createdAt: Math.floor(startedAtMs / 1000),
          seal: (opaque) => gateway.envelopes.seal(opaque, accountId),
          mint,
          owner,
        });
        return await gateway.largeWork.of(prepared.text, steps, target.signal);
      },
      decodeError: (answer) => codec.decodeError(answer),
    },
  );
}

/** The Channel's own compaction model where it maps one, else the model of the conversation. Prices are always the latter's. */
function wireModel(channel: Channel, model: string): string {
  return channel.models.get(model + COMPACT_SUFFIX) ?? channel.models.get(model) ?? model;
}

async function attempt(target: Target, call: Call, request: CanonicalRequest, prepared: PreparedRequest): Promise<Compaction> {
  const { channel } = target;
  const { codecs, largeWork } = call.gateway;
  const codec = codecs.upstream('responses');
  const named = { ...target, upstreamModel: wireModel(channel, request.model) };
  const steps = codec.encodeInSteps(request, codecTarget(named, {}, prepared.stored));
  const { path, body, headers } = await largeWork.of(request.text, steps, target.signal);
  const outgoing = { path: `${path}/compact`, headers, body };
  return await ask(call, { ...named, channel: atCompact(channel) }, outgoing, {
    decode: (answer) => largeWork.of(answer, readCompaction(answer), target.signal),
    decodeError: (answer) => codec.decodeError(answer),
  });
}

/** `options.path` is the path of `/responses`; compaction is below it. */
function atCompact(channel: Channel): Channel {
  const { path } = channel.options;
  return path === undefined ? channel : { ...channel, options: { ...channel.options, path: path.replace(/\?|$/, '/compact$&') } };
}
