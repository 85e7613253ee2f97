/** Images and documents as content blocks. Throws `unsupported_conversion` with the client's path for what has no block here. */
import { notConvertible } from '../../canonical/error.ts';
import type { Media } from '../../canonical/item.ts';
import type { JsonObject } from '../../canonical/json.ts';
import { essenceOf, type InlineData, mimeOfContent, sourceOfUrl, textOfInline } from '../../media.ts';

export function mediaBlock(media: Media): JsonObject {
  if (media.type === 'audio') throw notConvertible(media.at, 'Audio cannot be sent to a messages upstream.');
  if (media.type === 'video') throw notConvertible(media.at, 'Video cannot be sent to a messages upstream.');
  const source = media.source.from === 'url' ? sourceOfUrl(media.source.url) : media.source;
  switch (source.from) {
    case 'inline':
      return inlineBlock(media, source);
    case 'url':
      return blockOf(media, { type: 'url', url: publicUrl(source.url, media) });
    case 'reference':
      return blockOf(media, { type: 'file', file_id: source.id });
    case 'text':
      return document(media, { type: 'text', media_type: 'text/plain', data: source.text });
  }
}

/** An inline file keeps its own type, except that text is only taken as a plain text source (spec rule 6). */
function inlineBlock(media: Media, { mime, data }: InlineData): JsonObject {
  const essence = essenceOf(mimeOfContent({ mime, data }, media.filename) ?? mime);
  if (media.type === 'image' || essence.startsWith('image/')) {
    return { type: 'image', source: { type: 'base64', media_type: essence, data } };
  }
  if (essence.startsWith('audio/') || essence.startsWith('video/')) {
    throw notConvertible(media.at, `${essence} cannot be sent to a messages upstream.`);
  }
  if (essence.startsWith('text/')) {
    const text = textOfInline({ mime, data });
    if (text === undefined)
      throw notConvertible(media.at, 'The bytes of this text are not in UTF-8 or in the charset that it names.');
    return document(media, { type: 'text', media_type: 'text/plain', data: text });
  }
  return document(media, { type: 'base64', media_type: essence, data });
}

function blockOf(media: Media, source: JsonObject): JsonObject {
  return media.type === 'image' ? { type: 'image', source } : document(media, source);
}

function document(media: Media, source: JsonObject): JsonObject {
  return { type: 'document', source, ...(media.filename === undefined ? {} : { title: media.filename }) };
}

function publicUrl(url: string, media: Media): string {
  if (/^https?:\/\//i.test(url)) return url;
  throw notConvertible(media.at, 'Media must be given as content or as an http(s) URL.');
}
