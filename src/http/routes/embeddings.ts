/** `POST /v1/embeddings`: forwarded to an OpenAI-compatible upstream and billed by its input. */
import type { Usage } from '../../codecs/canonical/usage.ts';
import {
  decodeEmbeddingAnswer,
  decodeEmbeddingError,
  type EmbeddingAnswer,
  EMBEDDING_TYPES,
  EMBEDDINGS_PATH,
  type EmbeddingRequest,
  encodeEmbeddingRequest,
  readEmbeddingRequest,
} from '../../codecs/embeddings/index.ts';
import { checkModel } from '../exchange/admit.ts';
import { Exchange } from '../exchange/exchange.ts';
import { Waiting } from '../exchange/reply.ts';
import { identify } from '../request/authenticate.ts';
import { eligibleChannels } from '../dispatch/candidates.ts';
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
  const channels = eligibleChannels(config, {
    model: model.name,
    accountClass: principal.account.class,
    types: EMBEDDING_TYPES,
  });
  const estimate = { input: countTokens(request), output: 0 };
  const codec = { decode: (answer: string) => decodeEmbeddingAnswer(answer, request), decodeError: decodeEmbeddingError };
  await using exchange = await Exchange.admit(call, { principal, model, estimate, stream: false });
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

const CHARS_A_TOKEN = 4;

function countTokens(request: EmbeddingRequest): number {
  return request.inputs.reduce((sum, input) => sum + Math.ceil(input.length / CHARS_A_TOKEN), 0);
}

/** For an upstream that reported nothing: counted and flagged. */
function estimated(request: EmbeddingRequest): Usage {
  return { input: Math.max(1, countTokens(request)), estimated: true };
}
