/** The events of a canonical stream. Their order is in `canonical/lifecycle.ts`. */
import type { Repeat } from '../json/shape.ts';
import type { Ends } from '../json/text.ts';
import type { Dialect } from './dialect.ts';
import type { Citation, ItemStatus, Logprobs, OutputItem, Role, ToolName } from './item.ts';
import type { JsonValue } from './json.ts';
import type { Outcome } from './outcome.ts';
import type { Served, Usage } from './usage.ts';

/** What is known of an item when it starts. */
export type ItemHead =
  | { readonly kind: 'text'; readonly role: Role; readonly phase?: string; readonly id?: string }
  | { readonly kind: 'refusal'; readonly id?: string }
  | { readonly kind: 'reasoning'; readonly id?: string }
  | {
      readonly kind: 'toolCall';
      readonly toolType: 'function' | 'custom';
      readonly callId: string;
      readonly tool: ToolName;
      readonly id?: string;
    }
  | { readonly kind: 'media'; readonly id?: string }
  | { readonly kind: 'native'; readonly dialect: Dialect; readonly id?: string };

/** A text that an item grows by. */
export interface Growth {
  readonly text: string;
  /** The pieces of `text`, none empty, which a client gets one by one: a run (`answers/runs.ts`). Absent: it is one. */
  readonly pieces?: readonly string[];
}

/** What a client gets of it, one by one. */
export function piecesOf({ text, pieces }: Growth): readonly string[] {
  return pieces ?? [text];
}

/** A piece of an item. The comments name the kinds of items that take it. */
export type ItemDelta =
  /** text, refusal. A run has no logprobs. */
  | ({ readonly kind: 'text'; readonly logprobs?: Logprobs } & Growth)
  /** text */
  | { readonly kind: 'citation'; readonly citation: Citation }
  /** reasoning: raw text */
  | ({ readonly kind: 'raw' } & Growth)
  /** reasoning: readable summary, by part (0, 1, …; a new part starts a paragraph) */
  | ({ readonly kind: 'summary'; readonly part: number } & Growth)
  /** toolCall */
  | ({ readonly kind: 'input' } & Growth);

export type CanonicalEvent =
  | {
      readonly type: 'response.start';
      readonly id?: string;
      readonly model?: string;
      readonly createdAt?: number;
      /** Where it is known before any usage: it prices an answer whose client left, or that no usage was reported of. */
      readonly served?: Served;
    }
  /** `index` counts items 0, 1, 2, … in the order of their starts; it is the decoder's own, never an upstream index. */
  | { readonly type: 'item.start'; readonly index: number; readonly head: ItemHead }
  | { readonly type: 'item.delta'; readonly index: number; readonly delta: ItemDelta }
  /** The whole item, which is authoritative. Its text begins with that of the deltas; encoders send only the missing rest. */
  | { readonly type: 'item.end'; readonly index: number; readonly item: OutputItem; readonly status: ItemStatus }
  /**
   * Cumulative: the last non-null value of a field wins. `isOutputOlder`: this report itself counts no output, so that of `usage`
   * is from an earlier one, and output may have come since.
   */
  | { readonly type: 'usage.report'; readonly usage: Usage; readonly isOutputOlder?: true }
  /** An event that only its own dialect has: one without canonical meaning, or chat `annotations` of a text that has ended. */
  | { readonly type: 'native.event'; readonly dialect: Dialect; readonly name: string; readonly body: JsonValue }
  /**
   * The only terminal event. Items may still be open at `failed` and `cancelled`, where encoders close them as incomplete;
   * otherwise they may not.
   */
  | { readonly type: 'response.end'; readonly outcome: Outcome };

export type ItemEvent = Extract<CanonicalEvent, { type: 'item.start' | 'item.delta' | 'item.end' }>;

/** An upstream's event in its own form, for a client of the same dialect (design: "Same dialect on both sides is lossless"). */
export interface Native {
  readonly dialect: Dialect;
  /** The SSE event name, empty where the dialect uses none; `response` for a whole JSON body. */
  readonly name: string;
  /** The JSON text exactly as received. */
  readonly text: string;
  readonly json: JsonValue;
  /** Where long values of the text end, by their start. */
  readonly ends?: Ends | undefined;
  /** How the text repeats the shape of an earlier event of its stream, so that both get the same edits. */
  readonly repeat?: Repeat;
  /** Events that should stand before it and that the upstream left out. */
  readonly missing?: readonly Native[];
}

/** The texts of an item as far as they were streamed: the fold's record, which grows while the item is open. */
export interface StreamedTexts {
  /** The text of texts and refusals, the raw text of reasoning, the input of tool calls. */
  readonly text: string;
  readonly summary: readonly string[];
}

export interface FoldedTexts {
  /** `index`: of the canonical item. */
  texts(index: number): StreamedTexts | undefined;
}

/** What a decoder emits for each upstream event. A stage that changes `events` drops `native`. */
export interface Step {
  readonly native?: Native;
  readonly events: readonly CanonicalEvent[];
  /** The upstream runs a tool by itself which may have effects: no other may be asked to do it again. */
  readonly acts?: true;
  /** The fold of the answer. The order adds it to the steps that begin items. */
  readonly fold?: FoldedTexts;
}
