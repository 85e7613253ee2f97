/** Images of the assistant in the form of routers: `{type: "image_url", image_url: {url}}`. */
import type { Media } from '../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import { dataUri, sourceOfUrl } from '../media.ts';
import { malformed, objectAt, nonEmptyString } from './wire.ts';

/** An entry of `images`, or an `image_url` content block. */
export function readImage(value: JsonValue): Media {
  const { image_url: image } = objectAt(value, 'images');
  const url = typeof image === 'string' ? nonEmptyString(image) : isObject(image) ? nonEmptyString(image['url']) : undefined;
  if (url === undefined) throw malformed('images');
  return { type: 'image', source: sourceOfUrl(url) };
}

/** The entry for a client; undefined where the image has neither content nor a public URL. */
export function writeImage(media: Media): JsonObject | undefined {
  const { source } = media;
  if (source.from !== 'inline' && source.from !== 'url') return undefined;
  return { type: 'image_url', image_url: { url: source.from === 'inline' ? dataUri(source) : source.url } };
}
