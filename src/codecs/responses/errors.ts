/** Error answers of the responses dialect, both ways. */
import type { GatewayError } from '../canonical/error.ts';
import type { UpstreamAnswer } from '../codec.ts';
import { openAiErrorBody } from '../errors/openai.ts';
import { errorBody, readErrorMembers, refusal, retryAfterMs } from '../errors/upstream.ts';

/** The request id travels in the header. */
export function encodeError(error: GatewayError): string {
  return JSON.stringify(openAiErrorBody(error));
}

/** An HTTP error of an upstream: `{error: {…}}`, xAI's `{code, error: "text"}`, or any other body as text. */
export function decodeError(answer: UpstreamAnswer): GatewayError {
  const { text } = answer;
  return refusal(answer.status, readErrorMembers(errorBody(text)), {
    reason: 'http_status',
    text,
    retryAfterMs: retryAfterMs(answer),
  });
}
