/** The opaque values of this dialect: the signature of a thinking block, and the data of a `redacted_thinking` block. */
import type { Opaque, Owner } from '../canonical/opaque.ts';

/** The `form` of `redacted_thinking` data. */
export const REDACTED = 'redacted';

export function signatureOpaque(owner: Owner, value: string): Opaque {
  return { owner, value };
}

export function redactedOpaque(owner: Owner, value: string): Opaque {
  return { owner, value, form: REDACTED };
}

/** True for a value that goes back into a `redacted_thinking` block. */
export function isRedacted(opaque: Opaque): boolean {
  return opaque.form === REDACTED && 'channelType' in opaque.owner && opaque.owner.channelType === 'messages';
}
