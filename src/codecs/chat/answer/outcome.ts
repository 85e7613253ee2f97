/** Finish reasons of chat completions, both ways (semantics: "Finish/stop mapping"). */
import type { ItemStatus } from '../../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import type { Completed, Incomplete, IncompleteReason, Outcome } from '../../canonical/outcome.ts';
import type { ResponseContext } from '../../codec.ts';
import { present } from '../../requests/members.ts';
import { malformed } from '../wire.ts';

/** Reasons of a completed answer, also those of mlx-lm, Together, TGI, and of gateways that pass on the reasons of messages. */
const COMPLETED: ReadonlySet<string> = new Set([
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

/** Reasons of an answer that was cut. */
const INCOMPLETE: ReadonlyMap<string, IncompleteReason> = new Map([
  ['length', 'max_output'],
  ['max_tokens', 'max_output'],
  ['max_output_tokens', 'max_output'],
  ['content_filter', 'content_filter'],
  ['sensitive', 'content_filter'],
  // From gateways that pass on the reasons of messages or of Gemini, and as values of `native_finish_reason`.
  ['refusal', 'content_filter'],
  ['safety', 'content_filter'],
  ['recitation', 'content_filter'],
  ['blocklist', 'content_filter'],
  ['prohibited_content', 'content_filter'],
  ['spii', 'content_filter'],
  ['image_safety', 'content_filter'],
  ['model_length', 'context_window'],
  ['model_context_window_exceeded', 'context_window'],
  // Values of `native_finish_reason` (`finishOf`, OpenRouter) for which this dialect has no finish reason.
  ['context_window', 'context_window'],
  ['pause_turn', 'pause'],
  ['pause', 'pause'],
  ['compaction', 'compaction'],
]);

/** An unknown reason is an incomplete answer, never a normal stop. Gemini names the filter after a colon. */
export function outcomeOf(reason: string, hasToolCalls: boolean): Completed | Incomplete {
  const name = nameOf(reason);
  if (COMPLETED.has(name)) return { status: 'completed', stop: hasToolCalls ? 'toolUse' : 'end', native: reason };
  return { status: 'incomplete', reason: INCOMPLETE.get(name) ?? 'other', native: reason };
}

/** The status of the latest item: a pause and a compaction happen between items, everything else cuts an item. */
export function lastItemStatus(outcome: Completed | Incomplete): ItemStatus {
  const isCut = outcome.status === 'incomplete' && outcome.reason !== 'pause' && outcome.reason !== 'compaction';
  return isCut ? 'incomplete' : 'completed';
}

/** True for a reason that replaces the one before it: a cut replaces a normal end. */
export function overrides(reason: string, known: string | undefined): boolean {
  return known === undefined || (isEnd(known) && !isEnd(reason));
}

/**
 * The finish reason of a choice. A router may give `tool_calls` for a call that was cut and `stop` for a pause (OpenRouter): then
 * the vendor's own reason beside it counts.
 */
export function finishReason(choice: JsonObject): string | undefined {
  const reason = choice['finish_reason'];
  if (reason === undefined || reason === null || reason === '') return undefined;
  if (typeof reason !== 'string') throw malformed('finish_reason');
  const native = choice['native_finish_reason'];
  if (typeof native !== 'string') return reason;
  const cut = INCOMPLETE.get(nameOf(native));
  return cut !== undefined && (isEnd(reason) || cut === 'context_window') ? native : reason;
}

function isEnd(reason: string): boolean {
  return COMPLETED.has(nameOf(reason));
}

function nameOf(reason: string): string {
  const [name = ''] = reason.toLowerCase().split(':', 1);
  return name;
}

/**
 * True where the answer failed: `error`, Gemini's reason of a malformed tool call, and the words of GLM for a model that broke
 * (`network_error`) and of SGLang and vLLM for a generation that was given up (`abort`).
 */
export function isFailure(reason: JsonValue | undefined): boolean {
  return typeof reason === 'string' && /^(?:error$|network_error\b|abort$|function_call_filter\b)/.test(reason);
}

/** Gemini's reason of a malformed tool call, which a prompt can bring about. */
export function isRefusedCall(reason: JsonValue | undefined): boolean {
  return typeof reason === 'string' && /^function_call_filter\b/.test(reason);
}

/** True when the client uses the deprecated `functions`, so that calls must be in the form `function_call`. */
export function wantsLegacyCalls({ request: { json } }: Pick<ResponseContext, 'request'>): boolean {
  return isObject(json) && Array.isArray(json['functions']) && !present(json['tools']);
}

/** `finish_reason`, with a `native_finish_reason` where the dialect has none of its own. */
export function finishOf(
  outcome: Outcome,
  hasCalls: boolean,
  context: Pick<ResponseContext, 'request'>,
): { readonly finish_reason: string; readonly native_finish_reason?: string } {
  if (outcome.status === 'completed') {
    const called = wantsLegacyCalls(context) ? 'function_call' : 'tool_calls';
    return { finish_reason: hasCalls ? called : 'stop' };
  }
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
