/** Decodes JSON errors of the usual shapes, for endpoints that have no dialect of their own. */
import type { GatewayError } from '../canonical/error.ts';
import type { UpstreamAnswer } from '../codec.ts';
import { errorBody, readErrorMembers, refusal, retryAfterMs } from './upstream.ts';

export function decodeJsonError(answer: UpstreamAnswer): GatewayError {
  return refusal(answer.status, readErrorMembers(errorBody(answer.text)), {
    reason: 'http_status',
    text: answer.text,
    retryAfterMs: retryAfterMs(answer),
  });
}
