/** `POST /v1/embeddings`: forwarded to an OpenAI-compatible upstream and billed by its input. */
import { invalid } from '../../codecs/canonical/error.ts';
import type { Usage } from '../../codecs/canonical/usage.ts';
import {
  decodeEmbeddingAnswerInSteps,
  decodeEmbeddingError,
  type EmbeddingAnswer,
  EMBEDDING_TYPES,
  EMBEDDINGS_PATH,
  type EmbeddingRequest,
  encodeEmbeddingRequest,
  readEmbeddingRequest,
} from '../../codecs/embeddings/index.ts';
import { checkModel } from '../exchange/admit.ts';
import { endUserOf } from '../exchange/end-user.ts';
import { Exchange } from '../exchange/exchange.ts';
import { Waiting } from '../exchange/reply.ts';
import type { Channel } from '../config/config.ts';
import { identify } from '../request/authenticate.ts';
import { channelsOfModel, eligibleChannels } from '../dispatch/candidates.ts';
import { applyParameters } from '../dispatch/upstream.ts';
import { answerWhole, ask, type WholeExchange } from '../exchange/whole-answer.ts';
import type { Handler } from '../gateway.ts';
import { receiveJson } from '../request/receive-json.ts';

export const embeddings: Handler = async (call) => {
  const { config } = call;
  const principal = await identify(call);
  const { text, json } = await receiveJson(call, principal);
  const request = readEmbeddingRequest(text, json);
  call.notes.model = request.model;
  const model = checkModel(config, principal, request.model, 'embedding');
  if (request.isTokenIds) refuseTokenIds(channelsOfModel(config, model.name, principal.account.class));
  const channels = eligibleChannels(config, {
    model: model.name,
    accountClass: principal.account.class,
    types: EMBEDDING_TYPES,
  });
  const estimate = { input: request.tokens, output: 0 };
  const { largeWork } = call.gateway;
  // It is read to its end though the client may have left: it is paid for.
  const decode = (answer: string) => largeWork.of(answer, decodeEmbeddingAnswerInSteps(answer, request));
  const codec = { decode, decodeError: decodeEmbeddingError };
  const endUser = endUserOf({ safetyIdentifier: json['safety_identifier'], user: json['user'] });
  await using exchange = await Exchange.admit(call, { principal, model, estimate, stream: false, endUser });
  const whole: WholeExchange<EmbeddingAnswer> = {
    search: { channels, model: request.model },
    attempt(target) {
      const body = applyParameters(encodeEmbeddingRequest(request, target.upstreamModel), target.channel);
      return ask(call, target, { path: EMBEDDINGS_PATH, headers: {}, body }, codec);
    },
    usageOf: ({ usage }) => usage ?? estimated(request),
    encode: ({ answer }) => answer,
  };
  await answerWhole(exchange, whole, new Waiting(call));
};

/** Throws a 400 where no Channel of the model reads token ids: a text would do. */
function refuseTokenIds(channels: readonly Channel[]): void {
  if (channels.length > 0 && !channels.some(({ type }) => EMBEDDING_TYPES.has(type)))
    throw invalid('input', 'No upstream of this model takes token ids: send the input as text.');
}

/** For an upstream that reported nothing: counted and flagged. */
function estimated(request: EmbeddingRequest): Usage {
  return { input: Math.max(1, request.tokens), estimated: true };
}
