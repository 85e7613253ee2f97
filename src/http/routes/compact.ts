/**
 * `POST /v1/responses/compact`: the client's own body to the upstream endpoint of the same name, and the answer as it came. Of the body
 * only the gateway's is changed: the model, a `previous_response_id` of ours, sealed reasoning. No parameters of a Channel are set: they
 * are made for another endpoint.
 */
import { invalid } from '../../codecs/canonical/error.ts';
import type { Whole } from '../../codecs/canonical/fold.ts';
import type { JsonObject } from '../../codecs/canonical/json.ts';
import type { CanonicalRequest } from '../../codecs/canonical/request.ts';
import type { ClientCodec, UpstreamCodec } from '../../codecs/codec.ts';
import { type Compaction, readCompaction } from '../../codecs/responses/answer/compact.ts';
import { checkModel } from '../exchange/admit.ts';
import { Exchange } from '../exchange/exchange.ts';
import { Waiting } from '../exchange/reply.ts';
import { identify } from '../request/authenticate.ts';
import { type Channel, COMPACT_SUFFIX } from '../config/config.ts';
import { conversationOf } from '../dispatch/affinity.ts';
import { eligibleChannels } from '../dispatch/candidates.ts';
import type { Target } from '../dispatch/dispatch.ts';
import { completedUsage, estimateInput, estimateOutput } from '../exchange/estimate.ts';
import { answerWhole, ask, type WholeExchange } from '../exchange/whole-answer.ts';
import type { Call, Handler } from '../gateway.ts';
import { atClientPath } from '../history/client-path.ts';
import { findPrevious, recall } from '../history/recall.ts';
import { receiveJson } from '../request/receive-json.ts';
import { needOf, reasoningKindsIn } from '../text/need.ts';
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
  const { client, upstream } = codecsOf(call);
  const { principal } = prepared;
  const accountId = principal.account.id;
  const request = client.decodeRequest(prepared.text, prepared.json, {
    open: gateway.envelopes.opener(accountId),
    ...(prepared.item === undefined ? {} : { item: prepared.item }),
  });
  call.notes.model = request.model;
  call.notes.stream = false;
  const model = checkModel(config, principal, request.model, 'text');
  const need = needOf(gateway.codecs, request, principal.account.class);
  const channels = eligibleChannels(config, { ...need, types: gateway.codecs.typesOf('responses') });
  const estimate = { input: estimateInput(request), output: estimateOutput(request, model) };
  const whole: WholeExchange<Compaction> = {
    search: {
      channels,
      model: request.model,
      circuit: request.model + COMPACT_SUFFIX,
      conversation: conversationOf(principal.key.id, request),
      carries: reasoningKindsIn(request),
    },
    attempt: (target) => attempt(target, call, request, upstream, prepared),
    upstreamModelOf: (channel) => wireModel(channel, request.model),
    usageOf: ({ usage, output }) => completedUsage(gateway.tokenizer, usage, request, () => wholeOf(output)),
    encode: ({ answer }) => answer,
  };
  await using exchange = await Exchange.admit(call, { principal, model, estimate, stream: false });
  await answerWhole(exchange, whole, new Waiting(call));
}

function codecsOf({ gateway }: Call): { readonly client: ClientCodec; readonly upstream: UpstreamCodec } {
  const client = gateway.codecs.client('responses');
  const upstream = gateway.codecs.upstream('responses');
  if (client === undefined || upstream === undefined) throw new Error('the responses dialect is not registered');
  return { client, upstream };
}

async function receive(call: Call): Promise<PreparedRequest> {
  const { gateway } = call;
  const principal = await identify(call);
  const received = await receiveJson(call, principal);
  refuseStream(received.json);
  const past = await findPrevious(gateway, principal, received.json);
  return recall({ gateway, principal, ...received, past });
}

function refuseStream(json: JsonObject): void {
  if (json['stream'] === true) throw invalid('stream', 'Compaction has no stream form.');
}

/** The Channel's own compaction model where it maps one, else the model of the conversation. Prices are always the latter's. */
function wireModel(channel: Channel, model: string): string {
  return channel.models.get(model + COMPACT_SUFFIX) ?? channel.models.get(model) ?? model;
}

async function attempt(
  target: Target,
  call: Call,
  request: CanonicalRequest,
  codec: UpstreamCodec,
  prepared: PreparedRequest,
): Promise<Compaction> {
  const { channel, without } = target;
  const model = wireModel(channel, request.model);
  const { path, body, headers } = codec.encodeRequest(request, {
    owner: { channelType: channel.type, scope: channel.opaqueScope, model },
    options: channel.codec,
    facts: {},
    without,
    ...(prepared.stored === undefined ? {} : { stored: prepared.stored(channel.id) }),
  });
  const outgoing = { path: `${path}/compact`, headers, body };
  return await ask(call, { ...target, channel: atCompact(channel), upstreamModel: model }, outgoing, {
    decode: readCompaction,
    decodeError: (answer) => codec.decodeError(answer),
  });
}

/** `options.path` is the path of `/responses`; compaction is below it. */
function atCompact(channel: Channel): Channel {
  const { path } = channel.options;
  return path === undefined ? channel : { ...channel, options: { ...channel.options, path: path.replace(/\?|$/, '/compact$&') } };
}

/** The output as a whole answer, to estimate missing usage. */
function wholeOf(output: Compaction['output']): Whole {
  const items = output.map((body) => ({
    item: { kind: 'native' as const, dialect: 'responses' as const, body },
    status: 'completed' as const,
  }));
  return { items, outcome: { status: 'completed', stop: 'end' } };
}
