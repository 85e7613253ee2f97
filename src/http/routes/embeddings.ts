/** `POST /v1/embeddings`: forwarded to an OpenAI-compatible upstream and billed by its input. */
import { GatewayError } from '../../codecs/canonical/error.ts';
import type { Usage } from '../../codecs/canonical/usage.ts';
import {
  decodeEmbeddingAnswer,
  decodeEmbeddingError,
  EMBEDDING_TYPES,
  EMBEDDINGS_PATH,
  type EmbeddingAnswer,
  type EmbeddingRequest,
  encodeEmbeddingRequest,
  readEmbeddingRequest,
} from '../../codecs/embeddings/index.ts';
import { checkModel, reserve } from '../admit.ts';
import { identify } from '../authenticate.ts';
import { callUpstream } from '../dispatch/call-upstream.ts';
import { eligibleChannels } from '../dispatch/candidates.ts';
import { dispatch, type Target } from '../dispatch/dispatch.ts';
import { applyParameters } from '../dispatch/upstream.ts';
import { readWhole } from '../dispatch/upstream-body.ts';
import { isClientGone, toGatewayError } from '../errors.ts';
import { Waiting } from '../exchange.ts';
import type { Call, Handler } from '../gateway.ts';
import { Meter } from '../meter.ts';
import { receiveJson } from '../receive-json.ts';

export const embeddings: Handler = async (call) => {
  const { gateway, config } = call;
  const principal = await identify(call);
  const { text, json } = await receiveJson(call, principal);
  const request = readEmbeddingRequest(text, json);
  call.notes.model = request.model;
  const model = checkModel(config, principal, request.model);
  if (model.kind !== 'embedding') {
    throw new GatewayError(
      'no_healthy_upstream',
      `The model ${model.name} is a model for ${model.kind}: it makes no embeddings.`,
    );
  }
  const channels = eligibleChannels(config, {
    model: model.name,
    accountClass: principal.account.class,
    types: EMBEDDING_TYPES,
  });
  const estimate = { input: countTokens(request), output: 0 };
  const admitted = await reserve(gateway.store, principal, model, estimate, gateway.clock.now());
  try {
    const meter = new Meter(call, admitted, { stream: false });
    await meter.open();
    try {
      const taken = await dispatch(
        {
          channels,
          model: request.model,
          carriesOpaque: false,
          maxAttempts: config.dispatch.maxAttempts,
          maxRetryWaitMs: config.dispatch.maxRetryWaitMs,
          signal: call.gone,
        },
        (target) => attempt(target, request, call),
        gateway.dispatcher,
        meter.attempts,
      );
      taken.succeeded();
      meter.took(taken.channel, taken.upstreamModel, taken.affinityHit);
      const headers = config.channelHeader ? { 'x-mizu-channel': taken.channel.id } : {};
      const ending = { status: 200, usage: taken.answer.usage ?? estimated(request) };
      await meter.settleFirst(() => ending);
      new Waiting(call.response).answer({ status: 200, body: taken.answer.body, headers });
      meter.words();
      await meter.settle(ending);
    } catch (thrown) {
      const error = toGatewayError(thrown);
      await meter.settle({ status: error.status, error, clientGone: isClientGone(error) });
      throw error;
    }
  } finally {
    admitted.reservation.release();
  }
};

async function attempt(target: Target, request: EmbeddingRequest, call: Call): Promise<EmbeddingAnswer> {
  const { gateway, config } = call;
  const body = applyParameters(encodeEmbeddingRequest(request, target.upstreamModel), target.channel);
  return await callUpstream(
    target,
    { path: EMBEDDINGS_PATH, headers: {}, body },
    {
      upstreams: gateway.upstreams,
      clock: gateway.clock,
      clientHeaders: call.request.headers,
      stream: false,
      ...(call.trace === undefined ? {} : { trace: call.trace }),
      decodeError: decodeEmbeddingError,
    },
    async (head) => decodeEmbeddingAnswer(await readWhole(head.body, config.limits.answerBytes), request),
  );
}

const CHARS_A_TOKEN = 4;

function countTokens(request: EmbeddingRequest): number {
  return request.inputs.reduce((sum, input) => sum + Math.ceil(input.length / CHARS_A_TOKEN), 0);
}

/** For an upstream that reported nothing: counted and flagged. */
function estimated(request: EmbeddingRequest): Usage {
  return { input: Math.max(1, countTokens(request)), estimated: true };
}
