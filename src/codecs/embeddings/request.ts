/** What a client asks of the embeddings endpoint, beside its exact text: that text is what an upstream gets. */
import { invalid } from '../canonical/error.ts';
import type { JsonObject, JsonValue } from '../canonical/json.ts';
import { editJson } from '../json/edit.ts';
import { gatewayMembers } from '../requests/members.ts';

export type EncodingFormat = 'float' | 'base64';

export interface EmbeddingRequest {
  /** The logical model. */
  readonly model: string;
  /** How many vectors the client gets. */
  readonly count: number;
  /** Of the whole input; exact where the client sent token ids, else estimated from its characters. */
  readonly tokens: number;
  /** The input is token ids, which only upstreams of OpenAI's protocol read. */
  readonly isTokenIds: boolean;
  /** `float` unless the client asks for another: SDKs decode what they asked for without looking. */
  readonly format: EncodingFormat;
  readonly text: string;
  /** Members that no upstream needs to hear. */
  readonly unsent: readonly string[];
}

/** Throws a 400 that names the member. `text` is the exact body that parsed to `json`. */
export function readEmbeddingRequest(text: string, json: JsonObject): EmbeddingRequest {
  const { model, input, encoding_format: format, stream, dimensions } = json;
  if (typeof model !== 'string' || model === '') throw invalid('model', 'model is required and must be a string.');
  if (stream !== undefined && stream !== null && stream !== false) throw invalid('stream', 'Embeddings cannot be streamed.');
  if (dimensions !== undefined && dimensions !== null && !isCount(dimensions)) {
    throw invalid('dimensions', 'dimensions must be a positive integer.');
  }
  const unsent = ['stream', ...gatewayMembers(json)];
  return { model, ...readInput(input), format: readFormat(format), text, unsent };
}

type Input = Pick<EmbeddingRequest, 'count' | 'tokens' | 'isTokenIds'>;

const FORMS = 'a string, an array of strings, an array of token ids, or an array of such arrays';

function readInput(input: JsonValue | undefined): Input {
  if (input === '' || (Array.isArray(input) && input.length === 0)) throw invalid('input', 'input must not be empty.');
  if (typeof input === 'string') return { count: 1, tokens: tokensOf(input), isTokenIds: false };
  if (!Array.isArray(input)) throw invalid('input', `input is required: ${FORMS}.`);
  const [first] = input;
  if (typeof first === 'number') return { count: 1, tokens: countTokenIds(input, 'input'), isTokenIds: true };
  let tokens = 0;
  for (const [index, entry] of input.entries()) {
    const at = `input[${index}]`;
    if (typeof entry === 'string' && typeof first === 'string') tokens += tokensOf(entry);
    else if (Array.isArray(entry) && Array.isArray(first)) tokens += countTokenIds(entry, at);
    else throw invalid(at, `input must be ${FORMS}.`);
  }
  return { count: input.length, tokens, isTokenIds: Array.isArray(first) };
}

const CHARS_A_TOKEN = 4;

function tokensOf(text: string): number {
  return Math.ceil(text.length / CHARS_A_TOKEN);
}

function countTokenIds(ids: readonly JsonValue[], at: string): number {
  if (ids.length === 0) throw invalid(at, `${at} must not be empty.`);
  const wrong = ids.findIndex((id) => typeof id !== 'number' || !Number.isSafeInteger(id) || id < 0);
  if (wrong >= 0) throw invalid(`${at}[${wrong}]`, 'A token id must be an integer from 0.');
  return ids.length;
}

function readFormat(format: JsonValue | undefined): EncodingFormat {
  if (format === undefined || format === null) return 'float';
  if (format !== 'float' && format !== 'base64') throw invalid('encoding_format', 'encoding_format must be float or base64.');
  return format;
}

function isCount(value: JsonValue): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value > 0;
}

/** Appended to the Channel's versioned base URL. */
export const EMBEDDINGS_PATH = '/embeddings';

/** The client's text with the upstream's name of the model, and without what no upstream needs to hear. */
export function encodeEmbeddingRequest(request: EmbeddingRequest, upstreamModel: string): string {
  return editJson(request.text, [
    { path: ['model'], value: JSON.stringify(upstreamModel) },
    ...request.unsent.map((name) => ({ path: [name], value: undefined })),
  ]);
}
