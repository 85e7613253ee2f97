/** Error answers of the responses dialect, both ways. */
import type { GatewayError } from '../canonical/error.ts';
import { type JsonValue, parseJson } from '../canonical/json.ts';
import type { UpstreamAnswer } from '../codec.ts';
import { openAiErrorBody } from '../openai-error.ts';
import { readErrorMembers, refusal, retryAfterMs } from '../upstream-error.ts';

/** The request id travels in the header. */
export function encodeError(error: GatewayError): string {
  return JSON.stringify(openAiErrorBody(error));
}

/** An HTTP error of an upstream: `{error: {…}}`, xAI's `{code, error: "text"}`, or any other body as text. */
export function decodeError(answer: UpstreamAnswer): GatewayError {
  const { text } = answer;
  return refusal(answer.status, readErrorMembers(parsed(text)), {
    reason: 'http_status',
    text,
    retryAfterMs: retryAfterMs(answer),
  });
}

function parsed(text: string): JsonValue {
  try {
    return parseJson(text);
  } catch (error) {
    if (error instanceof SyntaxError) return text;
    throw error;
  }
}
