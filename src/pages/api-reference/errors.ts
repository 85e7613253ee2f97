/** What each error code that a client can meet means, and what to do about it: the specification's table and design §9. */
import type { ErrorCode as AnyCode } from '../../codecs/canonical/error.ts';

/** A client that has left gets no error. */
export type ErrorCode = Exclude<AnyCode, 'client_closed_request'>;

export const ERROR_TEXTS: Readonly<Record<ErrorCode, string>> = {
  unauthorized: 'The key is missing, invalid, disabled or expired, or two different keys were sent.',
  ip_not_allowed: 'The key may not be used from this address.',
  invalid_request: 'The body is not a JSON object, or the field named by `param` is not valid.',
  unsupported_conversion:
    'No upstream of this model can do what the field named by `param` asks for. Choose another model or protocol.',
  unsupported_parameter: 'The upstream of this model does not know the parameter named by `param`.',
  background_not_supported: '`background: true` is not offered.',
  previous_response_not_found:
    'The id is unknown, older than 30 minutes, or belongs to another key or process. Send the whole history instead.',
  item_not_found:
    'The input names an item by an id that is unknown, older than 30 minutes, or of another key or process. Send the item itself.',
  tool_call_not_found: 'A turn that continues a response has the result of a call that the conversation does not have.',
  idempotency_key_required: 'Creating a video needs an `Idempotency-Key` header.',
  model_not_allowed: 'The key may not use this model.',
  model_not_found: 'There is no such model for this account.',
  model_kind_mismatch: 'The model is of another kind than this endpoint serves. Use the endpoint of its kind.',
  thread_not_found:
    'Threads of messages cannot be continued here. Send the whole conversation; the official SDK then does so by itself.',
  video_not_found: 'This key has no such video task.',
  not_found: 'There is no such endpoint.',
  method_not_allowed: 'The endpoint does not take this method. The header `Allow` lists those that it takes.',
  model_pricing_required:
    'The model, or a server tool that the request asks for, has no price and cannot be used. Tell the operator.',
  insufficient_balance: 'The balance of the account, or of the key’s own sub-account, is too low.',
  api_key_spend_limit_reached: 'The key has used up its total, hourly or daily limit.',
  request_timeout: 'The body did not arrive in time.',
  idempotency_key_reused: 'This `Idempotency-Key` was used for a different request before.',
  video_submission_started: 'The upstream may already have the task, so it can no longer be cancelled.',
  request_too_large: 'The body is too large. By default the limits are 32 MiB for JSON, 64 MiB for forms and 1 MiB for a video.',
  unsupported_media_type: 'The body must be JSON; only image edits also take a form.',
  upgrade_required: 'This address speaks WebSocket. Plain HTTP clients use POST.',
  rate_limited: 'The key has too many requests, bodies or connections open at once. Try again after `Retry-After`.',
  rate_limit_exceeded:
    'A limit of requests or tokens a minute, or of requests at once, is used up: of the key, its account, the model or the class of the account. Nothing was taken. Try again after `Retry-After`; the headers `x-ratelimit-…` of every answer say how much is left.',
  no_healthy_upstream: 'The model exists, but no upstream that could serve this request is healthy. Try again.',
  overloaded: 'Every upstream of the model is busy and its queue is full. Try again.',
  upstream_error: 'Every upstream that was tried failed. Try again.',
  response_not_representable: 'The upstream’s answer contains something that this protocol cannot express.',
  cancelled: 'The upstream cancelled its answer.',
  store_unavailable: 'The gateway cannot write its records now, and serves nothing without them. Try again.',
  shutting_down: 'The gateway is stopping or restarting. Try again.',
  internal_error: 'A fault of the gateway. Give the operator the `x-request-id`.',
  video_primary_required: 'This node is a replica; only the primary node takes video requests.',
  websocket_connection_limit_reached:
    'The connection has used up its turns (128 by default) and closes. Open another one and send the whole history.',
  websocket_busy: 'This connection is already answering a request; it answers one at a time.',
  websocket_history_limit_exceeded: 'The conversation is too large to be continued on this connection.',
  response_cancel_not_active: 'No response is being generated on this connection.',
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
  'model_kind_mismatch',
  'model_pricing_required',
  'insufficient_balance',
  'api_key_spend_limit_reached',
  'rate_limit_exceeded',
  'no_healthy_upstream',
] as const satisfies readonly ErrorCode[];

export const INFERENCE_ERRORS = [
  ...ADMISSION_ERRORS,
  'overloaded',
  'upstream_error',
  'shutting_down',
] as const satisfies readonly ErrorCode[];
