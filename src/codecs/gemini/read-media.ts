/** Media parts of an answer. */
import type { Media } from '../canonical/item.ts';
import type { JsonObject } from '../canonical/json.ts';
import { mimeOfFilename, sniffMime } from '../media.ts';
import { malformed, object, text } from './read-chunk.ts';

/** The media of a part with `inlineData` or `fileData`. */
export function readMedia(part: JsonObject): Media {
  const inline = object(part, 'inlineData');
  if (inline !== undefined) {
    const data = text(inline, 'data');
    if (data === undefined) throw malformed('inlineData');
    const mime = text(inline, 'mimeType') ?? sniffMime(data) ?? 'application/octet-stream';
    return { type: typeOf(mime), source: { from: 'inline', mime, data } };
  }
  const file = object(part, 'fileData');
  const url = file === undefined ? undefined : text(file, 'fileUri');
  if (file === undefined || url === undefined) throw malformed('fileData');
  const mime = text(file, 'mimeType') ?? mimeOfFilename(url);
  return { type: typeOf(mime ?? ''), source: { from: 'url', url, ...(mime === undefined ? {} : { mime }) } };
}

function typeOf(mime: string): Media['type'] {
  if (mime.startsWith('image/')) return 'image';
  return mime.startsWith('audio/') ? 'audio' : 'file';
}
