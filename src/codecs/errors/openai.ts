/** The error body that chat, responses, completions, embeddings, images and models answer with (design: "error body"). */
import type { GatewayError } from '../canonical/error.ts';
import type { JsonObject } from '../canonical/json.ts';
import type { Frame } from '../codec.ts';
import { statusInStream } from './upstream.ts';

/** `{error: {message, type, param, code}}`. */
export function openAiErrorBody(error: GatewayError): JsonObject {
  return bodyFor(error, error.status);
}

/** The same as a frame of a stream, where there is no HTTP status to tell the kind of error. */
export function openAiErrorFrame(error: GatewayError): Frame {
  return { event: undefined, data: JSON.stringify(bodyFor(error, statusInStream(error))) };
}

function bodyFor({ message, param, shownCode }: GatewayError, status: number): JsonObject {
  return { error: { message, type: openAiErrorType(status), param, code: shownCode } };
}

/** The error type that OpenAI clients expect for a status. */
export function openAiErrorType(status: number): string {
  switch (status) {
    case 401:
      return 'authentication_error';
    case 402:
      return 'insufficient_quota';
    case 403:
      return 'permission_error';
    case 429:
      return 'rate_limit_error';
    default:
      return status >= 500 ? 'server_error' : 'invalid_request_error';
  }
}
