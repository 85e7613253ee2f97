/** What the encoders of streams and of whole answers share: reasoning text, signatures, arguments and refusals. */
import { isEmptyInput, NO_ARGUMENTS } from '../tools/arguments.ts';
import { notRepresentable, refusedOutput } from '../canonical/error.ts';
import type { OutputItem, ReasoningItem, ToolCallItem } from '../canonical/item.ts';
import { isObject, isObjectText, type JsonObject, tryJson } from '../canonical/json.ts';
import type { ResponseContext } from '../codec.ts';
import { wrapFreeform } from '../tools/freeform.ts';

/** Members that the protocol requires of a message, about what only its own servers do. */
export const NO_FACTS = { container: null, diagnostics: null } as const;

/** A call that the model made itself, and no program of its own. */
const DIRECT = { type: 'direct' } as const;

/** The block of a call whose input follows. */
export function toolUseBlock(callId: string, name: string): JsonObject {
  return { type: 'tool_use', id: callId, name, input: {}, caller: DIRECT };
}

/** Between the parts of a summary (P6). */
export const PART_BREAK = '\n\n';

/** `itemId` inside the envelope of a signature that belongs to the text block before it. A tool's holds its call id. */
export const TEXT_SIGNATURE = 'text';

/** What `thinking` shows: raw text where there is any, else the summary (semantics 9.1.1). */
export function thinkingText(item: ReasoningItem): string {
  if (item.raw !== undefined && item.raw !== '') return item.raw;
  return joinSummary(item.summary);
}

export function joinSummary(summary: readonly string[] | undefined): string {
  return (summary ?? []).filter((part) => part !== '').join(PART_BREAK);
}

/**
 * The signature of a text or a tool call (gemini), which has no member in those blocks: it travels in an empty thinking block
 * behind it (of a text: only in front of another block, since clients take the last one as the result), in an envelope that names
 * what it signs. `decodeRequest` puts it back (`opaque.ts`).
 */
export function attachedSignature(item: OutputItem, context: ResponseContext): string | undefined {
  if (item.kind === 'toolCall' && item.opaque !== undefined) return context.seal({ ...item.opaque, itemId: item.callId });
  if (item.kind === 'text' && item.opaque !== undefined) return context.seal({ ...item.opaque, itemId: TEXT_SIGNATURE });
  return undefined;
}

/** The form of an envelope that holds reasoning which nobody signed. */
export const UNSIGNED = 'unsigned';
/** Longer reasoning is not carried twice: its envelope is empty, and what the client sends back counts. */
const MOST_CARRIED_CHARS = 64 * 1024;

/**
 * The signature of reasoning that its upstream did not sign. Clients send signed thinking back and drop the rest, and some keep
 * the signature alone; so the envelope holds the text.
 */
export function unsignedSignature({ raw, summary }: Pick<ReasoningItem, 'raw' | 'summary'>, context: ResponseContext): string {
  const text = JSON.stringify({ raw, summary });
  const value = text.length <= MOST_CARRIED_CHARS ? text : '{}';
  return context.seal({ owner: context.owner, value, form: UNSIGNED });
}

/** What an envelope of unsigned reasoning holds. */
export function unsignedReasoning(value: string): Pick<ReasoningItem, 'raw' | 'summary'> {
  const held = tryJson(value);
  if (!isObject(held)) return {};
  const { raw, summary } = held;
  const parts = Array.isArray(summary) ? summary.filter((part) => typeof part === 'string') : [];
  return { ...(typeof raw === 'string' ? { raw } : {}), ...(parts.length > 0 ? { summary: parts } : {}) };
}

/** The argument text of a call on this wire; freeform input is wrapped as a lowered tool's would be. */
export function wireInput(item: ToolCallItem): string {
  if (item.toolType === 'custom') return wrapFreeform(item.input);
  return isEmptyInput(item.input) ? NO_ARGUMENTS : item.input;
}

/** Throws when finished arguments are not a JSON object (spec rule 11). */
export function checkInput(item: ToolCallItem): void {
  if (isObjectText(wireInput(item))) return;
  throw refusedOutput('malformed_event', `The upstream called ${item.tool.name} with arguments that are not a JSON object.`);
}

export function unfinishedCall(): Error {
  return notRepresentable('The upstream left the arguments of a tool call unfinished.');
}

export function mediaRefused(): Error {
  return notRepresentable('The answer holds media, which the messages protocol cannot say.');
}
