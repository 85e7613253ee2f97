/**
 * The shapes of the generative-content protocol that the gateway writes, and a writer that can embed JSON text as it came, so
 * that arguments keep their key order and number spelling. Reading is in `answer/decode-chunk.ts`.
 */
import { joinTexts } from '../join-texts.ts';
import { notConvertible } from '../canonical/error.ts';
import type { ToolCallItem } from '../canonical/item.ts';
import { objectInput } from '../tools/call-inputs.ts';
import { wrapFreeform } from '../tools/freeform.ts';

/** JSON text that is written unchanged. */
export class RawJson {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

export interface InlineData {
  readonly mimeType: string;
  readonly data: string;
  readonly displayName?: string;
}
export interface FileData {
  readonly mimeType?: string;
  readonly fileUri: string;
}
export interface FunctionCall {
  readonly id: string;
  readonly name: string;
  readonly args: RawJson;
}
export interface FunctionResponse {
  readonly id: string;
  readonly name: string;
  readonly response: { readonly output: string } | { readonly error: string };
  readonly parts?: readonly Part[];
}
/** A part has one member with data; the others modify it. */
export interface Part {
  readonly text?: string;
  readonly thought?: true;
  readonly inlineData?: InlineData;
  readonly fileData?: FileData;
  readonly functionCall?: FunctionCall;
  readonly functionResponse?: FunctionResponse;
  readonly thoughtSignature?: string;
}
export interface Content {
  readonly role: 'user' | 'model';
  readonly parts: readonly Part[];
}

/** `JSON.stringify` for values that may hold {@link RawJson}; undefined members are left out. */
export function writeJson(value: unknown): string {
  if (value instanceof RawJson) return value.text;
  if (Array.isArray(value)) return `[${joinTexts(value.map(writeJson))}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const members: string[] = [];
  for (const [key, member] of Object.entries(value)) {
    if (member !== undefined) members.push(`${JSON.stringify(key)}:${writeJson(member)}`);
  }
  return `{${joinTexts(members)}}`;
}

/**
 * The call's input as an object: the text itself, `{}` for null and for nothing, or what a JSON string holds. Throws
 * `unsupported_conversion` at the call's path where it is none.
 */
export function argumentsOf(call: ToolCallItem, isFreeform: boolean): RawJson {
  if (isFreeform) return new RawJson(wrapFreeform(call.input));
  const text = objectInput(call);
  if (text === undefined) throw notConvertible(call.at, 'The arguments of this tool call are not a JSON object.');
  return new RawJson(text);
}
