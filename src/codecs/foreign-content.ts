/** What only a client's own dialect can honour: refused at its path wherever another one is spoken. */
import { notConvertible } from './canonical/error.ts';
import type { Dialect } from './canonical/dialect.ts';
import type { NativeItem } from './canonical/item.ts';
import { isObject } from './canonical/json.ts';
import type { CanonicalRequest } from './canonical/request.ts';

/** Throws `unsupported_conversion` for a request that is bound to another dialect than `dialect` (responses `prompt`). */
export function refuseForeignBinding({ boundTo }: CanonicalRequest, dialect: Dialect): void {
  if (boundTo === undefined || boundTo.dialect === dialect) return;
  throw notConvertible(boundTo.at, `${boundTo.at} needs an upstream of its own protocol.`);
}

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
