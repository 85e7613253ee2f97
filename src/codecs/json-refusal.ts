/** The refusal of an upstream that writes its errors as JSON of the usual shapes; for endpoints that have no dialect of their own. */
import type { GatewayError } from './canonical/error.ts';
import { type JsonValue, parseJson } from './canonical/json.ts';
import type { UpstreamAnswer } from './codec.ts';
import { readErrorMembers, refusal, retryAfterMs } from './upstream-error.ts';

export function decodeJsonError(answer: UpstreamAnswer): GatewayError {
  let body: JsonValue;
  try {
    body = parseJson(answer.text);
  } catch {
    // Text instead of JSON is the message itself; what is HTML the sanitiser drops.
    body = answer.text;
  }
  return refusal(answer.status, readErrorMembers(body), {
    reason: 'http_status',
    text: answer.text,
    retryAfterMs: retryAfterMs(answer),
  });
}
