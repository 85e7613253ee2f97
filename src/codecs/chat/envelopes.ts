/** Opaque values for chat clients: sealed entries of `reasoning_details`, whose `id` ties them to their item. */
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import type { Opaque } from '../canonical/opaque.ts';
import type { ResponseContext } from '../codec.ts';
import type { JsonEdit } from '../json/edit.ts';
import type { JsonPath } from '../json/text.ts';
import { opaqueOfDetail, readDetail, UNKNOWN_FORMAT } from './details.ts';

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

/** Adds the edits that seal every payload in the `reasoning_details` of a native delta or message at `path`. */
export function sealDetails(message: JsonObject, path: JsonPath, context: ResponseContext, edits: JsonEdit[]): void {
  const details = message['reasoning_details'];
  if (!Array.isArray(details)) return;
  for (const [at, entry] of details.entries()) sealDetail(entry, [...path, 'reasoning_details', at], context, edits);
}

function sealDetail(entry: JsonValue, path: JsonPath, context: ResponseContext, edits: JsonEdit[]): void {
  const detail = readDetail(entry);
  if (detail?.payload === undefined || !isObject(entry)) return;
  const member = detail.kind === 'text' ? 'signature' : 'data';
  const opaque = opaqueOfDetail(detail, detail.payload, context.owner);
  edits.push({ path: [...path, member], value: JSON.stringify(context.seal(opaque)) });
}
