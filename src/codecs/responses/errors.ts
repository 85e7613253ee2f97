/** Error answers of the responses dialect, both ways. */
import type { GatewayError } from '../canonical/error.ts';
import type { UpstreamAnswer } from '../codec.ts';
import { openAiErrorBody } from '../openai-error.ts';
import { errorBody, readErrorMembers, refusal, retryAfterMs } from '../upstream-error.ts';

/** The request id travels in the header. */
export function encodeError(error: GatewayError): string {
  return JSON.stringify(openAiErrorBody(error));
}

const WRONG = /\b(incorrect|invalid|missing)\b/i;
const API_KEY = /\bapi[ _-]?key\b/i;

/** Two searches from the left, since one pattern with a gap would be quadratic in a message that a client can have echoed. */
function namesCredential(message: string): boolean {
  const wrong = message.search(WRONG);
  return wrong >= 0 && API_KEY.test(message.slice(wrong));
}

/** An HTTP error of an upstream: `{error: {…}}`, xAI's `{code, error: "text"}`, or any other body as text. */
export function decodeError(answer: UpstreamAnswer): GatewayError {
  const { text } = answer;
  const members = readErrorMembers(errorBody(text));
  // xAI answers 400 for a wrong key: ours to answer for, not the client's.
  const status = answer.status === 400 && namesCredential(members.message ?? '') ? 401 : answer.status;
  return refusal(status, members, {
    reason: 'http_status',
    text,
    retryAfterMs: retryAfterMs(answer),
  });
}
