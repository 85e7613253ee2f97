/** What the stream encoder and the whole-answer encoder must say alike: reasoning text, signatures, arguments, losses. */
import { notRepresentable, upstreamFault } from '../canonical/error.ts';
import type { OutputItem, ReasoningItem, ToolCallItem } from '../canonical/item.ts';
import { isObjectText, type JsonObject } from '../canonical/json.ts';
import type { Opaque } from '../canonical/opaque.ts';
import type { ResponseContext } from '../codec.ts';
import { wrapFreeform } from '../tools/freeform.ts';
import { REDACTED } from './blocks.ts';
import { saysNoArguments } from './wire.ts';

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

/** True for opaque values that have a block of their own here. */
export function isRedacted(opaque: Opaque): boolean {
  return opaque.form === REDACTED && 'channelType' in opaque.owner && opaque.owner.channelType === 'messages';
}

/**
 * Signatures that belong to a text or a tool call (gemini) have no place in those blocks here: they travel in an empty
 * thinking block right after, whose envelope names what it signs. `decodeRequest` puts them back (`signatures.ts`).
 */
export function attachedSignature(item: OutputItem, context: ResponseContext): string | undefined {
  if (item.kind === 'toolCall' && item.opaque !== undefined) return context.seal({ ...item.opaque, itemId: item.callId });
  if (item.kind === 'text' && item.opaque !== undefined) return context.seal({ ...item.opaque, itemId: TEXT_SIGNATURE });
  return undefined;
}

/** The argument text of a call on this wire; freeform input is wrapped as a lowered tool's would be. */
export function wireInput(item: ToolCallItem): string {
  if (item.flavour === 'custom') return wrapFreeform(item.input);
  return saysNoArguments(item.input) ? '{}' : item.input;
}

/** Throws when finished arguments are not a JSON object (spec rule 11). */
export function checkInput(item: ToolCallItem): void {
  if (isObjectText(wireInput(item))) return;
  throw upstreamFault('malformed_event', `The upstream called ${item.tool.name} with arguments that are not a JSON object.`);
}

export function unfinishedCall(): Error {
  return notRepresentable('The upstream left the arguments of a tool call unfinished.');
}

export function mediaRefused(): Error {
  return notRepresentable('The answer holds media, which the messages protocol cannot say.');
}

/** Citations of this dialect; positions in the answer have no place here and are dropped (design §9). */
export function citationBodies(item: Extract<OutputItem, { kind: 'text' }>): JsonObject[] {
  return item.citations.flatMap((citation) =>
    citation.kind === 'native' && citation.dialect === 'messages' ? [citation.body] : [],
  );
}
