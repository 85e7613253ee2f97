/** Finish reasons of chat completions, both ways (semantics: "Finish/stop mapping"). */
import type { ItemStatus } from '../canonical/item.ts';
import type { JsonObject, JsonValue } from '../canonical/json.ts';
import type { Completed, Incomplete, IncompleteReason, Outcome } from '../canonical/outcome.ts';
import { malformed } from './wire.ts';

/** Words of a good end; the later ones are those of mlx-lm, of Together, of TGI, and of gateways that pass the words of messages on. */
const ENDS: ReadonlySet<string> = new Set([
  'stop',
  'tool_calls',
  'function_call',
  'tool_call',
  'eos',
  'eos_token',
  'stop_sequence',
  'end_turn',
  'tool_use',
]);

const CUT: ReadonlyMap<string, IncompleteReason> = new Map([
  ['length', 'max_output'],
  ['max_tokens', 'max_output'],
  ['max_output_tokens', 'max_output'],
  ['content_filter', 'content_filter'],
  ['sensitive', 'content_filter'],
  ['model_length', 'context_window'],
  ['model_context_window_exceeded', 'context_window'],
  // Words beside the reason, where this dialect has none (`finishOf`, and OpenRouter).
  ['context_window', 'context_window'],
  ['pause_turn', 'pause'],
  ['pause', 'pause'],
  ['compaction', 'compaction'],
]);

/** An unknown reason is a cut answer of unknown cause, never a normal stop. Gemini names the filter after a colon. */
export function outcomeOf(reason: string, hasToolCalls: boolean): Completed | Incomplete {
  const word = wordOf(reason);
  if (ENDS.has(word)) return { status: 'completed', stop: hasToolCalls ? 'toolUse' : 'end', native: reason };
  return { status: 'incomplete', reason: CUT.get(word) ?? 'other', native: reason };
}

/** Of the latest item: a pause and a compaction come between items, everything else cuts one. */
export function lastItemStatus(outcome: Completed | Incomplete): ItemStatus {
  const isCut = outcome.status === 'incomplete' && outcome.reason !== 'pause' && outcome.reason !== 'compaction';
  return isCut ? 'incomplete' : 'completed';
}

/** True for a reason that says more than the one before it: what cut an answer outweighs the good end that it seemed to have come to. */
export function outweighs(reason: string, known: string | undefined): boolean {
  return known === undefined || (isEnd(known) && !isEnd(reason));
}

/**
 * What a choice says of its end. A router may call a cut call `tool_calls`, and a pause `stop` (OpenRouter): the vendor's own word beside it
 * is the truth.
 */
export function finishReason(choice: JsonObject): string | undefined {
  const reason = choice['finish_reason'];
  if (reason === undefined || reason === null || reason === '') return undefined;
  if (typeof reason !== 'string') throw malformed('finish_reason');
  const native = choice['native_finish_reason'];
  const cut = typeof native === 'string' ? CUT.get(wordOf(native)) : undefined;
  const saysMore = cut !== undefined && (isEnd(reason) || cut === 'context_window');
  return typeof native === 'string' && saysMore ? native : reason;
}

function isEnd(reason: string): boolean {
  return ENDS.has(wordOf(reason));
}

function wordOf(reason: string): string {
  const [word = ''] = reason.toLowerCase().split(':', 1);
  return word;
}

/** Reasons of an answer that could not be given: Gemini's for a tool call that the model spelled wrong, beside the plain word. */
export function isFailure(reason: JsonValue | undefined): boolean {
  return typeof reason === 'string' && /^(?:error$|function_call_filter\b)/.test(reason);
}

/** What ends an answer that calls tools, in the client's spelling of calls. */
export type CallsReason = 'tool_calls' | 'function_call';

/** `finish_reason`, and `native_finish_reason` where the dialect has no word of its own. `called`: undefined for an answer without calls. */
export function finishOf(
  outcome: Outcome,
  called: CallsReason | undefined,
): { readonly finish_reason: string; readonly native_finish_reason?: string } {
  if (outcome.status === 'completed') return { finish_reason: called ?? 'stop' };
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
