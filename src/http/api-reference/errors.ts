/** Every error code that a client can meet, with its status and what to do about it: the specification's table and design §9. */

export const ERROR_CODES = {
  unauthorized: { status: 401, text: 'The key is missing, invalid, disabled or expired, or two different keys were sent.' },
  ip_not_allowed: { status: 403, text: 'The key may not be used from this address.' },
  invalid_request: { status: 400, text: 'The body is no JSON object, or the field that `param` names is not valid.' },
  unsupported_conversion: {
    status: 400,
    text: 'No upstream of this model can be told what `param` asks for: choose another model or protocol.',
  },
  unsupported_parameter: { status: 400, text: 'The upstream of this model has no such parameter as `param` names.' },
  background_not_supported: { status: 400, text: '`background: true` is not offered.' },
  previous_response_not_found: {
    status: 400,
    text: 'The id is unknown, older than 30 minutes, another key’s or another process’s. Send the whole history instead.',
  },
  idempotency_key_required: { status: 400, text: 'Creating a video needs an `Idempotency-Key` header.' },
  model_not_allowed: { status: 403, text: 'The key is limited to other models.' },
  model_not_found: { status: 404, text: 'There is no such model for this account.' },
  thread_not_found: {
    status: 404,
    text: 'Threads of messages are not continued here. Send the whole conversation, as the official SDK then does by itself.',
  },
  video_not_found: { status: 404, text: 'There is no such video task of this key.' },
  model_pricing_required: {
    status: 403,
    text: 'The model, or a server tool that the request asks for, has no price, so it cannot be called. Tell the operator.',
  },
  insufficient_balance: { status: 402, text: 'The balance of the account, or of the key’s own sub-account, is too low.' },
  api_key_spend_limit_reached: { status: 402, text: 'The key has spent its total, hourly or daily limit.' },
  idempotency_key_reused: { status: 409, text: 'The same `Idempotency-Key` came with a different request.' },
  video_submission_started: { status: 409, text: 'The upstream may already have the task: it can no longer be cancelled.' },
  request_too_large: { status: 413, text: 'The body is over its limit: 32 MiB of JSON, 64 MiB of multipart, 1 MiB for a video.' },
  unsupported_media_type: { status: 415, text: 'The body must be JSON, or a form where an image is edited.' },
  upgrade_required: { status: 426, text: 'This address speaks WebSocket. Plain HTTP clients use POST.' },
  no_healthy_upstream: {
    status: 503,
    text: 'The model exists, but no upstream that could serve this request is healthy. Try again.',
  },
  upstream_error: { status: 502, text: 'Every upstream that was tried failed. Try again.' },
  response_not_representable: { status: 502, text: 'The upstream’s answer holds something that this protocol cannot say.' },
  video_primary_required: { status: 503, text: 'This node is a replica: videos are the primary node’s.' },
  websocket_connection_limit_reached: {
    status: 400,
    text: 'The connection has had its turns (128 by default) and closes. Open another and send the whole history.',
  },
} as const satisfies Record<string, { readonly status: number; readonly text: string }>;

export type ErrorCode = keyof typeof ERROR_CODES;

/** Refusals that every endpoint with a key may give. */
export const KEY_ERRORS = ['unauthorized', 'ip_not_allowed'] as const satisfies readonly ErrorCode[];

/** What is checked before anything is forwarded, in that order. */
export const ADMISSION_ERRORS = [
  'unauthorized',
  'ip_not_allowed',
  'invalid_request',
  'request_too_large',
  'model_not_allowed',
  'model_not_found',
  'model_pricing_required',
  'insufficient_balance',
  'api_key_spend_limit_reached',
  'no_healthy_upstream',
] as const satisfies readonly ErrorCode[];

export const INFERENCE_ERRORS = [...ADMISSION_ERRORS, 'upstream_error'] as const satisfies readonly ErrorCode[];
