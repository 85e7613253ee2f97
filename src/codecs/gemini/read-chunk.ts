/** Checks one `GenerateContentResponse` and takes out what is meant. A known member of a wrong type is an error. */
import { upstreamFault } from '../canonical/error.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import { inCamelCase } from './spelling.ts';

/** One response object of a stream, or the only one. */
export interface Chunk {
  readonly json: JsonObject;
  /** The candidate that is returned, and its place in `candidates` (for exact slices of the text). */
  readonly candidate: Candidate | undefined;
  readonly usage: JsonObject | undefined;
  readonly responseId: string | undefined;
  readonly modelVersion: string | undefined;
  readonly promptFeedback: JsonObject | undefined;
}
export interface Candidate {
  readonly place: number;
  /** The wire's `index`; undefined where the server left it out, as it does for 0. */
  readonly index: number | undefined;
  readonly json: JsonObject;
  readonly parts: readonly JsonObject[];
  readonly finishReason: string | undefined;
  readonly finishMessage: string | undefined;
}

/** `wanted` is the index of the candidate of earlier chunks; undefined: index 0, or else the first. */
export function readChunk(said: JsonValue, wanted: number | undefined): Chunk {
  if (!isObject(said)) throw malformed('chunk');
  const json = inCamelCase(said);
  return {
    json,
    candidate: pick(json['candidates'], wanted),
    usage: object(json, 'usageMetadata'),
    responseId: text(json, 'responseId'),
    modelVersion: text(json, 'modelVersion'),
    promptFeedback: object(json, 'promptFeedback'),
  };
}

function pick(value: JsonValue | undefined, wanted: number | undefined): Candidate | undefined {
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value)) throw malformed('candidates');
  const candidates = value.map(readCandidate);
  if (wanted === undefined) return candidates.find((candidate) => (candidate.index ?? 0) === 0) ?? candidates[0];
  const same = candidates.find((candidate) => (candidate.index ?? 0) === wanted);
  const [only] = candidates;
  return same ?? (candidates.length === 1 && only?.index === undefined ? only : undefined);
}

function readCandidate(value: JsonValue, place: number): Candidate {
  if (!isObject(value)) throw malformed('candidate');
  const index = value['index'];
  if (index !== undefined && index !== null && !Number.isInteger(index)) throw malformed('index');
  const content = object(value, 'content');
  const finishReason = text(value, 'finishReason');
  return {
    place,
    index: typeof index === 'number' ? index : undefined,
    json: value,
    parts: readParts(content?.['parts']),
    // The zero value of the enumeration says nothing.
    finishReason: finishReason === 'FINISH_REASON_UNSPECIFIED' ? undefined : finishReason,
    finishMessage: text(value, 'finishMessage'),
  };
}

function readParts(value: JsonValue | undefined): readonly JsonObject[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw malformed('parts');
  return value.map((part: JsonValue) => {
    if (!isObject(part)) throw malformed('part');
    // What is a thought or is none decides whether a client sees it as the answer.
    const thought = part['thought'] ?? false;
    if (typeof thought !== 'boolean') throw malformed('thought');
    return part;
  });
}

/** A string member; null is absent, empty is absent. */
export function text(holder: JsonObject, name: string): string | undefined {
  const value = holder[name];
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value !== 'string') throw malformed(name);
  return value;
}

/** An object member; null is absent. */
export function object(holder: JsonObject, name: string): JsonObject | undefined {
  const value = holder[name];
  if (value === undefined || value === null) return undefined;
  if (!isObject(value)) throw malformed(name);
  return value;
}

/** An array member; null is absent. */
export function array(holder: JsonObject, name: string): readonly JsonValue[] {
  const value = holder[name];
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw malformed(name);
  return value;
}

export function malformed(member: string): Error {
  return upstreamFault('malformed_event', `The upstream sent a chunk with a malformed ${member}.`);
}
