/** What each error code that a client can meet means, and what to do about it: the specification's table and design §9. */
import type { ErrorCode as AnyCode } from '../../codecs/canonical/error.ts';

/** A client that has left gets no error. */
export type ErrorCode = Exclude<AnyCode, 'client_closed_request'>;

export const ERROR_TEXTS: Readonly<Record<ErrorCode, string>> = {
  unauthorized: 'The key is missing, invalid, disabled or expired, or two different keys were sent.',
  ip_not_allowed: 'The key may not be used from this address.',
  invalid_request: 'The body is not a JSON object, or the field that `param` names is not valid.',
  unsupported_conversion: 'No upstream of this model supports what `param` asks for: choose another model or protocol.',
  unsupported_parameter: 'The upstream of this model does not have the parameter that `param` names.',
  background_not_supported: '`background: true` is not supported.',
  previous_response_not_found:
    'The id is unknown, expired (after 30 minutes), or of another key or process. Send the whole history instead.',
  idempotency_key_required: 'Creating a video needs an `Idempotency-Key` header.',
  model_not_allowed: 'The key may not use this model.',
  model_not_found: 'There is no such model for this account.',
  thread_not_found:
    'Threads of messages are not continued here. Send the whole conversation, as the official SDK then does by itself.',
  video_not_found: 'There is no such video task of this key.',
  not_found: 'There is no such endpoint.',
  method_not_allowed: 'The endpoint does not have this method: the header `Allow` names those that it has.',
  model_pricing_required:
    'The model, or a server tool that the request asks for, has no price, so it cannot be called. Tell the operator.',
  insufficient_balance: 'The balance of the account, or of the key’s own sub-account, is too low.',
  api_key_spend_limit_reached: 'The key has spent its total, hourly or daily limit.',
  request_timeout: 'The body did not arrive in time.',
  idempotency_key_reused: 'The same `Idempotency-Key` came with a different request.',
  video_submission_started: 'The upstream may already have the task: it can no longer be cancelled.',
  request_too_large: 'The body is over its limit: 32 MiB of JSON, 64 MiB of multipart, 1 MiB for a video.',
  unsupported_media_type: 'The body must be JSON, or for image edits a form.',
  upgrade_required: 'This address speaks WebSocket. Plain HTTP clients use POST.',
  rate_limited: 'The key has too many requests, bodies or connections open at once. Try again after `Retry-After`.',
  no_healthy_upstream: 'The model exists, but no upstream that could serve this request is healthy. Try again.',
  overloaded: 'Every upstream of the model is busy and its queue is full. Try again.',
  upstream_error: 'Every upstream that was tried failed. Try again.',
  response_not_representable: 'The upstream’s answer holds something that this protocol cannot represent.',
  cancelled: 'The upstream cancelled its answer.',
  store_unavailable: 'The gateway’s store is not available. Try again.',
  shutting_down: 'The gateway is stopping or restarting. Try again.',
  internal_error: 'A bug of the gateway. Report the `x-request-id` to the operator.',
  video_primary_required: 'This node is a replica; only the primary node serves videos.',
  websocket_connection_limit_reached:
    'The connection has reached its limit of turns (128 by default) or time, and closes. Open another and send the whole history.',
  websocket_busy: 'An answer is in progress on this connection, which serves one at a time.',
  websocket_history_limit_exceeded: 'The conversation is too large to be continued on this connection.',
  invalid_websocket_event: 'A message must be one JSON object of type `response.create`.',
};

/** Errors of every endpoint that needs a key. */
export const KEY_ERRORS = ['unauthorized', 'ip_not_allowed', 'store_unavailable'] as const satisfies readonly ErrorCode[];

/** Errors of the checks before anything is forwarded, in their order. */
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
