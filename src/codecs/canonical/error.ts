/**
 * The one error class, and the table of its codes with their status and whose fault they are. `http/errors.ts` answers with the
 * status, and each client codec writes the body. Upstream text is sanitised before it becomes a `message`
 * (`codecs/errors/sanitise.ts`).
 */
import type { Usage } from './usage.ts';

export type Blame = 'client' | 'gateway' | 'upstream';

const client = (status: number) => ({ status, blame: 'client' as const });
const gateway = (status: number) => ({ status, blame: 'gateway' as const });
const upstream = (status: number) => ({ status, blame: 'upstream' as const });

export const ERRORS = {
  invalid_request: client(400),
  unsupported_conversion: client(400),
  unsupported_parameter: client(400),
  previous_response_not_found: client(400),
  item_not_found: client(400),
  tool_call_not_found: client(400),
  background_not_supported: client(400),
  idempotency_key_required: client(400),
  model_kind_mismatch: client(400),
  unauthorized: client(401),
  insufficient_balance: client(402),
  api_key_spend_limit_reached: client(402),
  model_not_allowed: client(403),
  ip_not_allowed: client(403),
  model_pricing_required: client(403),
  not_found: client(404),
  model_not_found: client(404),
  thread_not_found: client(404),
  video_not_found: client(404),
  method_not_allowed: client(405),
  request_timeout: client(408),
  video_submission_started: client(409),
  idempotency_key_reused: client(409),
  websocket_busy: client(409),
  request_too_large: client(413),
  websocket_history_limit_exceeded: client(413),
  unsupported_media_type: client(415),
  upgrade_required: client(426),
  rate_limited: client(429),
  rate_limit_exceeded: client(429),
  client_closed_request: client(499),
  invalid_websocket_event: client(400),
  response_cancel_not_active: client(400),
  websocket_connection_limit_reached: client(400),
  internal_error: gateway(500),
  no_healthy_upstream: gateway(503),
  store_unavailable: gateway(503),
  overloaded: gateway(503),
  shutting_down: gateway(503),
  video_primary_required: gateway(503),
  upstream_error: upstream(502),
  response_not_representable: upstream(502),
  cancelled: upstream(502),
} as const satisfies Record<string, { status: number; blame: Blame }>;

export type ErrorCode = keyof typeof ERRORS;

/**
 * What an upstream reported of its failure, for the request log. Clients see only a sanitised message, and `code` and `param`
 * where they are safe.
 */
export interface UpstreamFacts {
  /** The HTTP status, or that which an error inside a 200 stands for. */
  readonly status?: number;
  readonly code?: string;
  readonly type?: string;
  readonly param?: string;
  /** The full, unsanitised text. */
  readonly text?: string;
  readonly retryAfterMs?: number;
}

/** Why an upstream's answer was refused; for logs, metrics and retry decisions. */
export type UpstreamReason =
  | 'http_status'
  | 'error_event'
  | 'network'
  | 'timeout'
  | 'truncated'
  | 'undecodable'
  | 'illegal_lifecycle'
  | 'malformed_event'
  | 'not_representable'
  | 'empty'
  /** No credential for the upstream could be had: its source refuses, is silent, is away, or says something else. */
  | 'credential_refused'
  | 'credential_timeout'
  | 'credential_unavailable'
  | 'credential_unreadable';

export interface ErrorDetails {
  /** Path of the offending field in the client's body (`messages[0].content`). */
  readonly param?: string;
  /** Overrides the table; only for an upstream's 400, 413 or 422 that the client is to get as it is. */
  readonly status?: number;
  /** An allowed code of the upstream that the client reads instead of our own. */
  readonly shownCode?: string;
  readonly reason?: UpstreamReason;
  readonly upstream?: UpstreamFacts;
  readonly retryAfterMs?: number;
  /** How often the upstream asks that such a request be sent again. */
  readonly repeats?: number;
  /** The usage that a failed answer reported. */
  readonly usage?: Usage;
  /** The upstream may be doing what was asked, and it is something that must not be done twice. */
  readonly lost?: boolean;
  /**
   * A client can bring it about: by a prompt, whose answer is refused, or by not reading. What was generated is paid for as if it
   * had left, and the Channel is not blamed.
   */
  readonly byClient?: true;
  readonly cause?: unknown;
}

export class GatewayError extends Error {
  override readonly name = 'GatewayError';
  readonly code: ErrorCode;
  readonly status: number;
  readonly blame: Blame;
  readonly param: string | null;
  /** The code that the client reads. */
  readonly shownCode: string;
  readonly details: ErrorDetails;

  /** `message` is shown to clients: no upstream URL, host, key or account in it. */
  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.status = details.status ?? ERRORS[code].status;
    this.blame = ERRORS[code].blame;
    this.param = details.param ?? null;
    this.shownCode = details.shownCode ?? code;
    this.details = details;
  }
}

/** A field of the client's body is wrong. `param` is its path in the client's own dialect. */
export function invalid(param: string, message: string): GatewayError {
  return new GatewayError('invalid_request', message, { param });
}

/** The request is valid, but the selected Channel's protocol cannot express it. */
export function notConvertible(param: string | undefined, message: string): GatewayError {
  return new GatewayError('unsupported_conversion', message, param === undefined ? {} : { param });
}

/** The client's protocol cannot express the upstream's answer. */
export function notRepresentable(message: string): GatewayError {
  return new GatewayError('response_not_representable', message, { reason: 'not_representable' });
}

/** The upstream broke its own protocol. `message` must hold no upstream text. */
export function upstreamFault(reason: UpstreamReason, message: string, upstream?: UpstreamFacts): GatewayError {
  return new GatewayError('upstream_error', message, upstream === undefined ? { reason } : { reason, upstream });
}

/** What the model wrote cannot be passed on: see {@link ErrorDetails.byClient}. `message` must hold no upstream text. */
export function refusedOutput(reason: UpstreamReason, message: string, upstream?: UpstreamFacts): GatewayError {
  return byClient(upstreamFault(reason, message, upstream));
}

/** The same error, which a client can bring about: see {@link ErrorDetails.byClient}. */
export function byClient(error: GatewayError): GatewayError {
  return new GatewayError(error.code, error.message, { ...error.details, byClient: true });
}

/** The same error, with the usage that the refused answer reported. */
export function havingUsed(error: GatewayError, usage: Usage | undefined): GatewayError {
  return usage === undefined ? error : new GatewayError(error.code, error.message, { ...error.details, usage });
}
