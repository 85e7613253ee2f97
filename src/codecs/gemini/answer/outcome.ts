/** How an answer ended: by its finish reason, or by a blocked prompt. */
import { byClient, type GatewayError } from '../../canonical/error.ts';
import type { JsonObject } from '../../canonical/json.ts';
import type { Outcome } from '../../canonical/outcome.ts';
import { refusal } from '../../errors/upstream.ts';
import { optionalString } from './decode-chunk.ts';

const FILTERED = new Set([
  'SAFETY',
  'RECITATION',
  'LANGUAGE',
  'BLOCKLIST',
  'PROHIBITED_CONTENT',
  'SPII',
  'IMAGE_SAFETY',
  'IMAGE_PROHIBITED_CONTENT',
  'IMAGE_RECITATION',
  'MODEL_ARMOR',
  'ESCALATION',
]);
/** What the model itself wrote, or did not draw: a prompt can bring it about. */
const REFUSED = new Set([
  'MALFORMED_FUNCTION_CALL',
  'UNEXPECTED_TOOL_CALL',
  'TOO_MANY_TOOL_CALLS',
  'MISSING_THOUGHT_SIGNATURE',
  'MALFORMED_RESPONSE',
  'NO_IMAGE',
]);
const FAILED = new Set([
  ...REFUSED,
  'OTHER',
  'IMAGE_OTHER',
  // The gateway's own account is limited.
  'PUP_LIMITED_DISABLED',
]);

export interface Finish {
  readonly reason: string;
  readonly message: string | undefined;
}

/** An unknown reason is no success: the answer counts as incomplete, and the reason is kept. */
export function outcomeOf(finish: Finish, hasToolCalls: boolean): Outcome {
  const native = finish.reason;
  if (native === 'STOP') return { status: 'completed', stop: hasToolCalls ? 'toolUse' : 'end', native };
  if (native === 'MAX_TOKENS') return { status: 'incomplete', reason: 'max_output', native };
  if (FILTERED.has(native)) return { status: 'incomplete', reason: 'content_filter', native };
  if (!FAILED.has(native)) return { status: 'incomplete', reason: 'other', native };
  const message = finish.message ?? `The model stopped with ${native}.`;
  const text = `${native}: ${finish.message ?? ''}`;
  const error = refusal(undefined, { code: native, message }, { reason: 'error_event', text });
  return { status: 'failed', native, error: REFUSED.has(native) ? byClient(error) : error };
}

/** True when the prompt itself was refused. */
export function isBlocked(feedback: JsonObject | undefined): feedback is JsonObject {
  if (feedback === undefined) return false;
  const reason = optionalString(feedback, 'blockReason');
  if (reason !== undefined) return reason !== 'BLOCK_REASON_UNSPECIFIED' && reason !== 'BLOCKED_REASON_UNSPECIFIED';
  return optionalString(feedback, 'blockReasonMessage') !== undefined;
}

/** The same request would be refused again, so this is the client's 400 and not a reason to try elsewhere. */
export function blockedError(feedback: JsonObject): GatewayError {
  const reason = optionalString(feedback, 'blockReason') ?? 'UNKNOWN';
  const message =
    optionalString(feedback, 'blockReasonMessage') ??
    `The prompt was blocked by the model's filters (${/^[A-Z_]{1,64}$/.test(reason) ? reason : 'UNKNOWN'}).`;
  return refusal(
    400,
    { code: 'content_filter', type: reason, message },
    { reason: 'error_event', text: JSON.stringify(feedback) },
  );
}
