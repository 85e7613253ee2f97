/** Content of a client's own turn that only its own dialect can read. */
import { notConvertible } from './canonical/error.ts';
import type { NativeItem } from './canonical/item.ts';
import { isObject } from './canonical/json.ts';

/** How every dialect spells the types of what a user shows (`input_video`, `video_url`, `container_upload`, …). */
const MEDIA = /audio|document|file|image|upload|video/;

/**
 * Throws `unsupported_conversion` for media that the user gave and the selected upstream's dialect cannot read: without it the
 * question would be another one (semantics 3.11). Other native items are left to the loss table.
 */
export function refuseForeignMedia(item: NativeItem): void {
  if (item.role !== 'user' || !isObject(item.body)) return;
  const { type } = item.body;
  if (typeof type !== 'string' || !MEDIA.test(type)) return;
  throw notConvertible(item.at, "The selected upstream's protocol cannot take this kind of content.");
}
