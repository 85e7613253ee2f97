/** Error answers of the responses dialect, both ways. */
import type { GatewayError } from '../canonical/error.ts';
import type { Frame, UpstreamAnswer } from '../codec.ts';
import { openAiErrorBody } from '../errors/openai.ts';
import { errorBody, readErrorMembers, refusal, retryAfterMs } from '../errors/upstream.ts';

/** The request id travels in the header. */
export function encodeError(error: GatewayError): string {
  return JSON.stringify(openAiErrorBody(error));
}

/** Flat, as the vendor's own bare error event is. */
export function errorFrame({ shownCode: code, message, param }: GatewayError): Frame {
  return { event: 'error', data: JSON.stringify({ type: 'error', code, message, param }) };
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
