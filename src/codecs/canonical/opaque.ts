/**
 * Opaque values: encrypted reasoning, signatures, thought signatures. The gateway never reads them; it decides which upstream may
 * get them back. `codecs/envelope.ts` seals and opens them.
 */
import type { ChannelType, Dialect } from './dialect.ts';

/** The kind of upstream that produced a value: only the same channel type and scope ever gets it back (design: "Opaque"). */
export interface Owner {
  readonly channelType: ChannelType;
  /** `opaque_scope` of the Channel; by default the origin of its base URL. */
  readonly scope: string;
  /** The upstream's model name. */
  readonly model: string;
}

/** How an envelope of the gateway begins. */
export const ENVELOPE_PREFIX = 'mz2.';

/** Clients change prefixes, too: such a value opens to nothing, and is no vendor's own either. */
const LOOKS_SEALED = /^[\s\p{Cf}]*mz2\./iu;

/** True for an envelope of a gateway, also for one that was altered; any other value is a vendor's own. */
export function isEnvelope(value: string): boolean {
  return value.startsWith(ENVELOPE_PREFIX) || LOOKS_SEALED.test(value);
}

export interface Opaque {
  /** The upstream that produced it; or the client's dialect, for a raw vendor value that a client sent without an envelope. */
  readonly owner: Owner | { readonly client: Dialect };
  /** The complete and unchanged value, never a fragment. */
  readonly value: string;
  /** The upstream item id that the value belongs to (responses `rs_…`); vendors check the pairing. */
  readonly itemId?: string;
  /** A label that only the owner's codec reads (for example `redacted`, or the type and format of a reasoning detail). */
  readonly form?: string;
  /**
   * Request values: the envelope that held it, by which an encoder of the same dialect finds it in the client's text. Never
   * sealed itself.
   */
  readonly sealed?: string;
}

/** Where a request is about to go. */
export interface OpaqueTarget extends Owner {
  readonly dialect: Dialect;
}

/** True when `opaque` may be sent to `target`: same channel type and scope, or a raw value of the client in its own dialect. */
export function mayReceive(opaque: Opaque, target: OpaqueTarget): boolean {
  if ('client' in opaque.owner) return opaque.owner.client === target.dialect;
  return opaque.owner.channelType === target.channelType && opaque.owner.scope === target.scope;
}
