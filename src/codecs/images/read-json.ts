/** A JSON body of the image endpoints as an {@link ImageRequest}. */
import { GatewayError, invalid } from '../canonical/error.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import { isDataUri, parseDataUri } from '../media.ts';
import { checkMask } from './check-mask.ts';
import { readFields } from './fields.ts';
import { mimeOf } from './inline.ts';
import type { ImageInput, ImageOperation, ImageRequest } from './request.ts';

export const MAX_IMAGES = 16;
/** The vendors know some thirty. Each goes upstream by an edit of its own, and all of them in one turn of the event loop. */
const MAX_MEMBERS = 1000;

/** Throws a 400 that names the member. `text` is the exact body that parsed to `json`. */
export function readImageJson(operation: ImageOperation, text: string, json: JsonObject): ImageRequest {
  const given = Object.entries(json);
  if (given.length > MAX_MEMBERS)
    throw new GatewayError('invalid_request', `An image request may hold at most ${MAX_MEMBERS} members.`);
  const members = new Map<string, JsonValue>();
  for (const [name, value] of given) if (value !== undefined) members.set(name, value);
  const fields = readFields(operation, members);
  if (operation === 'generation') return { ...fields, images: [], text };
  const images = readImages(members.get('images'));
  const masked = members.get('mask');
  if (masked === undefined || masked === null) return { ...fields, images, text };
  const mask = readReference(masked, 'mask');
  checkMask(mask, images);
  return { ...fields, images, mask, text };
}

function readImages(value: JsonValue | undefined): readonly ImageInput[] {
  if (value === undefined || value === null) throw invalid('images', 'images is required: 1 to 16 images.');
  if (!Array.isArray(value)) throw invalid('images', 'images must be an array.');
  if (value.length < 1 || value.length > MAX_IMAGES) throw invalid('images', `images must hold 1 to ${MAX_IMAGES} images.`);
  return value.map((entry, index) => readReference(entry, `images[${index}]`));
}

function readReference(value: JsonValue, at: string): ImageInput {
  if (!isObject(value)) throw invalid(at, `${at} must be an object with image_url or file_id.`);
  const url = value['image_url'] ?? undefined;
  const fileId = value['file_id'] ?? undefined;
  if ((url === undefined) === (fileId === undefined)) {
    throw invalid(at, `${at} must hold exactly one of image_url and file_id.`);
  }
  // A form has no place for it, and the vendor refuses it in JSON.
  const other = Object.keys(value).find((name) => name !== 'image_url' && name !== 'file_id' && value[name] !== null);
  if (other !== undefined) throw invalid(`${at}.${other}`, `${at} must hold image_url or file_id, and nothing else.`);
  if (url !== undefined) return readUrl(url, `${at}.image_url`);
  if (typeof fileId !== 'string' || fileId === '') throw invalid(`${at}.file_id`, `${at}.file_id must be a string.`);
  return { from: 'reference', fileId, at: `${at}.file_id` };
}

/** The one form that the specification names: a picture in percent-escapes is none. */
const BASE64 = /^data:[^,]{0,256};\s*base64,/i;

function readUrl(url: JsonValue, at: string): ImageInput {
  if (typeof url !== 'string') throw invalid(at, `${at} must be a string.`);
  if (isDataUri(url)) {
    const inline = BASE64.test(url) ? parseDataUri(url) : undefined;
    if (inline === undefined || inline.data === '') throw invalid(at, `${at} is not a valid Base64 data URL.`);
    const { mime, data } = inline;
    return { from: 'base64', mime: mimeOf(mime, undefined, () => data), data, at };
  }
  if (!/^https?:\/\/[^\s/?#]/i.test(url)) throw invalid(at, `${at} must be an HTTP(S) URL or a Base64 data URL.`);
  return { from: 'url', url, at };
}
