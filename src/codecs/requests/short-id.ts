/** Shortens ids that are too long for a protocol, or have characters that it refuses: a digest keeps them distinct. */
import { createHash } from 'node:crypto';

const DIGEST_CHARS = 12;
/**
 * The limit of vendors of chat and responses for `user`, `safety_identifier` and `prompt_cache_key` (`string_above_max_length`).
 * Agents that use messages put whole records there.
 */
const MAX_KEY_CHARS = 64;

/**
 * An id of at most `maxLength` characters that depends on `id` alone. `legal`: the id without the characters that are refused.
 */
export function shortId(id: string, legal: string, maxLength: number): string {
  const digest = createHash('sha256').update(id).digest('hex').slice(0, DIGEST_CHARS);
  return `${legal.slice(0, maxLength - DIGEST_CHARS - 1).toWellFormed()}_${digest}`;
}

/** A call id of at most `most` characters. Calls and their results get the same one. */
export function fittingId(id: string, most: number): string {
  return id.length <= most ? id : shortId(id, id, most);
}

/** The id of an end user, or the key of a cache, for a vendor that takes no long ones. */
export function shortKey(key: string | undefined): string | undefined {
  return key === undefined ? key : fittingId(key, MAX_KEY_CHARS);
}
