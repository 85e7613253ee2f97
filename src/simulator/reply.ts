/**
 * What a model says, in words of no dialect: the content of a script and of the demonstration.
 * Each wire file writes it in its vendor's bytes. This is on purpose not the gateway's canonical model.
 */
import type { JsonObject } from './json.ts';

/** A text cut into words by the simulator, or the exact pieces to send. */
export type Deltas = string | readonly string[];

export interface Citation {
  readonly url: string;
  readonly title: string;
  /** Character positions in the text of the piece. */
  readonly start: number;
  readonly end: number;
}

export interface TokenLogprob {
  readonly token: string;
  readonly logprob: number;
  readonly top: readonly { readonly token: string; readonly logprob: number }[];
}

export interface TextPiece {
  readonly type: 'text';
  readonly text: Deltas;
  readonly citations?: readonly Citation[];
  /** One entry a token. Streamed beside the delta of the same index where the counts agree, else beside the first. */
  readonly logprobs?: readonly TokenLogprob[];
  /** Gemini only: the signature on the last part of the text. `true` issues one. */
  readonly signature?: string | true;
}

export interface RefusalPiece {
  readonly type: 'refusal';
  readonly text: Deltas;
}

/** Raw reasoning, its summary parts, and an opaque value: what a dialect cannot say it leaves out. */
export interface ReasoningPiece {
  readonly type: 'reasoning';
  readonly raw?: Deltas;
  readonly summary?: readonly string[];
  /** `true` issues a value that the simulator accepts back. */
  readonly opaque?: string | true;
}

export interface ToolPiece {
  readonly type: 'tool';
  readonly name: string;
  readonly arguments: Deltas;
  /** Absent: made by the dialect's habit. `null`: not sent at all. */
  readonly id?: string | null;
  readonly custom?: boolean;
  readonly namespace?: string;
  /** Gemini only. `true` issues one. */
  readonly signature?: string | true;
}

export interface ImagePiece {
  readonly type: 'image';
  /** Base64. */
  readonly data: string;
  readonly mimeType?: string;
  readonly size?: string;
}

/** An item of the dialect itself, sent as it is: a content block, an output item, a part, a delta. */
export interface NativePiece {
  readonly type: 'native';
  readonly value: JsonObject;
}

export type Piece = TextPiece | RefusalPiece | ReasoningPiece | ToolPiece | ImagePiece | NativePiece;

/** `input` is the whole prompt, cached parts included; `output` includes `reasoning`. */
export interface UsageFigures {
  readonly input: number;
  readonly output: number;
  readonly cached?: number;
  readonly cacheWrite?: number;
  readonly cacheWrite1h?: number;
  readonly reasoning?: number;
  /** Members that are added to the dialect's usage object as they are. */
  readonly extra?: JsonObject;
}

export interface Reply {
  readonly pieces: readonly Piece[];
  /** `stop`, `length`, `tool_calls`, `content_filter`, `failed`, or the dialect's own word, sent as it is. Absent: by content. */
  readonly finish?: string;
  /** The stop string that was met (messages). */
  readonly stopSequence?: string;
  /** With finish `failed` (responses). */
  readonly error?: { readonly code: string; readonly message: string };
  /** `null`: none is reported. Absent: counted. */
  readonly usage?: UsageFigures | null;
  readonly id?: string;
  /** The model name that the answer reports. Absent: the request's. */
  readonly model?: string;
  /** Chat and responses: the argument deltas of neighbouring calls alternate. */
  readonly interleave?: boolean;
}

export function wholeOf(text: Deltas | undefined): string {
  if (text === undefined) return '';
  return typeof text === 'string' ? text : text.join('');
}

/** Words with their leading white space. */
export function wordsOf(text: Deltas | undefined): readonly string[] {
  if (text === undefined) return [];
  return typeof text === 'string' ? (text.match(/\s*\S+|\s+$/gu) ?? []) : text;
}

/** Short pieces, as vendors cut arguments. Never splits a character. */
export function fragmentsOf(text: Deltas): readonly string[] {
  return typeof text === 'string' ? (text.match(/[\s\S]{1,6}/gu) ?? []) : text;
}

/** A rough count for replies that name no usage: four characters a token. */
export function roughTokens(text: string): number {
  return Math.ceil(text.length / 4);
}

/** The usage that a reply reports; `null` where it reports none. */
export function usageOf(reply: Reply, promptText: string): UsageFigures | null {
  if (reply.usage !== undefined) return reply.usage;
  let reasoning = 0;
  let output = 0;
  for (const piece of reply.pieces) {
    if (piece.type === 'reasoning') reasoning += roughTokens(wholeOf(piece.raw) + (piece.summary ?? []).join(''));
    else if (piece.type === 'tool') output += roughTokens(wholeOf(piece.arguments)) + 8;
    else if (piece.type === 'text' || piece.type === 'refusal') output += roughTokens(wholeOf(piece.text));
  }
  return { input: Math.max(1, roughTokens(promptText)), output: output + reasoning, reasoning };
}

/** The finish that the content implies, unless the reply names one. */
export function finishOf(reply: Reply): string {
  return reply.finish ?? (reply.pieces.some((piece) => piece.type === 'tool') ? 'tool_calls' : 'stop');
}
