/** The end user whom a client names in its request. Kept for the operator's sums, and trusted for nothing. */
import type { JsonObject, JsonValue } from '../../codecs/canonical/json.ts';

const MAX_CHARS = 256;

interface Names {
  readonly safetyIdentifier?: JsonValue | undefined;
  readonly user?: JsonValue | undefined;
  readonly metadata?: JsonObject | undefined;
}

/** `safety_identifier`, else `user`, else `metadata.user_id`; undefined where all are absent or blank. */
export function endUserOf({ safetyIdentifier, user, metadata }: Names): string | undefined {
  const given = [safetyIdentifier, user, metadata?.['user_id']].find((name) => typeof name === 'string' && name.trim() !== '');
  return typeof given === 'string' ? given.trim().slice(0, MAX_CHARS) : undefined;
}
