/** The embeddings upstream: vectors made by hashing words, so that equal texts are equal and like texts are near. */
import { type Answer, jsonAnswer } from './answer.ts';
import type { ReceivedRequest } from './journal.ts';
import { isArray, isObject, type JsonValue, numberOf } from './json.ts';
import { tokenize } from './ngram.ts';
import { seededRandom, seedOf } from './random.ts';
import { openAiError, VendorError } from './vendor-error.ts';

const DIMENSIONS = 1536;
/** Components that one word moves. */
const SPREAD = 16;

export function answerEmbeddings(request: ReceivedRequest): Answer {
  const { body } = request;
  const bad = (message: string, param: string, code: string | null = null) =>
    jsonAnswer(400, openAiError(new VendorError(400, message, { param, code })));
  if (!isObject(body)) return bad('We could not parse the JSON body of your request.', 'body');
  if (typeof body.model !== 'string') return bad('you must provide a model parameter', 'model');
  const inputs = inputsOf(body.input);
  if (inputs === undefined)
    return bad("'$.input' is invalid. Please check the API reference: https://platform.openai.com/docs/api-reference.", 'input');
  const format = body.encoding_format ?? 'float';
  if (format !== 'float' && format !== 'base64')
    return bad(
      `Invalid value: '${JSON.stringify(format)}'. Supported values are: 'float' and 'base64'.`,
      'encoding_format',
      'invalid_value',
    );
  const dimensions = body.dimensions === undefined ? DIMENSIONS : numberOf(body.dimensions);
  if (dimensions === undefined || !Number.isInteger(dimensions) || dimensions < 1 || dimensions > 3072) {
    return bad("Invalid value for 'dimensions'.", 'dimensions', 'invalid_value');
  }
  const tokens = inputs.reduce((sum, words) => sum + words.length, 0);
  return jsonAnswer(
    200,
    JSON.stringify(
      {
        object: 'list',
        data: inputs.map((words, index) => {
          const vector = embed(words, dimensions);
          return { object: 'embedding', index, embedding: format === 'base64' ? base64Of(vector) : [...vector] };
        }),
        model: body.model,
        usage: { prompt_tokens: tokens, total_tokens: tokens },
      },
      null,
      2,
    ),
  );
}

/** Each input as words; `undefined` for an empty or wrong input. */
function inputsOf(input: JsonValue | undefined): readonly (readonly string[])[] | undefined {
  if (typeof input === 'string') return input === '' ? undefined : [tokenize(input)];
  if (!isArray(input) || input.length === 0) return undefined;
  if (input.every((item) => typeof item === 'number')) return [input.map(String)];
  const lists = input.map((item) => {
    if (typeof item === 'string') return item === '' ? [] : tokenize(item);
    return isArray(item) && item.every((token) => typeof token === 'number') ? item.map(String) : [];
  });
  return lists.some((list) => list.length === 0) ? undefined : lists;
}

/** A unit vector. */
function embed(words: readonly string[], dimensions: number): Float32Array {
  const vector = new Float32Array(dimensions);
  for (const word of words) {
    const random = seededRandom(seedOf(word.trim().toLowerCase()));
    for (let step = 0; step < SPREAD; step += 1) {
      const at = Math.floor(random() * dimensions);
      vector[at] = (vector[at] ?? 0) + random() * 2 - 1;
    }
  }
  const length = Math.hypot(...vector) || 1;
  return vector.map((value) => value / length);
}

function base64Of(vector: Float32Array): string {
  const bytes = Buffer.alloc(vector.length * 4);
  vector.forEach((value, index) => {
    bytes.writeFloatLE(value, index * 4);
  });
  return bytes.toString('base64');
}
