/** Embeddings: one wire form on both sides, so a client's text goes to the upstream and comes back almost as it is. */
import type { ChannelType } from '../canonical/dialect.ts';

export { EMBEDDINGS_PATH, type EmbeddingRequest, encodeEmbeddingRequest, readEmbeddingRequest } from './request.ts';
export { decodeJsonError as decodeEmbeddingError } from '../errors/upstream.ts';
export { decodeEmbeddingAnswer, decodeEmbeddingAnswerInSteps, type EmbeddingAnswer } from './response.ts';

/** Upstreams whose base URL also has the OpenAI embeddings endpoint. */
export const EMBEDDING_TYPES: ReadonlySet<ChannelType> = new Set(['chat_completion', 'responses']);
