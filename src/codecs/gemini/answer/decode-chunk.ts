/** Reads one `GenerateContentResponse`. A known member of a wrong type is a malformed event. */
import { upstreamFault } from '../../canonical/error.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import { inCamelCase } from './spelling.ts';
import type { Media } from '../../canonical/item.ts';
import { essenceOf, mimeOfFilename, readBase64, sniffMime } from '../../media.ts';

/** One response object of a stream, or the only one. */
export interface Chunk {
  /** The candidate that is the answer. */
  readonly candidate: Candidate | undefined;
  readonly usage: JsonObject | undefined;
  readonly responseId: string | undefined;
  readonly modelVersion: string | undefined;
  readonly promptFeedback: JsonObject | undefined;
}

export interface Candidate {
  /** Its position in `candidates`, for exact slices of the chunk's text. */
  readonly position: number;
  /** The wire's `index`; undefined where the server left it out, as it does for 0. */
  readonly index: number | undefined;
  readonly json: JsonObject;
  readonly parts: readonly JsonObject[];
  readonly finishReason: string | undefined;
  readonly finishMessage: string | undefined;
}

/**
 * `wanted` is the index of the candidate that earlier chunks gave. Where it is undefined, index 0 is the answer, or else the
 * first candidate.
 */
export function readChunk(value: JsonValue, wanted: number | undefined): Chunk {
  if (!isObject(value)) throw malformed('chunk');
  const json = inCamelCase(value);
  return {
    candidate: pickCandidate(json['candidates'], wanted),
    usage: optionalObject(json, 'usageMetadata'),
    responseId: optionalString(json, 'responseId'),
    modelVersion: optionalString(json, 'modelVersion'),
    promptFeedback: optionalObject(json, 'promptFeedback'),
  };
}

function pickCandidate(value: JsonValue | undefined, wanted: number | undefined): Candidate | undefined {
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value)) throw malformed('candidates');
  const candidates = value.map(readCandidate);
  if (wanted === undefined) return candidates.find((candidate) => (candidate.index ?? 0) === 0) ?? candidates[0];
  const same = candidates.find((candidate) => (candidate.index ?? 0) === wanted);
  const [only] = candidates;
  return same ?? (candidates.length === 1 && only?.index === undefined ? only : undefined);
}

function readCandidate(value: JsonValue, position: number): Candidate {
  if (!isObject(value)) throw malformed('candidate');
  const index = value['index'];
  if (index !== undefined && index !== null && !Number.isInteger(index)) throw malformed('index');
  const content = optionalObject(value, 'content');
  const finishReason = optionalString(value, 'finishReason');
  return {
    position,
    index: typeof index === 'number' ? index : undefined,
    json: value,
    parts: readParts(content?.['parts']),
    // The zero value of the enumeration stands for an absent member.
    finishReason: finishReason === 'FINISH_REASON_UNSPECIFIED' ? undefined : finishReason,
    finishMessage: optionalString(value, 'finishMessage'),
  };
}

function readParts(value: JsonValue | undefined): readonly JsonObject[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw malformed('parts');
  return value.map((part: JsonValue) => {
    if (!isObject(part)) throw malformed('part');
    // This member decides whether a client sees the part as the answer, so no other type of value is read as true or false.
    const thought = part['thought'] ?? false;
    if (typeof thought !== 'boolean') throw malformed('thought');
    return part;
  });
}

/** A string member; null and the empty string count as absent. */
export function optionalString(holder: JsonObject, name: string): string | undefined {
  const value = holder[name];
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value !== 'string') throw malformed(name);
  return value;
}

/** An object member; null counts as absent. */
export function optionalObject(holder: JsonObject, name: string): JsonObject | undefined {
  const value = holder[name];
  if (value === undefined || value === null) return undefined;
  if (!isObject(value)) throw malformed(name);
  return value;
}

/** The elements of an array member; null and absent count as empty. */
export function arrayOrEmpty(holder: JsonObject, name: string): readonly JsonValue[] {
  const value = holder[name];
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw malformed(name);
  return value;
}

export function malformed(member: string): Error {
  return upstreamFault('malformed_event', `The upstream sent a chunk with a malformed ${member}.`);
}

/** The media of a part with `inlineData` or `fileData`. */
export function readMedia(part: JsonObject): Media {
  const inline = optionalObject(part, 'inlineData');
  if (inline !== undefined) {
    // Clients read the plain alphabet alone, while JSON of protocol buffers may have that of URLs.
    const data = readBase64(optionalString(inline, 'data') ?? '');
    if (data === undefined || data === '') throw malformed('inlineData');
    const mime = mimeOf(inline) ?? sniffMime(data) ?? 'application/octet-stream';
    return { type: typeOf(mime), source: { from: 'inline', mime, data } };
  }
  const file = optionalObject(part, 'fileData');
  const url = file === undefined ? undefined : optionalString(file, 'fileUri');
  if (file === undefined || url === undefined) throw malformed('fileData');
  const mime = mimeOf(file) ?? mimeOfFilename(url);
  return { type: typeOf(mime ?? ''), source: { from: 'url', url, ...(mime === undefined ? {} : { mime }) } };
}

/** As the vendor writes it: `audio/L16;codec=pcm;rate=24000`. */
const PLAIN_TYPE = /^[a-z]+\/[^\s;A-Z]+$|^audio\/[^\s;]+(?:;[^\s;]+)*$/;

/** Types are the same in all letters, and those of data URIs have no white space. */
function mimeOf(media: JsonObject): string | undefined {
  const given = optionalString(media, 'mimeType')?.trim();
  if (given === undefined || given === '' || PLAIN_TYPE.test(given)) return given === '' ? undefined : given;
  const [, ...parameters] = given.split(';').map((piece) => piece.trim());
  return [essenceOf(given), ...parameters.filter((piece) => piece !== '')].join(';');
}

function typeOf(mime: string): Media['type'] {
  if (mime.startsWith('image/')) return 'image';
  return mime.startsWith('audio/') ? 'audio' : 'file';
}
