/** Stop reasons between the messages wire and canonical outcomes, in both directions. */
import type { JsonObject, JsonValue } from '../canonical/json.ts';
import { isObject } from '../canonical/json.ts';
import type { ItemStatus } from '../canonical/item.ts';
import type { IncompleteReason, Outcome } from '../canonical/outcome.ts';
import { CUTTING_STOPS } from './wire.ts';

export interface WireStop {
  readonly reason: string;
  readonly sequence?: string | undefined;
  readonly details?: JsonValue | undefined;
}

const INCOMPLETE: ReadonlyMap<string, IncompleteReason> = new Map([
  ['max_tokens', 'max_output'],
  ['refusal', 'content_filter'],
  ['model_context_window_exceeded', 'context_window'],
  ['pause_turn', 'pause'],
  ['compaction', 'compaction'],
]);

/** How the last block of an answer ended that stopped for `reason`: a filter and a limit cut what was being said. */
export function endOfLast(reason: string): ItemStatus {
  return reason === 'refusal' || CUTTING_STOPS.has(reason) ? 'incomplete' : 'completed';
}

/** `calledTool`: the answer holds a client tool call, so a client of another dialect must answer it whatever the word says. */
export function decodeStop(stop: WireStop, calledTool: boolean): Outcome {
  const spelling = {
    native: stop.reason,
    ...(stop.details === undefined || stop.details === null ? {} : { details: stop.details }),
  };
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

const WORDS: Readonly<Record<Exclude<IncompleteReason, 'other'>, string>> = {
  max_output: 'max_tokens',
  content_filter: 'refusal',
  context_window: 'model_context_window_exceeded',
  pause: 'pause_turn',
  compaction: 'compaction',
};
const SUCCESS_WORDS: ReadonlySet<string> = new Set(['end_turn', 'tool_use', 'stop_sequence']);

export interface Said {
  readonly toolUse: boolean;
  readonly refusal: boolean;
}

/**
 * The wire's stop for a finished answer. A call that was said always stops with `tool_use` unless the answer was cut (M1);
 * without one `tool_use` would leave the client waiting. A cut for a reason that this wire has no word for keeps the
 * upstream's own word, never that of a success; a failed answer throws its error.
 */
export function encodeStop(outcome: Outcome, said: Said): WireStop {
  if (outcome.status === 'completed') {
    if (said.toolUse) return { reason: 'tool_use' };
    if (said.refusal) return { reason: 'refusal' };
    if (outcome.stop === 'stopSequence') return { reason: 'stop_sequence', sequence: outcome.stopSequence };
    return { reason: 'end_turn' };
  }
  if (outcome.status !== 'incomplete') throw outcome.error;
  if (outcome.reason === 'other') {
    const word = outcome.native;
    return { reason: word === undefined || word === '' || SUCCESS_WORDS.has(word) ? 'other' : word };
  }
  const details = isObject(outcome.details) && outcome.details['type'] === 'refusal' ? outcome.details : undefined;
  return { reason: WORDS[outcome.reason], ...(details === undefined ? {} : { details }) };
}

/** The stop as members of a message or of a message_delta's `delta`. */
export function stopMembers(stop: WireStop): JsonObject {
  return {
    stop_reason: stop.reason,
    stop_sequence: stop.sequence ?? null,
    ...(stop.details === undefined ? {} : { stop_details: stop.details }),
  };
}
