/** What can be known of a mask without decoding it: that it is a PNG, and that it is as large as the image that it belongs to. */
import { invalid } from '../canonical/error.ts';
import { headOf } from './inline.ts';
import { PNG_HEAD_BYTES, type PngHeader, readPngHeader } from './png.ts';
import { type ImageInput, isInline } from './request.ts';

/**
 * Throws a 400 for an inline mask that is no PNG, or whose size differs from the first image's. Links and file ids are not
 * opened.
 */
export function checkMask(mask: ImageInput, images: readonly ImageInput[]): void {
  if (!isInline(mask)) return;
  const header = headerOf(mask);
  if (header === undefined) throw invalid(mask.at, 'mask must be a PNG image.');
  const [first] = images;
  const image = first === undefined ? undefined : headerOf(first);
  if (image === undefined || (image.width === header.width && image.height === header.height)) return;
  throw invalid(
    mask.at,
    `mask must be as large as the first image: it is ${header.width}x${header.height}, the image ${image.width}x${image.height}.`,
  );
}

function headerOf(image: ImageInput): PngHeader | undefined {
  return isInline(image) ? readPngHeader(headOf(image, PNG_HEAD_BYTES)) : undefined;
}
