/**
 * An upstream's list of vectors as the client asked for it: the upstream's own text with the logical model, each vector at the
 * place of its input and in the asked-for encoding. What is so already is not touched.
 */
import { type GatewayError, upstreamFault } from '../canonical/error.ts';
import { isObject, type JsonArray, type JsonObject, type JsonValue } from '../canonical/json.ts';
import { countOf, type Usage } from '../canonical/usage.ts';
import { readJsonAnswer } from '../json/answer.ts';
import { editJson, type JsonEdit } from '../json/edit.ts';
import { endsInSteps } from '../json/parse-in-steps.ts';
import { COMMA, type Ends, OPEN_BRACKET, skipSpace, skipValue, type Span, spanOf } from '../json/text.ts';
import { readErrorMembers, refusal, statusOfMembers } from '../errors/upstream.ts';
import { leaveOutPrices } from '../answers/token-usage.ts';
import { type Steps, whole } from '../steps.ts';
import type { EmbeddingRequest, EncodingFormat } from './request.ts';

export interface EmbeddingAnswer {
  /** For the client, complete. */
  readonly body: string;
  /** Absent where the upstream reported none. */
  readonly usage?: Usage;
}

/** Characters of a vector, or an entry, that is not looked through more than once. */
const LONG_VECTOR = 4 * 1024;
/** Characters of an entry, which is read in one turn. The longest vectors, of some ten thousand numbers, have a tenth of it. */
const MOST_ENTRY = 2 * 1024 * 1024;

/** Throws GatewayError blaming the upstream for anything but one vector for each input. */
export const decodeEmbeddingAnswer = whole(decodeEmbeddingAnswerInSteps);

/** A step for each vector: two thousand of them are thirty megabytes. */
export function* decodeEmbeddingAnswerInSteps(text: string, request: EmbeddingRequest): Steps<EmbeddingAnswer> {
  const ends = yield* endsInSteps(text, LONG_VECTOR);
  yield;
  const list = spanOf(text, ['data'], ends);
  const isList = list !== undefined && text.charCodeAt(list.start) === OPEN_BRACKET;
  const json = readBody(isList ? `${text.slice(0, list.start)}[]${text.slice(list.end)}` : text);
  if (!isList)
    throw upstreamFault('undecodable', 'The upstream answered without a list of embeddings.', { text: text.slice(0, 4096) });
  const edits: JsonEdit[] = [{ path: ['model'], value: JSON.stringify(request.model) }];
  if (json['object'] == null) edits.push({ path: ['object'], value: '"list"' });
  const indices: (JsonValue | undefined)[] = [];
  for (const element of elementsOf(text, list, ends)) {
    const at = indices.length;
    if (at === request.count) throw notOneEach();
    if (!element.startsWith('{')) throw noVector();
    if (element.length > MOST_ENTRY)
      throw upstreamFault('undecodable', 'The upstream returned an embedding that is longer than any vector.');
    const entry = readJsonAnswer(element);
    indices.push(entry['index']);
    const changed = inFormat(entry['embedding'], request.format);
    if (changed !== undefined) edits.push({ path: ['data', at, 'embedding'], value: changed });
    if (entry['object'] == null) edits.push({ path: ['data', at, 'object'], value: '"embedding"' });
    yield;
  }
  if (indices.length !== request.count) throw notOneEach();
  const places = placesOf(indices);
  for (const [at, place] of places.entries())
    if (indices[at] !== place) edits.push({ path: ['data', at, 'index'], value: String(place) });
  const { usage } = json;
  edits.push(...usageEdits(usage));
  if (isObject(usage)) leaveOutPrices(usage, ['usage'], edits);
  const read = readUsage(usage);
  yield;
  const body = yield* inOrder(editJson(text, edits, ends), places);
  return { body, ...(read === undefined ? {} : { usage: read }) };
}

/** The texts of the elements of a list, which need not have parsed: what stands between them is checked. */
function* elementsOf(text: string, { start, end }: Span, ends: Ends): Generator<string> {
  const last = end - 1;
  for (let at = skipSpace(text, start + 1); at < last; ) {
    const stop = skipValue(text, at, ends);
    yield text.slice(at, stop);
    const next = skipSpace(text, stop);
    if (next === last) return;
    if (text.charCodeAt(next) !== COMMA || skipSpace(text, next + 1) === last) throw noVector();
    at = skipSpace(text, next + 1);
  }
}

/**
 * The input of each vector. Some servers say less than they should: one `index` for all of them says nothing (LiteLLM,
 * llama.cpp), one that is left out is the next that nobody named (Gemini's compatible endpoint leaves out a zero), and a run that
 * begins later counts what others asked at the same time (Xinference). Throws where two say the same, or one says none of the
 * inputs.
 */
function placesOf(indices: readonly (JsonValue | undefined)[]): readonly number[] {
  if (indices.every((index) => index === indices[0])) return indices.map((_, at) => at);
  const named = indices.filter(isIndex);
  const from = named.length === indices.length ? named.reduce((least, index) => Math.min(least, index)) : 0;
  const taken = new Set(named);
  const free = indices.keys().filter((at) => !taken.has(at));
  const places = indices.flatMap((index) => (isIndex(index) ? index - from : index == null ? (free.next().value ?? []) : []));
  if (places.length < indices.length || taken.size < named.length || places.some((place) => place >= indices.length))
    throw notOneEach();
  return places;
}

function isIndex(value: JsonValue | undefined): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

/** Readers take either the place or the `index` of a vector for that of its input, so both say the same. */
function* inOrder(body: string, places: readonly number[]): Steps<string> {
  if (places.every((place, at) => place === at)) return body;
  yield;
  const ends = yield* endsInSteps(body, LONG_VECTOR);
  yield;
  const entries = [...elementsOf(body, spanOf(body, ['data'], ends) ?? { start: 0, end: 0 }, ends)];
  const byInput: (string | undefined)[] = [];
  for (const [at, place] of places.entries()) byInput[place] = entries[at];
  return editJson(body, [{ path: ['data'], value: `[${byInput.join(',')}]` }], ends);
}

function notOneEach(): GatewayError {
  return upstreamFault('undecodable', 'The upstream did not answer with one embedding for each input.');
}

function readBody(text: string): JsonObject {
  const json = readJsonAnswer(text);
  if (json['error'] === undefined || json['error'] === null) return json;
  const members = readErrorMembers(json);
  throw refusal(statusOfMembers(members), members, { reason: 'error_event', text: text.slice(0, 4096) });
}

/** The vector as JSON text in the other encoding; undefined where it has the right one. */
function inFormat(vector: JsonValue | undefined, format: EncodingFormat): string | undefined {
  if (typeof vector === 'string') {
    const size = Buffer.byteLength(vector, 'base64');
    if (size === 0 || size % FLOAT_BYTES !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(vector)) throw noVector();
    const bytes = Buffer.from(vector, 'base64');
    const numbers = floatsOf(bytes);
    if (format === 'float') return `[${numbers.join(',')}]`;
    // Python's decoder refuses one without its padding.
    return vector.length % 4 === 0 ? undefined : JSON.stringify(bytes.toString('base64'));
  }
  if (!isVector(vector)) throw noVector();
  return format === 'float' ? undefined : JSON.stringify(base64Of(vector));
}

function isVector(value: JsonValue | undefined): value is readonly number[] & JsonArray {
  return Array.isArray(value) && value.length > 0 && value.every(Number.isFinite);
}

function noVector(): GatewayError {
  return upstreamFault('undecodable', 'The upstream returned an embedding that is no vector.');
}

const FLOAT_BYTES = 4;

/** Little-endian float32 as SDKs decode it. */
function base64Of(vector: readonly number[]): string {
  const bytes = Buffer.allocUnsafe(vector.length * FLOAT_BYTES);
  for (const [index, value] of vector.entries()) {
    if (!Number.isFinite(Math.fround(value))) throw noVector();
    bytes.writeFloatLE(value, index * FLOAT_BYTES);
  }
  return bytes.toString('base64');
}

/** Each number exactly: a double holds every float32. Throws for what is no number, since nobody can compute with it. */
function floatsOf(bytes: Buffer): readonly number[] {
  const numbers: number[] = [];
  for (let at = 0; at < bytes.length; at += FLOAT_BYTES) {
    const value = bytes.readFloatLE(at);
    if (!Number.isFinite(value)) throw noVector();
    numbers.push(value);
  }
  return numbers;
}

const COUNTERS = ['prompt_tokens', 'total_tokens'] as const;
/** Of servers that write usage as the responses API does. */
const OTHER_NAME = 'input_tokens';

/** Clients read both counters without looking: one that is missing says what the other does, or nothing. */
function usageEdits(usage: JsonValue | undefined): JsonEdit[] {
  if (!isObject(usage)) return [{ path: ['usage'], value: '{"prompt_tokens":0,"total_tokens":0}' }];
  const counts = COUNTERS.map((name) => ({ name, count: countOf(usage[name]) }));
  const known = counts.find(({ count }) => count !== undefined)?.count ?? countOf(usage[OTHER_NAME]) ?? 0;
  return counts
    .filter(({ name, count }) => count === undefined || count !== usage[name])
    .map(({ name, count }) => ({ path: ['usage', name], value: String(count ?? known) }));
}

function readUsage(usage: JsonValue | undefined): Usage | undefined {
  if (!isObject(usage)) return undefined;
  // No text has no tokens: a zero stands for a count that nobody made.
  const counts = [...COUNTERS, OTHER_NAME].map((name) => countOf(usage[name]));
  const input = counts.find((count) => Number.isSafeInteger(count) && count !== 0);
  return input === undefined ? undefined : { input, native: usage };
}
