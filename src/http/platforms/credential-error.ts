/** No credential could be had for a Channel: what the operator reads of it, and what the attempt loop makes of it. */
import { GatewayError } from '../../codecs/canonical/error.ts';

export type CredentialFault =
  /** The source answered, and gives none: a revoked role, a wrong secret. */
  | 'refused'
  /** It did not answer in time. */
  | 'timeout'
  /** It could not be reached, or failed. */
  | 'unavailable'
  /** It answered with something else: a web page, a redirect, a JSON without a token. */
  | 'unreadable';

/**
 * `text` is for the operator alone, and holds no secret. A refusal counts as one of the upstream, which rests the Channel for all
 * models.
 */
export function credentialError(fault: CredentialFault, text: string, cause?: unknown): GatewayError {
  return new GatewayError('upstream_error', 'The gateway could not sign in to the upstream.', {
    reason: `credential_${fault}`,
    upstream: { text, ...(fault === 'refused' ? { status: 401 } : {}) },
    ...(cause === undefined ? {} : { cause }),
  });
}
