/** What each error code that a client can meet means, and what to do about it: the specification's table and design §9. */
import type { ErrorCode as AnyCode } from '../../codecs/canonical/error.ts';

/** Whoever has left reads no code. */
export type ErrorCode = Exclude<AnyCode, 'client_closed_request'>;

export const ERROR_TEXTS: Readonly<Record<ErrorCode, string>> = {
  unauthorized: 'The key is missing, invalid, disabled or expired, or two different keys were sent.',
  ip_not_allowed: 'The key may not be used from this address.',
  invalid_request: 'The body is no JSON object, or the field that `param` names is not valid.',
  unsupported_conversion: 'No upstream of this model can be told what `param` asks for: choose another model or protocol.',
  unsupported_parameter: 'The upstream of this model has no such parameter as `param` names.',
  background_not_supported: '`background: true` is not offered.',
  previous_response_not_found:
    'The id is unknown, older than 30 minutes, another key’s or another process’s. Send the whole history instead.',
  idempotency_key_required: 'Creating a video needs an `Idempotency-Key` header.',
  model_not_allowed: 'The key is limited to other models.',
  model_not_found: 'There is no such model for this account.',
  thread_not_found:
    'Threads of messages are not continued here. Send the whole conversation, as the official SDK then does by itself.',
  video_not_found: 'There is no such video task of this key.',
  not_found: 'There is no such endpoint.',
  method_not_allowed: 'The endpoint has other methods: the header `Allow` names them.',
  model_pricing_required:
    'The model, or a server tool that the request asks for, has no price, so it cannot be called. Tell the operator.',
  insufficient_balance: 'The balance of the account, or of the key’s own sub-account, is too low.',
  api_key_spend_limit_reached: 'The key has spent its total, hourly or daily limit.',
  request_timeout: 'The body did not arrive in time.',
  idempotency_key_reused: 'The same `Idempotency-Key` came with a different request.',
  video_submission_started: 'The upstream may already have the task: it can no longer be cancelled.',
  request_too_large: 'The body is over its limit: 32 MiB of JSON, 64 MiB of multipart, 1 MiB for a video.',
  unsupported_media_type: 'The body must be JSON, or a form where an image is edited.',
  upgrade_required: 'This address speaks WebSocket. Plain HTTP clients use POST.',
  rate_limited: 'The key has too many requests, bodies or connections open at once. Try again after `Retry-After`.',
  no_healthy_upstream: 'The model exists, but no upstream that could serve this request is healthy. Try again.',
  overloaded: 'Every upstream of the model is busy, and as many requests wait as may. Try again.',
  upstream_error: 'Every upstream that was tried failed. Try again.',
  response_not_representable: 'The upstream’s answer holds something that this protocol cannot say.',
  cancelled: 'The upstream cancelled its answer.',
  store_unavailable: 'The gateway cannot write its records now, and serves nothing without. Try again.',
  shutting_down: 'The gateway stops or restarts. Try again.',
  internal_error: 'A fault of the gateway. Tell the operator the `x-request-id`.',
  video_primary_required: 'This node is a replica: videos are the primary node’s.',
  websocket_connection_limit_reached:
    'The connection has had its turns (128 by default) and closes. Open another and send the whole history.',
  websocket_busy: 'An answer is being made on this connection: one at a time.',
  websocket_history_limit_exceeded: 'The conversation is too large to be continued on this connection.',
  invalid_websocket_event: 'A message must be one JSON object of type `response.create`.',
};

/** Refusals that every endpoint with a key may give. */
export const KEY_ERRORS = ['unauthorized', 'ip_not_allowed', 'store_unavailable'] as const satisfies readonly ErrorCode[];

/** What is checked before anything is forwarded, in that order. */
export const ADMISSION_ERRORS = [
  ...KEY_ERRORS,
  'rate_limited',
  'invalid_request',
  'request_too_large',
  'request_timeout',
  'model_not_allowed',
  'model_not_found',
  'model_pricing_required',
  'insufficient_balance',
  'api_key_spend_limit_reached',
  'no_healthy_upstream',
] as const satisfies readonly ErrorCode[];

export const INFERENCE_ERRORS = [
  ...ADMISSION_ERRORS,
  'overloaded',
  'upstream_error',
  'shutting_down',
] as const satisfies readonly ErrorCode[];
