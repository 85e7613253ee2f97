/** What a client asks of the embeddings endpoint, beside its exact text: that text is what an upstream gets. */
import { invalid } from '../canonical/error.ts';
import type { JsonObject, JsonValue } from '../canonical/json.ts';
import { editJson } from '../json/edit.ts';
import { gatewayMembers } from '../requests/members.ts';

export type EncodingFormat = 'float' | 'base64';

export interface EmbeddingRequest {
  /** The logical model. */
  readonly model: string;
  readonly inputs: readonly string[];
  /** `float` unless the client says otherwise: SDKs decode what they asked for without looking. */
  readonly format: EncodingFormat;
  readonly text: string;
  /** Members that no upstream needs to hear. */
  readonly unsaid: readonly string[];
}

/** Throws a 400 that names the member. `text` is the exact body that parsed to `json`. */
export function readEmbeddingRequest(text: string, json: JsonObject): EmbeddingRequest {
  const { model, input, encoding_format: format, stream, dimensions } = json;
  if (typeof model !== 'string' || model === '') throw invalid('model', 'model is required and must be a string.');
  if (stream !== undefined && stream !== null && stream !== false) throw invalid('stream', 'Embeddings cannot be streamed.');
  if (dimensions !== undefined && dimensions !== null && !isCount(dimensions)) {
    throw invalid('dimensions', 'dimensions must be a positive integer.');
  }
  const unsaid = ['stream', ...gatewayMembers(json)];
  return { model, inputs: readInputs(input), format: readFormat(format), text, unsaid };
}

function readInputs(input: JsonValue | undefined): readonly string[] {
  if (typeof input === 'string') {
    if (input === '') throw invalid('input', 'input must not be empty.');
    return [input];
  }
  if (!Array.isArray(input)) throw invalid('input', 'input is required: a string or an array of strings.');
  if (input.length === 0) throw invalid('input', 'input must not be empty.');
  return input.map((entry: JsonValue, index) => {
    if (typeof entry !== 'string') throw invalid(`input[${index}]`, 'input must be a string or an array of strings.');
    return entry;
  });
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
    ...request.unsaid.map((name) => ({ path: [name], value: undefined })),
  ]);
}
