/**
 * Opaque values on their way through a chat client: encrypted entries of `reasoning_details`, and signatures of calls, texts and
 * images.
 */
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import type { Opaque } from '../canonical/opaque.ts';
import type { ResponseContext } from '../codec.ts';
import type { JsonEdit } from '../json/edit.ts';
import type { JsonPath } from '../json/text.ts';
import { type Detail, detailsOfBlocks, opaqueOfDetail, readDetail, UNKNOWN_FORMAT } from './details.ts';
import { nonEmptyString } from './wire.ts';
import type { Item, TextItem } from '../canonical/item.ts';
import { TEXT_SEPARATOR } from '../answers/text-join.ts';

/** The `id` of the entry that holds the signature of an image; `image` is its index in the message. */
export function imageSignatureId(image: number): string {
  return `image_signature_${image}`;
}

/** True for the `id` of an entry that belongs to an image instead of to reasoning. */
export function isImageSignatureId(id: string): boolean {
  return /^image_signature_\d+$/.test(id);
}

/** The entry for one opaque value. The envelope also keeps the form that its vendor gave the entry. */
export function sealedEntry(opaque: Opaque, id: string, index: number, context: ResponseContext): JsonObject {
  return { type: 'reasoning.encrypted', data: context.seal(opaque), id, format: UNKNOWN_FORMAT, index };
}

/** Adds the edits that seal every payload in the details and blocks of thinking of a native delta or message at `path`. */
export function sealDetails(message: JsonObject, path: JsonPath, context: ResponseContext, edits: JsonEdit[]): void {
  sealBlocks(message, path, context, edits);
  // LiteLLM says them twice.
  const copies = message['provider_specific_fields'];
  if (isObject(copies)) sealBlocks(copies, [...path, 'provider_specific_fields'], context, edits);
  const details = message['reasoning_details'];
  if (!Array.isArray(details)) return;
  for (const [at, entry] of details.entries()) sealDetail(entry, [...path, 'reasoning_details', at], context, edits);
}

function sealBlocks(holder: JsonObject, path: JsonPath, context: ResponseContext, edits: JsonEdit[]): void {
  const blocks = holder['thinking_blocks'];
  if (!Array.isArray(blocks)) return;
  for (const [at, block] of blocks.entries())
    for (const detail of detailsOfBlocks([block])) sealDetail(detail, [...path, 'thinking_blocks', at], context, edits);
}

function sealDetail(entry: JsonValue, path: JsonPath, context: ResponseContext, edits: JsonEdit[]): void {
  const detail = readDetail(entry);
  for (const [member, value] of Object.entries(detail === undefined ? {} : sealedPayload(detail, context)))
    edits.push({ path: [...path, member], value: JSON.stringify(value) });
}

/** The member of an entry that holds its payload, sealed; empty for an entry without one. */
export function sealedPayload(detail: Detail, context: ResponseContext): JsonObject {
  if (detail.payload === undefined) return {};
  const sealed = context.seal(opaqueOfDetail(detail, detail.payload, context.owner));
  return { [detail.kind === 'text' ? 'signature' : 'data']: sealed };
}

/*
 * Signatures that Gemini's compatible endpoint puts on tool calls and messages (`extra_content.google.thought_signature`). It
 * refuses calls that come back without theirs.
 */

/** The `form` of such a signature. */
export const CALL_FORM = 'extra_content';

export const SIGNATURE_PATH = ['extra_content', 'google', 'thought_signature'] as const;

/** The signature of an entry of `tool_calls`, of a message or of a delta. */
export function signatureOf(entry: JsonValue): string | undefined {
  let value: JsonValue | undefined = entry;
  for (const key of SIGNATURE_PATH) value = isObject(value) ? value[key] : undefined;
  return nonEmptyString(value);
}

export function callOpaque(value: string, owner: Opaque['owner']): Opaque {
  return { owner, value, form: CALL_FORM };
}

/** The call with its signature, where it has one. */
export function signedCall(call: JsonObject, signature: string | undefined): JsonObject {
  return signature === undefined ? call : { ...call, extra_content: { google: { thought_signature: signature } } };
}

/** Adds the edits that seal the signatures of a native delta or message at `path`. */
export function sealSignatures(message: JsonObject, path: JsonPath, context: ResponseContext, edits: JsonEdit[]): void {
  const seal = (signed: JsonValue, at: JsonPath): void => {
    const value = signatureOf(signed);
    if (value === undefined) return;
    const sealed = context.seal(callOpaque(value, context.owner));
    edits.push({ path: [...at, ...SIGNATURE_PATH], value: JSON.stringify(sealed) });
  };
  seal(message, path);
  const calls = message['tool_calls'];
  if (!Array.isArray(calls)) return;
  for (const [at, entry] of calls.entries()) seal(entry, [...path, 'tool_calls', at]);
}

/*
 * Signatures of texts. A chat message joins all texts of an answer into one content, but a signature belongs to one of them. The
 * id of its entry in `reasoning_details` gives the range of that text, so that it is found again when the client sends the
 * message back.
 */

/** The range of a text in the content, in code units. */
export interface TextRange {
  readonly start: number;
  readonly end: number;
}

export interface SignedText extends TextRange {
  readonly opaque: Opaque;
}

/** The range for a signature that does not give one: it belongs to the last text. */
export const UNKNOWN_RANGE: TextRange = { start: 0, end: Number.POSITIVE_INFINITY };

/** The `id` of the entry that holds the signature of the text in this range. */
export function textSignatureId({ start, end }: TextRange): string {
  return `text_signature_${start}_${end}`;
}

/** The range that the `id` of such an entry gives; undefined for any other `id`. */
export function textRangeOf(id: string): TextRange | undefined {
  const [, start, end] = /^text_signature_(\d{1,15})_(\d{1,15})$/.exec(id) ?? [];
  return start === undefined || end === undefined ? undefined : { start: Number(start), end: Number(end) };
}

/**
 * The content with each signed text as an item of its own. Where the ranges no longer fit, the last text gets the last signature.
 */
export function signTexts(content: readonly Item[], signed: readonly SignedText[]): readonly Item[] {
  const last = signed.at(-1);
  if (last === undefined) return content;
  const [only] = content;
  const split = content.length === 1 && only?.kind === 'text' ? splitText(only, signed) : undefined;
  if (split !== undefined) return split;
  const at = content.findLastIndex(({ kind }) => kind === 'text');
  return content.map((item, index): Item => (index === at && item.kind === 'text' ? { ...item, opaque: last.opaque } : item));
}

/** Undefined where the ranges do not fit the text. */
function splitText(item: TextItem, signed: readonly SignedText[]): readonly TextItem[] | undefined {
  // A cache breakpoint belongs to the whole text.
  if (item.breakpoint !== undefined) return undefined;
  const parts: TextItem[] = [];
  let from = 0;
  for (const { start, end, opaque } of signed.toSorted((a, b) => a.start - b.start)) {
    if (start < from || start >= end || end > item.text.length) return undefined;
    const before = item.text.slice(from, start);
    // The separator was added for the client.
    if (before !== '' && before !== TEXT_SEPARATOR) parts.push({ ...item, text: before });
    parts.push({ ...item, text: item.text.slice(start, end), opaque });
    from = end;
  }
  if (from < item.text.length) parts.push({ ...item, text: item.text.slice(from) });
  return parts;
}
