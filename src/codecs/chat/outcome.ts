/** Finish reasons of chat completions, both ways (semantics: "Finish/stop mapping"). */
import type { Completed, Incomplete, IncompleteReason, Outcome } from '../canonical/outcome.ts';

const CUT: ReadonlyMap<string, IncompleteReason> = new Map([
  ['length', 'max_output'],
  ['content_filter', 'content_filter'],
  ['sensitive', 'content_filter'],
  ['model_length', 'context_window'],
  ['model_context_window_exceeded', 'context_window'],
]);

/** An unknown reason is a cut answer of unknown cause, never a normal stop. */
export function outcomeOf(reason: string, hasToolCalls: boolean): Completed | Incomplete {
  switch (reason) {
    case 'stop':
    case 'tool_calls':
    case 'function_call':
      return { status: 'completed', stop: hasToolCalls ? 'toolUse' : 'end', native: reason };
    default:
      return { status: 'incomplete', reason: CUT.get(reason) ?? 'other', native: reason };
  }
}

/** `finish_reason`, and `native_finish_reason` where the dialect has no word of its own. */
export function finishOf(
  outcome: Outcome,
  hasToolCalls: boolean,
): { readonly finish_reason: string; readonly native_finish_reason?: string } {
  if (outcome.status === 'completed') return { finish_reason: hasToolCalls ? 'tool_calls' : 'stop' };
  if (outcome.status !== 'incomplete') return { finish_reason: 'error' };
  switch (outcome.reason) {
    case 'max_output':
      return { finish_reason: 'length' };
    case 'content_filter':
      return { finish_reason: 'content_filter' };
    case 'context_window':
      return { finish_reason: 'length', native_finish_reason: outcome.native ?? 'context_window' };
    case 'pause':
      return { finish_reason: 'stop', native_finish_reason: outcome.native ?? 'pause' };
    case 'compaction':
      return { finish_reason: 'stop', native_finish_reason: outcome.native ?? 'compaction' };
    case 'other':
      return { finish_reason: 'length', native_finish_reason: outcome.native ?? 'other' };
  }
}
