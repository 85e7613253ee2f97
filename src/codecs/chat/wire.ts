/** Checked access to the JSON of chat upstreams, and the members that more than one file reads. Knows no canonical meaning. */
import { type GatewayError, upstreamFault } from '../canonical/error.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import type { Media } from '../canonical/item.ts';
import { fittingId } from '../requests/short-id.ts';
import { dataUri, sourceOfUrl } from '../media.ts';

export const DONE = '[DONE]';

/** The longest call id that OpenAI takes in a history (`string_above_max_length`). */
const MAX_CALL_ID = 40;

export function wireCallId(id: string): string {
  return fittingId(id, MAX_CALL_ID);
}

export function malformed(what: string): GatewayError {
  return upstreamFault('malformed_event', `The upstream sent a malformed chunk (${what}).`);
}

/** A string; upstreams also write null, or leave the member out, for an empty one. */
export function textAt(value: JsonValue | undefined, what: string): string {
  if (value === undefined || value === null) return '';
  if (typeof value !== 'string') throw malformed(what);
  return value;
}

/** A string that is not empty; undefined for everything else, which is no error. */
export function nonEmptyString(value: JsonValue | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** The entries of a list. Missing and null count as an empty list, and entries that are null (MiniMax) are left out. */
export function listAt(value: JsonValue | undefined, what: string): readonly JsonValue[] {
  const entries = entriesOf(value, what);
  return entries.includes(null) ? entries.filter((entry) => entry !== null) : entries;
}

function entriesOf(value: JsonValue | undefined, what: string): readonly JsonValue[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw malformed(what);
  return value;
}

export function objectAt(value: JsonValue | undefined, what: string): JsonObject {
  if (!isObject(value)) throw malformed(what);
  return value;
}

export interface FirstChoice {
  readonly choice: JsonObject;
  /** Its position in `choices`. */
  readonly at: number;
}

/** The first choice whose index is 0 or missing. Other candidates are never part of the answer. */
export function firstChoice(chunk: JsonObject): FirstChoice | undefined {
  const choices = entriesOf(chunk['choices'], 'choices');
  for (let at = 0; at < choices.length; at += 1) {
    if (choices[at] === null) continue;
    const choice = objectAt(choices[at], 'choices');
    const index = choice['index'];
    if (index === 0 || index === undefined || index === null) return { choice, at };
    if (!Number.isInteger(index)) throw malformed('index');
  }
  return undefined;
}

/**
 * Refuses a choice in the form of legacy completions (`text` in place of a message): a server that answers so has another
 * endpoint than that of chats at this address, and its words would be lost without a sign.
 */
export function checkHasMessage({ text, delta, message }: JsonObject): void {
  if (nonEmptyString(text) !== undefined && !isObject(delta) && !isObject(message)) throw malformed('text in place of a message');
}

/** The usage of a chunk or body. In streams, Groq puts it into `x_groq` and Moonshot into the choice that finishes. */
export function usageIn(chunk: JsonObject): JsonValue | undefined {
  if (isObject(chunk['usage'])) return chunk['usage'];
  const groq = chunk['x_groq'];
  if (isObject(groq) && isObject(groq['usage'])) return groq['usage'];
  return firstChoice(chunk)?.choice['usage'] ?? chunk['usage'];
}

/** The Unix seconds at which a chunk or body was made; undefined for none and for a placeholder. */
export function createdAtOf({ created }: JsonObject): number | undefined {
  return typeof created === 'number' && created > 0 ? Math.floor(created) : undefined;
}

/** An entry of `images`, or an `image_url` content block. */
export function readImage(value: JsonValue): Media {
  const { image_url: image } = objectAt(value, 'images');
  const url = typeof image === 'string' ? nonEmptyString(image) : isObject(image) ? nonEmptyString(image['url']) : undefined;
  if (url === undefined) throw malformed('images');
  return { type: 'image', source: sourceOfUrl(url) };
}

/** The entry for a client; undefined where the image has neither content nor a public URL. */
export function writeImage(media: Media): JsonObject | undefined {
  const { source } = media;
  if (source.from !== 'inline' && source.from !== 'url') return undefined;
  return { type: 'image_url', image_url: { url: source.from === 'inline' ? dataUri(source) : source.url } };
}
