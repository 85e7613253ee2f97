/** A multipart body of an image edit as an {@link ImageRequest}. The parts keep the received bytes. */
import { GatewayError, invalid } from '../canonical/error.ts';
import type { JsonValue } from '../canonical/json.ts';
import type { FormPart } from '../bodies/multipart-reader.ts';
import { checkMask } from './check-mask.ts';
import { fromForm, readFields } from './fields.ts';
import { headText, mimeOf } from './inline.ts';
import { MAX_IMAGES } from './read-json.ts';
import type { ImageRequest, InlineImage } from './request.ts';

/** SDKs send `image` for one file and `image[]` for several; both are one list (known failure I1). */
const IMAGE_FIELD = /^image(\[\d*\])?$/;
const MASK_FIELD = /^mask(\[\])?$/;

const MAX_TEXT_BYTES = 1024 * 1024;

/** Throws a 400 that names the field. */
export function readImageForm(parts: readonly FormPart[]): ImageRequest {
  const images: InlineImage[] = [];
  const masks: InlineImage[] = [];
  const members = new Map<string, JsonValue>();
  for (const part of parts) {
    if (isUnchosen(part)) continue;
    if (IMAGE_FIELD.test(part.name)) images.push(readFile(part, 'image'));
    else if (MASK_FIELD.test(part.name)) masks.push(readFile(part, 'mask'));
    else if (members.has(part.name)) throw invalid(part.name, `${part.name} is given more than once.`);
    else members.set(part.name, fromForm(part.name, readText(part)));
  }
  const fields = readFields('edit', members);
  if (images.length === 0) throw invalid('image', 'image is required: 1 to 16 files.');
  if (images.length > MAX_IMAGES)
    throw invalid('image', `image holds ${images.length} files; at most ${MAX_IMAGES} are allowed.`);
  if (masks.length > 1) throw invalid('mask', 'at most one mask is allowed.');
  const [mask] = masks;
  if (mask === undefined) return { ...fields, images };
  checkMask(mask, images);
  return { ...fields, images, mask };
}

/** How HTML forms send an input for files where nobody chose one: nothing, under no name. */
function isUnchosen({ filename = '', mime, size }: FormPart): boolean {
  return filename === '' && size === 0 && mime === 'application/octet-stream';
}

function readFile(part: FormPart, at: string): InlineImage {
  const { filename, mime, chunks, size } = part;
  // A field without a file name is text, unless it says that it is a picture.
  if (filename === undefined && !(mime ?? '').startsWith('image/')) throw invalid(at, `${at} must be a file.`);
  if (size === 0) throw invalid(at, `${at} is an empty file.`);
  const image = { from: 'bytes', chunks, size, at } as const;
  return {
    ...image,
    mime: mimeOf(mime, filename, () => headText(chunks)),
    ...(filename === undefined || filename === '' ? {} : { filename }),
  };
}

function readText(part: FormPart): string {
  if (part.filename !== undefined) throw invalid(part.name, `${part.name} is not a field that takes a file.`);
  if (part.size > MAX_TEXT_BYTES) throw new GatewayError('request_too_large', `${part.name} is too long.`, { param: part.name });
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(part.chunks));
  } catch (cause) {
    throw new GatewayError('invalid_request', `${part.name} is not valid UTF-8.`, { param: part.name, cause });
  }
}
