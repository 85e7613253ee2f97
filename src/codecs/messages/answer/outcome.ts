/** Stop reasons between the messages wire and canonical outcomes, in both directions. */
import type { JsonObject, JsonValue } from '../../canonical/json.ts';
import { isObject } from '../../canonical/json.ts';
import type { ItemStatus } from '../../canonical/item.ts';
import type { IncompleteReason, Outcome } from '../../canonical/outcome.ts';
import { CUTTING_STOPS, nullableString } from '../wire.ts';

export interface WireStop {
  readonly reason: string;
  readonly sequence?: string | undefined;
  readonly details?: JsonValue | undefined;
  /** The upstream's own word, where the wire has none for it. */
  readonly native?: string | undefined;
}

/** The member beside `stop_reason` for a reason that this wire has no word for; chat has its like for finish reasons. */
const NATIVE_REASON = 'native_stop_reason';

const SUCCESS_REASONS: ReadonlySet<string> = new Set(['end_turn', 'tool_use', 'stop_sequence']);

const INCOMPLETE: ReadonlyMap<string, IncompleteReason> = new Map([
  ['max_tokens', 'max_output'],
  ['refusal', 'content_filter'],
  ['model_context_window_exceeded', 'context_window'],
  ['pause_turn', 'pause'],
  ['compaction', 'compaction'],
]);

/** The status of the last block of an answer that stopped for `reason`: a filter or a limit cuts it. */
export function endOfLast(reason: string): ItemStatus {
  return reason === 'refusal' || CUTTING_STOPS.has(reason) ? 'incomplete' : 'completed';
}

/** The stop that stands in `parent`: a message, or the `delta` of a message_delta. */
export function readStop(reason: string, parent: JsonObject): WireStop {
  const { stop_details: details, [NATIVE_REASON]: native } = parent;
  return {
    reason,
    sequence: nullableString(parent, 'stop_sequence', 'stop'),
    details,
    ...(typeof native === 'string' && native !== '' ? { native } : {}),
  };
}

/**
 * `calledTool`: the answer holds a call of a client's tool. A client of another dialect must then answer it, whatever the reason
 * is.
 */
export function decodeStop(stop: WireStop, calledTool: boolean): Outcome {
  const spelling = {
    native: stop.native ?? stop.reason,
    ...(stop.details === undefined || stop.details === null ? {} : { details: stop.details }),
  };
  if (stop.native !== undefined && !SUCCESS_REASONS.has(stop.reason))
    return { status: 'incomplete', reason: 'other', ...spelling };
  switch (stop.reason) {
    case 'end_turn':
      return { status: 'completed', stop: calledTool ? 'toolUse' : 'end', ...spelling };
    case 'tool_use':
      return { status: 'completed', stop: 'toolUse', ...spelling };
    case 'stop_sequence':
      return {
        status: 'completed',
        stop: 'stopSequence',
        ...(stop.sequence === undefined ? {} : { stopSequence: stop.sequence }),
        ...spelling,
      };
    default:
      return { status: 'incomplete', reason: INCOMPLETE.get(stop.reason) ?? 'other', ...spelling };
  }
}

const REASONS: Readonly<Record<Exclude<IncompleteReason, 'other'>, string>> = {
  max_output: 'max_tokens',
  content_filter: 'refusal',
  context_window: 'model_context_window_exceeded',
  pause: 'pause_turn',
  compaction: 'compaction',
};

/** What of an answer decides its stop reason. */
export interface Answered {
  readonly toolUse: boolean;
  readonly refusal: boolean;
}

/**
 * The wire's stop for a finished answer. An answer with a tool call stops with `tool_use` unless it was cut (M1); without a call
 * `tool_use` would leave the client waiting. An incomplete answer whose reason has no word on this wire was cut for this client,
 * and the upstream's own word stands beside it. Throws the error of a failed answer.
 */
export function encodeStop(outcome: Outcome, answered: Answered): WireStop {
  if (outcome.status === 'completed') {
    if (answered.toolUse) return { reason: 'tool_use' };
    if (answered.refusal) return { reason: 'refusal' };
    if (outcome.stop === 'stopSequence') return { reason: 'stop_sequence', sequence: outcome.stopSequence };
    return { reason: 'end_turn' };
  }
  if (outcome.status !== 'incomplete') throw outcome.error;
  if (outcome.reason === 'other') return { reason: 'max_tokens', native: outcome.native || 'other' };
  const details = isObject(outcome.details) && outcome.details['type'] === 'refusal' ? outcome.details : undefined;
  return { reason: REASONS[outcome.reason], ...(details === undefined ? {} : { details }) };
}

/** The stop as members of a message or of a message_delta's `delta`. */
export function stopMembers(stop: WireStop): JsonObject {
  return {
    stop_reason: stop.reason,
    stop_sequence: stop.sequence ?? null,
    stop_details: stop.details ?? null,
    ...(stop.native === undefined ? {} : { [NATIVE_REASON]: stop.native }),
  };
}
